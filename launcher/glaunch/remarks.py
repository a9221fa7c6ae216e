"""What a plan says beside its decisions: warnings and notes. Pure."""

from collections import Counter
from collections.abc import Sequence

from glaunch.asking import Way, parse_wait
from glaunch.block_rule import block_rule, tops
from glaunch.errors import NeverFits
from glaunch.fabric import Fabric
from glaunch.hostlist import fold
from glaunch.placement.eligible import Eligible
from glaunch.placement.layout import RankLayout, as_asked
from glaunch.placement.placement import Placement
from glaunch.request import Request
from glaunch.settings import Settings
from glaunch.slurm_versions import (
    CPUS_NOT_INHERITED,
    LISTS_SEGMENTS,
    LISTS_SPARES,
    NEWEST,
    NO_ARBITRARY_IN_BLOCKS,
    NO_GRES_PER_TASK,
    NODES_OR_HOST_FILE,
    OLDEST,
    RANKS_FOLLOW_SWITCHES,
    SEGMENTS,
    SEGMENTS_APART,
    STEPS_APART,
    version_text,
)
from glaunch.units import format_time, plural

_TORCHRUN = "--launcher torchrun takes the script alone"
_MPI = "--launcher mpi takes the program alone"
_AGENTS = {
    "torchrun": _TORCHRUN,
    "torch.distributed.run": _TORCHRUN,
    "torch.distributed.launch": _TORCHRUN,
    "accelerate": "--launcher accelerate takes the script alone",
    "deepspeed": "leave it out, where the script reads RANK and WORLD_SIZE",
}
_STARTERS = _AGENTS | {"mpirun": _MPI, "mpiexec": _MPI, "srun": "leave it out"}
"""What starts ranks of its own → what is to be typed. **Source:** tried: srun in a rank waits for ever for the nodes of its own job, and
mpirun in each of 8 ranks makes 64."""


def warnings(fabric: Fabric, placement: Placement | None, impossible: NeverFits | None) -> tuple[str, ...]:
    """What a person should know before the job runs: that it never will, or what the fabric does not say."""
    warnings = [f"Slurm will refuse this or never run it: {impossible.message}"] if impossible else []
    if fabric.flat:
        warnings.append(
            f"no topology is known ({fabric.source}): all nodes are taken to hang on one switch, so any set is as good as another"
        )
    warnings += fabric.notes
    unknown = [] if placement is None else [node for node in placement.nodes if node not in fabric.leaf_of]
    if unknown:
        warnings.append(f"the topology does not mention {fold(unknown)}")
    return tuple(warnings)


def twice(request: Request, form: str, layout: RankLayout) -> tuple[str, ...]:
    """That the program starts ranks itself, and is started once a rank: so many times as many. One agent a node is a sound way."""
    program, *rest = request.command
    name = program.rpartition("/")[2]
    if name.startswith("python") and rest[:1] == ["-m"]:
        name = rest[1] if len(rest) > 1 else ""
    instead = _STARTERS.get(name)
    if instead is None or form == "exec" or layout.tasks == 1 or (name in _AGENTS and layout.tasks_per_node == 1):
        return ()
    times = f"{name} starts ranks itself, and here it is started {layout.tasks} times, once a rank"
    return (f"{times}: {instead}, or --launcher exec starts it once",)


def untried(version: Sequence[int]) -> tuple[str, ...]:
    """That this Slurm is none of those that glaunch is tried on; () for one of them, and where it is not known."""
    known = f"glaunch is tried on {version_text(OLDEST)} to {version_text(NEWEST)}"
    if tuple(version[:2]) > NEWEST:
        return (f"Slurm {version_text(version)} is newer than all that is known here ({known}): it is taken for a {version_text(NEWEST)}",)
    if version and tuple(version[:2]) < OLDEST:
        return (f"Slurm {version_text(version)} is older than all that is known here ({known})",)
    return ()


def by_version(version: Sequence[int], request: Request, fit: Eligible, mode: str, *, blocks: bool, segmented: bool) -> tuple[str, ...]:
    """The rows of the table of Slurm's versions that this job meets, `23.11: …; …`, and those that it misses for its placement.

    `blocks`: Slurm places it by topology/block; `segmented`: it is asked for in segments.
    """
    met = {
        STEPS_APART: True,
        CPUS_NOT_INHERITED: bool(request.cpus_per_task or fit.layout.gpus_per_node),
        LISTS_SPARES: mode == "prefer",
        NODES_OR_HOST_FILE: True,
        SEGMENTS: segmented or (blocks and request.segment is not None),
        NO_GRES_PER_TASK: bool(fit.layout.gpus_per_node),
        LISTS_SEGMENTS: segmented,
        SEGMENTS_APART: segmented,
        RANKS_FOLLOW_SWITCHES: not blocks,
        NO_ARBITRARY_IN_BLOCKS: blocks,
    }
    rows = [row for row, does in met.items() if does]
    here = (f"{row.span}: {row.what}; {row.then}" for row in rows if row.there(version))
    missed = (row for row in rows if row in {LISTS_SPARES, SEGMENTS, LISTS_SEGMENTS} and not row.there(version))
    return (*here, *(f"not before {row.span}: {row.what}; {row.then}" for row in missed))


def apart(request: Request, fabric: Fabric, fit: Eligible, best: Placement | None) -> tuple[str, int]:
    """(why no set is good enough, however many nodes are free, since no path, or no block, joins so many; how many are joined at most).

    ("", 0) where a set is joined.
    """
    n = fit.layout.nodes
    if best is not None or n > len(fit.could_ever) or not fit.decided:
        return "", 0
    top_of = tops(fabric, None if request.segment else n)
    held = Counter(top_of[fabric.leaf_of[node]] for node in fit.could_ever if node in fabric.leaf_of)
    most, where = max(((count, name) for name, count in held.items()), default=(0, ""))
    has = f"; the most has {where}: {most}" if most else ""
    if block_rule(fabric, n) is not None and not request.segment:
        what = f"topology/block keeps a job of {n} nodes in one block of the size that holds it, and none has so many such nodes{has}"
        return what, most
    helps = "; --mixed joins kinds of GPUs, not islands" if request.mixed else ""
    what = f"no island has {n} such nodes{has}: between islands no path is known, and Slurm's topology/tree starts no job over two{helps}"
    return what, most


def mixed(fit: Eligible) -> tuple[str, ...]:
    """What a job on nodes of several kinds must expect."""
    if not fit.mixture:
        return ()
    kinds = ", ".join(f"{plural(nodes, 'node')} × {gpus} {kind or 'GPUs'}" for kind, gpus, nodes in fit.mixture)
    warned = (
        f"this job may get different GPUs ({kinds}): the slowest sets the pace, and what fits into one's memory may not fit into another's"
    )
    used, most = fit.layout.gpus_per_node, max(gpus for _, gpus, _ in fit.mixture)
    if most == used:
        return (warned,)
    return (
        warned,
        f"{plural(used, 'GPU')} of each node are used, as many as the least have: up to {most - used} of a node are left to others",
    )


def requeues(settings: Settings, way: Way) -> tuple[str, ...]:
    """That a pinned job is not requeued, where it was asked to be."""
    listed = any(option.name == "nodelist" for option in way.arguments)
    if settings.text("placement.on_bad") != "requeue" or not listed:
        return ()
    return (f"{settings.where('placement.on_bad')} requeue: a job that asks for its nodes by name is never requeued; it warns",)


def vain(request: Request, fabric: Fabric, best: Placement | None) -> tuple[str, ...]:
    """Why waiting for so few leaf switches gets nothing; () where it may."""
    if not request.wait_for_leaves:
        return ()
    leaves, _ = parse_wait(request.wait_for_leaves)
    if fabric.flat:
        return ("--wait-for-leaves: this Slurm knows of no leaf switches",)
    if best is not None and best.cost.leaves > leaves:
        words = plural(best.cost.leaves, "leaf", "leaves")
        return (f"--wait-for-leaves {leaves}: even with all nodes free it takes {words}; Slurm waits in vain, then takes any",)
    return ()


def notes(request: Request, fit: Eligible, placement: Placement | None, *, hidden: bool, never: bool) -> tuple[str, ...]:
    """What is good to know: what the environment added, what would start sooner (unless it can `never` run), why nodes are not free."""
    notes = list(fit.notes)
    if request.inherited:
        notes.append(f"asked for by your environment: {', '.join(request.inherited)}")
    if request.named_dependency:
        notes.append(f"-d {request.named_dependency}: {request.dependency}")
    if request.mixed and not fit.mixture:
        why = "was not needed: enough nodes of one kind are free" if placement else "changes nothing: all nodes that fit are alike"
        notes.append(f"--mixed {why}")
    if request.unused:
        notes.append(f"of your environment the job does not get, as it contradicts the plan: {', '.join(request.unused)}")
    if hidden:
        return tuple(notes)
    if placement is None and not never:
        free, layout = len(fit.nodes) + len(fit.startable), fit.layout
        some = f"{free} of {plural(layout.nodes, 'node')} free now"
        if free >= layout.nodes:
            some = f"{free} nodes are free now, but not {layout.nodes} that lie together"
        notes.append(f"{some}: submitted all the same, it starts when Slurm finds the rest")
        if free and free < layout.nodes:
            notes.append(f"what would start sooner: {as_asked(request, layout, free, counted=True)}")
        if fit.soonest_limit_s:
            notes.append(f"what would start sooner: -t {format_time(fit.soonest_limit_s)}, which ends before a reservation begins")
    startable = set(fit.startable) & set(placement.nodes if placement else ())
    if startable:
        notes.append(f"{len(startable)} of these nodes are powered down and must start first")
    if fit.left_out:
        notes.append("not free: " + ", ".join(f"{count} {why}" for why, count in fit.left_out))
    return tuple(notes)
