"""What any given set of nodes costs on a fabric: the audit of what was granted, and the check of what was planned."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import accumulate

from glaunch.block_rule import tops
from glaunch.fabric import Fabric
from glaunch.placement.objective import NO_GROUPS, Groups
from glaunch.placement.placement import Cost


def cost_of(fabric: Fabric, nodes: Iterable[str], weights: Mapping[str, int] | None = None, groups: Groups = NO_GROUPS) -> Cost | None:
    """The cost of the set `nodes` (duplicates count once); `weights` has Slurm's node weights, 0 where absent.

    Groups count as split as in the best rank order: whole ones first, leaf by leaf and pod by pod, the rest last.
    None when no path joins all of them: nodes of two islands, or two nodes of which the fabric does not know one. A single unknown node
    costs no hops, pods or leaves.
    """
    chosen = dict.fromkeys(nodes)
    leaves = Counter(leaf for leaf in map(fabric.leaf_of.get, chosen) if leaf is not None)
    unknown = len(chosen) - leaves.total()
    if len({fabric.path_of_leaf(leaf)[-1] for leaf in leaves}) + unknown > 1:
        return None
    return cost_of_counts(fabric, leaves, len(chosen), sum((weights or {}).get(node, 0) for node in chosen), groups)


def cost_of_counts(fabric: Fabric, leaves: Mapping[str, int], n: int, weight: int = 0, groups: Groups = NO_GROUPS) -> Cost:
    """The cost of n nodes of one island of which so many hang on each leaf (all of them, or only those that must be taken)."""
    below: Counter[str] = Counter()
    pods: Counter[str] = Counter()
    for leaf, count in leaves.items():
        pods[fabric.pod_of_leaf(leaf)] += count
        for name in fabric.path_of_leaf(leaf)[:-1]:
            below[name] += count
    links = sum(0 < count < n for count in below.values())
    return Cost(
        weight=weight,
        hops=n * (n - 1) // 2 + sum(count * (n - count) for count in below.values()),
        pods=sum(count > 0 for count in pods.values()),
        leaves=sum(count > 0 for count in leaves.values()),
        ring_hops=n + 2 * links if n > 1 else 0,
        leaf_splits=_splits(leaves, n, groups.leaf),
        pod_splits=_splits(pods, n, groups.pod),
    )


def fewest_pods(fabric: Fabric, nodes: Iterable[str], n: int) -> int:
    """In how few pods of one island n of these nodes fit, the largest first, which is proven; 0 where no island has n of them."""
    top_of = tops(fabric, n)
    islands: dict[str, Counter[str]] = {}
    for leaf, count in Counter(fabric.leaf_of[node] for node in dict.fromkeys(nodes) if node in fabric.leaf_of).items():
        islands.setdefault(top_of[leaf], Counter())[fabric.pod_of_leaf(leaf)] += count
    needed = []
    for pods in islands.values():
        held = tuple(accumulate(count for _, count in pods.most_common()))
        needed += [bisect_left(held, n) + 1] if held[-1] >= n else []
    return min(needed, default=0)


def _splits(counts: Mapping[str, int], n: int, group: int) -> int:
    return n // group - sum(count // group for count in counts.values()) if group > 1 else 0
