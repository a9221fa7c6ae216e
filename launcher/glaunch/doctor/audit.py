"""How near to each other the nodes of past jobs were, against the nearest that jobs of their size can be.

Every job counts, whoever launched it and how. The fewest leaves, and the fewest pods, each by itself, are those of the whole
empty fabric, whatever partition the job ran in: the largest leaves (pods) of one island first.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from glaunch.errors import UsageError
from glaunch.fabric import Fabric
from glaunch.hostlist import expand
from glaunch.past_jobs import PastJobs

IntArray = npt.NDArray[np.int64]
WORST = 10


@dataclass(frozen=True, slots=True)
class AuditedJob:
    """One job, as it lay."""

    id: str
    user: str
    partition: str
    state: str
    node_count: int
    leaves: int
    fewest_leaves: int
    pods: int
    fewest_pods: int
    elapsed_s: int
    nodes: str


@dataclass(frozen=True, slots=True)
class AuditedGroup:
    """The jobs of a partition with `least_nodes` to `most_nodes` nodes; leaves and pods are sums over them."""

    partition: str
    least_nodes: int
    most_nodes: int
    jobs: int
    at_fewest: int
    """Jobs on the fewest leaves and the fewest pods."""
    leaves: int
    fewest_leaves: int
    pods: int
    fewest_pods: int
    node_s: int
    apart_node_s: int
    """Node-seconds of the jobs that were not at the fewest."""


@dataclass(frozen=True, slots=True)
class Audit:
    """All past jobs of a time on one fabric."""

    fabric: str
    leaves: int
    pods: int
    groups: tuple[AuditedGroup, ...]
    """By partition, then by size."""
    worst: tuple[AuditedJob, ...]
    """Those with the most leaves (then pods, then node-hours) beyond the fewest, at most WORST."""
    jobs: int
    never_ran: int
    off_fabric: int
    """Jobs left out because the fabric does not know all of their nodes (nodes that were renamed or are gone)."""
    unknown_nodes: tuple[str, ...] = ()
    """Some of those nodes."""


def audit(fabric: Fabric, jobs: PastJobs) -> Audit:
    """Where the jobs lay and where they could have lain. Each different hostlist is read once, each size is solved once."""
    lain = _Lain(fabric)
    table = np.array([lain.of(nodes) for nodes in jobs.nodes], dtype=np.int64).reshape(-1, 3)
    on_fabric = np.flatnonzero(table[:, 0] > 0)
    sizes, leaves, pods = table[on_fabric].T
    island_of = [fabric.path_of_leaf(leaf)[-1] for leaf in fabric.leaves]
    unique, inverse = np.unique(sizes, return_inverse=True)
    room = [len(fabric.by_name[leaf].nodes) for leaf in fabric.leaves]
    best_leaves = _fewest(unique, room, island_of)[inverse]
    best_pods = _fewest(unique, *_pods(fabric, room, island_of))[inverse]
    seconds = np.array(jobs.elapsed_s, dtype=np.int64)[on_fabric]
    columns = _Columns(sizes, leaves, best_leaves, pods, best_pods, seconds)
    return Audit(
        fabric=fabric.source,
        leaves=len(fabric.leaves),
        pods=len({fabric.pod_of_leaf(leaf) for leaf in fabric.leaves}),
        groups=_groups([jobs.partitions[row] for row in on_fabric], columns),
        worst=_worst(jobs, on_fabric, columns),
        jobs=len(jobs),
        never_ran=jobs.never_ran,
        off_fabric=len(jobs) - len(on_fabric),
        unknown_nodes=tuple(lain.unknown),
    )


class _Lain:
    """(nodes, leaves, pods) of a hostlist; zeros where the fabric does not know all of its nodes, or it is none."""

    def __init__(self, fabric: Fabric) -> None:
        pods = {pod: number for number, pod in enumerate(dict.fromkeys(map(fabric.pod_of_leaf, fabric.leaves)))}
        self._pod_of = [pods[fabric.pod_of_leaf(leaf)] for leaf in fabric.leaves]
        self._row_of = dict(fabric.leaf_row)
        self._known: dict[str, tuple[int, int, int]] = {}
        self.unknown: dict[str, None] = {}

    def of(self, nodes: str) -> tuple[int, int, int]:
        found = self._known.get(nodes)
        if found is None:
            found = self._known[nodes] = self._counted(nodes)
        return found

    def _counted(self, nodes: str) -> tuple[int, int, int]:
        try:
            names = expand(nodes)
        except UsageError:
            names = (nodes,)
        try:
            leaves = {self._row_of[name] for name in names}
        except KeyError:
            for name in names:
                if name not in self._row_of and len(self.unknown) < WORST:
                    self.unknown[name] = None
            return 0, 0, 0
        return len(names), len(leaves), len({self._pod_of[leaf] for leaf in leaves})


def _pods(fabric: Fabric, room: Sequence[int], island_of: Sequence[str]) -> tuple[list[int], list[str]]:
    """(nodes of each pod, its island)."""
    size: Counter[str] = Counter()
    islands: dict[str, str] = {}
    for leaf, nodes, island in zip(fabric.leaves, room, island_of, strict=True):
        size[fabric.pod_of_leaf(leaf)] += nodes
        islands[fabric.pod_of_leaf(leaf)] = island
    return list(size.values()), [islands[pod] for pod in size]


def _fewest(wanted: IntArray, room: Sequence[int], island_of: Sequence[str]) -> IntArray:
    """For each number of nodes, the fewest parts that hold them: within one island, or over all where none is large enough."""
    by_island: dict[str, list[int]] = defaultdict(list)
    for nodes, island in zip(room, island_of, strict=True):
        by_island[island].append(nodes)
    best = _needed(wanted, room)
    within = [_needed(wanted, rooms) for rooms in by_island.values()]
    if within:
        nearest = np.min(within, axis=0)
        best = np.where(nearest <= len(room), nearest, best)
    return best


def _needed(wanted: IntArray, rooms: Iterable[int]) -> IntArray:
    """The fewest of these parts, largest first; more than any fabric has where all of them are too few."""
    ends = np.cumsum(np.array(sorted(rooms, reverse=True), dtype=np.int64))
    found = np.searchsorted(ends, wanted) + 1
    return np.where(found > len(ends), np.int64(1) << 40, found)


@dataclass(frozen=True, slots=True)
class _Columns:
    """One row a job on the fabric."""

    sizes: IntArray
    leaves: IntArray
    best_leaves: IntArray
    pods: IntArray
    best_pods: IntArray
    seconds: IntArray

    def at_fewest(self) -> npt.NDArray[np.bool_]:
        return (self.leaves <= self.best_leaves) & (self.pods <= self.best_pods)


def _groups(partitions: Sequence[str], columns: _Columns) -> tuple[AuditedGroup, ...]:
    names, which = np.unique(np.array(partitions, dtype=str), return_inverse=True)
    # 1, 2, 3-4, 5-8, 9-16 …: the doublings that hold a size
    doublings = np.ceil(np.log2(np.maximum(columns.sizes, 1))).astype(np.int64)
    keys, row_of = np.unique(np.stack([which, doublings], axis=1).reshape(-1, 2), axis=0, return_inverse=True)
    row_of = row_of.reshape(-1)
    best, node_s = columns.at_fewest(), columns.sizes * columns.seconds

    def total(values: npt.NDArray[np.generic]) -> list[float]:
        summed: list[float] = np.bincount(row_of, weights=values.astype(np.float64), minlength=len(keys)).tolist()
        return summed

    figures = zip(
        *(total(column) for column in (np.ones(len(row_of)), best, columns.leaves, columns.best_leaves, columns.pods, columns.best_pods)),
        total(node_s),
        total(np.where(best, 0, node_s)),
        strict=True,
    )
    return tuple(
        AuditedGroup(str(names[name]), (1 << size >> 1) + 1 if size else 1, 1 << size, *map(round, counts))
        for (name, size), counts in zip(keys.tolist(), figures, strict=True)
    )


def _worst(jobs: PastJobs, on_fabric: IntArray, columns: _Columns) -> tuple[AuditedJob, ...]:
    more_leaves, more_pods = columns.leaves - columns.best_leaves, columns.pods - columns.best_pods
    order = np.lexsort((-columns.sizes * columns.seconds, -more_pods, -more_leaves))[:WORST]
    rows = zip(
        order.tolist(),
        *(
            column[order].tolist()
            for column in (on_fabric, columns.sizes, columns.leaves, columns.best_leaves, columns.pods, columns.best_pods)
        ),
        strict=True,
    )
    best = columns.at_fewest()
    return tuple(
        AuditedJob(
            jobs.ids[row],
            jobs.users[row],
            jobs.partitions[row],
            jobs.states[row],
            size,
            leaves,
            least,
            pods,
            fewest,
            jobs.elapsed_s[row],
            jobs.nodes[row],
        )
        for at, row, size, leaves, least, pods, fewest in rows
        if not best[at]
    )
