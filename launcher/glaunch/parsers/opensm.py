"""What OpenSM writes down: the subnet as it sees it (`opensm-subnet.lst`) and its forwarding tables (`opensm-lfts.dump`, `dump_lfts`).

**Source:** opensm(8), dump files; `dump_lfts.sh` and `dump_fts` of infiniband-diags. ibdiagnet's `.lst` has the same lines.
"""

import re

from glaunch.errors import ParseError
from glaunch.network import SWITCH, Device, Link, Network, NetworkBuilder, guid
from glaunch.parsers.ib_words import adapter, rate_of_lane
from glaunch.routes import Routes

_END = (
    r"\{{ (?P<{0}kind>CA|SW|RT)(?:-SM)? Ports:[0-9A-Fa-f]{{2}} SystemGUID:(?P<{0}system>[0-9A-Fa-f]{{16}})"
    r" NodeGUID:(?P<{0}node>[0-9A-Fa-f]{{16}}) PortGUID:(?P<{0}guid>[0-9A-Fa-f]{{16}}) VenID:[0-9A-Fa-f]+ DevID:[0-9A-Fa-f]+"
    r" Rev:[0-9A-Fa-f]+ \{{(?P<{0}name>.*?)\}} LID:[0-9A-Fa-f]+ PN:(?P<{0}port>[0-9A-Fa-f]+) \}}"
)
_LINE = re.compile(rf"{_END.format('near_')} {_END.format('far_')} PHY=(?P<lanes>\d+)x LOG=(?P<state>\w+) SPD=(?P<lane>[\d.]+)\s*")
_STATES = {"ACT": "active", "INI": "init", "ARM": "armed", "DWN": "down"}


def parse_subnet_lst(text: str, *, where: str) -> Network:
    """The network of `opensm-subnet.lst`: a line an end of a link, port numbers in hex. `where` names the text.

    Routers are left out. Raises ParseError with the line for any other text.
    """
    builder = NetworkBuilder(where, both_sides=True)
    seen = 0
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        found, at = _LINE.fullmatch(line.strip()), f"{where}:{number}"
        if not found:
            raise ParseError(at, line, "{ CA|SW Ports:… SystemGUID:… NodeGUID:… PortGUID:… {NAME} LID:… PN:… } { … } PHY=4x LOG=ACT SPD=…")
        seen += 1
        if "RT" in (found["near_kind"], found["far_kind"]):
            builder.notes.append(f"{at}: a router is left out")
            continue
        ends = [_device(found, side, at) for side in ("near_", "far_")]
        for device in ends:
            builder.device(device)
        near_port, far_port = (str(int(found[f"{side}port"], 16)) for side in ("near_", "far_"))
        lanes = int(found["lanes"])
        state = _STATES.get(found["state"], found["state"].lower())
        builder.link(Link(ends[0].id, near_port, ends[1].id, far_port, lanes, rate_of_lane(lanes, found["lane"]), state, where=at))
    if not seen:
        raise ParseError(f"{where}:1", text.strip(), "{ CA|SW Ports:… SystemGUID:… …")
    return builder.network()


def _device(found: re.Match[str], side: str, where: str) -> Device:
    system, node = guid(found[f"{side}system"]), guid(found[f"{side}node"])
    if found[f"{side}kind"] == "SW":
        return Device(node, SWITCH, found[f"{side}name"], system=system, where=where)
    return adapter(found[f"{side}guid"], found[f"{side}name"], card=node, system=system, where=where)


_TABLE = re.compile(r"Unicast lids \[[^\]]*\] of switch (?:Lid \d+|DR path slid .*?) guid 0x(?P<guid>[0-9a-fA-F]{1,16}) \(.*\):")
_ROUTE = re.compile(
    r"0x(?P<lid>[0-9a-fA-F]{4}) (?P<port>\d{3}) (?:#|:) \(?(?:Channel Adapter|Switch|Router) portguid 0x(?P<guid>[0-9a-fA-F]{1,16}): .*"
)
_BESIDE = re.compile(
    r"Lid\s+Out\s+Destination|Port\s+Info|\d+ (?:valid )?lids dumped|\*\*\* WARNING \*\*\*|0x[0-9a-fA-F]{4} (?:UNREACHABLE|\d{3}\s*$)|#"
)


def parse_lfts(text: str, *, where: str) -> Routes:
    """The forwarding tables of `opensm-lfts.dump`, or of the `dump_lfts` script. `where` names the text.

    Raises ParseError with the line for any other text.
    """
    tables: dict[str, dict[int, str]] = {}
    lid_of: dict[str, int] = {}
    table: dict[int, str] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        line, at = line.strip(), f"{where}:{number}"
        if found := _TABLE.fullmatch(line):
            table = tables.setdefault(guid(found["guid"]), {})
        elif found := _ROUTE.fullmatch(line):
            if table is None:
                raise ParseError(at, line, "a line `Unicast lids [0-9] of switch …` before its routes")
            table[int(found["lid"], 16)] = str(int(found["port"]))
            lid_of[guid(found["guid"])] = int(found["lid"], 16)
        elif line and not _BESIDE.match(line):
            raise ParseError(at, line, "Unicast lids [0-9] of switch … or 0xLID PORT # … portguid 0xGUID: 'NAME'")
    if not tables:
        raise ParseError(f"{where}:1", text.strip(), "Unicast lids [0-9] of switch …")
    return Routes(tables, lid_of, where)
