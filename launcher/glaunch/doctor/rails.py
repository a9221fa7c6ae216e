"""Rails: adapters that are cabled to another rail's leaf, and nodes that lack a cable to one.

What is usual is read from the other nodes of the same leaf domain that have as many adapters. Where they do not agree enough to say what is
usual, nothing is said.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from glaunch.diagnosis.finding import Finding
from glaunch.doctor.cables import FEW, between
from glaunch.doctor.checkup import Checkup, some
from glaunch.hostlist import natural_key
from glaunch.leaf_domains import rail_of_leaf
from glaunch.network import Link, Network


@dataclass(frozen=True, slots=True)
class _Wrong:
    """An adapter whose cable ends in another leaf than those of its neighbours."""

    host: str
    adapter: str
    leaf: str
    belongs: str
    link: Link

    def at(self, network: Network) -> str:
        """The leaf's end of the cable."""
        return f"{network.label[self.leaf]} port {self.link.port_at(self.leaf)}"


def rail_findings(checkup: Checkup) -> Iterator[Finding]:
    """GL423 (on a wrong rail), GL425 (a node lacks a cable)."""
    network, fabric = checkup.network, checkup.cabled
    if network is None or fabric is None:
        return
    rails = rail_of_leaf(network)
    members: dict[str, list[str]] = defaultdict(list)
    for host in network.hosts:
        if host in fabric.leaf_of:
            members[fabric.leaf_of[host]].append(host)
    for hosts in members.values():
        cables = {host: {_adapter(network, link.other(leaf)): (leaf, link) for leaf, link in network.leaf_links[host]} for host in hosts}
        kinds: dict[int, list[str]] = defaultdict(list)  # nodes with as many adapters
        for host in hosts:
            kinds[len(network.hosts[host])].append(host)
        usual = {number: _usual_leaf([cables[host] for host in alike]) for number, alike in kinds.items()}
        wrong = [
            _Wrong(host, adapter, leaf, expected, link)
            for number, alike in kinds.items()
            for host in alike
            for adapter, (leaf, link) in cables[host].items()
            if (expected := usual[number].get(adapter, leaf)) != leaf
        ]
        yield from _miscabled(checkup, network, wrong, rails)
        most = max(kinds, key=lambda number: (len(kinds[number]), number))
        moved = {one.host for one in wrong}
        for host in hosts:
            if host not in moved and len(network.hosts[host]) <= most:
                yield from _lacking_some(checkup, network, host, cables[host], usual[most], rails)


def _lacking_some(
    checkup: Checkup, network: Network, host: str, has: Mapping[str, tuple[str, Link]], usual: Mapping[str, str], rails: Mapping[str, int]
) -> Iterator[Finding]:
    """A node is one of the usual kind when what it has is where it is usual, and it has at least half of it."""
    if any(usual.get(adapter) != leaf for adapter, (leaf, _) in has.items()) or 2 * len(has) < len(usual) or len(has) == len(usual):
        return
    lacking = sorted(set(usual) - set(has), key=natural_key)
    leaves = ", ".join(f"{network.label[usual[adapter]]} (rail {rails[usual[adapter]]}, {adapter})" for adapter in lacking)
    title = f"{host} has no cable to {leaves}; its neighbours have"
    where, advice = network.hosts[host][0].where, f"on {host}: ibstat says which port is down"
    yield checkup.finding("GL425", "warning", title, where, f"{host}: {some(has)}", advice, host)


def _adapter(network: Network, device: str) -> str:
    """How the adapters of different nodes are told to be alike: by their own word, else by their place in the node."""
    own = network.by_id[device]
    beside = network.hosts[own.host]
    alike = own.name and sum(other.name == own.name for other in beside) == 1
    return own.name if alike else f"adapter {[other.id for other in beside].index(device) + 1}"


def _usual_leaf(cables: Sequence[Mapping[str, tuple[str, Link]]]) -> Mapping[str, str]:
    """Adapter → the leaf on which it is in more than half of the nodes that have it (at least FEW)."""
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    for found in cables:
        for adapter, (leaf, _) in found.items():
            counted[adapter][leaf] += 1
    usual = {}
    for adapter, leaves in counted.items():
        leaf, number = max(leaves.items(), key=lambda one: one[1])
        if number >= FEW and 2 * number > leaves.total():
            usual[adapter] = leaf
    return usual


def _miscabled(checkup: Checkup, network: Network, wrong: list[_Wrong], rails: Mapping[str, int]) -> Iterator[Finding]:
    """One finding a cable; two that stand in each other's place are one."""
    waiting: dict[tuple[str, str], list[_Wrong]] = defaultdict(list)
    for one in wrong:
        waiting[(one.leaf, one.belongs)].append(one)
    told: set[tuple[str, str]] = set()
    for one in wrong:
        if (one.host, one.adapter) in told:
            continue
        partner = next((other for other in waiting[(one.belongs, one.leaf)] if (other.host, other.adapter) not in told), None)
        told |= {(each.host, each.adapter) for each in (one, partner) if each is not None}
        on, belongs = (f"{network.label[leaf]} (rail {rails[leaf]})" for leaf in (one.leaf, one.belongs))
        title = f"{one.host} {one.adapter} is on {on} and belongs on {belongs}"
        advice = f"move the cable at {one.at(network)}"
        if partner is not None:
            title += f", {partner.host} {partner.adapter} the other way round"
            advice = f"swap the cables at {one.at(network)} and {partner.at(network)}"
        yield checkup.finding("GL423", "warning", title, one.link.where, between(network, one.link), advice, one.host)
