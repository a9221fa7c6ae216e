"""The network that `ibnetdiscover` (plain, `-f`, `-g`) or `ibnetdiscover -p` dumped.

**Source:** ibnetdiscover(8), "Topology file format"; dumps of real fabrics, some pasted with their tabs lost.
"""

import re

from glaunch.errors import ParseError
from glaunch.network import SWITCH, Device, Link, Network, NetworkBuilder, OpenPort, guid
from glaunch.parsers.ib_words import NOISE, adapter, rate_of_speed

_ATTRIBUTE = re.compile(r"(vendid|devid|sysimgguid|switchguid|caguid|rtguid)=0x([0-9a-fA-F]+)(?:\([0-9a-fA-F]+\))?\s*$")
_SWITCH = re.compile(r'Switch\s*(\d+)\s*"S-([0-9a-fA-F]{1,16})"\s*#\s*"(.*)"\s*(?:enhanced|base) port 0 lid \d+ lmc \d+')
_ADAPTER = re.compile(r'Ca\s*(\d+)\s*"H-([0-9a-fA-F]{1,16})"\s*#\s*"(.*)"')
_ROUTER = re.compile(r'Rt\s*\d+\s*"R-')
_GUID, _PORT = r"([0-9a-fA-F]{1,16})", r"\[(\d+)\](?:\[ext \d+\])?"
_FAR = rf'\s*"([SHR])-{_GUID}"{_PORT}(?:\({_GUID}\))?\s*#\s*'
_SPEED = r"\s*lid \d+ (\d+)x([A-Z0-9?]+)"
_FROM_SWITCH = re.compile(rf'{_PORT}{_FAR}"(.*)"{_SPEED}')
_FROM_ADAPTER = re.compile(rf'{_PORT}\({_GUID}\){_FAR}lid \d+ lmc \d+ "(.*)"{_SPEED}')
_EXPECTED = 'Switch N "S-GUID", Ca N "H-GUID" or [PORT] "S-GUID"[PORT]'


def parse_ibnetdiscover(text: str, *, where: str) -> Network:
    """The network of a plain dump: switches, adapters port by port, links with width and rate. `where` names the text.

    Blanks may be lost or doubled, records may stand without blank lines between them, and what the tool says on stderr may stand
    between them. Links are taken from both ends; one that only one end shows is kept with `sides` 1 (adapters may be missing
    altogether: then every link to them has one side). Routers are left out, and a note says so.
    Raises ParseError with the line for any other text, and for a text without a switch or an adapter.
    """
    return _Dump(text, where).network()


class _Dump:
    """One walk over the lines; `_near` is the record that the port lines belong to."""

    def __init__(self, text: str, where: str) -> None:
        self._where = where
        self._builder = NetworkBuilder(where, both_sides=True)
        self._system = ""
        self._near: tuple[str, str, str] | None = None
        """(kind letter, node GUID, description)."""
        self._portless: dict[str, Device] = {}
        self._routers = 0
        for number, line in enumerate(text.splitlines(), 1):
            self._line(line.strip(), number)

    def network(self) -> Network:
        """All of it."""
        for device in self._portless.values():
            self._builder.device(device)
        if self._routers:
            self._builder.notes.append(f"{self._where}: {self._routers} routers are left out")
        network = self._builder.network()
        if not network.devices:
            raise ParseError(f"{self._where}:1", "", _EXPECTED)
        return network

    def _line(self, line: str, number: int) -> None:
        if line.startswith("["):
            self._port(line, number)
        elif not line or NOISE.match(line):
            return
        elif attribute := _ATTRIBUTE.match(line):
            if attribute[1] == "vendid":
                self._system, self._near = "", None
            elif attribute[1] == "sysimgguid":
                self._system = self._guid(attribute[2], number)
        elif switch := _SWITCH.match(line):
            self._near = ("S", self._guid(switch[2], number), switch[3])
            self._builder.device(Device(self._near[1], SWITCH, switch[3], system=self._system, where=self._at(number)))
        elif own := _ADAPTER.match(line):
            self._near = ("H", self._guid(own[2], number), own[3])
            self._portless[self._near[1]] = adapter(self._near[1], own[3], card=self._near[1], system=self._system, where=self._at(number))
        elif _ROUTER.match(line):
            self._near = ("R", "", "")
            self._routers += 1
        else:
            raise ParseError(self._at(number), line, _EXPECTED)

    def _port(self, line: str, number: int) -> None:
        if self._near is None:
            raise ParseError(self._at(number), line, 'a record (Switch N "S-GUID" or Ca N "H-GUID") before its ports')
        kind, node, description = self._near
        if kind == "S":
            self._from_switch(node, line, number)
        elif kind == "H":
            self._from_adapter(node, description, line, number)

    def _from_switch(self, node: str, line: str, number: int) -> None:
        found = _FROM_SWITCH.match(line)
        if not found:
            raise ParseError(self._at(number), line, '[PORT] "S-GUID"[PORT] # "NAME" lid N 4xHDR')
        port, kind, far, far_port, port_guid, name, lanes, speed = found.groups()
        if kind == "R":
            return
        if kind == "S":
            far_id = self._guid(far, number)
            if self._builder.known(far_id) is None:
                self._builder.device(Device(far_id, SWITCH, name, where=self._at(number)))
        else:
            far_id = self._guid(port_guid or far, number)
            card = self._guid(far, number)
            self._portless.pop(card, None)
            self._builder.device(adapter(far_id, name, card=card, where=self._at(number)))
        self._link(node, port, far_id, far_port, lanes, speed, number)

    def _from_adapter(self, node: str, description: str, line: str, number: int) -> None:
        found = _FROM_ADAPTER.match(line)
        if not found:
            raise ParseError(self._at(number), line, '[PORT](GUID) "S-GUID"[PORT] # lid N lmc N "NAME" lid N 4xHDR')
        port, own, kind, far, far_port, far_own, name, lanes, speed = found.groups()
        if kind == "R":
            return
        own_id = self._guid(own, number)
        self._portless.pop(node, None)
        self._builder.device(adapter(own_id, description, card=node, system=self._system, where=self._at(number)))
        far_id = self._guid(far_own or far, number)
        if self._builder.known(far_id) is None:
            far_device = Device(far_id, SWITCH, name, where=self._at(number)) if kind == "S" else None
            self._builder.device(far_device or adapter(far_id, name, card=self._guid(far, number), where=self._at(number)))
        self._link(own_id, port, far_id, far_port, lanes, speed, number)

    def _link(self, near: str, port: str, far: str, far_port: str, lanes: str, speed: str, number: int) -> None:
        width = int(lanes)
        self._builder.link(Link(near, port, far, far_port, width, rate_of_speed(width, speed), where=self._at(number)))

    def _guid(self, digits: str, number: int) -> str:
        try:
            return guid(digits)
        except ValueError as bad:
            raise ParseError(self._at(number), digits, "a GUID of 16 hex digits") from bad

    def _at(self, number: int) -> str:
        return f"{self._where}:{number}"


_END = r"(CA|SW|RT)\s+(\d+)\s+(\d+)\s+0x([0-9a-fA-F]{16})"
_PORT_ROW = re.compile(rf"{_END}\s+(\d+)x\s+(\S+)(?:\s+-\s+{_END}\s+\( '(.*?)' - '(.*)' \)|\s+(\S.*))\s*$")


def parse_ibnetdiscover_ports(text: str, *, where: str) -> Network:
    """The network of `ibnetdiscover -p`: a row a port, with the GUIDs of ports; ports with nothing at the other end are `open_ports`.

    Raises ParseError with the line for any other text, and for a text without a row.
    """
    builder = NetworkBuilder(where, both_sides=True)
    rows = 0
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or NOISE.match(line):
            continue
        found, at = _PORT_ROW.match(line), f"{where}:{number}"
        if not found:
            raise ParseError(at, line, "CA|SW LID PORT 0xGUID 4x HDR - CA|SW LID PORT 0xGUID ( 'NAME' - 'NAME' )")
        rows += 1
        kind, _, port, own, lanes, speed, far_kind, _, far_port, far, name, far_name, alone = found.groups()
        if "RT" in (kind, far_kind):
            builder.notes.append(f"{at}: a router is left out")
            continue
        builder.device(_device(kind, own, _unquoted(alone) if far is None else name, at))
        if far is None:
            builder.open_ports.append(OpenPort(guid(own), port, "nothing", at))
            continue
        builder.device(_device(far_kind, far, far_name, at))
        builder.link(Link(guid(own), port, guid(far), far_port, int(lanes), rate_of_speed(int(lanes), speed), where=at))
    if not rows:
        raise ParseError(f"{where}:1", text.strip(), "CA|SW LID PORT 0xGUID …")
    return builder.network()


def _unquoted(name: str) -> str:
    """The name without the quotes that tools since 2.1 put around it."""
    return name[1:-1] if len(name) > 1 and name[0] == name[-1] == "'" else name


def _device(kind: str, own: str, name: str, where: str) -> Device:
    return Device(guid(own), SWITCH, name, where=where) if kind == "SW" else adapter(own, name, where=where)
