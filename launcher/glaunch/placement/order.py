"""The order of nodes along the fabric, from which ranks are numbered."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from glaunch.fabric import Fabric
from glaunch.hostlist import natural_key, number_key
from glaunch.placement.objective import NO_GROUPS, Groups
from glaunch.placement.placement import OrderRow


def in_fabric_order(fabric: Fabric, nodes: Iterable[str]) -> tuple[str, ...]:
    """`nodes`, each once, island by island, pod by pod, leaf by leaf, by name within a leaf (n2 before n10); unknown nodes last."""
    by_leaf: dict[int, list[str]] = {}
    row_of = fabric.leaf_row
    last = len(fabric.leaves)
    for node in dict.fromkeys(nodes):
        by_leaf.setdefault(row_of.get(node, last), []).append(node)
    return tuple(node for row in sorted(by_leaf) for node in natural_order(by_leaf[row]))


def arranged(fabric: Fabric, nodes: Iterable[str], groups: Groups = NO_GROUPS) -> tuple[str, ...]:
    """`nodes`, each once, in rank order: the fabric's, in which as few `groups` as can be with these nodes are split.

    In each leaf the nodes that make whole leaf groups go before the rest, so do the nodes of each pod that make whole pod groups; what
    is left over of pods comes last, and of it what is left over of leaves. `templates/node/order.sh` gives the same order.
    """
    ordered = in_fabric_order(fabric, nodes)
    if groups == NO_GROUPS:
        return ordered
    leaf_of = {node: fabric.leaf_of.get(node, "") for node in ordered}
    loose = _beyond_whole(ordered, leaf_of, groups.leaf)
    pod_of = {node: fabric.pod_of(node) for node in ordered}
    by_pod: dict[str, list[str]] = {}
    for node in ordered:
        by_pod.setdefault(pod_of[node], []).append(node)
    inside = [node for pod in by_pod.values() for node in sorted(pod, key=loose.__contains__)]
    last = _beyond_whole(inside, pod_of, max(groups.leaf, groups.pod))
    return tuple(sorted(inside, key=lambda node: (pod_of[node] == "", node in last, node in last and node in loose)))


def _beyond_whole(nodes: Sequence[str], part_of: Mapping[str, str], group: int) -> frozenset[str]:
    """The last nodes of each part, which make no whole group there; none where there are no groups."""
    if group == 1:
        return frozenset()
    most = {part: count - count % group for part, count in Counter(part_of[node] for node in nodes).items()}
    seen: Counter[str] = Counter()
    beyond = []
    for node in nodes:
        seen[part_of[node]] += 1
        if seen[part_of[node]] > most[part_of[node]]:
            beyond.append(node)
    return frozenset(beyond)


def natural_order(names: Iterable[str]) -> list[str]:
    """The names with their numbers counted: n2 before n10, n1x9 before n1x10. Names that share all but their last number are quick."""
    prefixes: dict[str, object] = {}

    def key(name: str) -> tuple[Any, tuple[int, str], str]:
        prefix = name.rstrip("0123456789")
        if prefix not in prefixes:
            prefixes[prefix] = natural_key(prefix)
        digits = name[len(prefix) :]
        return prefixes[prefix], number_key(digits) if digits else (-1, ""), name

    return sorted(names, key=key)


def fabric_order(fabric: Fabric, nodes: Iterable[str]) -> tuple[OrderRow, ...]:
    """One row a node, numbered from 0 along the fabric; leaf and pod are "" for nodes that the fabric does not know.

    Whatever subset of these nodes is granted: sorted by position it is in the fabric's order, so that a ring over the ranks
    crosses every link of the subset's tree twice, which is the least possible.
    """
    pods = {leaf: fabric.pod_of_leaf(leaf) for leaf in fabric.leaves}
    rows = []
    for position, node in enumerate(in_fabric_order(fabric, nodes)):
        leaf = fabric.leaf_of.get(node, "")
        rows.append(OrderRow(node, position, leaf, pods.get(leaf, "")))
    return tuple(rows)


def paths_of(fabric: Fabric, order: Iterable[OrderRow]) -> tuple[tuple[str, ...], ...]:
    """Each leaf of an order, once, and the switches above it."""
    return tuple(fabric.path_of_leaf(leaf) for leaf in dict.fromkeys(row.leaf for row in order) if leaf in fabric.row_of_leaf)
