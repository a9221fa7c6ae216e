"""What diagnosis looks at: one attempt of a job, all of it read before."""

from collections.abc import Iterator
from dataclasses import dataclass

from glaunch.errors import UsageError
from glaunch.hostlist import expand
from glaunch.job import Job
from glaunch.logs import LogBundle, RankRow
from glaunch.placement.layout import RankLayout
from glaunch.placement.objective import HOPS
from glaunch.placement.placement import Cost


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file's text (or its end); `first_line` is the number of its first line here."""

    name: str
    """Below the job's folder: `12.0.0/batch.log`."""
    text: str
    first_line: int = 1

    def lines(self) -> Iterator[tuple[str, str]]:
        """(FILE:LINE, line) of every line."""
        for number, line in enumerate(self.text.split("\n"), self.first_line):
            yield f"{self.name}:{number}", line.rstrip("\r")


@dataclass(frozen=True, slots=True)
class JobFacts:
    """One attempt. "", () and None mean: not known."""

    job: Job
    attempt: str = ""
    """The attempt's folder below the job's: `12.0.0`."""
    program: str = ""
    """What each rank runs, its first word."""
    form: str = "srun"
    """How the ranks were started."""
    tasks: int = 0
    tasks_per_node: int = 0
    layouts: tuple[RankLayout, ...] = ()
    """Of a heterogeneous job how the ranks of each component lie on its nodes, in order; () for a plain one."""
    pinned: bool = False
    """Asked for exactly the planned nodes, and the pin was not lifted."""
    preferred: bool = False
    """Asked for the planned nodes or as good ones."""
    planned: tuple[str, ...] = ()
    """The plan's nodes in rank order; () when not enough were free then."""
    order: tuple[tuple[str, int], ...] = ()
    """(node, position) of the plan's order table."""
    granted: tuple[str, ...] = ()
    """What Slurm gave, in rank order."""
    planned_cost: Cost | None = None
    granted_cost: Cost | None = None
    best_cost: Cost | None = None
    """The least possible on the partition's whole fabric."""
    pods: tuple[int, int, str] | None = None
    """As the job saw it when it started, where it had more pods than its size needs: (pods, the fewest, `failed`, `requeued` or "")."""
    objective: str = HOPS
    """By which the three are compared."""
    ranks: tuple[RankRow, ...] = ()
    batch_log: TextFile | None = None
    outputs: tuple[TextFile, ...] = ()
    """out/HOST.log (or its end) of hosts where ranks failed; `failures.first_failure` names the first."""
    exit_code: int | None = None
    """From the attempt's exit.json."""
    left_in: str = ""
    """The line of setup that a job without exit.json was in."""
    logs: LogBundle | None = None

    @property
    def sets(self) -> tuple[tuple[tuple[str, ...], int, int], ...]:
        """(granted nodes, ranks, ranks a node) of each component, of a plain job of all."""
        if not self.layouts:
            return ((self.granted, self.tasks, self.tasks_per_node),)
        sets, at = [], 0
        for layout in self.layouts:
            sets.append((self.granted[at : at + layout.nodes], layout.tasks, layout.tasks_per_node))
            at += layout.nodes
        return tuple(sets)

    def first_rank_beside(self, hosts: str) -> int:
        """The first rank of the component that has these hosts (a hostlist): srun counts the tasks of each component from 0.

        **Source:** tried on 22.05.8 and 24.11.5.
        """
        if not self.layouts or not hosts:
            return 0
        try:
            named, first = set(expand(hosts)), 0
        except UsageError:  # a line of the log that only looks like srun's
            return 0
        for nodes, tasks, _ in self.sets:
            if named & set(nodes):
                return first
            first += tasks
        return 0

    def file(self, name: str) -> str:
        """A file of the attempt as findings name it."""
        return f"{self.attempt}/{name}" if self.attempt else name
