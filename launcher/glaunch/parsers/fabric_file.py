"""Our own plain YAML for a fabric that nobody can dump.

fabric: alps                                    # the first key: a name
hosts:                                          # each of the nodes hangs on each of the leaves; the i-th leaf is rail i
  - {nodes: "n[001-032]", leaves: "su1-r[0-3]", rate_gbps: 400}
links:                                          # each of the one is cabled to each of the other
  - {from: "su1-r[0-3]", to: "spine[1-4]", count: 2, rate_gbps: 400}
blocks: {rack1: "n[001-018]"}                   # NVLink domains
block_sizes: [18]                               # of the base block, then of aggregated ones
"""

from collections import Counter
from dataclasses import replace

from glaunch.errors import ParseError
from glaunch.fabric import Block, Fabric
from glaunch.network import HCA, SWITCH, Device, Link, Network, NetworkBuilder
from glaunch.parsers.slurm_topology import read_block_sizes
from glaunch.parsers.strict_yaml import Node
from glaunch.parsers.yaml_shapes import at, hostlist, items, read_yaml, scalar, table

KEYS = ("fabric", "hosts", "links", "blocks", "block_sizes")


def parse_fabric_file(text: str, *, where: str) -> tuple[Network, Fabric]:
    """(the network of `hosts` and `links`, a fabric that holds nothing but the blocks). `where` names the file.

    Raises ParseError with FILE:LINE for what is no YAML, for another first key, for an unknown key, for a host with no leaf and a link
    with no end, for what is no hostlist, for a switch cabled to itself, and for a block twice.
    """
    root = table(read_yaml(text, where=where), where, "a fabric", KEYS)
    if next(iter(root), None) != "fabric":
        raise ParseError(f"{where}:1", next(iter(root), ""), "fabric: NAME as the first key")
    cables = _Cables(where)
    for node in items(root["hosts"], where, "hosts: a list") if "hosts" in root else ():
        cables.hosts(node)
    for node in items(root["links"], where, "links: a list") if "links" in root else ():
        cables.links(node)
    blocks = table(root["blocks"], where, "blocks: NAME: NODES") if "blocks" in root else {}
    named = tuple(Block(name, _names(node, where, "nodes"), at(node, where)) for name, node in blocks.items())
    sizes = items(root["block_sizes"], where, "a list of block sizes") if "block_sizes" in root else ()
    numbers = tuple(size for node in sizes for size in read_block_sizes([scalar(node, where, "a block size")], at(node, where)))
    return cables.builder.network(), replace(Fabric((), where), blocks=named, block_sizes=numbers)


class _Cables:
    """Devices and links as the entries name them; every port gets the next number of its device."""

    def __init__(self, where: str) -> None:
        self.builder = NetworkBuilder(where, both_sides=False)
        self._where = where
        self._ports: Counter[str] = Counter()
        self._adapters: Counter[str] = Counter()

    def hosts(self, node: Node) -> None:
        """One entry of `hosts`."""
        entry = table(node, self._where, "an entry of hosts", ("nodes", "leaves", "rate_gbps"))
        here, rate_gbps = at(node, self._where), self._rate(entry.get("rate_gbps"))
        leaves = _names(entry.get("leaves"), self._where, "leaves: HOSTLIST", here)
        for leaf in leaves:
            self._switch(leaf, here)
        for host in _names(entry.get("nodes"), self._where, "nodes: HOSTLIST", here):
            for leaf in leaves:
                rail = self._adapters[host]
                self._adapters[host] += 1
                adapter = f"{host}/{rail}"
                self.builder.device(Device(adapter, HCA, f"rail{rail}", host, rail=rail, where=here))
                self.builder.link(Link(adapter, "1", leaf, self._port(leaf), 0, rate_gbps, where=here))

    def links(self, node: Node) -> None:
        """One entry of `links`."""
        entry = table(node, self._where, "an entry of links", ("from", "to", "count", "rate_gbps"))
        here, rate_gbps = at(node, self._where), self._rate(entry.get("rate_gbps"))
        count = self._whole(entry.get("count"), "count: how many cables")
        ends = [_names(entry.get(key), self._where, f"{key}: HOSTLIST", here) for key in ("from", "to")]
        for one in ends[0]:
            self._switch(one, here)
            for two in ends[1]:
                if one == two:
                    raise ParseError(here, one, "two different switches")
                self._switch(two, here)
                for _ in range(count):
                    self.builder.link(Link(one, self._port(one), two, self._port(two), 0, rate_gbps, where=here))

    def _switch(self, name: str, here: str) -> None:
        self.builder.device(Device(name, SWITCH, name, where=here))

    def _port(self, switch: str) -> str:
        self._ports[switch] += 1
        return str(self._ports[switch])

    def _rate(self, node: Node | None) -> float:
        return float(self._whole(node, "rate_gbps: Gbit/s")) if node is not None else 0.0

    def _whole(self, node: Node | None, what: str) -> int:
        return 1 if node is None else read_block_sizes([scalar(node, self._where, what)], at(node, self._where))[0]


def _names(node: Node | None, where: str, what: str, here: str = "") -> tuple[str, ...]:
    names = hostlist(node, where, what)
    if not names:
        raise ParseError(here or at(node, where), "no name", what)
    return names
