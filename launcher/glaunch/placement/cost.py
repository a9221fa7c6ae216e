"""What any given set of nodes costs on a fabric: the audit of what was granted, and the check of what was planned."""

from collections import Counter
from collections.abc import Iterable, Mapping

from glaunch.fabric import Fabric
from glaunch.placement.placement import Cost


def cost_of(fabric: Fabric, nodes: Iterable[str], weights: Mapping[str, int] | None = None) -> Cost | None:
    """The cost of the set `nodes` (duplicates count once); `weights` has Slurm's node weights, 0 where absent.

    None when no path joins all of them: nodes of two islands, or two nodes of which the fabric does not know one. A single unknown node
    costs no hops, pods or leaves.
    """
    chosen = dict.fromkeys(nodes)
    leaves = Counter(leaf for leaf in map(fabric.leaf_of.get, chosen) if leaf is not None)
    unknown = len(chosen) - leaves.total()
    below: Counter[str] = Counter()
    roots: set[str] = set()
    for leaf, count in leaves.items():
        name: str | None = leaf
        while name is not None:
            above = fabric.by_name[name].parent
            if above is None:
                roots.add(name)
            else:
                below[name] += count
            name = above
    if len(roots) + unknown > 1:
        return None
    n = len(chosen)
    hops = n * (n - 1) // 2 + sum(count * (n - count) for count in below.values())
    pods = {fabric.pod_of_leaf(leaf) for leaf in leaves}
    return Cost(sum((weights or {}).get(node, 0) for node in chosen), hops, len(pods), len(leaves))
