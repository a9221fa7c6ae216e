"""The sandbox's network as text for ip(8) and tc(8): a bridge per switch, a veth pair per link, so that traffic crosses its switches."""

import re
from dataclasses import dataclass

from glaunch.fabric import Fabric

NET = "10.77"
CONTROLLER = f"{NET}.0.1"
ALL_KNOW_ALL = 256
"""Up to so many nodes each has every other's hardware address from the start. The kernel keeps at most 1,024 learned ones for all
networks of a machine together (gc_thresh3); 128 nodes in a step need more, and connections fail. Permanent ones do not count."""
_SHAPER = "root tbf rate {rate} burst 64kb latency 20ms"


@dataclass(frozen=True, slots=True)
class Host:
    """A node on the network: `port` is its link's end at the switch, `bridge` that switch."""

    name: str
    address: str
    port: str
    bridge: str
    mac: str


@dataclass(frozen=True, slots=True)
class Network:
    """`ip_batch` makes the switches and the links between them, `tc_batch` gives these their rate, `neighbours` is for each node."""

    hosts: tuple[Host, ...]
    ip_batch: str
    tc_batch: str
    neighbours: str


def lay_out(fabric: Fabric, uplink: str) -> Network:
    """The network of a fabric. A switch without a parent hangs on `br0`, where the controller is; so does a node that no switch names."""
    bridge_of = {switch.name: _link_name(switch.name, 12, f"sw{number}") for number, switch in enumerate(fabric.switches)}
    lines = [f"link add br0 address {_mac(0)} type bridge", f"addr add {CONTROLLER}/16 dev br0", "link set br0 up"]
    # Without it every answer of a slurmdbd on this host waits 40 ms (Nagle and delayed ACK): sacctmgr takes 0.37 s, not 0.02.
    lines.append(f"route replace local {CONTROLLER} dev br0 table local proto kernel scope host src {CONTROLLER} quickack 1")
    rates: list[str] = []
    for bridge in bridge_of.values():
        lines += [f"link add {bridge} type bridge", f"link set {bridge} up"]
    for switch in fabric.switches:
        bridge = bridge_of[switch.name]
        above = bridge_of[switch.parent] if switch.parent else "br0"
        lines.append(f"link add up-{bridge} type veth peer name dn-{bridge}")
        lines += [f"link set up-{bridge} master {bridge} up", f"link set dn-{bridge} master {above} up"]
        if uplink and switch.parent:
            rates += [f"qdisc add dev {end}-{bridge} {_SHAPER.format(rate=uplink)}" for end in ("up", "dn")]
    leaf_of = fabric.leaf_of
    hosts = tuple(
        Host(name, address(number), _link_name(f"v-{name}", 15, f"v-{number}"), bridge_of.get(leaf_of.get(name, ""), "br0"), _mac(number))
        for number, name in enumerate(fabric.nodes, start=1)
    )
    lines += [_neighbour(host.address, host.mac, "br0") for host in hosts]
    known = [_neighbour(CONTROLLER, _mac(0), "eth0")]
    if len(hosts) <= ALL_KNOW_ALL:
        known += [_neighbour(host.address, host.mac, "eth0") for host in hosts]
    return Network(hosts, _text(lines), _text(rates), _text(known))


def address(number: int) -> str:
    """The address of node 1, 2, …: 10.77.1.1 to 10.77.1.250, then 10.77.2.1 on."""
    return f"{NET}.{1 + (number - 1) // 250}.{1 + (number - 1) % 250}"


def _mac(number: int) -> str:
    """The hardware address of node 1, 2, …; 0 is the controller."""
    return f"02:4d:00:00:{number // 256:02x}:{number % 256:02x}"


def _neighbour(ip: str, mac: str, link: str) -> str:
    return f"neigh add {ip} lladdr {mac} dev {link} nud permanent"


def _link_name(name: str, longest: int, other: str) -> str:
    """The kernel takes 15 characters; `up-` and `dn-` go before a switch's."""
    taken = name in {"lo", "br0"} or (longest == 12 and re.match(r"(v|up|dn)-|sw\d", name))
    return other if taken or len(name) > longest or not re.fullmatch(r"[A-Za-z0-9_.-]+", name) else name


def _text(lines: list[str]) -> str:
    return "".join(line + "\n" for line in lines)
