"""The switches and which nodes hang on them: any number of tiers, any number of islands."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Switch:
    """One switch: `parent` is the switch above (None at a root); only tier 0 (a leaf) has nodes."""

    name: str
    tier: int
    parent: str | None
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fabric:
    """A forest of switches. `source` says where it was seen; `flat` that no topology is known and one switch was made up."""

    switches: tuple[Switch, ...]
    source: str
    flat: bool = False

    @cached_property
    def by_name(self) -> Mapping[str, Switch]:
        """Switch name → switch."""
        return MappingProxyType({switch.name: switch for switch in self.switches})

    @cached_property
    def leaf_of(self) -> Mapping[str, str]:
        """Node → its leaf; a node that no leaf names is not in it."""
        return MappingProxyType({node: switch.name for switch in self.switches for node in switch.nodes})

    def path_up(self, node: str) -> tuple[str, ...]:
        """The switches above `node`, leaf first, root last; empty for a node that the fabric does not know."""
        names: list[str] = []
        name = self.leaf_of.get(node)
        while name is not None:
            names.append(name)
            name = self.by_name[name].parent
        return tuple(names)

    def pod_of(self, node: str) -> str:
        """The switch above the node's leaf (tier 1), or the leaf itself where nothing is above it; "" for an unknown node."""
        path = self.path_up(node)
        return path[min(1, len(path) - 1)] if path else ""

    def hops(self, one: str, two: str) -> int | None:
        """Switches on the shortest path: 0 for the same node, 1 on one leaf, 3 via a spine; None when nothing joins them."""
        if one == two:
            return 0
        ups, others = self.path_up(one), self.path_up(two)
        meet = next((name for name in ups if name in others), None)
        return None if meet is None else ups.index(meet) + others.index(meet) + 1
