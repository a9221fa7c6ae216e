"""All that will be submitted, decided: the script adds nothing to it."""

from dataclasses import dataclass

from glaunch.hostlist import expand
from glaunch.job_array import ArrayPart
from glaunch.placement.health import Penalty
from glaunch.placement.layout import RankLayout as RankLayout
from glaunch.placement.objective import NO_GROUPS, Groups
from glaunch.placement.placement import Cost, OrderRow, Placement
from glaunch.placement.predict import Outlook
from glaunch.request import Request
from glaunch.tuning import Environment


@dataclass(frozen=True, slots=True)
class Option:
    """One sbatch option, its name without dashes; value None for a switch. `why` is for people ("" = asked for by the user)."""

    name: str
    value: str | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Moment:
    """A better set that comes free, if nobody else takes it."""

    in_s: int
    """From now, when the last of the jobs on it reaches its time limit."""
    nodes: tuple[str, ...]
    cost: Cost
    idle_node_s: int = 0
    """How long its nodes would be kept free until then, all together: those that are free already, and those that come free before it."""


@dataclass(frozen=True, slots=True)
class Later:
    """What waiting would buy (`plan --when`)."""

    moments: tuple[Moment, ...]
    """Each better than all before it and than now."""
    looked_at: int
    ends: int
    """Of so many moments at which nodes come free."""
    hidden: int
    """Busy nodes of which Slurm shows no job: they never count as free."""
    advice: str
    """What the rule says; "" where there is nothing to weigh."""


@dataclass(frozen=True, slots=True)
class SlurmChoice:
    """What Slurm would do with the same job, were it not asked for any nodes (`plan --compare`)."""

    nodes: tuple[str, ...]
    """() where it refuses the job."""
    cost: Cost | None
    """None where no path joins the nodes, or the fabric does not know them."""
    starts_s: int | None
    """When, by Slurm's own estimate."""
    refusal: str


@dataclass(frozen=True, slots=True)
class Container:
    """The container that every rank starts in."""

    runtime: str
    """pyxis, apptainer, or auto: what the job finds on its nodes."""
    named: str
    """The image as it was asked for."""
    file: str
    """Its path, absolute; "" for an image of a registry, which every node fetches once a job."""
    pyxis: str
    """The image as pyxis names it."""
    apptainer: str
    """The same for Apptainer."""
    mounts: tuple[str, ...]
    """`SRC:DST[:FLAGS]` beside the job's folder, the working folder and the log folder, which are there anyway."""
    work_dir: str
    """Inside."""
    variables: tuple[str, ...]
    """Names of variables that keep the job's value where the image has one too."""
    options: tuple[str, ...]
    """More words for the runtime."""
    import_s: int
    """At most so long the import may take."""
    node_dir: str
    """Node-local place for an image that Apptainer fetched."""


@dataclass(frozen=True, slots=True)
class Launch:
    """How the ranks are started. `argv` is the program as each rank runs it: ("/usr/bin/python3", "/home/ada/train.py", "--lr", "1e-3")."""

    form: str
    """srun, torchrun, mpi, accelerate or exec: `templates/node/form-NAME.sh` does it."""
    argv: tuple[str, ...]
    work_dir: str
    starter: tuple[str, ...] = ()
    """What starts the ranks of a node, and more options for it: ("/usr/bin/python3", "-m", "torch.distributed.run", "--max_restarts=3").

    Where srun or mpirun starts them, the options alone.
    """
    mpi: str = ""
    """For the form mpi: auto, mpirun, or a type that srun --mpi takes."""
    modules: tuple[str, ...] = ()
    """Loaded in the batch shell, in this order, before anything else."""
    setup: tuple[str, ...] = ()
    """The user's own lines for that shell, after the variables are set."""
    container: Container | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """Complete: `plan` shows it, `run` submits it, the job's folder keeps it."""

    submission_id: str
    name: str
    folder: str
    """The job's folder, absolute."""
    request: Request
    partition: str
    time_limit_s: int | None
    time_limit_why: str
    layout: RankLayout
    mode: str
    """pin (ask for exactly these nodes), prefer (for these or as good ones) or order (Slurm picks, glaunch orders)."""
    mode_why: str
    placement: Placement | None
    """The best set that is free now; None when not enough is free."""
    best_possible: Placement | None
    """The best set on the partition's whole fabric, were every node free."""
    order: tuple[OrderRow, ...]
    directives: tuple[Option, ...]
    """#SBATCH lines, in order."""
    arguments: tuple[Option, ...]
    """Given to sbatch beside the script and never written into it: the nodes or the switches asked for, --no-requeue, the part before."""
    environment: Environment
    launch: Launch
    fabric_source: str
    cluster_taken_at_s: float
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    groups: Groups = NO_GROUPS
    """Nodes that should stay together; the order of the ranks respects them, whatever Slurm grants."""
    alternatives: tuple[Placement, ...] = ()
    """Free sets that another objective calls better: fewer pods, or fewer hops."""
    fewest_pods: int = 0
    """So many pods hold the job's nodes at best, were all of the partition free; 0: not known."""
    on_bad: str = "warn"
    """What the job does when it gets more pods than that: warn, fail, or requeue once."""
    health: tuple[Penalty, ...] = ()
    """Free nodes that are taken only where no equally good set has healthier ones."""
    paths: tuple[tuple[str, ...], ...] = ()
    """Each leaf of the partition and the switches above it, up to the root."""
    later: Later | None = None
    """Only where it was asked for, as the next."""
    slurm_choice: SlurmChoice | None = None
    outlook: Outlook | None = None
    """What the placement means for an all-reduce; None where there is no set or the fabric does not know it."""
    slurm_version: str = ""
    by_version: tuple[str, ...] = ()
    """What Slurm changed, version by version, and what that means for this job."""
    parts: tuple[ArrayPart, ...] = ()
    """Of an array that is larger than one job of this Slurm may be: the submissions that it is; () where it is one."""
    part: int = 0
    """Which of `parts` these directives submit."""
    components: tuple["Plan", ...] = ()
    """The further components of a heterogeneous job, each with nodes, directives and a program of its own; () for a plain job. Folder, id,
    mode, order table and environment are this plan's."""

    @property
    def all_components(self) -> tuple["Plan", ...]:
        """This one and `components`, in the order of their ranks."""
        return (self, *self.components)

    @property
    def tasks(self) -> int:
        """All ranks of the job."""
        return sum(one.layout.tasks for one in self.all_components)

    @property
    def nodes(self) -> int:
        """All nodes of the job."""
        return sum(one.layout.nodes for one in self.all_components)

    @property
    def listed(self) -> tuple[str, ...]:
        """The nodes that Slurm is asked for by name: the planned ones, of `prefer` their spares too; () where it chooses freely."""
        return next((tuple(expand(option.value)) for option in self.arguments if option.name == "nodelist" and option.value), ())

    @property
    def offset(self) -> int:
        """What is to be added to Slurm's array index for the one that was asked for."""
        return self.parts[self.part].offset if self.parts else 0

    @property
    def tasks_of_part(self) -> str:
        """The array's indexes in this submission, as they were asked for; "" where the launch is one submission."""
        return self.parts[self.part].tasks if self.parts else ""
