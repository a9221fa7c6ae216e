"""Spare nodes beside the best set: Slurm takes as many as the job needs of them all, so a node lost to a race costs nothing."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from glaunch.fabric import Fabric
from glaunch.placement.eligible import Eligible
from glaunch.placement.order import natural_order
from glaunch.placement.placement import Placement

SPARES_PART = 8
"""One spare node for so many nodes of the job (two at least): each spare is one more way for Slurm to choose unlike the plan."""
SPARES_MAX = 16


@dataclass(frozen=True, slots=True)
class Worst:
    """The worst that Slurm can choose of a set with spares: on the same leaves and pods as the plan, or fewer, by where spares are."""

    hops: int
    words: str
    """In a sentence, after the spares; "" where any choice costs the same."""


def spares(fit: Eligible, placement: Placement, fabric: Fabric, slurm: Fabric) -> tuple[str, ...]:
    """Free nodes as good as one of the set, some of them, by name: on the same leaf, in the same block of `slurm`, of the same weight.

    A set with one of them instead costs the same. Nodes that must be powered up first are none.
    """
    weight = dict(zip(fit.nodes, fit.weights, strict=True))
    taken = frozenset(placement.nodes)

    def kind(node: str) -> tuple[str | None, str | None, int | None]:
        return fabric.leaf_of.get(node), slurm.block_of.get(node), weight.get(node)

    kinds = {kind(node) for node in taken if node in fabric.leaf_of}
    found = (node for node in fit.nodes if node not in taken and kind(node) in kinds)
    return tuple(natural_order(found)[: min(SPARES_MAX, max(2, len(taken) // SPARES_PART))])


def worst_of(fabric: Fabric, placement: Placement, more: Sequence[str]) -> Worst:
    """The most switches between the nodes, in all, that any choice of so many nodes of the set and its spares has: found exactly.

    Spares stand on the leaves of the set, so no choice has more leaves or pods.
    """
    leaves = Counter(leaf for node in (*placement.nodes, *more) if (leaf := fabric.leaf_of.get(node)) is not None)
    n = len(placement.nodes)
    if len(leaves) < 2 or not more or sum(leaves.values()) < n + len(more):
        return Worst(placement.cost.hops, "")
    hops = _most_hops(fabric, leaves, n, len(more))
    if hops <= placement.cost.hops:
        return Worst(hops, "")
    mean = hops / (n * (n - 1) // 2)
    return Worst(hops, f" (at worst {mean:.2f} switches between two nodes, and no more leaves)")


def _most_hops(fabric: Fabric, leaves: Counter[str], n: int, drop: int) -> int:
    """The most hops in all, when `drop` of the nodes on these leaves are left out and n remain.

    A switch is crossed by the pairs that meet there and by those of which one node is below it, so the sum is one of numbers of nodes
    below each switch, and what is left out below a switch is shared among its children in the best way for each number.
    """
    ways: dict[str, tuple[list[int], int]] = {}
    switches = {above for leaf in leaves for above in fabric.path_of_leaf(leaf)}
    for switch in sorted((fabric.by_name[name] for name in switches), key=lambda switch: (switch.tier, switch.name)):
        name = switch.name
        if name in leaves:
            shares, below = [0] * (min(drop, leaves[name]) + 1), leaves[name]
        else:
            shares, below = _joined([ways[child] for child in fabric.children[name] if child in ways], drop)
        here = 0 if switch.virtual else 1
        above = 0 if switch.parent is None or fabric.by_name[switch.parent].virtual else 1
        counts = range(below, below - len(shares), -1)
        met = [share + here * x * (n - x) + (here - above) * x * (x - 1) // 2 for share, x in zip(shares, counts, strict=True)]
        ways[name] = met, below
    root = fabric.path_of_leaf(next(iter(leaves)))[-1]
    return ways[root][0][drop]


def _joined(parts: list[tuple[list[int], int]], drop: int) -> tuple[list[int], int]:
    """The best of several parts for each number left out of them together, and how many nodes they have."""
    best, size = [0], 0
    for gain, count in parts:
        most = min(drop, len(best) - 1 + len(gain) - 1)
        best = [
            max(best[left - here] + gain[here] for here in range(max(0, left - len(best) + 1), min(left, len(gain) - 1) + 1))
            for left in range(most + 1)
        ]
        size += count
    return best, size
