"""The topologies that one Slurm has (topology.yaml, 25.05 and later): which one is meant, and which others there are."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from glaunch.cluster import Partition
from glaunch.units import plural


@dataclass(frozen=True, slots=True)
class Topologies:
    """The chosen topology among those that are known. A name that is "" is the default one, where nothing says what it is called."""

    chosen: str
    partitions: Mapping[str, tuple[str, ...]]
    """Topology → the partitions whose jobs are placed by it; it may be none."""
    default: str = ""
    """The default one's name."""

    @property
    def asked(self) -> str:
        """What scontrol is asked for: the chosen one's name, "" for the default one."""
        return "" if self.chosen == self.default else self.chosen

    @property
    def others(self) -> Mapping[str, tuple[str, ...]]:
        """All but the chosen one."""
        return {name: partitions for name, partitions in self.partitions.items() if name != self.chosen}

    def others_in_words(self) -> str:
        """`Slurm has another topology too: nvl (partition nvl); --name nvl shows it`; "" where there is no other."""
        if not self.others:
            return ""
        listed = ", ".join(f"{name or 'the default one'} ({_who(partitions)})" for name, partitions in self.others.items())
        named = next(filter(None, self.others), "")
        one = len(self.others) == 1
        how = "without --name" if not named else f"--name {named} shows it" if one else "--name NAME shows one"
        return f"Slurm has {'another topology' if one else 'other topologies'} too: {listed}; {how}"


NO_NAMES = Topologies("", {})
"""Of a Slurm whose topology has no name."""


def topologies_of(partitions: Iterable[Partition], named: Iterable[str] = (), default: str = "") -> Mapping[str, tuple[str, ...]]:
    """Topology → its partitions, from what partitions say and from the names in a topology.yaml, where that could be read; `default` is the
    name of the default one, by which partitions are placed that name none. {} where no topology has a name."""
    found: dict[str, tuple[str, ...]] = dict.fromkeys(named, ())
    for partition in partitions:
        name = partition.topology or default
        found[name] = (*found.get(name, ()), partition.name)
    return found if any(found) else {}


def _who(partitions: tuple[str, ...]) -> str:
    if not partitions:
        return "no partition"
    return f"{plural(len(partitions), 'partition').split()[1]} {', '.join(partitions)}"
