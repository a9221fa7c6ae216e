"""Which leaves are one leaf domain, since the same nodes hang on them; and which rail each leaf is. Read from the links alone."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import combinations

from glaunch.hostlist import natural_key
from glaunch.network import Network


def rail_of_leaf(network: Network) -> Mapping[str, int]:
    """Leaf (id) → its rail, a logical index from 0: the place of most of its nodes' adapters among the adapters of their node.

    An adapter of another place on it is cabled to a wrong leaf, or its node lacks one.
    """
    places: dict[str, Counter[int]] = defaultdict(Counter)
    for host, links in network.leaf_links.items():
        order = {hca.id: place for place, hca in enumerate(network.hosts[host])}
        for leaf, link in links:
            places[leaf][order[link.other(leaf)]] += 1
    return {leaf: max(sorted(counted), key=counted.__getitem__) for leaf, counted in places.items()}


def leaf_domains(network: Network) -> tuple[dict[str, str], list[list[str]]]:
    """(node → the first leaf of its domain, or the switch above the leaves that it hangs on; the leaves of each domain, rail by rail).

    A node with cables into several domains is of the one that has most of them.
    Two leaves are of one domain when more than half of the nodes of the larger are on both: one cable in a wrong place changes nothing.
    """
    hung = {host: list(dict.fromkeys(switch for switch, _ in links)) for host, links in network.leaf_links.items() if links}
    on = Counter(switch for switches in hung.values() for switch in switches)
    above = {switch for switch in on if _stands_above(switch, on, network.switch_neighbours[switch])}
    both: Counter[tuple[str, str]] = Counter()
    for switches in hung.values():
        both.update(combinations(sorted(set(switches) - above), 2))
    groups = Groups(switch for switch in on if switch not in above)
    for (one, two), count in both.items():
        if 2 * count > max(on[one], on[two]):
            groups.join(one, two)
    rails, label = rail_of_leaf(network), network.label
    found: dict[str, list[str]] = defaultdict(list)
    for leaf in sorted((leaf for leaf in on if leaf not in above), key=lambda leaf: (rails[leaf], natural_key(label[leaf]))):
        found[groups.of(leaf)].append(leaf)
    domains = sorted(found.values(), key=lambda leaves: natural_key(label[leaves[0]]))
    domain_of = {leaf: leaves[0] for leaves in domains for leaf in leaves}
    home = {}
    for host, switches in hung.items():
        votes = Counter(domain_of[switch] for switch in switches if switch in domain_of)
        home[host] = max(votes, key=votes.__getitem__) if votes else switches[0]
    return home, domains


def _stands_above(switch: str, on: Mapping[str, int], neighbours: Mapping[str, int]) -> bool:
    """True for a switch with a few hosts (a fabric manager, a gateway) most of whose neighbours are leaves full of them."""
    fuller = sum(on.get(other, 0) > 2 * on[switch] for other in neighbours)
    return len(neighbours) > 1 and 2 * fuller > len(neighbours)


class Groups:
    """Names that are joined to groups; `of` names a group by one of its members."""

    def __init__(self, names: Iterable[str]) -> None:
        self._parent = {name: name for name in names}

    def of(self, name: str) -> str:
        while self._parent[name] != name:
            self._parent[name] = self._parent[self._parent[name]]
            name = self._parent[name]
        return name

    def join(self, one: str, two: str) -> None:
        self._parent[self.of(two)] = self.of(one)
