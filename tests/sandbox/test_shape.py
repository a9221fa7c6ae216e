"""The switches of a sandbox from a line, a count or a file: pure text."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glaunch.errors import UsageError
from glaunch.fabric import Fabric
from glaunch.sandbox.network import lay_out
from glaunch.sandbox.shape import default_shape, grow, node_names, parse_shape, read_topology, topology_conf


def test_a_shape_counts_per_switch_above() -> None:
    fabric = grow(parse_shape("core:1 spine:2 leaf:4 node:2"))
    assert len(node_names(fabric)) == 16
    assert [switch.name for switch in fabric.switches] == [*(f"leaf{i}" for i in range(1, 9)), "spine1", "spine2", "core1"]
    assert fabric.by_name["leaf5"].parent == "spine2"
    assert fabric.by_name["leaf5"].nodes == ("n009", "n010")
    assert fabric.path_up("n009") == ("leaf5", "spine2", "core1")
    assert fabric.hops("n001", "n002") == 1
    assert fabric.hops("n001", "n008") == 3
    assert fabric.hops("n001", "n009") == 5


def test_sixteen_nodes_have_three_tiers_by_default() -> None:
    assert default_shape(16) == (("core", 1), ("spine", 2), ("leaf", 2), ("node", 4))


@given(st.integers(1, 2000))
def test_the_default_shape_holds_every_count(count: int) -> None:
    fabric = grow(default_shape(count), count)
    assert len(node_names(fabric)) == count
    assert {len(fabric.path_up(node)) for node in node_names(fabric)} == {3}
    assert all(switch.nodes or any(child.parent == switch.name for child in fabric.switches) for switch in fabric.switches)


@given(st.lists(st.integers(1, 4), min_size=2, max_size=5), st.integers(1, 300))
def test_a_grown_fabric_comes_back_from_its_topology_conf(counts: list[int], limit: int) -> None:
    tiers = (*zip(("t1", "t2", "t3", "t4"), counts[:-1], strict=False), ("node", counts[-1]))
    fabric = grow(tiers, limit)
    again = read_topology(topology_conf(fabric), "topology.conf")
    assert again.switches == fabric.switches
    assert len(node_names(fabric)) == min(limit, math.prod(counts))
    roots = [switch for switch in fabric.switches if switch.parent is None]
    assert len(roots) <= counts[0]


@pytest.mark.parametrize(
    "text", ["", "leaf:4", "node:4", "leaf:0 node:4", "leaf:2 leaf:2 node:4", "leaf:two node:4", "node:4 leaf:2", "leaf=2 node=4"]
)
def test_what_is_no_shape_is_refused_with_one_that_is(text: str) -> None:
    with pytest.raises(UsageError, match="core:1 spine:2 leaf:4 node:2"):
        parse_shape(text)


def test_a_topology_conf_of_ones_own() -> None:
    text = """
    # two islands, the second with a node on a spine
    SwitchName=isl1-l[1-2] Nodes=gpu-a[1-2]
    SwitchName=top Switches=mid\\
    SWITCHNAME=mid Switches=low Nodes=gpu-c1  LinkSpeed=100
    SwitchName=low Nodes=gpu-b[1-2]
    """.replace("\\\n", "\n")
    fabric = read_topology(text, "my.conf")
    assert fabric.by_name["top"].tier == 2
    assert fabric.by_name["mid"].parent == "top"
    assert fabric.by_name["mid"].nodes == ("gpu-c1",)
    assert fabric.by_name["isl1-l2"].parent is None
    assert node_names(fabric) == ("gpu-a1", "gpu-a2", "gpu-c1", "gpu-b1", "gpu-b2")


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("SwitchName=a Switches=b\nSwitchName=b Switches=a Nodes=n1", "below itself"),
        ("SwitchName=a Switches=b Nodes=n1", "b, which no line describes"),
        ("SwitchName=a", "names no nodes"),
        ("hello", "'hello' is no line"),
    ],
)
def test_what_is_no_topology_is_refused(text: str, seen: str) -> None:
    with pytest.raises(UsageError, match=seen):
        read_topology(text, "my.conf")


def links(fabric: Fabric) -> list[str]:
    network = lay_out(fabric, "100mbit")
    made = [line.split() for line in network.ip_batch.splitlines() if line.startswith("link add")]
    return [words[2] for words in made] + [words[7] for words in made if "peer" in words] + [host.port for host in network.hosts]


@given(st.lists(st.integers(1, 4), min_size=2, max_size=5))
def test_every_link_has_a_name_of_its_own_that_the_kernel_takes(counts: list[int]) -> None:
    names = ("v-", "br0", "a-very-long-name-for-a-switch", "dn-")
    tiers = (*zip(names, counts[:-1], strict=False), ("node", counts[-1]))
    found = links(grow(tiers))
    assert len(set(found)) == len(found)
    assert all(0 < len(name) <= 15 for name in found)


def test_addresses_are_different_and_inside_the_network() -> None:
    hosts = lay_out(grow((("leaf", 40), ("node", 50))), "").hosts
    assert len({host.address for host in hosts}) == len({host.mac for host in hosts}) == 2000
    assert all(host.address.startswith("10.77.") and 0 < int(host.address.split(".")[3]) <= 250 for host in hosts)
    assert all(int(one.address.split(".")[2]) <= int(two.address.split(".")[2]) for one, two in pairwise(hosts))
