"""A network as a JSON document, schema `glaunch.network/1`, and back: a row a device, a link and an open port."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from glaunch.errors import ParseError
from glaunch.network import ENGINE, HCA, SWITCH, Device, Link, Network, OpenPort

SCHEMA = "glaunch.network/1"

_TEXT, _WHOLE, _NUMBER = (str,), (int,), (int, float)


def network_document(network: Network) -> dict[str, object]:
    """The network as JSON values."""
    return {
        "schema": SCHEMA,
        "source": network.source,
        "notes": list(network.notes),
        "devices": [[d.id, d.kind, d.name, d.host, d.card, d.system, d.rail, d.where] for d in network.devices],
        "links": [[k.one, k.one_port, k.two, k.two_port, k.width, k.rate_gbps, k.state, k.sides, k.where] for k in network.links],
        "open_ports": [[p.device, p.port, p.state, p.where] for p in network.open_ports],
    }


def network_from_json(data: object, *, where: str) -> Network:
    """The network that `network_document` wrote. Raises ParseError, `where` naming the file, when it is not one."""
    if not isinstance(data, Mapping) or data.get("schema") != SCHEMA:
        raise ParseError(where, repr(data.get("schema") if isinstance(data, Mapping) else data), f"a network, schema {SCHEMA}")
    source, notes = data.get("source"), data.get("notes")
    if not isinstance(source, str) or not isinstance(notes, list):
        raise ParseError(where, repr(source), "source and notes of a network")
    devices = [Device(*row) for row in _rows(data, "devices", (*[_TEXT] * 6, (int, type(None)), _TEXT), where)]
    links = [Link(*row) for row in _rows(data, "links", (*[_TEXT] * 4, _WHOLE, _NUMBER, _TEXT, _WHOLE, _TEXT), where)]
    ports = [OpenPort(*row) for row in _rows(data, "open_ports", (_TEXT,) * 4, where)]
    kinds = {device.id: device.kind for device in devices}
    if len(kinds) < len(devices) or set(kinds.values()) - {SWITCH, HCA, ENGINE}:
        raise ParseError(where, "devices", f"every device once, each {SWITCH}, {HCA} or {ENGINE}")
    lost = [name for link in links for name in (link.one, link.two) if name not in kinds]
    lost += [port.device for port in ports if port.device not in kinds]
    if lost:
        raise ParseError(where, lost[0], "a device of this network")
    return Network(tuple(devices), tuple(links), source, tuple(ports), tuple(map(str, notes)))


def _rows(data: Mapping[str, object], key: str, kinds: Sequence[tuple[type, ...]], where: str) -> Iterator[list[Any]]:
    rows = data.get(key)
    if not isinstance(rows, list):
        raise ParseError(where, repr(rows), f"a list of {key}")
    for row in rows:
        if not isinstance(row, list) or len(row) != len(kinds) or not all(map(isinstance, row, kinds)):
            raise ParseError(where, repr(row), f"a row of {key} with {len(kinds)} values")
        yield row
