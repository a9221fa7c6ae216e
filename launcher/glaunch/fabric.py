"""The switches and which nodes hang on them: any number of tiers, any number of islands; and the blocks that nodes form."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from types import MappingProxyType

from glaunch.block_tree import parents_of_blocks
from glaunch.errors import UsageError
from glaunch.hostlist import natural_key
from glaunch.network import Network

MAX_SYNTHETIC_NODES = 1 << 20

_TIER = re.compile(r"([A-Za-z][A-Za-z0-9_.-]*):([1-9][0-9]{0,6})")


class NoTree(UsageError):
    """What was named makes no tree; `switch` is where it was seen."""

    def __init__(self, message: str, switch: str) -> None:
        super().__init__(message)
        self.switch = switch


@dataclass(frozen=True, slots=True)
class Switch:
    """One switch: `parent` is the switch above (None at a root); only tier 0 (a leaf) has nodes.

    The tier of any other switch is one more than the highest tier below it, as Slurm's `Level`.
    `where` (FILE:LINE) does not count when switches are compared.
    """

    name: str
    tier: int
    parent: str | None
    nodes: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    """The switches it stands for where it is not one alone: the leaves of a scalable unit, rail by rail; the spines of a pod."""
    virtual: bool = False
    """True where no switch stands: what is below is cabled to each other directly (Dragonfly+ groups), or, of a leaf, the nodes hang on
    the switch above. It is crossed in no hop."""
    where: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Block:
    """Nodes that one NVLink domain (or what a site calls a block) holds."""

    name: str
    nodes: tuple[str, ...]
    where: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Dispute:
    """Something about which two sources do not say the same. The first one counts."""

    about: str
    """What it is about: `leaf`, `parent`, `block`, `islands`, `node` (one source does not know it), `name`, `link`."""
    subject: str
    said: tuple[tuple[str, str], ...]
    """(what a source says, where), the one that counts first."""


@dataclass(frozen=True)
class Fabric:
    """A forest of switches, each tree an island: nothing is known to join two of them.

    `source` says where it was seen; `flat` that no topology is known and one switch was made up; `notes` what a person should know
    about it (nodes that no switch names, blocks of which nobody says how they are joined).
    A node that stands under several leaves counts under the first.
    """

    switches: tuple[Switch, ...]
    source: str
    flat: bool = False
    notes: tuple[str, ...] = ()
    blocks: tuple[Block, ...] = ()
    block_sizes: tuple[int, ...] = ()
    """Nodes of a base block, then of the aggregated ones that the site allows; () where no source says so."""
    network: Network | None = None
    """The devices and links that the switches were read out of; None where a source knows switches by name alone."""
    disputes: tuple[Dispute, ...] = ()

    @cached_property
    def by_name(self) -> Mapping[str, Switch]:
        """Switch name → switch."""
        return MappingProxyType({switch.name: switch for switch in self.switches})

    @cached_property
    def children(self) -> Mapping[str, tuple[str, ...]]:
        """Switch name → the switches right below it, leaves first, each kind in natural order of names; () for a leaf."""
        below: dict[str, list[Switch]] = {switch.name: [] for switch in self.switches}
        for switch in self.switches:
            if switch.parent is not None:
                below[switch.parent].append(switch)
        return MappingProxyType({name: tuple(switch.name for switch in _in_order(found)) for name, found in below.items()})

    @cached_property
    def roots(self) -> tuple[str, ...]:
        """The switches with nothing above them, one an island, in natural order of names."""
        return tuple(switch.name for switch in _in_order(switch for switch in self.switches if switch.parent is None))

    @cached_property
    def leaves(self) -> tuple[str, ...]:
        """The leaves in the fabric's order: island by island, from the root down, pod by pod."""
        found: list[str] = []
        waiting = list(reversed(self.roots))
        while waiting:
            name = waiting.pop()
            if self.by_name[name].tier == 0:
                found.append(name)
            waiting.extend(reversed(self.children[name]))
        return tuple(found)

    @cached_property
    def row_of_leaf(self) -> Mapping[str, int]:
        """Leaf → its index in `leaves`."""
        return MappingProxyType({leaf: index for index, leaf in enumerate(self.leaves)})

    @cached_property
    def leaf_of(self) -> Mapping[str, str]:
        """Node → its leaf (the first that names it); a node that no leaf names is not in it."""
        found: dict[str, str] = {}
        for switch in reversed(self.switches):
            found.update(dict.fromkeys(switch.nodes, switch.name))
        return MappingProxyType(found)

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """Every node that a switch names, each once, in the order of the switches."""
        return tuple(dict.fromkeys(node for switch in self.switches for node in switch.nodes))

    @cached_property
    def leaf_row(self) -> Mapping[str, int]:
        """Node → the row of its leaf; a node that no leaf names is not in it."""
        row = self.row_of_leaf
        return MappingProxyType({node: row[leaf] for node, leaf in self.leaf_of.items()})

    @cached_property
    def block_of(self) -> Mapping[str, str]:
        """Node → its block (the first that names it)."""
        found: dict[str, str] = {}
        for block in reversed(self.blocks):
            found.update(dict.fromkeys(block.nodes, block.name))
        return MappingProxyType(found)

    @cached_property
    def blocks_alone(self) -> bool:
        """True where the switches are the blocks and what Slurm puts above them: of a topology of blocks, no tree is known."""
        blocks = {block.name: block.nodes for block in self.blocks}
        if not blocks or {switch.name: switch.nodes for switch in self.switches if switch.tier == 0} != blocks:
            return False
        return {switch.name: switch.parent for switch in self.switches} == parents_of_blocks(tuple(blocks), self.block_sizes)

    @cached_property
    def tiers(self) -> int:
        """The number of tiers: 1 for leaves alone, 3 for leaf, spine, core; 0 for no switches."""
        return max((switch.tier for switch in self.switches), default=-1) + 1

    @cached_property
    def _paths(self) -> Mapping[str, tuple[str, ...]]:
        paths: dict[str, tuple[str, ...]] = {}
        for leaf in self.leaves:
            path = [leaf]
            while (parent := self.by_name[path[-1]].parent) is not None:
                path.append(parent)
            paths[leaf] = tuple(path)
        return paths

    def path_of_leaf(self, leaf: str) -> tuple[str, ...]:
        """The leaf and the switches above it, root last. Raises KeyError for what is no leaf."""
        return self._paths[leaf]

    def path_up(self, node: str) -> tuple[str, ...]:
        """The switches above `node`, leaf first, root last; empty for a node that the fabric does not know."""
        return self._paths.get(self.leaf_of.get(node, ""), ())

    def pod_of(self, node: str) -> str:
        """The switch above the node's leaf, or the leaf itself where nothing is above it; "" for an unknown node."""
        path = self.path_up(node)
        return path[min(1, len(path) - 1)] if path else ""

    def pod_of_leaf(self, leaf: str) -> str:
        """The switch above the leaf, or the leaf itself where nothing is above it."""
        return self.by_name[leaf].parent or leaf

    def path(self, one: str, two: str) -> tuple[str, ...] | None:
        """The switches crossed from node to node, in order; () for the same node, None when nothing joins them."""
        if one == two:
            return ()
        ups, others = self._real_path_up(one), self._real_path_up(two)
        meet = next((name for name in ups if name in others), None)
        if meet is None:
            return None
        crossed = (*ups[: ups.index(meet) + 1], *reversed(others[: others.index(meet)]))
        return tuple(name for name in crossed if not self.by_name[name].virtual)

    def _real_path_up(self, node: str) -> tuple[str, ...]:
        """As `path_up`, without a virtual leaf: its nodes hang on the switch above."""
        path = self.path_up(node)
        return path[1:] if len(path) > 1 and self.by_name[path[0]].virtual else path

    def hops(self, one: str, two: str) -> int | None:
        """Switches on the shortest path: 0 for the same node, 1 on one leaf, 3 via a spine; None when nothing joins them."""
        path = self.path(one, two)
        return None if path is None else len(path)


def _in_order(switches: Iterable[Switch]) -> list[Switch]:
    return sorted(switches, key=lambda switch: (switch.tier > 0, natural_key(switch.name)))


def build_fabric(
    parents: Mapping[str, str | None], nodes: Mapping[str, Sequence[str]], source: str, *, notes: tuple[str, ...] = ()
) -> Fabric:
    """The fabric whose switches are the keys of `parents`, in that order; `nodes` has the node names of each leaf.

    Tiers are counted from below: 0 without switches below, else one more than the highest of them.
    Raises NoTree when a parent is no switch, when switches stand above each other in a circle, or when a switch that has
    switches below it has nodes too.
    """
    tiers = dict.fromkeys(parents, 0)
    for name in parents:
        height, below = 0, name
        while (above := parents[below]) is not None:
            if above not in parents:
                raise NoTree(f"switch {below!r} hangs on {above!r}, which is no switch", below)
            height += 1
            if height > len(parents):
                raise NoTree(f"switch {name!r} stands above itself", name)
            if tiers[above] >= height:
                break
            tiers[above] = height
            below = above
    for name, tier in tiers.items():
        if tier and nodes.get(name):
            raise NoTree(f"switch {name!r} has both switches and nodes below it", name)
    return Fabric(tuple(Switch(name, tiers[name], parents[name], tuple(nodes.get(name, ()))) for name in parents), source, notes=notes)


def flat_fabric(nodes: Iterable[str], source: str = "no topology known") -> Fabric:
    """One made-up switch above all nodes: what is left to assume when nobody says how they are joined."""
    return Fabric((Switch("flat", 0, None, tuple(nodes)),), source, flat=True)


def synthetic(shape: str, nodes: int | None = None) -> Fabric:
    """A regular fabric from one line, root first: `core:1 spine:4 leaf:8 node:16` is 1 core, 4 spines, 32 leaves, 512 nodes.

    Each number counts per switch above (the first: islands). Switches are called core1, spine1 …, numbered through; nodes n001 …
    (as many digits as the last needs, at least three), whatever the last word is. Leaves come first in `switches`. With `nodes` only the
    first so many stand, and no switch without one below it.
    Raises UsageError for a shape that cannot be read or has more than a million nodes.
    """
    words = shape.split()
    tiers = [match for word in words if (match := _TIER.fullmatch(word))]
    if len(tiers) != len(words) or len(tiers) < 2 or len({match[1] for match in tiers}) < len(tiers):
        hint = 'write it as "core:1 spine:2 leaf:4 node:2": different names, root first, each number per switch above, the nodes last'
        raise UsageError(f"{shape!r} is no fabric shape", hint=hint)
    fan_outs = [int(match[2]) for match in tiers]
    total = prod(fan_outs) if nodes is None else min(nodes, prod(fan_outs))
    if total > MAX_SYNTHETIC_NODES:
        raise UsageError(f"{shape!r} is a fabric of more than {MAX_SYNTHETIC_NODES} nodes")
    counts = [total]  # of each tier, the leaves' nodes first
    for fan_out in reversed(fan_outs[1:]):
        counts.append(-(-counts[-1] // fan_out))
    parents: dict[str, str | None] = {}
    above: list[str] = []
    for match, fan_out, count in zip(tiers[:-1], fan_outs, reversed(counts[1:]), strict=False):
        names = [f"{match[1]}{index + 1}" for index in range(count)]
        parents = {name: above[index // fan_out] if above else None for index, name in enumerate(names)} | parents
        above = names
    width, per_leaf = max(3, len(str(total))), fan_outs[-1]
    below = [f"n{number:0{width}d}" for number in range(1, total + 1)]
    return build_fabric(parents, {leaf: below[index * per_leaf : (index + 1) * per_leaf] for index, leaf in enumerate(above)}, shape)
