"""A job as Slurm tells of it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from glaunch.hostlist import expand, fold

OVER = frozenset(
    {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT"}
)
"""States after which a job does nothing more. **Source:** squeue(1), JOB STATE CODES."""
FORGOTTEN, UNTOLD = "UNKNOWN", "UNTOLD"
"""States of ours: of a job that Slurm does not know any more; of one that may well run, since Slurm did not answer."""
LAUNCH_FAILURE = (0, 53)
"""ExitCode `0:53`: slurmd could not open the batch script's output. **Source:** seen on 22.05 to 26.05."""
UNSEEN = (73, 0)
"""How job.sbatch ends on a node that does not see the job's folder: a Slurm that makes the output's folder there starts it all the same."""


@dataclass(frozen=True, slots=True)
class Job:
    """One row of squeue, `scontrol show job` or sacct; "" or None = not said."""

    id: str
    """As Slurm prints it: `12`, `12_3` (array task), `12+0` (a component of a heterogeneous job; see `whole`)."""
    state: str
    """PENDING, RUNNING, …: the long form, without a suffix."""
    reason: str = ""
    name: str = ""
    partition: str = ""
    time_limit_s: int | None = None
    node_count: int | None = None
    nodes: str = ""
    """The hostlist that was granted; "" while pending."""
    required_nodes: str = ""
    """ReqNodeList: the pin, or the user's own -w."""
    exit_code: int = 0
    exit_signal: int = 0
    restarts: int = 0
    start_s: int | None = None
    """When it started or, while pending, Slurm's estimate; seconds since the epoch."""
    script: str = ""
    """Path of the batch script as squeue's %o shows it; older Slurms add its arguments (`slurm_versions.SHOWS_SCRIPTS_ALONE`)."""

    @property
    def whole_id(self) -> str:
        """`12` of `12`, `12_3` and `12+0`."""
        return re.split(r"[_+]", self.id)[0]

    @property
    def never_ran(self) -> bool:
        """True when the batch script could not begin: its first node cannot see, or not write, what it needs.

        Of a job that left an attempt it says nothing: 73 may be its program's own exit code.
        """
        return self.reason == "JobLaunchFailure" or (self.exit_code, self.exit_signal) in (LAUNCH_FAILURE, UNSEEN)

    @property
    def code(self) -> int:
        """The exit code that Slurm gives it, as a shell would tell it."""
        return self.exit_code or (128 + self.exit_signal if self.exit_signal else 0)

    @property
    def over(self) -> bool:
        """True when the job will do nothing more."""
        return self.state in OVER


def whole(rows: Sequence[Job]) -> Sequence[Job]:
    """Rows of one job as they are; of a heterogeneous job's components (`12+0`, `12+1`) one row: the first, with the nodes of all."""
    if not rows or not all("+" in row.id for row in rows):
        return rows
    parts = sorted(rows, key=lambda row: int(row.id.partition("+")[2]))
    counts = [row.node_count for row in parts if row.node_count is not None]
    nodes = fold(node for row in parts for node in expand(row.nodes))
    return (replace(parts[0], id=parts[0].id.partition("+")[0], nodes=nodes, node_count=sum(counts) if counts else None),)


@dataclass(frozen=True, slots=True)
class Occupation:
    """A running job, anybody's: the nodes that it holds, and until when."""

    nodes: tuple[str, ...]
    ends_s: int | None
    """By its time limit, seconds since the epoch; None: it has none."""
