"""Which nodes of each switch are free, busy or down, as Slurm said."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any

from glaunch.cluster import Cluster
from glaunch.fabric import Fabric
from glaunch.hostlist import fold, natural_key
from glaunch.placement.standing import FREE, STARTABLE, standing
from glaunch.topologies import NO_NAMES, Topologies

KINDS = ("free", "busy", "down", "unknown")
"""`free`: a job can have all of it now (or after it is powered up); `busy`: something runs, completes or is planned there; `down`: nothing
new may run there (down, drained, in maintenance, not responding); `unknown`: Slurm does not list it,
or shows no node to this user (PrivateData)."""

_DOWN_BASES = frozenset({"DOWN", "ERROR", "FUTURE", "UNKNOWN", "MAINTENANCE", "MAINT", "BLOCKED"})
_DOWN_FLAGS = frozenset(
    {"DRAIN", "FAIL", "NOT_RESPONDING", "MAINTENANCE", "MAINT", "REBOOT", "REBOOT_REQUESTED", "REBOOT_ISSUED", "BLOCKED", "INVALID_REG"}
)


@lru_cache(maxsize=1024)
def kind_of(state: str) -> str:
    """One of KINDS for a state such as `MIXED+DRAIN`. **Source:** sinfo(1), NODE STATE CODES."""
    if standing(state)[0] in {FREE, STARTABLE}:
        return "free"
    base, *flags = state.split("+")
    if base in _DOWN_BASES or _DOWN_FLAGS & set(flags):
        return "down"
    return "free" if base == "IDLE" and set(flags) <= {"CLOUD", "DYNAMIC_NORM", "DYNAMIC_FUTURE"} else "busy"


@dataclass(frozen=True)
class Occupancy:
    """A fabric and what its nodes do; `taken_at_s` is when Slurm said so."""

    fabric: Fabric
    kinds: Mapping[str, str]
    """Node → one of KINDS; every node of the fabric and every node of Slurm's."""
    taken_at_s: float

    @cached_property
    def counts(self) -> Mapping[str, Counter[str]]:
        """Switch → nodes below it of each kind. A node that stands under several leaves counts under the first."""
        found: dict[str, Counter[str]] = {switch.name: Counter() for switch in self.fabric.switches}
        for leaf in self.fabric.leaves:
            own = Counter(self.kinds[node] for node in self.nodes_of(leaf))
            for name in self.fabric.path_of_leaf(leaf):
                found[name] += own
        return MappingProxyType(found)

    def nodes_of(self, leaf: str) -> tuple[str, ...]:
        """The nodes of a leaf that count there."""
        home = self.fabric.leaf_of
        return tuple(node for node in dict.fromkeys(self.fabric.by_name[leaf].nodes) if home[node] == leaf)

    @cached_property
    def unplaced(self) -> tuple[str, ...]:
        """Slurm's nodes that no leaf names, in natural order."""
        return tuple(sorted((node for node in self.kinds if node not in self.fabric.leaf_of), key=natural_key))

    @cached_property
    def total(self) -> Counter[str]:
        """All nodes below a switch, by kind."""
        return Counter(self.kinds[node] for node in self.fabric.leaf_of)


def occupancy_of(cluster: Cluster, fabric: Fabric) -> Occupancy:
    """What the nodes do now."""
    kinds = dict.fromkeys(fabric.leaf_of, "unknown")
    hidden = cluster.nodes.hidden
    kinds |= {name: "unknown" if hidden else kind_of(state) for name, state in zip(cluster.nodes.names, cluster.nodes.states, strict=True)}
    return Occupancy(fabric, MappingProxyType(kinds), cluster.taken_at_s)


def counted(kinds: Mapping[str, int]) -> str:
    """`3 free, 1 busy`: the kinds that there are."""
    return ", ".join(f"{kinds[kind]:,} {kind}" for kind in KINDS if kinds.get(kind)) or "no nodes"


def occupancy_document(occupancy: Occupancy, topologies: Topologies = NO_NAMES) -> dict[str, Any]:
    """Schema glaunch.topo/1: a row a switch with its nodes by kind, a leaf's as hostlists; which of Slurm's topologies it is."""
    fabric = occupancy.fabric
    rows = []
    for switch in fabric.switches:
        row: dict[str, Any] = {"name": switch.name, "tier": switch.tier, "parent": switch.parent}
        row |= {kind: occupancy.counts[switch.name][kind] for kind in KINDS}
        if switch.members:
            row["members"] = list(switch.members)
        if switch.tier == 0:
            row["nodes"] = {kind: fold(nodes) for kind, nodes in by_kind(occupancy, occupancy.nodes_of(switch.name)).items()}
        rows.append(row)
    return {
        "schema": "glaunch.topo/1",
        "source": fabric.source,
        "topology": topologies.chosen,
        "other_topologies": {name: list(partitions) for name, partitions in topologies.others.items()},
        "taken_at_s": occupancy.taken_at_s,
        "total": {kind: occupancy.total[kind] for kind in KINDS},
        "switches": rows,
        "unplaced": fold(occupancy.unplaced),
        "notes": list(fabric.notes),
    }


def by_kind(occupancy: Occupancy, nodes: Iterable[str]) -> dict[str, list[str]]:
    """The nodes of each kind that there is, in their order."""
    found: dict[str, list[str]] = {}
    for kind in KINDS:
        own = [node for node in nodes if occupancy.kinds[node] == kind]
        if own:
            found[kind] = own
    return found
