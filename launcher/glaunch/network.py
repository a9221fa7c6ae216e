"""What is cabled to what: devices, ports and links, as one or more sources saw them.

A `Network` is physical and says nothing of tiers, pods or rails; `hierarchy.fabric_of` reads those out of it.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

from glaunch.hostlist import natural_key

SWITCH, HCA, ENGINE = "switch", "hca", "engine"
"""Kinds of a Device: a switch; one port of a host's adapter; an engine inside a switch (SHARP), which looks like an adapter."""

NOMINAL_GBPS: Mapping[str, float] = MappingProxyType(
    {"SDR": 2.5, "DDR": 5.0, "QDR": 10.0, "FDR10": 10.0, "FDR": 14.0, "EDR": 25.0, "HDR": 50.0, "NDR": 100.0, "XDR": 200.0}
)
"""InfiniBand's speeds, Gbit/s of one lane as they are sold (4x NDR is 400). **Source:** InfiniBand Trade Association, roadmap."""

_NAME = re.compile(r"[^\s,\[\]{}\"#\\]+")
_UNFIT = re.compile(r"[\s,\[\]{}\"#\\]+")


@dataclass(frozen=True, slots=True)
class Device:
    """A switch (one ASIC), or one port of a host's adapter: what a single rail ends in.

    `id` is the same in every source that sees it: its GUID as 0x and 16 hex digits (of an adapter, the port's), else a name.
    `where` (FILE:LINE) is where it was first seen; it does not count when devices are compared.
    """

    id: str
    kind: str
    name: str
    """What it calls itself: a switch's name, the adapter's word (`HCA-1`, `mlx5_3`, `eth2`); "" where it says nothing."""
    host: str = ""
    """Of an adapter: the node it sits in; "" where it never said (a fresh adapter has its maker's words for a name)."""
    card: str = ""
    """Of an adapter: the GUID that its ports share."""
    system: str = ""
    """The GUID of the box: the ASICs of one switch chassis share it."""
    rail: int | None = None
    """Of an adapter: its rail, where the source says so itself."""
    where: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Link:
    """A cable between two ports; parallel cables are several links. The smaller (id, port) stands first."""

    one: str
    one_port: str
    two: str
    two_port: str
    width: int = 0
    """Lanes; 0 where the source does not say."""
    rate_gbps: float = 0.0
    """Gbit/s of all lanes, nominal; 0 where the source does not say."""
    state: str = "active"
    """`active`, or what the source says instead: `init`, `armed`, `down`."""
    sides: int = 2
    """1 where a source that lists both ends showed one of them only."""
    where: str = field(default="", compare=False)

    @property
    def up(self) -> bool:
        """True for a link that carries traffic."""
        return self.state == "active"

    def other(self, device: str) -> str:
        """The device at the far end."""
        return self.two if device == self.one else self.one

    def port_at(self, device: str) -> str:
        """The port at `device`; of a cable from a switch to itself, the first."""
        return self.one_port if device == self.one else self.two_port


@dataclass(frozen=True, slots=True)
class OpenPort:
    """A port with nothing at its other end, where a source lists such ports; `state` as it says (`Down/Polling`)."""

    device: str
    port: str
    state: str
    where: str = field(default="", compare=False)


@dataclass(frozen=True)
class Network:
    """Devices and links, in the order in which they were seen; `source` names the files, `notes` what a person should know."""

    devices: tuple[Device, ...]
    links: tuple[Link, ...]
    source: str
    open_ports: tuple[OpenPort, ...] = ()
    notes: tuple[str, ...] = ()

    @cached_property
    def by_id(self) -> Mapping[str, Device]:
        """Device id → device."""
        return MappingProxyType({device.id: device for device in self.devices})

    @cached_property
    def switches(self) -> tuple[Device, ...]:
        """The switches."""
        return tuple(device for device in self.devices if device.kind == SWITCH)

    @cached_property
    def links_of(self) -> Mapping[str, tuple[Link, ...]]:
        """Device id → its links, also those that are down; a cable from a switch to itself stands once."""
        found: dict[str, list[Link]] = {device.id: [] for device in self.devices}
        for link in self.links:
            found[link.one].append(link)
            if link.two != link.one:
                found[link.two].append(link)
        return MappingProxyType({name: tuple(links) for name, links in found.items()})

    @cached_property
    def label(self) -> Mapping[str, str]:
        """Switch id → the name it goes by: its own where no other switch has the same, else the longer form, else its id.

        A name that a hostlist could not carry has `-` in the place of blanks and brackets.
        """
        forms = {device.id: _forms(device) for device in self.switches}
        counts = Counter(form for candidates in forms.values() for form in dict.fromkeys(candidates))
        return MappingProxyType({name: next(form for form in (*own, name) if counts[form] < 2) for name, own in forms.items()})

    @cached_property
    def id_of(self) -> Mapping[str, str]:
        """The name that a switch goes by → its id."""
        return MappingProxyType({label: name for name, label in self.label.items()})

    @cached_property
    def hosts(self) -> Mapping[str, tuple[Device, ...]]:
        """Node → its adapters' ports, in the order of their rails where known, else in natural order of their names."""
        found: dict[str, list[Device]] = {}
        for device in self.devices:
            if device.kind == HCA and device.host:
                found.setdefault(device.host, []).append(device)
        order = {
            host: tuple(sorted(own, key=lambda one: (one.rail is None, one.rail or 0, natural_key(one.name), one.id)))
            for host, own in found.items()
        }
        return MappingProxyType(order)

    @cached_property
    def unnamed(self) -> tuple[Device, ...]:
        """Adapters whose host never said its name: which node they belong to is not known."""
        return tuple(device for device in self.devices if device.kind == HCA and not device.host)

    @cached_property
    def leaf_links(self) -> Mapping[str, tuple[tuple[str, Link], ...]]:
        """Node → (switch id, link) for each cable of its adapters that is up, in the order of `hosts`."""
        kinds = {device.id: device.kind for device in self.devices}
        links_of = self.links_of
        return MappingProxyType(
            {
                host: tuple(
                    (link.other(hca.id), link)
                    for hca in adapters
                    for link in links_of[hca.id]
                    if link.up and kinds[link.other(hca.id)] == SWITCH
                )
                for host, adapters in self.hosts.items()
            }
        )

    @cached_property
    def switch_neighbours(self) -> Mapping[str, Mapping[str, int]]:
        """Switch id → the switches cabled to it and by how many cables that are up; never itself."""
        found: dict[str, Counter[str]] = {device.id: Counter() for device in self.switches}
        for link in self.links:
            if link.up and link.one != link.two and link.one in found and link.two in found:
                found[link.one][link.two] += 1
                found[link.two][link.one] += 1
        return MappingProxyType(found)

    def path(self, one: str, two: str) -> tuple[str, ...] | None:
        """The switches (ids) on one shortest way from node to node over links that are up; () for the same node, None where there is none.

        Among equally short ways the one whose next switch comes first in `devices` counts.
        """
        if one == two:
            return ()
        starts = list(dict.fromkeys(switch for switch, _ in self.leaf_links.get(one, ())))
        ends = {switch for switch, _ in self.leaf_links.get(two, ())}
        came_from: dict[str, str | None] = dict.fromkeys(starts)
        wave = starts
        while wave and ends:
            met = next((switch for switch in wave if switch in ends), None)
            if met is not None:
                return tuple(reversed(list(_back(met, came_from))))
            following: list[str] = []
            for switch in wave:
                for beyond in self.switch_neighbours[switch]:
                    if beyond not in came_from:
                        came_from[beyond] = switch
                        following.append(beyond)
            wave = following
        return None

    def hops(self, one: str, two: str) -> int | None:
        """Switches on the shortest way; None where there is none."""
        path = self.path(one, two)
        return None if path is None else len(path)


def _forms(device: Device) -> tuple[str, ...]:
    """Names for a switch, the shortest first. `MF0;sw1:MQM8700/U1` is how a managed switch calls its ASIC 1."""
    managed = re.fullmatch(r"MF0;(?P<name>[^:]+):(?P<model>[^/]*)(?P<part>/.*)?", device.name.strip())
    if not managed:
        name = _UNFIT.sub("-", device.name.strip())
        return (name,) if name else ()
    name, part = _UNFIT.sub("-", managed["name"]), managed["part"] or ""
    return (name, name + part) if re.fullmatch(r"(/U1)?", part) else (name + part,)


def _back(switch: str | None, came_from: Mapping[str, str | None]) -> Iterator[str]:
    while switch is not None:
        yield switch
        switch = came_from[switch]


def guid(digits: str) -> str:
    """A GUID as every source writes it: 0x and 16 hex digits. Raises ValueError where it is no hex number of 64 bits."""
    number = int(digits, 16)
    if number >= 1 << 64:
        raise ValueError(f"{digits} has more than 64 bits")
    return f"0x{number:016x}"


def is_name(text: str) -> bool:
    """True for what can be the name of a node in a hostlist."""
    return _NAME.fullmatch(text) is not None


class NetworkBuilder:
    """Collects a network from lines that show each link once or from both ends."""

    def __init__(self, source: str, *, both_sides: bool) -> None:
        self._source = source
        self._both_sides = both_sides
        self._devices: dict[str, Device] = {}
        self._links: dict[tuple[str, str, str, str], Link] = {}
        self._seen_from: dict[tuple[str, str, str, str], tuple[str, str]] = {}
        self.open_ports: list[OpenPort] = []
        self.notes: list[str] = []

    def device(self, device: Device) -> None:
        """Add a device; of one that is known already, what was missing."""
        known = self._devices.get(device.id)
        if known is None or (known.kind == device.kind and _says_more(device, known)):
            self._devices[device.id] = device if known is None else _completed(known, device)

    def known(self, device: str) -> Device | None:
        """The device so far."""
        return self._devices.get(device)

    def link(self, link: Link) -> None:
        """Add a link as its end `link.one` shows it. Where the two ends do not agree on rate or width, the lower one counts."""
        near, far = (link.one, link.one_port), (link.two, link.two_port)
        key = (*near, *far) if near <= far else (*far, *near)
        old = self._links.get(key)
        if old is None:
            self._seen_from[key] = near
            self._links[key] = Link(*key, link.width, link.rate_gbps, link.state, 1 if self._both_sides else 2, link.where)
        elif self._seen_from[key] != near and old.sides == 1:
            width, rate_gbps = _lower(old.width, link.width), _lower(old.rate_gbps, link.rate_gbps)
            state = old.state if old.state != "active" else link.state
            self._links[key] = Link(*key, int(width), rate_gbps, state, 2, old.where)

    def network(self) -> Network:
        """All that was collected."""
        return Network(tuple(self._devices.values()), tuple(self._links.values()), self._source, tuple(self.open_ports), tuple(self.notes))


def _lower(one: float, two: float) -> float:
    """The lower of two figures, of which 0 is none."""
    return min(one, two) or max(one, two)


def _says_more(new: Device, old: Device) -> bool:
    return any(getattr(new, word) not in {"", None} and getattr(old, word) in {"", None} for word in _COMPLETED)


def _completed(old: Device, new: Device) -> Device:
    values = {word: getattr(old, word) if getattr(old, word) not in {"", None} else getattr(new, word) for word in _COMPLETED}
    return Device(id=old.id, kind=old.kind, where=old.where, **values)


_COMPLETED = ("name", "host", "card", "system", "rail")
