"""How much more goes into a switch from below than it can pass on to above, read from the cables."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from glaunch.diagnosis.finding import Finding
from glaunch.doctor.cables import tier_of_switch
from glaunch.doctor.checkup import Checkup, some
from glaunch.network import ENGINE
from glaunch.units import plural

MORE = 1.25
"""A switch is told by name when its ratio is this much above that of its tier: one cable less of eight is told as a cable (GL421)."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """One switch: what its cables that are up carry, down to nodes and lower switches, and up.

    In Gbit/s where every cable says its rate, else in cables.
    """

    switch: str
    tier: int
    down: float
    up: float
    unit: str

    @property
    def ratio(self) -> float:
        """2.0: twice as much below as above."""
        return self.down / self.up


def subscriptions(checkup: Checkup) -> tuple[Subscription, ...]:
    """All switches with something below and something above them, the lowest tier first, in the network's order."""
    network, fabric = checkup.network, checkup.cabled
    if network is None or fabric is None:
        return ()
    tiers = tier_of_switch(network, fabric)
    rated = all(link.rate_gbps for link in network.links if link.up)
    found = []
    for switch, tier in tiers.items():
        down = up = 0.0
        for link in network.links_of[switch]:
            other = network.by_id[link.other(switch)]
            if not link.up or other.kind == ENGINE or other.id == switch:
                continue
            carries = link.rate_gbps if rated else 1.0
            height = tiers.get(other.id, -1)
            if height < tier:
                down += carries
            elif height > tier:
                up += carries
        if down and up:
            found.append(Subscription(network.label[switch], tier, down, up, "Gbit/s" if rated else "cables"))
    return tuple(sorted(found, key=lambda one: one.tier))


def subscription_findings(checkup: Checkup) -> Iterator[Finding]:
    """GL413: a note a tier, a warning for a switch that is much worse than its tier."""
    by_tier: dict[int, list[Subscription]] = defaultdict(list)
    for one in subscriptions(checkup):
        by_tier[one.tier].append(one)
    network = checkup.network
    if network is None:
        return
    for tier, switches in by_tier.items():
        usual = Counter(round(one.ratio, 2) for one in switches).most_common(1)[0][0]
        alike = [one for one in switches if round(one.ratio, 2) == usual]
        first = alike[0]
        kind = plural(len(alike), "leaf", "leaves") if tier == 0 else f"{plural(len(alike), 'switch', 'switches')} of tier {tier}"
        sums = f"{first.switch}: {first.down:g} {first.unit} down, {first.up:g} {first.unit} up"
        where = network.by_id[network.id_of[first.switch]].where or network.source
        if usual > 1:
            yield Finding("GL413", "note", f"oversubscription {usual:g}:1 at {kind} of {len(switches)}", "", None, where, sums, "")
        bad = [one for one in switches if one.ratio > MORE * usual and one.ratio > 1]
        for one in bad[:1]:
            names = some(each.switch for each in bad)
            where = network.by_id[network.id_of[one.switch]].where or network.source
            title = f"oversubscription {one.ratio:.3g}:1 at {names}, where {usual:g}:1 is usual in that tier"
            seen = f"{one.switch}: {one.down:g} {one.unit} down, {one.up:g} {one.unit} up"
            yield Finding("GL413", "warning", title, "", None, where, seen, "are uplinks missing, down or slow there?")
