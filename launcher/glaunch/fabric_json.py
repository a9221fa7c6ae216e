"""A fabric as a JSON document, schema `glaunch.fabric/1`, and back."""

from collections.abc import Mapping

from glaunch.errors import ParseError, UsageError
from glaunch.fabric import Block, Dispute, Fabric, Switch, build_fabric
from glaunch.hostlist import expand, fold
from glaunch.network_json import network_document, network_from_json

SCHEMA = "glaunch.fabric/1"


def fabric_document(fabric: Fabric) -> dict[str, object]:
    """The fabric as JSON values; nodes as one hostlist; what it does not have is left out, but for source, flat, notes and switches."""
    more: dict[str, object] = {}
    if fabric.blocks:
        more["blocks"] = [{"name": block.name, "nodes": fold(block.nodes), **_where(block.where)} for block in fabric.blocks]
    if fabric.block_sizes:
        more["block_sizes"] = list(fabric.block_sizes)
    if fabric.disputes:
        more["disputes"] = [
            {"about": dispute.about, "subject": dispute.subject, "said": [list(said) for said in dispute.said]}
            for dispute in fabric.disputes
        ]
    if fabric.network is not None:
        more["network"] = network_document(fabric.network)
    switches = [_switch_row(switch) for switch in fabric.switches]
    head = {"schema": SCHEMA, "source": fabric.source, "flat": fabric.flat, "notes": list(fabric.notes)}
    return {**head, "switches": switches, **more}


def _where(where: str) -> dict[str, object]:
    return {"where": where} if where else {}


def _switch_row(switch: Switch) -> dict[str, object]:
    row: dict[str, object] = {"name": switch.name, "tier": switch.tier, "parent": switch.parent, "nodes": fold(switch.nodes)}
    if switch.members:
        row["members"] = list(switch.members)
    if switch.virtual:
        row["virtual"] = True
    return {**row, **_where(switch.where)}


def fabric_from_json(data: object, *, where: str) -> Fabric:
    """The fabric that `fabric_document` wrote. Raises ParseError, `where` naming the file, when it is not one."""
    if not isinstance(data, Mapping) or data.get("schema") != SCHEMA:
        raise ParseError(where, repr(data.get("schema") if isinstance(data, Mapping) else data), f"a fabric, schema {SCHEMA}")
    source, flat, notes, rows = (data.get(key) for key in ("source", "flat", "notes", "switches"))
    if not (isinstance(source, str) and isinstance(flat, bool) and isinstance(notes, list) and isinstance(rows, list)):
        raise ParseError(where, repr(data), "source, flat, notes and switches")
    switches = [_switch_from_json(row, where) for row in rows]
    parents = {switch.name: switch.parent for switch in switches}
    if len(parents) < len(switches):
        raise ParseError(where, repr([switch.name for switch in switches]), "every switch once")
    try:
        counted = build_fabric(parents, {switch.name: switch.nodes for switch in switches}, source)
    except UsageError as bad:
        raise ParseError(where, bad.message, "a tree of switches") from bad
    for read, right in zip(switches, counted.switches, strict=True):
        if read.tier != right.tier:
            raise ParseError(where, repr(read.tier), f"tier {right.tier} for switch {read.name!r}")
    network = data.get("network")
    return Fabric(
        tuple(switches),
        source,
        flat,
        tuple(map(str, notes)),
        tuple(_block(row, where) for row in _list(data, "blocks", where)),
        tuple(_size(row, where) for row in _list(data, "block_sizes", where)),
        None if network is None else network_from_json(network, where=where),
        tuple(_dispute(row, where) for row in _list(data, "disputes", where)),
    )


def _list(data: Mapping[str, object], key: str, where: str) -> list[object]:
    rows = data.get(key, [])
    if not isinstance(rows, list):
        raise ParseError(where, repr(rows), f"a list of {key}")
    return rows


def _nodes(text: str, where: str) -> tuple[str, ...]:
    try:
        return expand(text)
    except UsageError as bad:
        raise ParseError(where, text, "a hostlist", hint=bad.message) from bad


def _switch_from_json(row: object, where: str) -> Switch:
    if isinstance(row, Mapping):
        name, tier, parent, nodes = (row.get(key) for key in ("name", "tier", "parent", "nodes"))
        members, virtual, seen = row.get("members", []), row.get("virtual", False), row.get("where", "")
        right = _texts(members) and isinstance(virtual, bool) and isinstance(seen, str)
        if right and isinstance(name, str) and isinstance(tier, int) and isinstance(parent, str | None) and isinstance(nodes, str):
            return Switch(name, tier, parent, _nodes(nodes, where), tuple(members), virtual, seen)
    raise ParseError(where, repr(row), "a switch: name, tier, parent, nodes")


def _texts(values: object) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def _block(row: object, where: str) -> Block:
    if isinstance(row, Mapping):
        name, nodes, seen = row.get("name"), row.get("nodes"), row.get("where", "")
        if isinstance(name, str) and isinstance(nodes, str) and isinstance(seen, str):
            return Block(name, _nodes(nodes, where), seen)
    raise ParseError(where, repr(row), "a block: name, nodes")


def _size(row: object, where: str) -> int:
    if isinstance(row, bool) or not isinstance(row, int) or row < 1:
        raise ParseError(where, repr(row), "a block size, a whole number from 1")
    return row


def _dispute(row: object, where: str) -> Dispute:
    if isinstance(row, Mapping):
        about, subject, said = row.get("about"), row.get("subject"), row.get("said")
        if (
            isinstance(about, str)
            and isinstance(subject, str)
            and isinstance(said, list)
            and all(_texts(one) and len(one) == 2 for one in said)
        ):
            return Dispute(about, subject, tuple((value, seen) for value, seen in said))
    raise ParseError(where, repr(row), "a dispute: about, subject, said")
