"""A file that says what the devices of a fabric are really called.

**Source:** ibnetdiscover(8), --node-name-map: `0xGUID "name"`; the second form, `"description" name`, is glaunch's own.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from glaunch.errors import ParseError
from glaunch.network import ENGINE, SWITCH, Device, Network, guid, is_name

_LINE = re.compile(r'\s*(?:0x(?P<guid>[0-9a-fA-F]{1,16})|"(?P<description>[^"]+)")\s+(?:"(?P<quoted>[^"]+)"|(?P<name>\S+))\s*(?:#.*)?')


@dataclass(frozen=True)
class NameMap:
    """GUID (of a device, its card or its box) → name, and description → name."""

    by_guid: Mapping[str, str] = field(default_factory=dict)
    by_description: Mapping[str, str] = field(default_factory=dict)

    def applied(self, network: Network) -> Network:
        """The network with its names; an adapter's name is `HOST` or `HOST HCA`, a host that is named as a description is renamed."""
        return replace(network, devices=tuple(self._renamed(device) for device in network.devices))

    def _renamed(self, device: Device) -> Device:
        known = f"{device.host} {device.name}".strip()
        wanted = next(
            (self.by_guid[one] for one in (device.id, device.card, device.system) if one in self.by_guid),
            self.by_description.get(known) or self.by_description.get(device.host),
        )
        if wanted is None or device.kind == ENGINE:
            return device
        if device.kind == SWITCH:
            return replace(device, name=wanted)
        host, _, hca = wanted.partition(" ")
        return replace(device, host=host, name=hca or (device.name if device.host else ""))


def parse_name_map(text: str, *, where: str) -> NameMap:
    """The map of a file: `0xGUID "name"` or `"description" name` a line, `#` begins a comment.

    Raises ParseError with the line for any other text, for a GUID or description twice, and for a name that a hostlist cannot carry.
    """
    by_guid: dict[str, str] = {}
    by_description: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found, at = _LINE.fullmatch(line), f"{where}:{number}"
        name = (found["quoted"] or found["name"]).strip() if found else ""
        if not found or not is_name(name.split()[0] if name else ""):
            raise ParseError(at, line, '0xGUID "NAME" or "DESCRIPTION" NAME')
        target, key = (by_guid, guid(found["guid"])) if found["guid"] else (by_description, found["description"].strip())
        if key in target:
            raise ParseError(at, key, "every device once")
        target[key] = name
    return NameMap(by_guid, by_description)
