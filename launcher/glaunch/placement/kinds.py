"""Kinds of node: how many GPUs of which type one has, as a job sees it that may have asked for one type of them."""

from collections import Counter
from collections.abc import Sequence

from glaunch.cluster import Cluster
from glaunch.errors import UsageError
from glaunch.placement.layout import asked_gpus
from glaunch.request import Request

Kind = tuple[str, int]
"""(GPU type, GPUs per node); ("", 0) stands for all nodes, as machines without GPUs."""
MIXED = "mixed"
"""The GPU type of a kind that stands for all kinds: none is asked for."""


def kinds_of(request: Request, cluster: Cluster, rows: Sequence[int]) -> list[Kind]:
    """The kinds to try among these nodes. Raises UsageError where Slurm shows no nodes and nobody said what they have."""
    asked = asked_gpus(request)
    if asked and asked[1] == 0:
        return [("", 0)]
    if cluster.nodes.hidden and not asked:
        raise UsageError(
            "Slurm does not show its nodes here (PrivateData), so how many GPUs a node has must be said",
            hint="--gpus-per-node [TYPE:]8 (0: none), or once and for all: the key gpus_per_node",
        )
    found = {kind_of(cluster, row, asked) for row in rows}
    with_gpus = sorted(kind for kind in found if kind[1])
    return with_gpus or ([] if not rows else [("", 0)])


def kind_of(cluster: Cluster, row: int, asked: Kind | None) -> Kind:
    """The kind of one node; where a GPU type was asked for, its GPUs of that type alone count. `asked` as in `layout.asked_gpus`."""
    if asked and asked[0]:
        return asked[0], next((gpu.total for gpu in cluster.nodes.gpus_at(row) if gpu.kind == asked[0]), 0)
    return cluster.nodes.gpu_types[row], int(cluster.nodes.gpus_total[row])


def free_gpus(cluster: Cluster, row: int, kind: Kind, asked: Kind | None) -> int:
    """How many of the GPUs that make a node one of this kind nobody has."""
    if asked and asked[0]:
        return next((gpu.total - gpu.allocated for gpu in cluster.nodes.gpus_at(row) if gpu.kind == kind[0]), 0)
    return int(cluster.nodes.gpus_total[row] - cluster.nodes.gpus_allocated[row])


def as_one_kind(cluster: Cluster, gpus: int, rows: Sequence[int], asked: Kind | None) -> tuple[Kind, list[int], int]:
    """(the kind that all of them are taken for, the nodes with so many GPUs or more, the most that one of them has)."""
    counts = {row: kind_of(cluster, row, asked)[1] for row in rows}
    members = [row for row, count in counts.items() if gpus and count >= gpus]
    if not members:
        raise UsageError("--mixed: no node here has GPUs that this job could use", hint="leave it out")
    return (asked[0] if asked else "", gpus), members, max(counts[row] for row in members)


def mixture_of(cluster: Cluster, rows: Sequence[int], asked: Kind | None) -> tuple[tuple[str, int, int], ...]:
    """(GPU type, GPUs per node, nodes) of the kinds among these, most nodes first."""
    kinds = Counter(kind_of(cluster, row, asked) for row in rows)
    return tuple((kind, gpus, count) for (kind, gpus), count in sorted(kinds.items(), key=lambda item: (-item[1], item[0])))
