"""Slurm's topology as a fabric: what `scontrol show topology` prints, and topology.conf.

**Source:** scontrol(1), "show topology"; topology.conf(5); answers of Slurm 21.08 to 26.05.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from glaunch.block_tree import parents_of_blocks
from glaunch.errors import ParseError, UsageError
from glaunch.fabric import Block, Fabric, NoTree, build_fabric, flat_fabric
from glaunch.hostlist import expand

_KINDS = ("SwitchName", "BlockName", "AggregatedBlock", "RingName", "TorusName")
_STARTS = re.compile(rf"\s*({'|'.join(_KINDS)})=")
_SWITCH = re.compile(
    r"SwitchName=(?P<name>.+?)\s+Level=\d+\s+LinkSpeed=\d+(?:\s+Nodes=(?P<nodes>\S*))?(?:\s+Switches=(?P<switches>\S*))?(?:\s+\w+=\S*)*"
)
_OTHER = re.compile(r"(?P<kind>\w+)=(?P<name>.+?)(?:\s+(?!Nodes=)\w+=\S*)*(?:\s+Nodes=(?P<nodes>\S*))?(?:\s+\w+=\S*)*")
_NO_TOPOLOGY = re.compile(r"(scontrol: )?(error: |slurm_load_topo error: )|No topology|Topology information contains no ")
_BLOCK_INDEX = re.compile(r"\sBlockIndex=(\d+)(?=\s|$)")
_BLOCK_SIZE = re.compile(r"\sBlockSize=(\d+)(?=\s|$)")
_PAIR = re.compile(r'\s*([A-Za-z0-9_.]+)\s*[-+*/]?=\s*("[^"]*"|[^\s"]\S*)(?=\s|$)')
SLURMS_OWN = "scontrol show topology"
"""Source of a fabric that begins with what Slurm says: its islands and blocks are those that no job crosses."""
MAX_INCLUDES = 8
"""How deep files may include each other: more is a circle."""
_CONF_KEYS = {"switchname", "switches", "nodes", "linkspeed", "blockname", "blocksizes", "blocklevels"}

_BLOCKS_NOTE = "topology/block: Slurm does not say how blocks are joined; one more switch is counted for each size of block that is left"


@dataclass(frozen=True, slots=True)
class SwitchLine:
    """One switch (or block) as it was written; `switches` is None for a leaf."""

    where: str
    name: str
    nodes: tuple[str, ...]
    switches: tuple[str, ...] | None
    block: bool = False


def parse_topology(text: str, *, where: str) -> Fabric | None:
    """The fabric that `scontrol show topology` printed; None when Slurm has no topology (no output, or only its words that say so).

    `where` names the text in errors and becomes the fabric's `source`. A line is a leaf when it has no `Switches=`, whatever its
    `Level`. Lines stand in any order, one record a line or broken before an indented line. Blocks become leaves, with what
    `parents_of_blocks` puts above them; rings and tori, whose nearness is no number of switches, one flat switch with a note.

    Raises ParseError with the line for any other text, for a switch that is named as a child but has no line of its own (what
    `scontrol show topology NAME` prints), for a switch twice, and for switches in a circle.
    """
    lines: list[SwitchLine] = []
    sizes: set[int] = set()
    unswitched: dict[str, list[str]] = {}
    above: dict[str, tuple[str, ...]] = {}
    place: dict[str, int] = {}
    for line_where, record in _records(text, where):
        if record.startswith(("BlockName", "AggregatedBlock")) and (size := _BLOCK_SIZE.search(record)):
            sizes.add(int(size[1]))
        switch = _SWITCH.fullmatch(record)
        other = None if switch else _OTHER.fullmatch(record)
        if switch:
            nodes, switches = _names(switch["nodes"], line_where), switch["switches"]
            lines.append(
                SwitchLine(line_where, switch["name"], () if switches else nodes, _names(switches, line_where) if switches else None)
            )
            if switches:
                above[switch["name"]] = nodes
        elif other and other["kind"] == "BlockName":
            lines.append(SwitchLine(line_where, other["name"], _names(other["nodes"], line_where), None, block=True))
            place[other["name"]] = int(index[1]) if (index := _BLOCK_INDEX.search(record)) else len(place)
        elif other and other["kind"] in {"RingName", "TorusName"}:
            unswitched.setdefault(other["kind"], []).extend(_names(other["nodes"], line_where))
        elif not (other and other["kind"] == "AggregatedBlock"):
            raise ParseError(line_where, record, "SwitchName=… Level=… LinkSpeed=… Nodes=…")
    if unswitched and not lines:
        kind = "/".join(sorted(unswitched)).replace("Name", "").lower()
        flat = flat_fabric(dict.fromkeys(name for names in unswitched.values() for name in names), where)
        return replace(flat, notes=(f"Slurm's topology is a {kind}: all its nodes count as equally near",))
    if not lines:
        return None
    if place:
        lines.sort(key=lambda line: place.get(line.name, -1))
    fabric = join_lines(lines, where, tuple(sorted(sizes)))
    return replace(fabric, notes=fabric.notes + _lost_nodes(fabric, above))


def _records(text: str, where: str) -> Iterator[tuple[str, str]]:
    """(FILE:LINE, record), broken records joined, Slurm's own words for "there is none" left out."""
    start = ""
    parts: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if _STARTS.match(line):
            if parts:
                yield start, " ".join(parts)
            start, parts = f"{where}:{number}", [line.strip()]
        elif line[:1].isspace() and line.strip() and parts:
            parts.append(line.strip())
        elif line.strip() and not _NO_TOPOLOGY.match(line):
            raise ParseError(f"{where}:{number}", line, "SwitchName=… or BlockName=…")
    if parts:
        yield start, " ".join(parts)


def _names(text: str | None, where: str) -> tuple[str, ...]:
    if not text or text == "(null)":
        return ()
    try:
        return expand(text)
    except UsageError as bad:
        raise ParseError(where, text, "a hostlist", hint=bad.message) from bad


def _lost_nodes(fabric: Fabric, above: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """A note on nodes that a root claims but no leaf names: up to 24.11 a leaf prints topology.conf's own words, a root what they meant."""
    known = fabric.leaf_of
    lost = [node for root in fabric.roots for node in above.get(root, ()) if node not in known]
    if not lost:
        return ()
    return (f"no leaf has {len(lost)} of the nodes below it, such as {lost[0]}; does topology.conf use NodeHostname?",)


def join_lines(lines: Sequence[SwitchLine], where: str, block_sizes: tuple[int, ...] = ()) -> Fabric:
    """The fabric of all lines; children find their parents, and what Slurm only warns about becomes a note.

    Blocks, in Slurm's order, become leaves below what `parents_of_blocks` says, and `blocks` of the fabric. Raises ParseError with the line
    for switches and blocks in one text, a switch twice, a child without a line of its own, and switches in a circle.
    """
    if len({line.block for line in lines}) > 1:
        raise ParseError(lines[-1].where, lines[-1].name, "either switches or blocks")
    parents: dict[str, str | None] = {}
    for line in lines:
        if line.name in parents:
            raise ParseError(line.where, line.name, "every switch once")
        parents[line.name] = None
    notes = [_BLOCKS_NOTE] if lines and lines[0].block else []
    for line in lines:
        for child in line.switches or ():
            if child not in parents:
                raise ParseError(line.where, child, "a switch that has a line of its own")
            if parents[child] is not None:
                notes.append(f"switch {child} stands under {parents[child]} and {line.name}; the last counts")
            parents[child] = line.name
    if any(line.block for line in lines):
        parents.update(parents_of_blocks(tuple(parents), block_sizes))
    try:
        fabric = build_fabric(parents, {line.name: line.nodes for line in lines}, where)
    except NoTree as bad:
        raise ParseError(next(line.where for line in lines if line.name == bad.switch), bad.message, "a tree of switches") from bad
    again = sum(len(line.nodes) for line in lines) - len(fabric.leaf_of)
    if again:
        notes.append(f"{again} {'node stands' if again == 1 else 'nodes stand'} under more than one leaf; the first counts")
    seen = {line.name: line.where for line in lines}
    return replace(
        fabric,
        switches=tuple(replace(switch, where=seen.get(switch.name, "")) for switch in fabric.switches),
        notes=tuple(notes),
        blocks=tuple(Block(line.name, line.nodes, line.where) for line in lines if line.block),
        block_sizes=block_sizes,
    )


def parse_topology_conf(text: str, *, where: str, include: Callable[[str], str] | None = None) -> Fabric:
    """The fabric of a topology.conf (tree or block). `where` names the file in errors and becomes the fabric's `source`.

    Keys in any case, blanks around `=`, comments, `\\` at a line's end, quoted names. A leaf without nodes is read (Slurm from 25.05
    on; fatal before). `include` gives the text of a file that an `include` line names (Slurm: relative to slurm.conf's folder); its lines
    stand in that line's place.
    Raises ParseError with FILE:LINE for what no release starts with: another first key, an unknown key, no `=`, nodes and switches on one
    line, a LinkSpeed that is no whole number, an undefined or repeated switch, a circle, an empty file; for an `include` that cannot be
    followed, and for block sizes that are no whole numbers.
    """
    lines: list[SwitchLine] = []
    sizes: list[int] = []
    for line_where, record in _with_included(text, where, include, depth=0):
        found = _conf_line(record, line_where)
        if isinstance(found, SwitchLine):
            lines.append(found)
        else:
            sizes = list(found)
    if not lines:
        raise ParseError(f"{where}:1", text.strip(), "SwitchName=… or BlockName=…")
    return join_lines(lines, where, tuple(sizes))


def _with_included(text: str, where: str, include: Callable[[str], str] | None, *, depth: int) -> Iterator[tuple[str, str]]:
    for line_where, record in _logical_lines(text, where):
        named = re.match(r"include\s+(\S+)\s*$", record, re.IGNORECASE)
        if named is None:
            yield line_where, record
        elif include is None or depth > MAX_INCLUDES:
            raise ParseError(line_where, record, "SwitchName=…", hint="put the included lines in its place")
        else:
            yield from _with_included(include(named[1]), named[1], include, depth=depth + 1)


def _logical_lines(text: str, where: str) -> Iterator[tuple[str, str]]:
    """(FILE:LINE, record) without comments, continuation lines joined."""
    start, parts = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        start = start or number
        cut = re.match(r"(?:[^\\#]|\\.|\\$)*", line)
        kept = (cut[0] if cut else line).rstrip()
        continues = (len(kept) - len(kept.rstrip("\\"))) % 2 == 1
        parts += kept[:-1] if continues else kept
        if continues:
            continue
        if parts.strip():
            yield f"{where}:{start}", re.sub(r"\\(.)", r"\1", parts)
        start, parts = 0, ""
    if parts.strip():
        yield f"{where}:{start}", parts


def _conf_line(record: str, where: str) -> SwitchLine | tuple[int, ...]:
    """The switch or block of one record, or the numbers of its BlockSizes."""
    pairs: dict[str, str] = {}
    position = 0
    while position < len(record.rstrip()):
        match = _PAIR.match(record, position)
        if match is None:
            raise ParseError(where, record[position:].strip(), "KEY=VALUE")
        key = match[1].lower()
        if key not in _CONF_KEYS:
            raise ParseError(where, match[1], "SwitchName, Switches, Nodes, LinkSpeed, BlockName or BlockSizes")
        pairs[key] = match[2].strip('"')
        position = match.end()
    first = next(iter(pairs))
    if first in {"blocksizes", "blocklevels"}:
        return read_block_sizes(pairs[first].split(","), where)
    if first not in {"switchname", "blockname"}:
        raise ParseError(where, record.strip(), "SwitchName or BlockName as the first key")
    if not pairs.get("linkspeed", "1").isdecimal():
        raise ParseError(where, pairs["linkspeed"], "a LinkSpeed that is a whole number")
    if "nodes" in pairs and "switches" in pairs:
        raise ParseError(where, record.strip(), "either Nodes or Switches")
    switches = _names(pairs["switches"], where) if "switches" in pairs else None
    return SwitchLine(where, pairs[first], _names(pairs.get("nodes"), where), switches, block=first == "blockname")


def read_block_sizes(words: Iterable[str], where: str) -> tuple[int, ...]:
    """The sizes of blocks. Raises ParseError for what is no whole number from 1 (whether Slurm takes them together is another question)."""
    found = []
    for word in words:
        if not word.isascii() or not word.isdecimal() or int(word) < 1:
            raise ParseError(where, word, "a block size, a whole number from 1")
        found.append(int(word))
    return tuple(found)
