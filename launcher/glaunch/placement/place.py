"""Which nodes: the set with the fewest hops that can be had, with its proof."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

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
    answer to the same question.

    None when no island has n candidates. Nodes that the fabric does not know are joined with nothing: one may carry a single-node job,
    if no known node is a candidate.
    Raises UsageError for n < 1, for a candidate named twice, or when nodes and weights differ in number.

    The nodes of the answer stand in the fabric's order (`in_fabric_order`). `bound_hops` is the optimum of an exact search over the
    counts per leaf; `cost` is counted again from the nodes themselves.
    """
    if n < 1:
        raise UsageError(f"{n} nodes cannot be placed", hint="ask for at least 1")
    if len(candidates.nodes) != len(candidates.weights) or len(set(candidates.nodes)) != len(candidates.nodes):
        raise UsageError("every candidate needs one name and one weight")
    weights = np.array(candidates.weights, dtype=np.int64)
    row_of, unknown = fabric.leaf_row, len(fabric.leaves)
    rows = np.fromiter((row_of.get(node, unknown) for node in candidates.nodes), dtype=np.int64, count=len(candidates.nodes))
    choices = _choices(fabric, rows, weights, n)
    least = min((choice.weight for choice in choices), default=0)
    best: tuple[tuple[int, int, int, int], _Choice, dict[int, int], int] | None = None
    for choice in choices:
        if choice.weight == least:
            counts, bound_hops = _solve(fabric, choice, n)
            hops, pods, leaves = _cost_of_counts(fabric, counts, n)
            key = (hops, pods, leaves, sum(choice.sizes.values()))
            if best is None or key < best[0]:
                best = key, choice, counts, bound_hops
    if best is None:
        return _lone_node(candidates, rows == unknown) if n == 1 else None
    nodes = _names(candidates, rows, weights, best[1], best[2])
    return _placement(fabric, nodes, dict(zip(candidates.nodes, candidates.weights, strict=True)), best[3])


def best_possible(fabric: Fabric, nodes: Sequence[str], n: int) -> Placement | None:
    """The best n of all `nodes`, were every one of them free and none preferred; None when no island has n of them."""
    distinct = tuple(dict.fromkeys(nodes))
    return place(fabric, Candidates(distinct, (0,) * len(distinct)), n)


def _choices(fabric: Fabric, rows: npt.NDArray[np.int64], weights: npt.NDArray[np.int64], n: int) -> list[_Choice]:
    """The islands that have n candidates, in the fabric's order."""
    leaves = fabric.leaves
    roots = [fabric.path_of_leaf(leaf)[-1] for leaf in leaves]
    number = {root: index for index, root in enumerate(dict.fromkeys(roots))}
    island_of_leaf = np.array([number[root] for root in roots] + [-1], dtype=np.int64)
    islands = island_of_leaf[rows]
    found = []
    for root, index in number.items():
        here = np.flatnonzero(islands == index) if len(number) > 1 else np.flatnonzero(islands >= 0)
        if len(here) < n:
            continue
        least = np.partition(weights[here], n - 1)[:n]
        heaviest = int(least.max())
        sizes = np.bincount(rows[here][weights[here] <= heaviest], minlength=len(leaves))
        floors = np.bincount(rows[here][weights[here] < heaviest], minlength=len(leaves))
        used = np.flatnonzero(sizes).tolist()
        found.append(
            _Choice(root, int(least.sum()), heaviest, {row: int(floors[row]) for row in used}, {row: int(sizes[row]) for row in used})
        )
    return found


def _solve(fabric: Fabric, choice: _Choice, n: int) -> tuple[dict[int, int], int]:
    """(leaf row → nodes, the fewest hops) of the best n on one island."""
    row = {leaf: index for index, leaf in enumerate(fabric.leaves)}
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
        path = fabric.path_of_leaf(fabric.leaves[row])
        pods.add(path[min(1, len(path) - 1)])
        for name in path[:-1]:
            below[name] = below.get(name, 0) + count
    return n * (n - 1) // 2 + sum(count * (n - count) for count in below.values()), len(pods), len(counts)


def _names(
    candidates: Candidates, rows: npt.NDArray[np.int64], weights: npt.NDArray[np.int64], choice: _Choice, counts: Mapping[int, int]
) -> list[str]:
    """The nodes behind the counts: in each leaf all lighter ones, then by name."""
    wanted = np.isin(rows, np.fromiter(counts, dtype=np.int64))
    must: dict[int, list[str]] = {}
    may: dict[int, list[str]] = {}
    for index in np.flatnonzero(wanted & (weights <= choice.heaviest)).tolist():
        group = must if weights[index] < choice.heaviest else may
        group.setdefault(int(rows[index]), []).append(candidates.nodes[index])
    nodes: list[str] = []
    for row, count in counts.items():
        forced = must.get(row, [])
        nodes += forced + natural_order(may.get(row, []))[: count - len(forced)]
    return nodes


def _placement(fabric: Fabric, nodes: Sequence[str], weights: Mapping[str, int], bound_hops: int) -> Placement | None:
    ordered = in_fabric_order(fabric, nodes)
    cost = cost_of(fabric, ordered, weights)
    if cost is None:
        return None
    leaves: dict[str, int] = {}
    pods: dict[str, int] = {}
    for node in ordered:
        leaf = fabric.leaf_of[node]
        leaves[leaf] = leaves.get(leaf, 0) + 1
        pod = fabric.pod_of_leaf(leaf)
        pods[pod] = pods.get(pod, 0) + 1
    pairs = len(ordered) * (len(ordered) - 1) // 2
    return Placement(ordered, cost, bound_hops, tuple(leaves.items()), tuple(pods.items()), cost.hops / pairs if pairs else 0.0)


def _lone_node(candidates: Candidates, unknown: npt.NDArray[np.bool_]) -> Placement | None:
    named = natural_order(node for node, alone in zip(candidates.nodes, unknown, strict=True) if alone)
    if not named:
        return None
    weight = dict(zip(candidates.nodes, candidates.weights, strict=True))
    node = min(named, key=lambda name: weight[name])
    return Placement((node,), Cost(weight[node], 0, 0, 0), 0, (), (), 0.0)
