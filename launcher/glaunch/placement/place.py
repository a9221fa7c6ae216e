"""Which nodes: the best set that can be had under an objective, with its proof."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate, islice, repeat
from types import MappingProxyType

import numpy as np

from glaunch.block_rule import granted, tops
from glaunch.cluster import IntArray
from glaunch.errors import UsageError
from glaunch.fabric import Fabric
from glaunch.placement.cost import cost_of, cost_of_counts
from glaunch.placement.objective import HOPS, NO_GROUPS, OBJECTIVES, SPREAD, Groups
from glaunch.placement.order import arranged, natural_order
from glaunch.placement.placement import Cost, Placement
from glaunch.placement.profiles import Penalties
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


def place(
    fabric: Fabric,
    candidates: Candidates,
    n: int,
    objective: str = HOPS,
    groups: Groups = NO_GROUPS,
    penalties: Mapping[str, int] = MappingProxyType({}),
    *,
    segmented: bool = False,
) -> Placement | None:
    """The best n of the candidates, which is proven: the least weight in all, as Slurm weighs; then the fewest `groups` over two leaves,
    and over two pods; then what `objective` compares. Among equals what leaves most for others (tightest last leaf, fullest pod); then
    the least of the `penalties` of nodes (none where absent); then names. Always the same answer to the same question, whatever the order
    of the candidates.

    None when no island has n candidates: a set never spans two, nor two of the aggregated blocks within which Slurm keeps a job of n
    nodes (`segmented`: it keeps segments together, and the job may lie anywhere). Nodes that the fabric does not know are joined with
    nothing: one may carry a single-node job, if no known node is a candidate.
    Raises UsageError for n < 1, for an unknown objective, for groups that do not divide n or each other, for a candidate named twice, or
    when nodes and weights differ in number.

    The nodes of the answer stand in rank order (`arranged`). `bound` is the optimum as an exact search over the counts per leaf found it;
    `cost` is counted again from the nodes themselves. Where topology/block takes no set on so many of its parts, the answer is the one with
    the fewest pods and says so (`objective`), or None.
    """
    _check(candidates, n, objective, groups)
    for each in dict.fromkeys((objective, SPREAD)):
        found = _best(fabric, candidates, n, each, groups, penalties, segmented)
        if found is None or segmented or granted(fabric, found.nodes):
            return found
    return None


def _best(
    fabric: Fabric,
    candidates: Candidates,
    n: int,
    objective: str,
    groups: Groups,
    penalties: Mapping[str, int],
    segmented: bool,
) -> Placement | None:
    weights = np.array(candidates.weights, dtype=np.int64)
    rows = np.fromiter(map(fabric.leaf_row.get, candidates.nodes, repeat(-1)), dtype=np.int64, count=len(candidates.nodes))
    choices = _choices(fabric, rows, weights, n, segmented)
    least = min((choice.weight for choice in choices), default=0)
    best: tuple[tuple[int, ...], _Choice, Mapping[int, int], Cost] | None = None
    for choice in choices:
        if choice.weight == least:
            nodes = _picked(candidates, rows, weights, choice, penalties)
            counts, bound = _solve(fabric, choice, n, objective, groups, _sums(nodes, penalties))
            rank = (*bound.key(objective), sum(choice.sizes.values()))
            if best is None or rank < best[0]:
                best = rank, choice, counts, bound
    if best is None:
        return _lone_node(candidates, objective, penalties) if n == 1 else None
    _, choice, counts, bound = best
    ready = _picked(candidates, rows, weights, choice, penalties, counts)
    chosen = {node: weight for row, count in counts.items() for node, weight in islice(ready[row].items(), count)}
    return _placement(fabric, chosen, bound, objective, groups)


def _check(candidates: Candidates, n: int, objective: str, groups: Groups) -> None:
    if n < 1:
        raise UsageError(f"{n} nodes cannot be placed", hint="ask for at least 1")
    if len(candidates.nodes) != len(candidates.weights) or len(set(candidates.nodes)) != len(candidates.nodes):
        raise UsageError("every candidate needs one name and one weight")
    if objective not in OBJECTIVES:
        raise UsageError(f"no objective {objective!r}", hint=f"one of {', '.join(OBJECTIVES)}")
    if groups.leaf < 1 or groups.pod < 1 or n % groups.leaf or n % groups.pod or (groups.pod > 1 and groups.pod % groups.leaf):
        raise UsageError(f"groups of {groups.leaf} and {groups.pod} nodes do not divide {n} nodes and each other")


def best_possible(
    fabric: Fabric, nodes: Iterable[str], n: int, objective: str = HOPS, groups: Groups = NO_GROUPS, *, segmented: bool = False
) -> Placement | None:
    """The best n of all `nodes`, were every one of them free and none preferred; None when no island has n of them."""
    distinct = tuple(dict.fromkeys(nodes))
    return place(fabric, Candidates(distinct, (0,) * len(distinct)), n, objective, groups, segmented=segmented)


def _choices(fabric: Fabric, rows: IntArray, weights: IntArray, n: int, segmented: bool) -> list[_Choice]:
    """The islands (of blocks: the aggregated ones) that have n candidates, in the fabric's order.

    `rows`: each candidate's leaf row, -1 where it is unknown.
    """
    top_of = tops(fabric, None if segmented else n)
    roots = [top_of[leaf] for leaf in fabric.leaves]
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


def _solve(
    fabric: Fabric, choice: _Choice, n: int, objective: str, groups: Groups, penalties: Mapping[int, Penalties]
) -> tuple[Mapping[int, int], Cost]:
    """(leaf row → nodes, the least cost) of the best n on one island."""
    row = fabric.row_of_leaf
    if choice.root in row:
        return {row[choice.root]: n}, cost_of_counts(fabric, {choice.root: n}, n, choice.weight, groups)

    def branch(name: str) -> Branch:
        grown = Branch()
        for below in fabric.children[name]:
            if below in row:
                if row[below] in choice.sizes:
                    grown.leaves.append(row[below])
            elif (found := branch(below)).leaves or found.branches:
                grown.branches.append(found)
        return grown

    best = best_counts(Island(branch(choice.root), choice.floors, choice.sizes, fabric.tiers, penalties), n, objective, groups)
    start = cost_of_counts(fabric, {fabric.leaves[leaf]: count for leaf, count in best.start.items()}, n, choice.weight, groups)
    gains = best.gains
    return best.counts, Cost(
        weight=start.weight,
        hops=start.hops - gains["pair"],
        pods=start.pods - gains["pod"],
        leaves=start.leaves - gains["leaf"],
        ring_hops=_ring(start.ring_hops, gains, n),
        leaf_splits=0 if best.whole_leaf_groups else start.leaf_splits - gains["leaf_group"],
        pod_splits=0 if best.whole_pod_groups else start.pod_splits - gains["pod_group"],
    )


def _ring(start: int | None, gains: Mapping[str, int], n: int) -> int | None:
    if "link" not in gains or start is None:
        return None
    return start - 2 * gains["link"] if n > 1 else 0


def _picked(
    candidates: Candidates,
    rows: IntArray,
    weights: IntArray,
    choice: _Choice,
    penalties: Mapping[str, int],
    counts: Mapping[int, int] | None = None,
) -> Mapping[int, Mapping[str, int]]:
    """Leaf row → its usable nodes with their weights, those first that are taken first: all lighter ones, then by penalty, then by name.

    With `counts` only those leaves; without, only the leaves of which some node has a penalty, since nothing else is asked of them then.
    """
    if counts is None and not penalties:
        return {}
    wanted = np.isin(rows, np.fromiter(counts if counts is not None else choice.sizes, dtype=np.int64)) & (weights <= choice.heaviest)
    by_row: dict[int, list[int]] = {}
    for index in np.flatnonzero(wanted).tolist():
        by_row.setdefault(int(rows[index]), []).append(index)
    found = {}
    for row, indexes in by_row.items():
        weight_of = {candidates.nodes[index]: int(weights[index]) for index in indexes}
        ordered = sorted(natural_order(weight_of), key=lambda node: (weight_of[node] == choice.heaviest, penalties.get(node, 0)))
        found[row] = {node: weight_of[node] for node in ordered}
    return found


def _sums(nodes: Mapping[int, Mapping[str, int]], penalties: Mapping[str, int]) -> Mapping[int, Penalties]:
    """Leaf row → the penalty of its first k nodes, for every k."""
    return {row: (0, *accumulate(penalties.get(node, 0) for node in names)) for row, names in nodes.items()}


def _placement(fabric: Fabric, chosen: Mapping[str, int], bound: Cost, objective: str, groups: Groups) -> Placement | None:
    ordered = arranged(fabric, chosen, groups)
    cost = cost_of(fabric, ordered, chosen, groups)
    if cost is None:
        return None
    leaves = Counter(fabric.leaf_of[node] for node in ordered)
    pods: Counter[str] = Counter()
    for leaf, count in leaves.items():
        pods[fabric.pod_of_leaf(leaf)] += count
    pairs = len(ordered) * (len(ordered) - 1) // 2
    return Placement(
        nodes=ordered,
        cost=cost,
        bound=bound,
        leaves=tuple(leaves.items()),
        pods=tuple(pods.items()),
        mean_hops=cost.hops / pairs if pairs else 0.0,
        objective=objective,
    )


def _lone_node(candidates: Candidates, objective: str, penalties: Mapping[str, int]) -> Placement | None:
    weight_of = dict(zip(candidates.nodes, candidates.weights, strict=True))
    if not weight_of:
        return None
    node = min(natural_order(weight_of), key=lambda node: (weight_of[node], penalties.get(node, 0)))
    cost = Cost(weight_of[node], 0, 0, 0)
    return Placement((node,), cost, cost, (), (), 0.0, objective)
