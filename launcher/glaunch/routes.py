"""Where a subnet manager sends packets: the forwarding tables of its switches, and the way they lead."""

from collections.abc import Mapping
from dataclasses import dataclass

from glaunch.network import SWITCH, Network


@dataclass(frozen=True)
class Routes:
    """Forwarding tables by switch, as a subnet manager wrote them."""

    tables: Mapping[str, Mapping[int, str]]
    """Switch id → lid → the port that a packet for it leaves by (`0`: the switch itself)."""
    lid_of: Mapping[str, int]
    """Device id (an adapter's port, a switch) → its lid."""
    source: str

    def path(self, network: Network, one: str, two: str) -> tuple[str, ...] | None:
        """The switches (ids) that a packet from one adapter's port (id) to another's crosses.

        None where the tables lead nowhere: no entry, a port without a cable, a circle.
        """
        lid = self.lid_of.get(two)
        first = next((link.other(one) for link in network.links_of.get(one, ()) if link.up), None)
        if lid is None or first is None:
            return None
        by_port = {(device, link.port_at(device)): link.other(device) for link in network.links for device in (link.two, link.one)}
        path: list[str] = []
        here = first
        while here != two:
            if here in path or network.by_id[here].kind != SWITCH:
                return None
            path.append(here)
            port = self.tables.get(here, {}).get(lid)
            following = by_port.get((here, port)) if port is not None else None
            if following is None:
                return None
            here = following
        return tuple(path)
