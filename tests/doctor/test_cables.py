"""Cables: what is sound on every shape of fabric raises no alarm, and one fault is named where it is."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.topo.shapes import Made, cabled, fat_tree, made_networks

from glaunch.diagnosis.finding import Finding
from glaunch.doctor.check import examine
from glaunch.doctor.checkup import Checkup
from glaunch.doctor.oversubscription import subscriptions
from glaunch.network import HCA, Link, Network


def found(network: Network) -> tuple[Finding, ...]:
    return examine(Checkup((network,)))


def codes(findings: Sequence[Finding]) -> list[str]:
    """Codes of what is worse than a note."""
    return [finding.code for finding in findings if finding.severity != "note"]


def with_link(network: Network, old: Link, *new: Link) -> Network:
    return replace(network, links=tuple(one for link in network.links for one in (new if link == old else (link,))))


def uplinks(network: Network) -> list[Link]:
    return [link for link in network.links if HCA not in {network.by_id[link.one].kind, network.by_id[link.two].kind}]


@settings(max_examples=80)
@given(made_networks())
def test_what_is_sound_raises_no_alarm(made: Made) -> None:
    assert codes(found(made.network)) == []


FABRIC = fat_tree(1, 2, 2, 4, 4, 4, 2).network
"""Two pods of two units, four rails, four nodes a unit; four spines a pod, two cores a spine number."""


@settings(max_examples=60)
@given(st.sampled_from(uplinks(FABRIC)))
def test_a_cable_that_is_gone_is_named_with_its_switches(gone: Link) -> None:
    said = found(with_link(FABRIC, gone))
    missing = [finding for finding in said if finding.code == "GL421"]
    assert len(missing) == 1
    words = set(missing[0].title.replace(";", " ").replace(",", " ").split())
    low, high = sorted((FABRIC.label[gone.one], FABRIC.label[gone.two]), key=lambda name: "lsc".index(name[0]))
    assert low in words
    if low.startswith("l"):  # only two spines have cables to the same cores: which one is missing there cannot be said
        assert high in words
    assert set(codes(said)) <= {"GL421", "GL413"}


@settings(max_examples=60)
@given(st.sampled_from(FABRIC.links), st.sampled_from(["down", "init"]))
def test_a_link_that_is_down_is_named_by_its_line(link: Link, state: str) -> None:
    said = found(with_link(FABRIC, link, replace(link, state=state)))
    (down,) = [finding for finding in said if finding.code == "GL420"]
    assert down.where == link.where
    assert down.title.startswith(f"link {state}: ")


@settings(max_examples=60)
@given(st.sampled_from(FABRIC.links), st.sampled_from([(4, 100.0), (1, 50.0)]))
def test_a_link_below_its_siblings_is_named(link: Link, slow: tuple[int, float]) -> None:
    said = found(with_link(FABRIC, link, replace(link, width=slow[0], rate_gbps=slow[1])))
    (finding,) = [one for one in said if one.code == "GL422"]
    assert f"{slow[1]:g} Gbit/s ({slow[0]}x), where its siblings have 200 Gbit/s (4x)" in finding.title
    assert finding.where == link.where


def hosts_with_place(network: Network) -> list[tuple[str, int]]:
    return [(host, place) for host, adapters in network.hosts.items() for place in range(len(adapters))]


@settings(max_examples=60)
@given(st.sampled_from(hosts_with_place(FABRIC)), st.sampled_from(hosts_with_place(FABRIC)))
def test_two_cables_that_stand_in_each_others_place_are_one_finding(one: tuple[str, int], two: tuple[str, int]) -> None:
    first, second = (FABRIC.links_of[FABRIC.hosts[host][place].id][0] for host, place in (one, two))
    leaves = [next(end for end in (k.one, k.two) if end in FABRIC.label) for k in (first, second)]
    ends = {link: link.port_at(leaf) for link, leaf in zip((first, second), leaves, strict=True)}
    other = {first: (leaves[1], ends[second]), second: (leaves[0], ends[first])}
    swapped = replace(
        FABRIC,
        links=tuple(link if link not in other else replace(link, one=other[link][0], one_port=other[link][1]) for link in FABRIC.links),
    )
    wrong = [finding for finding in found(swapped) if finding.code == "GL423"]
    if leaves[0] == leaves[1]:
        assert wrong == []
        return
    told = " ".join(finding.title for finding in wrong)
    for (host, place), leaf in ((one, leaves[0]), (two, leaves[1])):
        assert f"{host} HCA-{place + 1} " in told
        assert FABRIC.label[leaf] in told
    same_unit = one[0].rpartition("-")[0] == two[0].rpartition("-")[0]
    assert len(wrong) == (1 if same_unit else 2)
    if same_unit:
        assert wrong[0].advice.startswith("swap the cables at ")


def test_a_node_without_one_of_its_cables_is_named_with_the_leaf() -> None:
    (link,) = FABRIC.links_of[FABRIC.hosts["n0-0-2"][1].id]
    less = replace(with_link(FABRIC, link), devices=tuple(device for device in FABRIC.devices if device.id != FABRIC.hosts["n0-0-2"][1].id))
    (finding,) = [one for one in found(less) if one.code == "GL425"]
    assert finding.host == "n0-0-2"
    assert "l0-0-r1 (rail 1, HCA-2)" in finding.title


def test_nodes_with_fewer_or_slower_adapters_are_another_kind_and_no_fault() -> None:
    """Storage with one adapter on two of the rails, and older nodes all of whose cables are slower."""
    mixed = cabled(
        [
            *((f"n{number}", [f"l{rail}" for rail in range(4)]) for number in range(6)),
            ("store1", ["l0"]),
            ("store2", ["l2"]),
            ("old", [f"l{rail}" for rail in range(4)]),
        ],
        [(f"l{rail}", f"s{spine}", 1) for rail in range(4) for spine in range(3)],
    )
    old = {hca.id for hca in mixed.hosts["old"]}
    slower = replace(mixed, links=tuple(replace(k, rate_gbps=100.0) if {k.one, k.two} & old else k for k in mixed.links))
    assert [code for code in codes(found(slower)) if code != "GL425"] == []


def test_a_leaf_with_far_fewer_uplinks_is_another_kind() -> None:
    """A leaf of management that hangs on two of eight spines lacks none of the other six."""
    network = cabled(
        [
            *((f"n{leaf}-{number}", [f"l{leaf}"]) for leaf in range(4) for number in range(3)),
            *((f"m{number}", ["mgmt"]) for number in range(3)),
        ],
        [*((f"l{leaf}", f"s{spine}", 2) for leaf in range(4) for spine in range(8)), ("mgmt", "s0", 1), ("mgmt", "s1", 1)],
    )
    assert [code for code in codes(found(network)) if code != "GL413"] == []
    (gone,) = [link for link in uplinks(network) if {"l2", "s5"} == {network.label[link.one], network.label[link.two]}][:1]
    (missing,) = [one for one in found(with_link(network, gone)) if one.code == "GL421"]
    assert missing.title.startswith("l2 has 1 cable to s5; its siblings have 2, on port ")


def test_oversubscription_is_what_goes_in_by_what_comes_out() -> None:
    network = fat_tree(1, 1, 4, 1, 6, 3, 0).network
    by_name = {one.switch: one for one in subscriptions(Checkup((network,)))}
    assert {name: (one.down, one.up, one.ratio, one.unit) for name, one in by_name.items()} == {
        f"l0-{unit}-r0": (1200.0, 600.0, 2.0, "Gbit/s") for unit in range(4)
    }
    (note,) = [finding for finding in found(network) if finding.code == "GL413"]
    assert note.title == "oversubscription 2:1 at 4 leaves"
    assert note.severity == "note"
    bare = replace(network, links=tuple(replace(link, rate_gbps=0.0) for link in network.links))
    assert {(one.down, one.up, one.unit) for one in subscriptions(Checkup((bare,)))} == {(6.0, 3.0, "cables")}


def test_a_leaf_that_is_much_worse_than_its_tier_is_named() -> None:
    network = fat_tree(1, 1, 4, 1, 6, 3, 0).network
    leaf = network.id_of["l0-2-r0"]
    cut = [link for link in uplinks(network) if leaf in {link.one, link.two}][:2]
    less = replace(network, links=tuple(link for link in network.links if link not in cut))
    (warning,) = [one for one in found(less) if one.code == "GL413" and one.severity == "warning"]
    assert warning.title == "oversubscription 6:1 at l0-2-r0, where its siblings have 2:1"
    assert warning.evidence == "l0-2-r0: 1200 Gbit/s down, 200 Gbit/s up"


@pytest.mark.parametrize("number", [1, 3])
def test_cables_that_one_end_shows_are_told_once(number: int) -> None:
    lonely = replace(FABRIC, links=tuple(replace(link, sides=1) if at < number else link for at, link in enumerate(FABRIC.links)))
    (note,) = [one for one in found(lonely) if one.code == "GL424"]
    assert note.title.startswith(f"{number} cable")
