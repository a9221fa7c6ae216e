"""What Slurm said about a cluster at one moment. 100,000 nodes are columns here, not objects."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from glaunch.accounting import Accounting
from glaunch.fabric import Fabric

IntArray = npt.NDArray[np.int64]
HIDDEN = "HIDDEN"
"""The state, none of Slurm's, of a node that Slurm does not show."""


@dataclass(frozen=True, slots=True)
class GpuCount:
    """The GPUs of one type in a node, as Slurm counts them; `kind` is "" for untyped ones."""

    kind: str
    total: int
    allocated: int
    whole: bool = True
    """False for slices (MIG): a request must name them, and they never count as GPUs."""


@dataclass(frozen=True, eq=False)
class NodeTable:
    """One row a node, in Slurm's own order; all columns have the same length."""

    names: tuple[str, ...]
    addresses: tuple[str, ...]
    """NodeAddr: where ssh reaches the node (may differ from its name)."""
    states: tuple[str, ...]
    """As Slurm writes it: the base state and its flags joined by `+`, e.g. `IDLE`, `MIXED+DRAIN`, `IDLE+CLOUD+POWERED_DOWN`."""
    cpus_total: IntArray
    cpus_allocated: IntArray
    memory_total_mib: IntArray
    memory_allocated_mib: IntArray
    gpus_total: IntArray
    gpus_allocated: IntArray
    gpu_types: tuple[str, ...]
    """`h100`; empty for untyped or no GPUs; several, sorted and joined by `,`, where a node mixes them."""
    weights: IntArray
    """Slurm's node Weight: lower is used first."""
    features: tuple[frozenset[str], ...]
    partitions: tuple[frozenset[str], ...]
    gpus: tuple[tuple[GpuCount, ...], ...] = ()
    """GPUs by type, sorted by type; empty where the table was made without them (then the columns above are all there is)."""

    @property
    def hidden(self) -> bool:
        """True where Slurm shows this user no node (PrivateData=nodes): then only the names are known, from the partitions."""
        return bool(self.states) and all(state == HIDDEN for state in self.states)

    def gpus_at(self, row: int) -> tuple[GpuCount, ...]:
        """The GPUs of one node by type; from the total columns where the table has no finer ones."""
        if self.gpus:
            return self.gpus[row]
        total, allocated = int(self.gpus_total[row]), int(self.gpus_allocated[row])
        return (GpuCount(self.gpu_types[row], total, allocated),) if total else ()

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def row(self) -> Mapping[str, int]:
        """Node name → row."""
        return MappingProxyType({name: row for row, name in enumerate(self.names)})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NodeTable):
            return NotImplemented
        return all(_same(getattr(self, column), getattr(other, column)) for column in self.__dataclass_fields__)

    __hash__ = None  # type: ignore[assignment]


def hidden_nodes(names: Sequence[str]) -> NodeTable:
    """The nodes of a cluster that shows them to nobody but its administrators."""
    none = np.zeros(len(names), dtype=np.int64)
    nothing: tuple[frozenset[str], ...] = (frozenset(),) * len(names)
    return NodeTable(
        names=tuple(names),
        addresses=tuple(names),
        states=(HIDDEN,) * len(names),
        cpus_total=none,
        cpus_allocated=none,
        memory_total_mib=none,
        memory_allocated_mib=none,
        gpus_total=none,
        gpus_allocated=none,
        gpu_types=("",) * len(names),
        weights=none,
        features=nothing,
        partitions=nothing,
    )


def _same(one: object, two: object) -> bool:
    if isinstance(one, np.ndarray) and isinstance(two, np.ndarray):
        return bool(np.array_equal(one, two))
    return one == two


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition and the limits that a request meets in it; None is no limit."""

    name: str
    nodes: tuple[str, ...]
    up: bool
    default: bool
    max_time_s: int | None
    default_time_s: int | None
    """What a job without --time gets; None where Slurm then gives the maximum."""
    max_nodes: int | None
    min_nodes: int
    allow_accounts: tuple[str, ...]
    """Empty: all."""
    allow_groups: tuple[str, ...]
    allow_qos: tuple[str, ...]
    over_subscribe: str
    """NO, EXCLUSIVE, FORCE:n or YES:n as Slurm writes it."""
    preempt_mode: str
    job_defaults: Mapping[str, str]
    """DefCpuPerGPU, DefMemPerGPU where set."""
    deny_accounts: tuple[str, ...] = ()
    deny_qos: tuple[str, ...] = ()
    hidden: bool = False
    root_only: bool = False
    needs_reservation: bool = False
    """ReqResv=YES: only jobs with a --reservation may run here."""
    priority_tier: int = 1
    """Jobs of a higher tier may preempt those of a lower one (preempt/partition_prio)."""
    topology: str = ""
    """The topology of topology.yaml by which its jobs are placed; "" for the default one."""
    qos: str = ""
    """The QOS whose limits the partition has; "" for none."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """Nodes held for somebody or something; times are seconds since the epoch."""

    name: str
    nodes: tuple[str, ...]
    start_s: int
    end_s: int
    users: tuple[str, ...]
    accounts: tuple[str, ...]
    flags: tuple[str, ...]
    partition: str = ""
    """The only partition it is for; "" for any."""
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=True)
class Cluster:
    """A snapshot; never refreshed in place."""

    name: str
    slurm_version: tuple[int, ...]
    """(22, 5, 8)."""
    taken_at_s: float
    nodes: NodeTable
    partitions: tuple[Partition, ...]
    reservations: tuple[Reservation, ...]
    config: Mapping[str, str]
    """`scontrol show config`, keys as Slurm writes them; empty where it was not asked."""
    accounting: Accounting | None = None
    """What accounting allows this user; None where there is none, or where it did not answer (`accounting_note` says so)."""
    accounting_note: str = ""
    topology: Fabric | None = None
    """What Slurm itself says of its topology, the one that counts in the partition that was asked for; None where it was not looked at."""

    def partition(self, name: str) -> Partition | None:
        """The partition of that name."""
        return next((partition for partition in self.partitions if partition.name == name), None)


def parameters(config: Mapping[str, str], key: str) -> Mapping[str, str]:
    """A comma list of Slurm's configuration (`SchedulerParameters`): name in small letters → what stands behind its `=` ("": nothing).

    Of a name that stands there twice the first counts. **Source:** Slurm's src/plugins/sched/backfill/backfill.c looks for the name
    (xstrcasestr) and reads on from there.
    """
    found: dict[str, str] = {}
    for word in config.get(key, "").split(","):
        name, _, value = word.strip().partition("=")
        found.setdefault(name.lower(), value)
    found.pop("", None)
    return found
