"""What one host's `lldpctl -f json` (or `json0`) says about its neighbours: how an Ethernet fabric is cabled, host by host.

**Source:** lldpctl(8), -f.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from glaunch.errors import ParseError
from glaunch.network import HCA, SWITCH, Device, Link, Network, NetworkBuilder
from glaunch.parsers.json_text import read_json

_SWITCHING = frozenset({"Bridge", "Router"})


def parse_lldp(text: str, *, where: str, host: str) -> Network:
    """The cables of `host`: its interfaces as adapters' ports, and the switches at their far ends.

    Neighbours that say of themselves that they neither bridge nor route (other hosts, phones) are left out. A switch is known by its name,
    else by the id of its chassis. The same answer from a switch (`host` its name) gives the cables between switches: `merge` sees that a
    host of one text is a switch in another. Rates are not in it.
    Raises ParseError for what is no such JSON; no neighbours at all is a network with nothing but the host.
    """
    data = read_json(text, where=where)
    builder = NetworkBuilder(where, both_sides=False)
    found = 0
    for interface, entry in _interfaces(data, where):
        line = text.count("\n", 0, max(0, text.find(f'"{interface}"'))) + 1
        at = f"{where}:{line}"
        for name, chassis in _chassis(entry.get("chassis"), at):
            if not _switches(chassis):
                continue
            switch = name or _value(chassis.get("id"))
            port = _value(_only(entry.get("port"), at).get("id"))
            if not switch or not port:
                raise ParseError(at, interface, "the neighbour's chassis and port, each with an id")
            found += 1
            builder.device(Device(f"{host}/{interface}", HCA, interface, host, where=at))
            builder.device(Device(switch, SWITCH, name or switch, system=_value(chassis.get("id")), where=at))
            builder.link(Link(f"{host}/{interface}", interface, switch, port, where=at))
    if not found:
        builder.notes.append(f"{where}: {host} sees no switch by LLDP")
    return builder.network()


def _interfaces(data: object, where: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(name, what is said about it) of each interface, in any of the three ways in which lldpctl nests them."""
    lldp = data.get("lldp") if isinstance(data, Mapping) else None
    for part in _listed(lldp) if lldp is not None else (None,):
        if not isinstance(part, Mapping):
            raise ParseError(f"{where}:1", repr(data), '{"lldp": {"interface": …}}')
        for one in _listed(part.get("interface")):
            if not isinstance(one, Mapping):
                raise ParseError(f"{where}:1", repr(one), "an interface: a name and what it sees")
            named = ((one["name"], one),) if isinstance(one.get("name"), str) else tuple(one.items())
            for name, entry in named:
                if not isinstance(entry, Mapping):
                    raise ParseError(f"{where}:1", repr(entry), f"what {name} sees")
                yield str(name), entry


def _chassis(value: object, at: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(name, chassis); the name is "" where the neighbour does not say it."""
    for one in _listed(value):
        if not isinstance(one, Mapping):
            raise ParseError(at, repr(one), "a chassis")
        if "id" in one:
            yield _value(one.get("name")), one
            continue
        for name, chassis in one.items():
            if not isinstance(chassis, Mapping):
                raise ParseError(at, repr(chassis), f"the chassis {name}")
            yield str(name), chassis


def _switches(chassis: Mapping[str, Any]) -> bool:
    said = [one for one in _listed(chassis.get("capability")) if isinstance(one, Mapping)]
    return not said or any(one.get("enabled") is True and one.get("type") in _SWITCHING for one in said)


def _only(value: object, at: str) -> Mapping[str, Any]:
    values = _listed(value)
    if len(values) != 1 or not isinstance(values[0], Mapping):
        raise ParseError(at, repr(value), "one port")
    return values[0]


def _value(value: object) -> str:
    first = _listed(value)[:1]
    found = first[0].get("value") if first and isinstance(first[0], Mapping) else first[0] if first else ""
    return found.strip() if isinstance(found, str) else ""


def _listed(value: object) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
