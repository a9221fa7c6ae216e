"""Slurm's topology.yaml (25.05 and later): named topologies, each a tree, blocks, flat, rings or tori.

**Source:** topology.yaml(5); Slurm's own malformed examples.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from glaunch.errors import ParseError
from glaunch.fabric import Fabric, flat_fabric
from glaunch.parsers.slurm_topology import SwitchLine, join_lines, read_block_sizes
from glaunch.parsers.strict_yaml import Items, Node, Table
from glaunch.parsers.yaml_shapes import at, flag, hostlist, items, read_yaml, scalar, seen, table

KINDS = ("tree", "block", "flat", "ring", "torus3d")
MAX_RING = 16
"""Nodes of a ring. **Source:** Slurm 26.05, topology/ring."""


@dataclass(frozen=True, slots=True)
class NamedTopology:
    """One topology of the file; partitions choose by name, the others use the default one."""

    name: str
    default: bool
    kind: str
    fabric: Fabric


def parse_topology_yaml(text: str, *, where: str) -> tuple[NamedTopology, ...]:
    """All topologies of the file, exactly one of them the default (the one marked, else the first). `where` names the file.

    Rings and tori, whose nearness is no number of switches, are one flat switch with a note; `flat: true` is a fabric without switches.
    Raises ParseError with FILE:LINE for what Slurm refuses: no list of mappings, a key it does not know, none or two of the five kinds,
    another shape than a kind has, block sizes that are not the base times a power of two, a ring of more than 16 nodes, a torus whose
    cells and nodes do not agree; and for what makes no tree (see `join_lines`).
    """
    root = read_yaml(text, where=where)
    entries = (root,) if isinstance(root, Table) else items(root, where, "a list of topologies (- topology: NAME)")
    found = [_topology(entry, where) for entry in entries]
    if not found:
        raise ParseError(at(root, where), "an empty list", "- topology: NAME")
    marked = [index for index, one in enumerate(found) if one.default]
    if len(marked) > 1:
        raise ParseError(where, ", ".join(found[index].name for index in marked), "one topology with cluster_default: true")
    if len({one.name for one in found}) < len(found):
        raise ParseError(where, ", ".join(one.name for one in found), "every topology once")
    chosen = marked[0] if marked else 0
    return tuple(replace(one, default=index == chosen) for index, one in enumerate(found))


def _topology(node: Node, where: str) -> NamedTopology:
    entries = table(node, where, "a topology", ("topology", "cluster_default", *KINDS))
    if next(iter(entries), None) != "topology":
        raise ParseError(at(node, where), seen(node), "topology: NAME as the first key")
    name = scalar(entries["topology"], where, "a name")
    default = flag(entries["cluster_default"], where, "cluster_default") if "cluster_default" in entries else False
    kinds = [kind for kind in KINDS if kind in entries and not _is_false(kind, entries[kind], where)]
    if len(kinds) != 1:
        raise ParseError(at(node, where), ", ".join(kinds) or "none of them", f"exactly one of {', '.join(KINDS)}")
    read = {"tree": _tree, "block": _block, "flat": _flat, "ring": _ring, "torus3d": _torus}[kinds[0]]
    return NamedTopology(name, default, kinds[0], read(entries[kinds[0]], where))


def _is_false(kind: str, node: Node, where: str) -> bool:
    return kind == "flat" and not isinstance(node, Table) and not flag(node, where, "flat")


def _list_or_one(node: Node | None, where: str, what: str) -> tuple[Node, ...]:
    if not isinstance(node, Items | Table):
        raise ParseError(at(node, where), seen(node), what)
    return node.items if isinstance(node, Items) else (node,)


def _named(entry: Mapping[str, Node], key: str, node: Node, where: str) -> str:
    name = scalar(entry[key], where, "a name") if key in entry else ""
    if not name:
        raise ParseError(at(node, where), seen(node), f"{key}: NAME")
    return name


def _tree(node: Node, where: str) -> Fabric:
    switches = table(node, where, "a tree", ("switches",)).get("switches")
    lines = []
    for one in _list_or_one(switches, where, "switches: a list of - switch: NAME"):
        entry = table(one, where, "a switch", ("switch", "children", "nodes"))
        name = _named(entry, "switch", one, where)
        nodes, children = (hostlist(entry.get(key), where, key) for key in ("nodes", "children"))
        if nodes and children:
            raise ParseError(at(one, where), name, "either nodes or children")
        lines.append(SwitchLine(at(one, where), name, nodes, children or None))
    if not lines:
        raise ParseError(at(node, where), "no switch", "- switch: NAME")
    return join_lines(lines, where)


def _block(node: Node, where: str) -> Fabric:
    entry = table(node, where, "a block topology", ("block_sizes", "blocks"))
    sizes = entry.get("block_sizes")
    given = [] if sizes is None else [(one, scalar(one, where, "a block size")) for one in items(sizes, where, "a list of block sizes")]
    numbers = tuple(read_block_sizes([text], at(one, where))[0] for one, text in given)
    for number, (one, text) in zip(numbers, given, strict=True):
        factor = number // numbers[0]
        if number % numbers[0] or factor & (factor - 1) or factor >= 1 << 16:
            raise ParseError(at(one, where), text, f"{numbers[0]} times a power of two")
    lines = []
    for one in _list_or_one(entry.get("blocks"), where, "blocks: a list of - block: NAME"):
        row = table(one, where, "a block", ("block", "nodes"))
        lines.append(
            SwitchLine(at(one, where), _named(row, "block", one, where), hostlist(row.get("nodes"), where, "nodes"), None, block=True)
        )
    if not lines:
        raise ParseError(at(node, where), "no block", "- block: NAME")
    return join_lines(lines, where, numbers)


def _flat(node: Node, where: str) -> Fabric:
    if isinstance(node, Table):
        table(node, where, "flat", ("alpha_step_rank",))
    return Fabric((), where, flat=True)


def _ring(node: Node, where: str) -> Fabric:
    names: list[str] = []
    for one in _list_or_one(table(node, where, "rings", ("rings",)).get("rings"), where, "rings: a list of - ring: NAME"):
        entry = table(one, where, "a ring", ("ring", "nodes"))
        name, nodes = _named(entry, "ring", one, where), hostlist(entry.get("nodes"), where, "nodes")
        if len(nodes) > MAX_RING:
            raise ParseError(at(one, where), f"{name}: {len(nodes)} nodes", f"a ring of at most {MAX_RING} nodes")
        names.extend(nodes)
    return _equally_near("ring", names, where)


def _torus(node: Node, where: str) -> Fabric:
    names: list[str] = []
    for one in _list_or_one(table(node, where, "tori", ("toruses",)).get("toruses"), where, "toruses: a list of - name: NAME"):
        entry = table(one, where, "a torus", ("name", "dims", "nodes", "regions", "placements"))
        name, cells = _named(entry, "name", one, where), _cells(entry.get("dims"), where)
        if "placements" in entry:
            for placement in _list_or_one(entry["placements"], where, "placements: a list of - dims: {x, y, z}"):
                _cells(table(placement, where, "a placement", ("dims",)).get("dims"), where)
        if "regions" in entry:
            nodes = tuple(node for part in _list_or_one(entry["regions"], where, "regions: a list") for node in _region(part, where))
        else:
            nodes = hostlist(entry.get("nodes"), where, "nodes")
        if len(nodes) != cells:
            raise ParseError(at(one, where), f"{name}: {len(nodes)} nodes", f"{cells} nodes, one a cell")
        names.extend(nodes)
    return _equally_near("torus", names, where)


def _region(node: Node, where: str) -> tuple[str, ...]:
    if not isinstance(node, Table):
        raise ParseError(at(node, where), seen(node), "a region with nodes: HOSTLIST")
    return hostlist(table(node, where, "a region").get("nodes"), where, "nodes")


def _cells(node: Node | None, where: str) -> int:
    cells = 1
    for axis, value in table(node, where, "dims", ("x", "y", "z")).items():
        cells *= read_block_sizes([scalar(value, where, f"a number for {axis}")], at(value, where))[0]
    return cells


def _equally_near(kind: str, names: list[str], where: str) -> Fabric:
    flat = flat_fabric(dict.fromkeys(names), where)
    return replace(flat, notes=(f"Slurm's topology is a {kind}: all its nodes count as equally near",))
