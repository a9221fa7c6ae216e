"""The tree that a network's links amount to: what placement and Slurm call the fabric.

Nearness is read from the links alone, never from names, and by the nodes, never by the distance of a switch from "the bottom": nodes that
share their leaves are one leaf domain (with one leaf each: that leaf; rail-optimised: the scalable unit). Switches that join domains make
them a pod, those that join pods a higher one, until nothing is joined any more; what is left apart are islands. So leaves of management
on a spine, hosts on spine ports and groups that are cabled to each other directly (Dragonfly+) all find their place.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations

from glaunch.fabric import Fabric, build_fabric
from glaunch.hostlist import natural_key
from glaunch.leaf_domains import Groups, leaf_domains
from glaunch.network import Network

_FARTHER = "their nodes are farther apart than the tree says"


@dataclass
class _Unit:
    """A part of the tree under construction: the switches that stand for it, what it joins, its height."""

    switches: list[str]
    below: list["_Unit"] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)
    virtual: bool = False

    @property
    def tier(self) -> int:
        return 1 + max(one.tier for one in self.below) if self.below else 0


def fabric_of(network: Network) -> Fabric:
    """The fabric of a network: a leaf a domain, a switch above for each set of switches that joins what is below it.

    A switch of the fabric that stands for several has the name of the first and all of them as `members` (of a leaf domain: one leaf a
    rail, in the order of `rail_of_leaf`). `hops` of the fabric are those of the links on every fat-tree of any depth, rails, and groups
    with all-to-all links; where they cannot be, a note says so. Nodes whose links are all down stand under no leaf.
    """
    home, domains = leaf_domains(network)
    units = {leaves[0]: _Unit(leaves) for leaves in domains}
    hosts_above: dict[str, list[str]] = defaultdict(list)
    for node, leaf in home.items():
        (units[leaf].nodes if leaf in units else hosts_above[leaf]).append(node)
    # A leaf that is nobody's main one (a management switch that every node hangs on) is a switch like those above.
    spread = _Spread(network, [unit for unit in units.values() if unit.nodes])
    while spread.grow():
        pass
    domain_of = {leaf: leaves[0] for leaves in domains for leaf in leaves}
    notes = (*network.notes, *_unplaced(network), *_irregular(network, home, domain_of), *_planes(network, spread.units), *spread.notes)
    return _written(network, spread, hosts_above, notes)


def _irregular(network: Network, home: Mapping[str, str], domain_of: Mapping[str, str]) -> Iterator[str]:
    """Notes on nodes with cables into several domains, and on those that lack one to a leaf of their own."""
    sizes = Counter(domain_of.values())
    several, fewer = [], []
    for node, domain in home.items():
        leaves = {leaf for leaf, _ in network.leaf_links[node]}
        if len({domain_of.get(leaf, leaf) for leaf in leaves}) > 1:
            several.append(node)
        if sum(domain_of.get(leaf) == domain for leaf in leaves) < sizes[domain]:
            fewer.append(node)
    what = ("cables into more than one leaf domain (the one with most counts)", "no cable to a leaf of their domain")
    for nodes, words in zip((several, fewer), what, strict=True):
        if nodes:
            yield f"{len(nodes)} {'node has' if len(nodes) == 1 else 'nodes have'} {words}, such as {min(nodes, key=natural_key)}"


def _planes(network: Network, islands: Iterable[_Unit]) -> Iterator[str]:
    """A note on each island whose leaf domains do not hang on the same planes (networks of switches that no cable joins)."""
    planes = Groups(network.switch_neighbours)
    for switch, neighbours in network.switch_neighbours.items():
        for other in neighbours:
            planes.join(switch, other)
    for island in islands:
        waiting, on = [island], set()
        while waiting:
            unit = waiting.pop()
            waiting.extend(unit.below)
            if not unit.below:
                on.add(frozenset(map(planes.of, unit.switches)))
        if len(on) > 1:
            yield f"below {network.label[_first(island)]} not all leaf domains hang on the same planes: some nodes may not reach each other"


class _Spread:
    """The tree as it grows from the leaves up: each step joins what can be joined at that height."""

    def __init__(self, network: Network, units: list[_Unit]) -> None:
        self.network = network
        self.units = units
        self.notes: list[str] = []
        self._beside = network.switch_neighbours
        self._unit_of = {switch: number for number, unit in enumerate(units) for switch in unit.switches}
        self._free = [device.id for device in network.switches if device.id not in self._unit_of]

    def grow(self) -> bool:
        """Join by switches above; else by direct links; else put the single switches above the lowest unit. False: all is said."""
        if len(self.units) < 2 and not self._free:
            return False
        reach = {
            switch: sorted({self._unit_of[other] for other in self._beside[switch] if other in self._unit_of}) for switch in self._free
        }
        several = {switch: units for switch, units in reach.items() if len(units) > 1}
        # A core with a leaf or two of management on it waits until its spines have found their place.
        joining = {switch: units for switch, units in several.items() if self._mostly_below(switch)} or several
        if not joining:
            single = {switch: units[0] for switch, units in reach.items() if units}
            if single:
                lowest = min(self.units[number].tier for number in single.values())
                joining = {switch: [number] for switch, number in single.items() if self.units[number].tier == lowest}
        return self._join_above(joining) if joining else self._join_beside()

    def _join_above(self, joining: Mapping[str, list[int]]) -> bool:
        groups = Groups(map(str, range(len(self.units))))
        for units in joining.values():
            for number in units[1:]:
                groups.join(str(units[0]), str(number))
        switches: dict[str, list[str]] = defaultdict(list)
        for switch, units in joining.items():
            switches[groups.of(str(units[0]))].append(switch)
        self._note_gaps(joining, groups)
        self._regroup(groups, {name: _Unit(self._in_order(found)) for name, found in switches.items()})
        return True

    def _mostly_below(self, switch: str) -> bool:
        cables = self._beside[switch]
        below = sum(count for other, count in cables.items() if other in self._unit_of)
        return 3 * below >= sum(cables.values())

    def _note_gaps(self, joining: Mapping[str, list[int]], groups: Groups) -> None:
        """Say it where two units of one group share no switch: their nodes are farther from each other than the tree can say."""
        shared: dict[int, int] = defaultdict(int)
        for bit, units in enumerate(joining.values()):
            for number in units:
                shared[number] |= 1 << bit
        alike: dict[str, Counter[int]] = defaultdict(Counter)
        for number, switches in shared.items():
            alike[groups.of(str(number))][switches] += 1
        for name, counted in alike.items():
            missing = sum(counted[one] * counted[two] for one, two in combinations(counted, 2) if not one & two)
            if missing:
                self.notes.append(f"{_pairs(missing)} of what {self._first(name)} is joined with, without a switch in common: {_FARTHER}")

    def _first(self, group: str) -> str:
        return self.network.label[_first(self.units[int(group)])]

    def _join_beside(self) -> bool:
        groups = Groups(map(str, range(len(self.units))))
        linked: set[tuple[int, int]] = set()
        for switch, number in self._unit_of.items():
            linked.update((number, self._unit_of[other]) for other in self._beside[switch] if self._unit_of.get(other, number) > number)
        for one, two in linked:
            groups.join(str(one), str(two))
        sizes = Counter(groups.of(str(number)) for number in range(len(self.units)))
        found = Counter(groups.of(str(one)) for one, _ in linked)
        for name, size in sizes.items():
            missing = size * (size - 1) // 2 - found[name]
            if missing:
                self.notes.append(f"{_pairs(missing)} of the groups beside {self._first(name)}, without a direct link: {_FARTHER}")
        self._regroup(groups, {name: _Unit([], virtual=True) for name, size in sizes.items() if size > 1})
        return bool(linked)

    def _regroup(self, groups: Groups, above: Mapping[str, _Unit]) -> None:
        for number, unit in enumerate(self.units):
            if (parent := above.get(groups.of(str(number)))) is not None:
                parent.below.append(unit)
        kept = [unit for number, unit in enumerate(self.units) if groups.of(str(number)) not in above]
        self.units = sorted((*kept, *above.values()), key=lambda unit: natural_key(self.network.label[_first(unit)]))
        taken = {switch for unit in above.values() for switch in unit.switches}
        self._free = [switch for switch in self._free if switch not in taken]
        self._unit_of = {switch: number for number, unit in enumerate(self.units) for switch in _all_switches(unit)}

    def _in_order(self, switches: Iterable[str]) -> list[str]:
        return sorted(switches, key=lambda switch: natural_key(self.network.label[switch]))


def _pairs(count: int) -> str:
    return "1 pair" if count == 1 else f"{count} pairs"


def _first(unit: _Unit) -> str:
    return unit.switches[0] if unit.switches else _first(unit.below[0])


def _all_switches(unit: _Unit) -> Iterable[str]:
    yield from unit.switches
    for one in unit.below:
        yield from _all_switches(one)


def _without_dead_ends(unit: _Unit, hosts_above: Mapping[str, list[str]]) -> _Unit:
    """The highest unit that joins anything: switches beyond it lead nowhere."""
    while len(unit.below) == 1 and unit.below[0].below and not any(switch in hosts_above for switch in unit.switches):
        unit = unit.below[0]
    return unit


def _written(network: Network, spread: _Spread, hosts_above: Mapping[str, list[str]], notes: tuple[str, ...]) -> Fabric:
    """The finished tree with the switches' own names; hosts on a switch above the leaves get a virtual leaf below it."""
    label = network.label
    rows: dict[str, tuple[str | None, tuple[str, ...], bool, list[str]]] = {}
    taken = set(label.values())

    def fresh(name: str) -> str:
        chosen = next(one for one in (name, *(f"{name}.{number}" for number in range(2, len(taken) + 3))) if one not in taken)
        taken.add(chosen)
        return chosen

    def add(unit: _Unit, parent: str | None) -> None:
        name = fresh("direct") if unit.virtual else label[unit.switches[0]]
        members = tuple(label[switch] for switch in unit.switches) if len(unit.switches) > 1 else ()
        for one in unit.below:
            add(one, name)
        for switch in unit.switches:
            if switch in hosts_above:
                rows[fresh(f"{label[switch]}-hosts")] = (name, (), True, hosts_above[switch])
        rows[name] = (parent, members, unit.virtual, unit.nodes)

    for unit in spread.units:
        add(_without_dead_ends(unit, hosts_above), None)
    tree = build_fabric({name: row[0] for name, row in rows.items()}, {}, network.source)
    where = {label[device.id]: device.where for device in network.switches}
    switches = []
    for switch in tree.switches:
        _, members, virtual, nodes = rows[switch.name]
        ordered = tuple(sorted(nodes, key=natural_key))
        switches.append(replace(switch, nodes=ordered, members=members, virtual=virtual, where=where.get(switch.name, "")))
    return Fabric(tuple(switches), network.source, notes=notes, network=network)


def _unplaced(network: Network) -> Iterator[str]:
    """Notes on what has no place in the tree."""
    lost = sorted((host for host in network.hosts if not network.leaf_links[host]), key=natural_key)
    if lost:
        count = "1 node has" if len(lost) == 1 else f"{len(lost)} nodes have"
        yield f"{count} no cable to a switch that is up, such as {lost[0]}"
    nameless = network.unnamed
    if nameless:
        first = nameless[0]
        count = "1 adapter belongs" if len(nameless) == 1 else f"{len(nameless)} adapters belong"
        yield f"{count} to hosts that never said their name, such as {first.id} ({first.name}, {first.where}): name them in a map file"
