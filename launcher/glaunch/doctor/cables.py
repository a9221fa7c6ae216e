"""Cables: links that are down or slow, cables that are missing between switches.

What is usual is read from the siblings: the other cables of the same leaf, the other leaves below the same spines. Where they do not
agree enough to say what is usual, nothing is said.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from glaunch.diagnosis.finding import Finding
from glaunch.doctor.checkup import Checkup
from glaunch.fabric import Fabric
from glaunch.hostlist import natural_key
from glaunch.network import HCA, SWITCH, Device, Link, Network
from glaunch.units import plural

FEW = 3
"""Fewer siblings than this say nothing about what is usual."""


def tier_of_switch(network: Network, fabric: Fabric) -> Mapping[str, int]:
    """Switch id → its tier; switches that lead nowhere are not in it."""
    return {
        network.id_of[name]: switch.tier for switch in fabric.switches for name in switch.members or (switch.name,) if name in network.id_of
    }


def siblings(network: Network, fabric: Fabric) -> Mapping[str, str]:
    """Switch id → its group: the switches that one of the fabric stands for; leaves, where these are too few, all those of their pod."""
    found = {}
    for switch in fabric.switches:
        own = [network.id_of[name] for name in switch.members or (switch.name,) if name in network.id_of]
        by_pod = switch.tier == 0 and len(own) < FEW and switch.parent is not None
        found.update(dict.fromkeys(own, f"below {switch.parent}" if by_pod else switch.name))
    return found


def cable_findings(checkup: Checkup) -> Iterator[Finding]:
    """GL420 (down), GL421 (missing between switches), GL422 (slow), GL424 (one end only)."""
    network, fabric = checkup.network, checkup.cabled
    if network is None or fabric is None:
        return
    tiers = tier_of_switch(network, fabric)
    yield from _down(checkup, network)
    yield from _missing(checkup, network, fabric, tiers)
    yield from _slow(checkup, network, tiers)
    lonely = [link for link in network.links if link.sides == 1]
    if lonely:
        first = between(network, lonely[0])
        title = f"{plural(len(lonely), 'cable')} {'is' if len(lonely) == 1 else 'are'} shown by one end only, such as {first}"
        yield checkup.finding(
            "GL424", "note", title, lonely[0].where, first, "the dump is cut, or was made while the fabric changed: make it again"
        )


def name_of(network: Network, device: Device) -> str:
    """What people call it: a switch by its label, an adapter by its host and its own word."""
    return network.label[device.id] if device.kind == SWITCH else f"{device.host} {device.name}".strip() or device.id


def between(network: Network, link: Link) -> str:
    """`leaf1 port 17 – spine2 port 3`; of an adapter with one port, without it."""
    ends = ((link.one, link.one_port), (link.two, link.two_port))
    return " – ".join(_end(network, network.by_id[device], port) for device, port in ends)


def _end(network: Network, device: Device, port: str) -> str:
    return name_of(network, device) if device.kind == HCA else f"{name_of(network, device)} port {port}"


def _down(checkup: Checkup, network: Network) -> Iterator[Finding]:
    for link in network.links:
        if not link.up:
            said = between(network, link)
            yield checkup.finding(
                "GL420", "warning", f"link {link.state}: {said}", link.where, said, "reseat or change the cable", _host(network, link)
            )


def _host(network: Network, link: Link) -> str:
    return network.by_id[link.one].host or network.by_id[link.two].host


# Cables that are missing between switches


@dataclass(frozen=True, slots=True)
class _Reach:
    """The switches above one switch: how many cables lead to each, and from which ports."""

    cables: tuple[tuple[str, int], ...]
    ports: Mapping[str, frozenset[str]]


def _missing(checkup: Checkup, network: Network, fabric: Fabric, tiers: Mapping[str, int]) -> Iterator[Finding]:
    reach = {switch: _reach(network, switch, tiers) for switch in tiers}
    alike: dict[tuple[int, tuple[tuple[str, int], ...]], list[str]] = defaultdict(list)
    for switch, found in reach.items():
        if found.cables:
            alike[(tiers[switch], found.cables)].append(switch)
    told = set()
    for (tier, cables), switches in alike.items():
        own = dict(cables)
        same_tier = [(other, len(names)) for (height, other), names in alike.items() if height == tier]
        peers = [(other, number) for other, number in same_tier if 2 * sum(name in own for name, _ in other) >= len(own)]
        wanted = _usual(peers)
        if 2 * sum(own.values()) < sum(wanted.values()):
            continue  # a leaf of management, say: another kind
        for above, usual in wanted.items():
            if own.get(above, 0) < usual:
                told |= set(switches)
                for switch in switches:
                    yield _lacking(checkup, network, switch, above, usual, reach)
    yield from _fewer_up(checkup, network, fabric, {switch: found for switch, found in reach.items() if switch not in told})


def _fewer_up(checkup: Checkup, network: Network, fabric: Fabric, reach: Mapping[str, _Reach]) -> Iterator[Finding]:
    """Switches with fewer cables up than their siblings, where too few others have cables to the same switches to say which is missing."""
    groups: dict[str, dict[str, int]] = defaultdict(dict)
    group_of = siblings(network, fabric)
    for switch, found in reach.items():
        groups[group_of[switch]][switch] = sum(number for _, number in found.cables)
    for totals in groups.values():
        usual, having = Counter(totals.values()).most_common(1)[0]
        if having < FEW or 3 * having < 2 * len(totals):
            continue
        for switch, has in totals.items():
            if usual <= 2 * has < 2 * usual:
                title = f"{network.label[switch]} has {plural(has, 'cable')} up; its siblings have {usual}"
                advice = "is one unplugged, or its port off?"
                yield checkup.finding("GL421", "warning", title, network.by_id[switch].where or network.source, title, advice)


def _reach(network: Network, switch: str, tiers: Mapping[str, int]) -> _Reach:
    ports: dict[str, set[str]] = defaultdict(set)
    cables: Counter[str] = Counter()
    for link in network.links_of[switch]:
        above = link.other(switch)
        # a switch without a tier joins nothing any more: what leads there was meant to lead up
        if link.up and above in network.label and above != switch and tiers.get(above, tiers[switch] + 1) > tiers[switch]:
            cables[above] += 1
            ports[above].add(link.port_at(switch))
    return _Reach(tuple(sorted(cables.items())), {above: frozenset(found) for above, found in ports.items()})


def _usual(peers: list[tuple[tuple[tuple[str, int], ...], int]]) -> Mapping[str, int]:
    """Switch above → the cables to it that more than two thirds of the peers have (the switch itself is one of them; at least three)."""
    total = sum(number for _, number in peers)
    counted: dict[str, Counter[int]] = defaultdict(Counter)
    for cables, number in peers:
        for above, how_many in cables:
            counted[above][how_many] += number
    found = {}
    for above, numbers in counted.items():
        usual, having = max(numbers.items(), key=lambda one: one[1])
        if total >= FEW and 3 * having >= 2 * total:
            found[above] = usual
    return found


def _lacking(checkup: Checkup, network: Network, switch: str, above: str, usual: int, reach: Mapping[str, _Reach]) -> Finding:
    has = dict(reach[switch].cables).get(above, 0)
    label, other = network.label[switch], network.label[above]
    ports = Counter(found.ports[above] for found in reach.values() if len(found.ports.get(above, ())) == usual)
    expected = max(ports.items(), key=lambda one: one[1])[0] if ports else frozenset()
    taken = {link.port_at(switch) for link in network.links_of[switch]}
    free = sorted(expected - taken, key=natural_key)
    at = f", on port {', '.join(free)}" if free else ""
    open_port = next((port for port in network.open_ports if port.device == switch and port.port in free), None)
    where = open_port.where if open_port is not None else network.by_id[switch].where
    title = f"{label} has {plural(has, 'cable') if has else 'no cable'} to {other}; its siblings have {usual}{at}"
    advice = (
        f"is it plugged, and is its port on? iblinkinfo -S {switch}" if switch.startswith("0x") else "is it plugged, and is its port on?"
    )
    return checkup.finding("GL421", "warning", title, where or network.source, title, advice)


# Links below their siblings


def _slow(checkup: Checkup, network: Network, tiers: Mapping[str, int]) -> Iterator[Finding]:
    """A link is looked at from its lower end: among the hosts of a leaf, or the uplinks of a switch (of its tier, where it has few)."""
    ups: dict[str, list[Link]] = defaultdict(list)
    of_tiers: dict[tuple[int, int], list[Link]] = defaultdict(list)
    for link in network.links:
        kinds = {network.by_id[link.one].kind, network.by_id[link.two].kind}
        low, high = sorted((link.one, link.two), key=lambda device: tiers.get(device, -1))
        if not link.up or not (link.rate_gbps or link.width) or link.one == link.two or high not in tiers:
            continue
        if kinds == {SWITCH} and low in tiers and tiers[low] < tiers[high]:
            ups[low].append(link)
            of_tiers[(tiers[low], tiers[high])].append(link)
        elif kinds == {SWITCH, HCA}:
            ups[f"hosts of {high}"].append(link)
    for own in ups.values():
        usual = _usual_link(own)
        if usual is None or len(own) < FEW:
            key = tuple(sorted(tiers.get(device, -1) for device in (own[0].one, own[0].two)))
            usual = _usual_link(of_tiers.get((key[0], key[1]), []))
        for link in own if usual is not None else ():
            if usual is not None and (link.rate_gbps < usual.rate_gbps or link.width < usual.width) and not _kind_of_node(network, link):
                said = f"{between(network, link)}: {_rate(link)}, where its siblings have {_rate(usual)}"
                advice = "reseat or change the cable, then look at its error counters: ibqueryerrors"
                yield checkup.finding("GL422", "warning", f"slow link {said}", link.where, said, advice, _host(network, link))


def _usual_link(links: list[Link]) -> Link | None:
    """One of the links of the most common speed; of equally common ones the fastest. None where no two are alike."""
    counted = Counter((link.rate_gbps, link.width) for link in links)
    if not counted or max(counted.values()) < 2:
        return None
    best = max(counted, key=lambda one: (counted[one], one))
    return next(link for link in links if (link.rate_gbps, link.width) == best)


def _kind_of_node(network: Network, link: Link) -> bool:
    """True where all cables of a node with several are equally slow: an older adapter, no bad cable."""
    host = _host(network, link)
    speeds = {(other.rate_gbps, other.width) for _, other in network.leaf_links.get(host, ())}
    return len(network.leaf_links.get(host, ())) > 1 and len(speeds) == 1


def _rate(link: Link) -> str:
    lanes = f"{link.width}x" if link.width else ""
    return " ".join(
        filter(None, (f"{link.rate_gbps:g} Gbit/s" if link.rate_gbps else "", f"({lanes})" if lanes and link.rate_gbps else lanes))
    )
