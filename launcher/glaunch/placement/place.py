"""Which nodes: the set with the fewest hops that can be had, with its proof."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from glaunch.cluster import IntArray
from glaunch.errors import UsageError
from glaunch.fabric import Fabric
from glaunch.placement.cost import cost_of
from glaunch.placement.order import in_fabric_order, natural_order
from glaunch.placement.placement import Cost, Placement
from glaunch.placement.solve import Branch, Island, best_counts


@dataclass(frozen=True, slots=True)
class Candidates:
    """The nodes that may be taken, each once, and Slurm's Weight of each (lower is used first)."""

    nodes: tuple[str, ...]
    weights: tuple[int, ...]


@dataclass(frozen=True)
class _Choice:
    """An island with room: how many nodes each leaf row must, and may, give."""

    root: str
    weight: int
    """Sum of the n least weights: no set on this island has less."""
    heaviest: int
    """The greatest weight that is needed; lighter nodes are all taken."""
    floors: Mapping[int, int]
    sizes: Mapping[int, int]


def place(fabric: Fabric, candidates: Candidates, n: int) -> Placement | None:
    """The best n of the candidates: least weight in all, as Slurm weighs; then the fewest hops over all pairs, which is proven; then
    the fewest pods; the fewest leaves; then what leaves most for others (tightest last leaf, fullest pod); then names. Always the same
    answer to the same question, whatever the order of the candidates.

    None when no island has n candidates: a set never spans two. Nodes that the fabric does not know are joined with nothing: one may
    carry a single-node job, if no known node is a candidate.
    Raises UsageError for n < 1, for a candidate named twice, or when nodes and weights differ in number.

    The nodes of the answer stand in the fabric's order (`in_fabric_order`). `bound_hops` is the optimum as an exact search over the
    counts per leaf found it; `cost` is counted again from the nodes themselves.
    """
    if n < 1:
        raise UsageError(f"{n} nodes cannot be placed", hint="ask for at least 1")
    if len(candidates.nodes) != len(candidates.weights) or len(set(candidates.nodes)) != len(candidates.nodes):
        raise UsageError("every candidate needs one name and one weight")
    weights = np.array(candidates.weights, dtype=np.int64)
    rows = np.array([-1 if row is None else row for row in map(fabric.leaf_row.get, candidates.nodes)], dtype=np.int64)
    choices = _choices(fabric, rows, weights, n)
    least = min((choice.weight for choice in choices), default=0)
    best: tuple[tuple[int, int, int, int], _Choice, dict[int, int], int] | None = None
    for choice in choices:
        if choice.weight == least:
            counts, bound_hops = _solve(fabric, choice, n)
            key = (*_cost_of_counts(fabric, counts, n), sum(choice.sizes.values()))
            if best is None or key < best[0]:
                best = key, choice, counts, bound_hops
    if best is None:
        return _lone_node(candidates) if n == 1 else None
    _, choice, counts, bound_hops = best
    chosen = _pick(candidates, rows, weights, choice, counts)
    return _placement(fabric, chosen, bound_hops)


def best_possible(fabric: Fabric, nodes: Iterable[str], n: int) -> Placement | None:
    """The best n of all `nodes`, were every one of them free and none preferred; None when no island has n of them."""
    distinct = tuple(dict.fromkeys(nodes))
    return place(fabric, Candidates(distinct, (0,) * len(distinct)), n)


def _choices(fabric: Fabric, rows: IntArray, weights: IntArray, n: int) -> list[_Choice]:
    """The islands that have n candidates, in the fabric's order. `rows`: each candidate's leaf row, -1 where it is unknown."""
    roots = [fabric.path_of_leaf(leaf)[-1] for leaf in fabric.leaves]
    number = {root: index for index, root in enumerate(dict.fromkeys(roots))}
    islands = np.array([number[root] for root in roots] + [-1], dtype=np.int64)[rows]
    by_island = np.argsort(islands, kind="stable")
    ends = np.searchsorted(islands[by_island], np.arange(len(number) + 1))
    found = []
    for index, root in enumerate(number):
        here = by_island[ends[index] : ends[index + 1]]
        if len(here) < n:
            continue
        least = np.partition(weights[here], n - 1)[:n]
        heaviest = int(least.max())
        used, sizes = np.unique(rows[here][weights[here] <= heaviest], return_counts=True)
        forced, floors = np.unique(rows[here][weights[here] < heaviest], return_counts=True)
        no_floors = dict.fromkeys(used.tolist(), 0)
        floor = no_floors | dict(zip(forced.tolist(), floors.tolist(), strict=True))
        found.append(_Choice(root, int(least.sum()), heaviest, floor, dict(zip(used.tolist(), sizes.tolist(), strict=True))))
    return found


def _solve(fabric: Fabric, choice: _Choice, n: int) -> tuple[dict[int, int], int]:
    """(leaf row → nodes, the fewest hops) of the best n on one island."""
    row = fabric.row_of_leaf
    if choice.root in row:
        return {row[choice.root]: n}, n * (n - 1) // 2

    def branch(name: str) -> Branch:
        grown = Branch()
        for below in fabric.children[name]:
            if below in row:
                if row[below] in choice.sizes:
                    grown.leaves.append(row[below])
            elif (found := branch(below)).leaves or found.branches:
                grown.branches.append(found)
        return grown

    counts, saved = best_counts(Island(branch(choice.root), choice.floors, choice.sizes, fabric.tiers), n)
    return counts, _cost_of_counts(fabric, choice.floors, n)[0] - saved


def _cost_of_counts(fabric: Fabric, counts: Mapping[int, int], n: int) -> tuple[int, int, int]:
    """(hops, pods, leaves) of n nodes of which the leaf rows have these counts (all of them, or only those that must be taken)."""
    below: dict[str, int] = {}
    pods = set()
    for row, count in counts.items():
        if not count:
            continue
        path = fabric.path_of_leaf(fabric.leaves[row])
        pods.add(path[min(1, len(path) - 1)])
        for name in path[:-1]:
            below[name] = below.get(name, 0) + count
    return n * (n - 1) // 2 + sum(count * (n - count) for count in below.values()), len(pods), len(counts)


def _pick(candidates: Candidates, rows: IntArray, weights: IntArray, choice: _Choice, counts: Mapping[int, int]) -> dict[str, int]:
    """Node → weight, of the nodes behind the counts: in each leaf all lighter ones, then by name."""
    wanted = np.isin(rows, np.fromiter(counts, dtype=np.int64)) & (weights <= choice.heaviest)
    must: dict[int, list[str]] = {}
    may: dict[int, list[str]] = {}
    weight_of: dict[str, int] = {}
    for index in np.flatnonzero(wanted).tolist():
        node, weight = candidates.nodes[index], int(weights[index])
        (must if weight < choice.heaviest else may).setdefault(int(rows[index]), []).append(node)
        weight_of[node] = weight
    chosen: list[str] = []
    for row, count in counts.items():
        forced = must.get(row, [])
        chosen += forced + natural_order(may.get(row, []))[: count - len(forced)]
    return {node: weight_of[node] for node in chosen}


def _placement(fabric: Fabric, chosen: Mapping[str, int], bound_hops: int) -> Placement | None:
    ordered = in_fabric_order(fabric, chosen)
    cost = cost_of(fabric, ordered, chosen)
    if cost is None:
        return None
    leaves = Counter(fabric.leaf_of[node] for node in ordered)
    pods = Counter(fabric.pod_of(node) for node in ordered)
    pairs = len(ordered) * (len(ordered) - 1) // 2
    return Placement(ordered, cost, bound_hops, tuple(leaves.items()), tuple(pods.items()), cost.hops / pairs if pairs else 0.0)


def _lone_node(candidates: Candidates) -> Placement | None:
    weight_of = dict(zip(candidates.nodes, candidates.weights, strict=True))
    if not weight_of:
        return None
    node = min(natural_order(weight_of), key=weight_of.__getitem__)
    return Placement((node,), Cost(weight_of[node], 0, 0, 0), 0, (), (), 0.0)
