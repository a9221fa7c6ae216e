"""What the real InfiniBand tools say about a simulated fabric is read as it was cabled, with its faults."""

from collections import Counter
from itertools import product
from pathlib import Path

import pytest
from tests.topo.conftest import READINGS, Faulty, simulate
from tests.topo.shapes import dragonfly, fat_tree

from glaunch.fabric_files import read_lfts, read_sources
from glaunch.hierarchy import fabric_of
from glaunch.leaf_domains import rail_of_leaf
from glaunch.merge import merge
from glaunch.network import Link, Network

pytestmark = pytest.mark.ibsim

SPEED_OF_IBSIM = (4, 10.0)
"""ibsim's links are 4x SDR, whatever the net file says."""


def read(path: Path) -> Network:
    (network,) = read_sources([path])
    assert isinstance(network, Network)
    return network


def names(network: Network) -> dict[str, str]:
    """Device id → a name that is the same in the made network: ibsim gives GUIDs of its own."""
    return {one.id: one.name if one.kind == "switch" else f"{one.host} {one.name}" for one in network.devices}


def cables(network: Network) -> Counter[tuple[tuple[str, str], ...]]:
    """Each cable by its ends' names and ports."""
    name = names(network)
    return Counter(tuple(sorted(((name[k.one], k.one_port), (name[k.two], k.two_port)))) for k in network.links)


@pytest.mark.parametrize("reading", [*READINGS, "opensm"])
def test_every_tool_tells_the_same_cables_and_both_faults(faulty: Faulty, reading: str) -> None:
    seen = read(faulty.folder / ("opensm/opensm-subnet.lst" if reading == "opensm" else f"{reading}.txt"))
    gone = cables(faulty.sound) - cables(seen)
    new = cables(seen) - cables(faulty.sound)
    (one, one_rail), (two, two_rail) = faulty.swapped
    adapters = {f"{one} HCA-{one_rail + 1}", f"{two} HCA-{two_rail + 1}"}
    assert {end for cable in new for end, _ in cable if " " in end} == adapters
    assert len(new) == 2
    assert len(gone) == 3, "two swapped, one cut"
    assert any(faulty.cut in cable for cable in gone)
    assert all((link.width, link.rate_gbps, link.up, link.sides) == (*SPEED_OF_IBSIM, True, 2) for link in seen.links)


def test_ports_without_a_cable_are_known_where_the_tool_lists_them(faulty: Faulty) -> None:
    seen = read(faulty.folder / "iblinkinfo.txt")
    name = names(seen)
    assert (*faulty.cut, "Down/Polling") in {(name[port.device], port.port, port.state) for port in seen.open_ports}


def test_the_faults_move_nobody(faulty: Faulty) -> None:
    fabric = fabric_of(read(faulty.folder / "ibnetdiscover.txt"))
    assert fabric.leaf_of == fabric_of(faulty.sound).leaf_of
    assert [len(switch.members) for switch in fabric.switches] == [4, 4, 4]
    seen = read(faulty.folder / "ibnetdiscover.txt")
    assert {seen.label[leaf]: rail for leaf, rail in rail_of_leaf(seen).items()} == {
        faulty.sound.label[leaf]: rail for leaf, rail in rail_of_leaf(faulty.sound).items()
    }


def test_sources_of_one_fabric_are_one_fabric(faulty: Faulty) -> None:
    files = [faulty.folder / name for name in ("ibnetdiscover.txt", "iblinkinfo.txt", "ibnetdiscover-p.txt", "opensm/opensm-subnet.lst")]
    both = merge(read_sources(files))
    assert both.disputes == ()
    assert both.network is not None
    assert cables(both.network) == cables(read(files[0]))
    assert both.leaf_of == fabric_of(faulty.sound).leaf_of


def hops_of_adapters(network: Network, near: str, far: str) -> int:
    """Switches on the shortest way between two adapters' ports."""

    def leaf(adapter: str) -> str:
        (link,) = network.links_of[adapter]
        return link.other(adapter)

    wave, seen, hops = {leaf(near)}, {leaf(near)}, 1
    while leaf(far) not in wave:
        wave = {there for here in wave for there in network.switch_neighbours[here]} - seen
        seen |= wave
        hops += 1
    return hops


def test_opensm_routes_are_as_long_as_the_links_allow(faulty: Faulty) -> None:
    seen = read(faulty.folder / "ibnetdiscover.txt")
    routes = read_lfts(faulty.folder / "opensm" / "opensm-lfts.dump")
    some = sorted(seen.hosts)[::5]
    lengths = Counter[int]()
    for one, two in product(some, some):
        ways = []
        for near, far in product(seen.hosts[one], seen.hosts[two]):
            if one != two:
                path = routes.path(seen, near.id, far.id)
                assert path is not None
                assert len(path) == hops_of_adapters(seen, near.id, far.id)
                ways.append(len(path))
        if ways:
            lengths[min(ways)] += 1
            assert min(ways) == seen.hops(one, two) == fabric_of(seen).hops(one, two)
    assert set(lengths) == {1, 3}


@pytest.mark.parametrize("kind", ["three tiers", "dragonfly+", "islands"])
def test_other_shapes_are_read_as_they_were_cabled(tmp_path: Path, kind: str) -> None:
    made = {
        "three tiers": lambda: fat_tree(1, 2, 2, 2, 3, 2, 2),
        "dragonfly+": lambda: dragonfly(4, 2, 2, 2),
        "islands": lambda: fat_tree(2, 1, 2, 1, 3, 2, 0),
    }[kind]()
    with simulate(made.network, tmp_path) as sim:
        (tmp_path / "dump.txt").write_text(sim.run(*READINGS["ibnetdiscover"]))
        out = sim.opensm()
    seen = read(tmp_path / "dump.txt")
    want = fabric_of(made.network)
    if kind == "islands":  # a dump shows the island that it was taken in
        first = {node for node in want.leaf_of if want.path_up(node)[-1] == want.path_up(made.domains[0][0])[-1]}
        assert set(fabric_of(seen).leaf_of) == first
        return
    assert cables(seen) == cables(made.network)
    assert {switch.nodes for switch in fabric_of(seen).switches} == {switch.nodes for switch in want.switches}
    routes = read_lfts(out / "opensm-lfts.dump")
    for one, two in product(sorted(seen.hosts)[::2], sorted(seen.hosts)[1::2]):
        ways = [routes.path(seen, near.id, far.id) for near, far in product(seen.hosts[one], seen.hosts[two])]
        assert min(len(way) for way in ways if way is not None) == fabric_of(seen).hops(one, two), (one, two)


def test_a_link_is_equal_however_it_was_seen() -> None:
    assert Link("a", "1", "b", "2", where="x:1") == Link("a", "1", "b", "2", where="y:9")
