"""The order of nodes along the fabric, from which ranks are numbered."""

from collections.abc import Iterable
from typing import Any

from glaunch.fabric import Fabric
from glaunch.hostlist import natural_key, number_key
from glaunch.placement.placement import OrderRow


def in_fabric_order(fabric: Fabric, nodes: Iterable[str]) -> tuple[str, ...]:
    """`nodes`, each once, island by island, pod by pod, leaf by leaf, by name within a leaf (n2 before n10); unknown nodes last."""
    by_leaf: dict[int, list[str]] = {}
    row_of = fabric.leaf_row
    last = len(fabric.leaves)
    for node in dict.fromkeys(nodes):
        by_leaf.setdefault(row_of.get(node, last), []).append(node)
    return tuple(node for row in sorted(by_leaf) for node in natural_order(by_leaf[row]))


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
