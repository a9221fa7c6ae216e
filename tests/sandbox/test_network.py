"""The sandbox's switches and network: pure text."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glaunch.errors import GlaunchError
from glaunch.fabric import Fabric, synthetic
from glaunch.sandbox.layout import default_shape, design
from glaunch.sandbox.network import lay_out
from glaunch.sandbox.options import SandboxOptions


def test_sixteen_nodes_have_three_tiers_by_default() -> None:
    assert default_shape(16) == "core:1 spine:2 leaf:2 node:4"


@given(st.integers(1, 2000))
def test_the_default_shape_holds_every_count(count: int) -> None:
    fabric = synthetic(default_shape(count), count)
    assert len(fabric.nodes) == count
    assert {len(fabric.path_up(node)) for node in fabric.nodes} == {3}


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("SwitchName=a Switches=b\nSwitchName=b Switches=a", "a tree of switches"),
        ("SwitchName=a Switches=b", "a switch that has a line of its own"),
        ("SwitchName=a", "names no nodes"),
        ("hello", "KEY=VALUE"),
        ("SwitchName=a Nodes=n[1-", "a hostlist"),
    ],
)
def test_what_is_no_topology_is_refused(text: str, seen: str, tmp_path: Path) -> None:
    (tmp_path / "my.conf").write_text(text)
    with pytest.raises(GlaunchError, match=rf"my\.conf.*{seen}"):
        design(SandboxOptions(topology=tmp_path / "my.conf"))


def links(fabric: Fabric) -> list[str]:
    network = lay_out(fabric, "100mbit")
    made = [line.split() for line in network.ip_batch.splitlines() if line.startswith("link add")]
    return [words[2] for words in made] + [words[7] for words in made if "peer" in words] + [host.port for host in network.hosts]


@given(st.lists(st.integers(1, 4), min_size=2, max_size=5))
def test_every_link_has_a_name_of_its_own_that_the_kernel_takes(counts: list[int]) -> None:
    names = ("v-", "br0", "a-very-long-name-for-a-switch", "dn-")
    tiers = (*zip(names, counts[:-1], strict=False), ("node", counts[-1]))
    found = links(synthetic(" ".join(f"{name}:{count}" for name, count in tiers)))
    assert len(set(found)) == len(found)
    assert all(0 < len(name) <= 15 for name in found)


def test_addresses_are_different_and_inside_the_network() -> None:
    hosts = lay_out(synthetic("leaf:40 node:50"), "").hosts
    assert len({host.address for host in hosts}) == len({host.mac for host in hosts}) == 2000
    assert all(host.address.startswith("10.77.") and 0 < int(host.address.split(".")[3]) <= 250 for host in hosts)
    assert all(int(one.address.split(".")[2]) <= int(two.address.split(".")[2]) for one, two in pairwise(hosts))
