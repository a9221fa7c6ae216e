"""The network that `iblinkinfo` (plain or `-l`) printed: every port of every switch, with its state.

**Source:** iblinkinfo(8); its answers on simulated and real fabrics.
"""

import re
from collections import Counter
from dataclasses import dataclass

from glaunch.errors import ParseError
from glaunch.network import SWITCH, Device, Link, Network, NetworkBuilder, OpenPort, guid
from glaunch.parsers.ib_words import NOISE, adapter, rate_of_lane

_HEAD = re.compile(r"(?:CA: (?P<ca>.*)|Switch: 0x(?P<guid>[0-9a-fA-F]{1,16}) (?P<switch>.*)):")
_ROW = re.compile(
    r'(?:0x(?P<own>[0-9a-fA-F]{1,16})\s+(?:"(?P<name>.*?)"\s+)?)?(?P<lid>\d+)\s+(?P<port>\d+)\[.*?\]\s+==\((?P<state>.*?)\)==>'
    r'\s*(?:0x(?P<far>[0-9a-fA-F]{1,16})\s+)?(?:(?P<far_lid>\d+)\s+(?P<far_port>\d+))?\s*\[.*?\]\s+"(?P<far_name>.*)"\s+\(.*\)\s*'
)
_STATE = re.compile(r"\s*(?:(?P<lanes>\d+)X\s+(?P<lane>[\d.]+) Gbps\s+)?(?P<logical>\w+)/\s*(?P<physical>\w+)\s*")


@dataclass(frozen=True, slots=True)
class _Row:
    """One line: whose port it is, and what is at its other end (`far` "" where only its lid is said)."""

    where: str
    own: str
    name: str
    adapter: bool | None
    """None in the one-line form, which does not say what a device is."""
    words: re.Match[str]
    state: re.Match[str]


def parse_iblinkinfo(text: str, *, where: str) -> Network:
    """The network: links with width, rate and state, and the ports with nothing at the other end. `where` names the text.

    The plain form names the far end by its lid only: it is looked up among the lines of its own. The form of `-l` does not say which
    device is a switch: one that has several ports under one GUID is (an adapter's ports have a GUID each).
    Raises ParseError with the line for any other text, and for a far end that has no line of its own.
    """
    rows = _rows(text, where)
    lines = Counter(row.own for row in rows)
    by_lid = {row.words["lid"]: row for row in rows if row.words["lid"] not in {"0", "65535"}}
    builder = NetworkBuilder(where, both_sides=True)
    for row in rows:
        is_adapter = row.adapter if row.adapter is not None else lines[row.own] == 1
        builder.device(
            adapter(row.own, row.name, where=row.where) if is_adapter else Device(guid(row.own), SWITCH, row.name, where=row.where)
        )
    for row in rows:
        _add(builder, row, by_lid)
    return builder.network()


def _add(builder: NetworkBuilder, row: _Row, by_lid: dict[str, _Row]) -> None:
    words, state = row.words, row.state
    if words["far_lid"] is None:
        builder.open_ports.append(OpenPort(guid(row.own), words["port"], f"{state['logical']}/{state['physical']}", row.where))
        return
    far = words["far"]
    if far is None:
        beyond = by_lid.get(words["far_lid"])
        if beyond is None:
            raise ParseError(row.where, words[0].strip(), f"a line for the device with lid {words['far_lid']} ({words['far_name']})")
        far = beyond.own
    if builder.known(guid(far)) is None:
        raise ParseError(row.where, words[0].strip(), f"a line for 0x{far}")
    lanes = int(state["lanes"] or 0)
    rate_gbps = rate_of_lane(lanes, state["lane"] or "")
    builder.link(
        Link(guid(row.own), words["port"], guid(far), words["far_port"], lanes, rate_gbps, state["logical"].lower(), where=row.where)
    )


def _rows(text: str, where: str) -> list[_Row]:
    rows: list[_Row] = []
    head: re.Match[str] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        line, at = line.strip(), f"{where}:{number}"
        if not line or NOISE.match(line):
            continue
        if found := _HEAD.fullmatch(line):
            head = found
            continue
        words = _ROW.fullmatch(line)
        state = _STATE.fullmatch(words["state"]) if words else None
        if words is None or state is None:
            raise ParseError(at, line, 'LID PORT[ ] ==( 4X 53.125 Gbps Active/ LinkUp)==> LID PORT[ ] "NAME" ( )')
        if words["name"] is not None:
            rows.append(_Row(at, words["own"], words["name"].strip(), None, words, state))
        elif head is None or (head["ca"] is None) != (words["own"] is None):
            raise ParseError(at, line, "a line `CA: NAME:` or `Switch: 0xGUID NAME:` before its ports")
        else:
            rows.append(_Row(at, words["own"] or head["guid"], head["ca"] or head["switch"] or "", head["ca"] is not None, words, state))
    if not rows:
        raise ParseError(f"{where}:1", text.strip(), "CA: NAME: or Switch: 0xGUID NAME:")
    return rows
