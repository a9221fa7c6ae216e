"""Networks of every shape, made by rule, and as the texts that tools print about them."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from hypothesis import strategies as st

from glaunch.network import HCA, SWITCH, Device, Link, Network, NetworkBuilder, guid


def cabled(hosts: Iterable[tuple[str, Iterable[str]]], links: Iterable[tuple[str, str, int]], rate_gbps: float = 200.0) -> Network:
    """The network of nodes (the i-th adapter of each on the i-th of its leaves) and of cables (one, two, how many) between switches."""
    builder = NetworkBuilder("made", both_sides=False)
    ports: Counter[str] = Counter()
    ids: dict[str, str] = {}

    def switch(name: str) -> str:
        if name not in ids:
            ids[name] = guid(f"{0x200000 + len(ids):x}")
            builder.device(Device(ids[name], SWITCH, name, where=f"made:{name}"))
        return ids[name]

    def port(device: str) -> str:
        ports[device] += 1
        return str(ports[device])

    for number, (host, leaves) in enumerate(hosts):
        for rail, leaf in enumerate(leaves):
            adapter = guid(f"{0x1000000 + 0x100 * number + rail:x}")
            builder.device(Device(adapter, HCA, f"HCA-{rail + 1}", host, card=adapter, where=f"made:{host}"))
            builder.link(Link(adapter, "1", switch(leaf), port(leaf), 4, rate_gbps, where=f"made:{host}"))
    for one, two, count in links:
        for _ in range(count):
            builder.link(Link(switch(one), port(one), switch(two), port(two), 4, rate_gbps, where=f"made:{one}"))
    return builder.network()


@dataclass(frozen=True)
class Made:
    """A network and what is known of it by rule: the nodes of each leaf domain, domain by domain, pod by pod, island by island."""

    kind: str
    network: Network
    domains: tuple[tuple[str, ...], ...]


def fat_tree(islands: int, pods: int, units: int, rails: int, nodes: int, spines: int, cores: int, *, planes: bool = False) -> Made:
    """Islands of pods of units; a unit has a leaf a rail and so many nodes, each with an adapter on every leaf of it.

    The spines of a pod join its leaves: all of them, or with `planes` so many a rail those of one rail. Cores (none with one pod) join the
    spines of one number over all pods.
    """
    hosts: list[tuple[str, list[str]]] = []
    links: list[tuple[str, str, int]] = []
    domains: list[tuple[str, ...]] = []
    for pod in range(islands * pods):
        island = pod // pods
        tops = [f"s{pod}-{rail}-{n}" for rail in range(rails if planes else 1) for n in range(spines)]
        for unit in range(units):
            leaves = [f"l{pod}-{unit}-r{rail}" for rail in range(rails)]
            names = [f"n{pod}-{unit}-{n}" for n in range(nodes)]
            hosts += [(name, leaves) for name in names]
            domains.append(tuple(names))
            for rail, leaf in enumerate(leaves):
                links += [(leaf, top, 1 + pod % 2) for top in (tops[rail * spines : (rail + 1) * spines] if planes else tops)]
        if pods > 1:
            links += [(top, f"c{island}-{number % len(tops)}-{n}", 1) for number, top in enumerate(tops) for n in range(cores)]
    return Made(f"fat-tree of {rails} rails", cabled(hosts, links), tuple(domains))


def dragonfly(groups: int, leaves: int, nodes: int, spines: int) -> Made:
    """Dragonfly+: groups of leaves below spines, every spine cabled to a spine of every other group."""
    hosts, links, domains = [], [], []
    for group in range(groups):
        for leaf in range(leaves):
            names = tuple(f"n{group}-{leaf}-{n}" for n in range(nodes))
            domains.append(names)
            hosts += [(name, [f"l{group}-{leaf}"]) for name in names]
            links += [(f"l{group}-{leaf}", f"s{group}-{n}", 1) for n in range(spines)]
        links += [(f"s{group}-{n}", f"s{other}-{n}", 1) for other in range(group) for n in range(spines)]
    return Made("dragonfly+", cabled(hosts, links), tuple(domains))


_small = st.integers(1, 3)


@st.composite
def fat_trees(draw: st.DrawFn) -> Made:
    """Fat-trees of one to three tiers, one to four rails, any oversubscription, one or two islands."""
    return fat_tree(
        islands=draw(st.integers(1, 2)),
        pods=draw(_small),
        units=draw(_small),
        rails=draw(st.integers(1, 4)),
        nodes=draw(st.integers(2, 4)),
        spines=draw(_small),
        cores=draw(_small),
        planes=draw(st.booleans()),
    )


@st.composite
def dragonflies(draw: st.DrawFn) -> Made:
    """Dragonfly+ of two to five groups."""
    return dragonfly(draw(st.integers(2, 5)), draw(st.integers(2, 3)), draw(st.integers(1, 3)), draw(_small))


@st.composite
def tangles(draw: st.DrawFn) -> Network:
    """Any cables at all between some switches, any nodes on any of them; switches and nodes that nothing joins too."""
    count = draw(st.integers(1, 8))
    number = st.integers(0, count - 1)
    links = draw(st.lists(st.tuples(number, number, st.integers(1, 2)), max_size=14))
    hosts = draw(st.lists(st.lists(number, max_size=3), max_size=8))
    return cabled(
        [(f"n{index}", [f"s{leaf}" for leaf in leaves]) for index, leaves in enumerate(hosts)],
        [(f"s{one}", f"s{two}", parallel) for one, two, parallel in links],
    )


def made_networks() -> st.SearchStrategy[Made]:
    """Every regular shape."""
    return st.one_of(fat_trees(), dragonflies())


# As texts


def ibnetdiscover_text(network: Network) -> str:
    """The network as `ibnetdiscover` dumps it, from both ends of each link."""
    speeds = {200.0: "4xHDR", 400.0: "4xNDR", 100.0: "4xEDR"}
    lines = ["#", "# Topology file: generated on Mon Nov 30 03:44:21 2026", "#", ""]
    for device in network.devices:
        digits = device.id[2:]
        short = digits.lstrip("0")
        if device.kind == SWITCH:
            lines += ["vendid=0x2c9", "devid=0xd2f0", f"sysimgguid=0x{short}", f"switchguid=0x{short}({short})"]
            lines.append(f'Switch\t64 "S-{digits}"\t\t# "{device.name}" base port 0 lid 1 lmc 0')
        else:
            lines += ["vendid=0x2c9", "devid=0x1021", f"sysimgguid=0x{short}", f"caguid=0x{short}"]
            lines.append(f'Ca\t1 "H-{digits}"\t\t# "{device.host} {device.name}"')
        for port, far_id, far_port, link in _ends(network, device.id):
            far, speed, far_digits = network.by_id[far_id], speeds[link.rate_gbps], far_id[2:]
            if device.kind == HCA:
                lines.append(f'[{port}]({short}) \t"S-{far_digits}"[{far_port}]\t\t# lid 2 lmc 0 "{far.name}" lid 1 {speed}')
            elif far.kind == SWITCH:
                lines.append(f'[{port}]\t"S-{far_digits}"[{far_port}]\t\t# "{far.name}" lid 1 {speed}')
            else:
                own = far_digits.lstrip("0")
                lines.append(f'[{port}]\t"H-{far_digits}"[{far_port}]({own}) \t\t# "{far.host} {far.name}" lid 2 {speed}')
        lines.append("")
    return "\n".join(lines)


def ibsim_text(network: Network) -> str:
    """The network as ibsim takes it: blocks with a blank line between them, each link from both sides."""
    names = {one.id: one.name if one.kind == SWITCH else f"{one.host} {one.name}" for one in network.devices}
    blocks = []
    for device in network.devices:
        lines = [f'{"Switch" if device.kind == SWITCH else "Hca"}\t{64 if device.kind == SWITCH else 1} "{names[device.id]}"']
        for port, far, far_port, _ in _ends(network, device.id):
            lines.append(f'[{port}]\t"{names[far]}"[{far_port}]')
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


def _ends(network: Network, device: str) -> Iterable[tuple[str, str, str, Link]]:
    """(port, far device, far port, link) of each end of a cable at the device; both ends of a cable to itself."""
    for link in network.links_of[device]:
        if link.one == device:
            yield link.one_port, link.two, link.two_port, link
        if link.two == device:
            yield link.two_port, link.one, link.one_port, link
