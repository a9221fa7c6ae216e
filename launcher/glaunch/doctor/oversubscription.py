"""How much more goes into a switch from below than it can pass on to above, read from the cables."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from glaunch.diagnosis.finding import Finding
from glaunch.doctor.cables import FEW, siblings, tier_of_switch
from glaunch.doctor.checkup import Checkup
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
    """GL413: a note for the leaves, a warning for a switch that is much worse than its siblings."""
    network, fabric = checkup.network, checkup.cabled
    found = subscriptions(checkup)
    if network is None or fabric is None or not found:
        return

    def told(severity: str, title: str, one: Subscription, advice: str) -> Finding:
        where = network.by_id[network.id_of[one.switch]].where or network.source
        seen = f"{one.switch}: {one.down:g} {one.unit} down, {one.up:g} {one.unit} up"
        return Finding("GL413", severity, title, "", None, where, seen, advice)

    for tier in sorted({one.tier for one in found}):
        ratios = Counter(round(one.ratio, 2) for one in found if one.tier == tier)
        words = ", ".join(f"{ratio:g}:1 at {_switches(number, tier)}" for ratio, number in ratios.most_common(4))
        if max(ratios) > 1:
            first = next(one for one in found if one.tier == tier and round(one.ratio, 2) == ratios.most_common(1)[0][0])
            yield told("note", f"oversubscription {words}", first, "")
    group_of, groups = siblings(network, fabric), defaultdict[str, list[Subscription]](list)
    for one in found:
        groups[group_of[network.id_of[one.switch]]].append(one)
    for alike in groups.values():
        usual, having = Counter(round(one.ratio, 2) for one in alike).most_common(1)[0]
        for one in alike:
            if one.ratio > max(1, MORE * usual) and having >= FEW:
                title = f"oversubscription {one.ratio:.3g}:1 at {one.switch}, where its siblings have {usual:g}:1"
                yield told("warning", title, one, "are uplinks missing, down or slow there?")


def _switches(number: int, tier: int) -> str:
    return plural(number, "leaf", "leaves") if tier == 0 else f"{plural(number, 'switch', 'switches')} of tier {tier}"
