"""The tree that is read out of the links is the one that was cabled, and its hops are those of the links."""

from collections import deque
from dataclasses import replace
from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from tests.topo.shapes import Made, cabled, dragonfly, fat_tree, made_networks, tangles

from glaunch.fabric import Fabric
from glaunch.hierarchy import fabric_of
from glaunch.leaf_domains import rail_of_leaf
from glaunch.network import Link, Network


def hops_by_search(network: Network, one: str, two: str) -> int | None:
    """Switches between two nodes by plain breadth-first search over all devices: no cable counts but one that is up."""
    beside: dict[str, set[str]] = {device.id: set() for device in network.devices}
    for link in network.links:
        if link.state == "active":
            beside[link.one].add(link.two)
            beside[link.two].add(link.one)
    starts = [device.id for device in network.devices if device.host == one]
    ends = {device.id for device in network.devices if device.host == two}
    far = dict.fromkeys(starts, 0)
    waiting = deque(starts)
    while waiting:
        here = waiting.popleft()
        if here in ends:
            return far[here] - 1
        for there in beside[here]:
            adapter = network.by_id[there].kind == "hca"
            if there not in far and (not adapter or there in ends):
                far[there] = far[here] + 1
                waiting.append(there)
    return None


def tree(fabric: Fabric) -> list[tuple[str, str | None, tuple[str, ...]]]:
    return [(switch.name, switch.parent, switch.nodes) for switch in fabric.switches]


@settings(max_examples=60)
@given(made_networks())
def test_hops_of_the_tree_are_those_of_the_links(made: Made) -> None:
    fabric = fabric_of(made.network)
    assert fabric.notes == ()
    names = [nodes[0] for nodes in made.domains] + [nodes[-1] for nodes in made.domains]
    for one, two in combinations(dict.fromkeys(names), 2):
        assert fabric.hops(one, two) == hops_by_search(made.network, one, two) == made.network.hops(one, two), (one, two)


@settings(max_examples=60)
@given(made_networks())
def test_the_leaf_domains_are_the_units(made: Made) -> None:
    fabric = fabric_of(made.network)
    assert sorted(switch.nodes for switch in fabric.switches if switch.nodes) == sorted(made.domains)


@settings(max_examples=100)
@given(tangles())
def test_ways_over_any_links_are_shortest(network: Network) -> None:
    for one, two in combinations(sorted(network.hosts), 2):
        path = network.path(one, two)
        assert (None if path is None else len(path)) == hops_by_search(network, one, two)
        if path:
            assert all(after in network.switch_neighbours[before] for before, after in pairwise(path))


@settings(max_examples=100)
@given(tangles())
def test_any_network_makes_a_fabric_and_says_what_it_lacks(network: Network) -> None:
    fabric = fabric_of(network)
    placed = {node for node, links in network.leaf_links.items() if links}
    assert set(fabric.leaf_of) == placed
    several = any("more than one leaf domain" in note for note in fabric.notes)
    fewer = any("no cable to a leaf" in note or "the same planes" in note for note in fabric.notes)
    for one, two in combinations(sorted(placed), 2):
        joined = fabric.hops(one, two) is not None
        assert not joined or fewer or network.hops(one, two) is not None, "nothing is joined that no cable joins, but for what a note names"
        assert joined or several or network.hops(one, two) is None, "and nothing is left apart but what a note names"


def test_rails() -> None:
    made = fat_tree(1, 1, 2, 4, 4, 2, 0)
    fabric = fabric_of(made.network)
    assert tree(fabric) == [
        ("l0-0-r0", "s0-0-0", made.domains[0]),
        ("l0-1-r0", "s0-0-0", made.domains[1]),
        ("s0-0-0", None, ()),
    ]
    assert fabric.by_name["l0-0-r0"].members == ("l0-0-r0", "l0-0-r1", "l0-0-r2", "l0-0-r3")
    assert fabric.by_name["s0-0-0"].members == ("s0-0-0", "s0-0-1")
    label = made.network.label
    assert {label[leaf]: rail for leaf, rail in rail_of_leaf(made.network).items()} == {
        f"l0-{unit}-r{rail}": rail for unit in range(2) for rail in range(4)
    }


def test_groups_that_are_cabled_directly_have_no_switch_above() -> None:
    fabric = fabric_of(dragonfly(3, 2, 2, 2).network)
    root = fabric.by_name[fabric.roots[0]]
    assert root.virtual
    assert fabric.children[root.name] == ("s0-0", "s1-0", "s2-0")
    assert fabric.path("n0-0-0", "n2-1-0") == ("l0-0", "s0-0", "s2-0", "l2-1")


def test_groups_of_which_two_are_not_cabled_are_named() -> None:
    network = dragonfly(3, 1, 1, 1).network
    ids = network.id_of
    cut = tuple(link for link in network.links if {link.one, link.two} != {ids["s0-0"], ids["s2-0"]})
    assert fabric_of(replace(network, links=cut)).notes == (
        "1 pair of the groups beside s0-0, without a direct link: their nodes are farther apart than the tree says",
    )


def test_a_cable_in_a_wrong_place_moves_nobody() -> None:
    made = fat_tree(1, 1, 2, 4, 4, 2, 0)
    swapped = swap(made.network, ("n0-0-1", 2), ("n0-1-3", 3))
    assert fabric_of(swapped).leaf_of == fabric_of(made.network).leaf_of
    assert rail_of_leaf(swapped) == rail_of_leaf(made.network)


def swap(network: Network, *places: tuple[str, int]) -> Network:
    """The network with the leaves' ends of two nodes' cables swapped."""
    first, second = (network.links_of[network.hosts[host][rail].id][0] for host, rail in places)
    leaf = {first: (second.one, second.one_port), second: (first.one, first.one_port)}
    links = [link if link not in leaf else replace(link, one=leaf[link][0], one_port=leaf[link][1]) for link in network.links]
    return replace(network, links=tuple(links))


def test_management_on_a_core_and_a_host_on_a_spine_find_their_place() -> None:
    made = fat_tree(1, 2, 2, 1, 4, 2, 1)
    label = made.network.label
    hosts = [(host, [label[leaf] for leaf, _ in links]) for host, links in made.network.leaf_links.items()]
    links = [(label[link.one], label[link.two], 1) for link in made.network.links if link.two in label]
    logins = [(f"login{number}", ["mgmt"]) for number in range(3)]
    extra = cabled([*hosts, ("ufm1", ["s0-0-0"]), *logins], [*links, ("mgmt", "c0-0-0", 2)])
    fabric = fabric_of(extra)
    for one, two in (("ufm1", "n0-0-0"), ("login1", "n1-1-2"), ("login1", "login2"), ("n0-0-0", "n1-0-0"), ("n0-0-0", "n0-1-0")):
        assert fabric.hops(one, two) == hops_by_search(extra, one, two), (one, two)
    assert fabric.by_name[fabric.leaf_of["ufm1"]].virtual
    assert fabric.path("ufm1", "n0-0-0") == ("s0-0-0", "l0-0-r0")


def test_links_that_are_down_count_as_none() -> None:
    network = cabled([("a", ["l1"]), ("b", ["l1"]), ("c", ["l2"])], [("l1", "s", 1), ("l2", "s", 1)])
    down = tuple(replace(link, state="down") if network.by_id[link.two].host == "b" else link for link in network.links)
    fabric = fabric_of(replace(network, links=down))
    assert set(fabric.leaf_of) == {"a", "c"}
    assert "1 node has no cable to a switch that is up, such as b" in fabric.notes


def test_two_names_that_are_the_same_do_not_join_two_switches() -> None:
    network = cabled([("a", ["x"]), ("b", ["y"])], [])
    same = replace(
        network, devices=tuple(replace(one, name="Quantum Mellanox") if one.kind == "switch" else one for one in network.devices)
    )
    assert fabric_of(same).leaves == tuple(sorted(device.id for device in same.switches))


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (["MF0;sw1:MQM8700/U1"], ["sw1"]),
        (["MF0;big:MCS8500/L01/U1", "MF0;big:MCS8500/S01/U1"], ["big/L01/U1", "big/S01/U1"]),
        (["MF0;q:Q3400/U1", "MF0;q:Q3400/U2"], ["q", "q/U2"]),
        (["a b"], ["a-b"]),
    ],
)
def test_names_of_switches(names: list[str], labels: list[str]) -> None:
    network = cabled([], [("s0", "s1", 1)] if len(names) > 1 else [("s0", "s0", 1)])
    named = replace(network, devices=tuple(replace(one, name=name) for one, name in zip(network.devices, names, strict=True)))
    assert list(named.label.values()) == labels


def test_a_cable_of_a_switch_to_itself_is_no_neighbour() -> None:
    network = cabled([("a", ["s"])], [("s", "s", 1)])
    assert network.switch_neighbours[network.id_of["s"]] == {}
    assert network.links_of[network.id_of["s"]][-1] == Link(network.id_of["s"], "2", network.id_of["s"], "3", 4, 200.0)
