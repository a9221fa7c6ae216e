"""Several sources become one fabric; what they do not agree on is kept."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from tests.topo.shapes import Made, cabled, fat_tree, made_networks

from glaunch.errors import UsageError
from glaunch.fabric import Block, Dispute, Fabric, build_fabric, flat_fabric, synthetic
from glaunch.hierarchy import fabric_of
from glaunch.merge import beside_slurm, join_networks, merge
from glaunch.network import Network
from glaunch.parsers.topology_source import parse_source

TREE = "SwitchName=l1 Nodes=n[1-4]\nSwitchName=l2 Nodes=n[5-8]\nSwitchName=top Switches=l[1-2]\n"


def conf(text: str, where: str = "topology.conf") -> Fabric:
    (fabric,) = parse_source(text, where=where)
    assert isinstance(fabric, Fabric)
    return fabric


def rows(fabric: Fabric) -> list[tuple[str, str | None, str]]:
    return [(switch.name, switch.parent, " ".join(switch.nodes)) for switch in fabric.switches]


def about(fabric: Fabric) -> list[tuple[str, str]]:
    return [(dispute.about, dispute.subject) for dispute in fabric.disputes]


def test_one_source_is_the_fabric_itself() -> None:
    assert merge([conf(TREE)]) == conf(TREE)
    made = fat_tree(1, 2, 1, 2, 2, 2, 1)
    assert merge([made.network]) == fabric_of(made.network)
    with pytest.raises(UsageError, match="no source"):
        merge([])


def test_the_same_twice_is_no_dispute() -> None:
    both = merge([conf(TREE), conf(TREE, "old.conf")])
    assert both.disputes == ()
    assert both.switches == conf(TREE).switches
    assert both.source == "topology.conf, old.conf"


@settings(max_examples=30)
@given(made_networks())
def test_a_network_and_the_tree_that_was_read_out_of_it_agree(made: Made) -> None:
    fabric = fabric_of(made.network)
    written = replace(fabric, network=None, source="written", notes=())
    both = merge([written, made.network])
    assert both.disputes == ()
    assert both.switches == fabric.switches
    assert both.network == made.network


def test_nodes_that_only_a_later_source_knows_go_beside_their_neighbours() -> None:
    later = "SwitchName=a Nodes=n[1-3],new1\nSwitchName=b Nodes=new[2-3]\nSwitchName=r Switches=a,b\nSwitchName=far Nodes=x1\n"
    both = merge([conf(TREE), conf(later, "later.conf")])
    assert both.leaf_of["new1"] == "l1"
    assert both.path_up("new2") == ("b", "top"), "its sister a stands under top"
    assert both.path_up("x1") == ("far",)
    assert ("node", "new[1-3],x1") in about(both)
    assert ("node", "n[4-8]") in about(both)


def test_a_new_island_brings_what_stands_above_it() -> None:
    later = "SwitchName=i1 Nodes=x1\nSwitchName=i2 Nodes=x2\nSwitchName=top Switches=i[1-2]\n"
    assert merge([conf(TREE), conf(later)]).path_up("x1") == ("i1", "top"), "the one name, the one switch"
    other = later.replace("top", "up")
    assert merge([conf(TREE), conf(other)]).path_up("x2") == ("i2", "up")
    leaf = later.replace("top", "l1")
    assert merge([conf(TREE), conf(leaf)]).path_up("x2") == ("i2",), "l1 is a leaf: another switch of that name"


def test_a_node_on_another_leaf_is_a_dispute_with_both_places() -> None:
    moved = TREE.replace("n[1-4]", "n[1-3]").replace("n[5-8]", "n[4-8]")
    both = merge([conf(TREE), conf(moved, "moved.conf")])
    assert both.leaf_of["n4"] == "l1"
    assert both.disputes == (Dispute("leaf", "n4", (("under l1", "topology.conf:1"), ("under l2, with n5", "moved.conf:2"))),)


def test_leaves_that_one_source_splits() -> None:
    split = "SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n[3-4]\nSwitchName=l2 Nodes=n[5-8]\nSwitchName=top Switches=a,b,l2\n"
    assert about(merge([conf(TREE), conf(split)])) == [("leaf", "l1")]
    assert about(merge([conf(split), conf(TREE)])) == [("leaf", "l1")]


def test_islands_that_only_one_source_joins() -> None:
    apart = "".join(TREE.splitlines(keepends=True)[:2])
    (dispute,) = merge([conf(TREE), conf(apart, "apart.conf")]).disputes
    assert dispute == Dispute("islands", "top", (("top joins them", "topology.conf"), ("nothing joins l1, l2", "apart.conf")))
    assert merge([conf(apart, "apart.conf"), conf(TREE)]).disputes[0].said == dispute.said[::-1]


def test_blocks_come_beside_the_tree() -> None:
    blocks = conf("BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-8]\nBlockSizes=4\n")
    for order in ([blocks, conf(TREE)], [conf(TREE), blocks]):
        both = merge(order)
        assert rows(both) == rows(conf(TREE))
        assert (both.blocks, both.block_sizes, both.disputes) == (blocks.blocks, (4,), ())


def test_blocks_that_differ() -> None:
    one = replace(conf(TREE), blocks=(Block("b1", ("n1", "n2"), "a:1"), Block("b2", ("n3",), "a:2")), block_sizes=(2,))
    other = Fabric((), "smi", blocks=(Block("nvl", ("n1", "n2", "n4"), "s:1"), Block("b2", ("n3",), "s:2"), Block("b9", ("n9",), "s:3")))
    both = merge([one, replace(other, block_sizes=(4,))])
    assert [(block.name, block.nodes) for block in both.blocks] == [("b1", ("n1", "n2", "n4")), ("b2", ("n3",)), ("b9", ("n9",))]
    assert about(both) == [("block", "b1"), ("block", "block sizes")]
    assert both.block_sizes == (2,)


def test_one_dump_a_rail() -> None:
    made = fat_tree(1, 1, 2, 3, 4, 2, 0, planes=True)
    whole = made.network
    parts = []
    for rail in range(3):
        ids = {d.id for d in whole.devices if d.name == f"HCA-{rail + 1}" or f"r{rail}" in d.name or d.name.startswith(f"s0-{rail}")}
        links = tuple(link for link in whole.links if link.one in ids and link.two in ids)
        parts.append(Network(tuple(d for d in whole.devices if d.id in ids), links, f"rail{rail}"))
    both = merge(parts)
    assert both.disputes == ()
    assert both.source == "rail0, rail1, rail2"
    assert sorted(switch.nodes for switch in both.switches if switch.nodes) == sorted(made.domains)


def test_networks_that_differ() -> None:
    new = cabled([("a", ["l1"]), ("b", ["l1"])], [("l1", "s", 2)])
    old_links = tuple(replace(link, rate_gbps=100.0) if link.two_port == "1" and link.two == new.id_of["s"] else link for link in new.links)
    old = replace(new, links=old_links[:-1], source="old")
    joined, disputes = join_networks([new, old])
    assert joined.links == new.links
    assert [(one.about, [value for value, _ in one.said]) for one in disputes] == [
        ("link", ["200 Gbit/s active", "100 Gbit/s active"]),
        ("link", ["is there", "is not there"]),
    ]
    renamed = tuple(replace(one, name="other") if one.name == "s" else one for one in new.devices)
    assert [one.about for one in join_networks([new, replace(new, devices=renamed)])[1]] == ["name"]


def test_a_port_that_leads_to_two_places() -> None:
    one = cabled([("a", ["l1"])], [("l1", "s", 1)])
    other = replace(one, source="other", links=(*one.links[:1], replace(one.links[1], two_port="7")))
    _, disputes = join_networks([one, other])
    assert any(dispute.subject == f"{one.id_of['l1']} port 2" for dispute in disputes)


def test_lldp_from_hosts_and_from_switches() -> None:
    def seen(host: str, *cables: tuple[str, str, str]) -> Network:
        rows = [
            {port: {"chassis": {switch: {"id": {"type": "mac", "value": switch}}}, "port": {"id": {"type": "ifname", "value": far}}}}
            for port, switch, far in cables
        ]
        (network,) = parse_source(json.dumps({"lldp": {"interface": rows}}), where=f"{host}.json", host=host)
        assert isinstance(network, Network)
        return network

    nodes = [seen(f"n{n}", ("eth0", f"leaf{1 + n // 2}", f"swp{n}")) for n in range(4)]
    leaves = [seen(f"leaf{n}", ("swp50", "spine1", f"swp{n}")) for n in (1, 2)]
    spine = seen("spine1", ("swp1", "leaf1", "swp50"), ("swp2", "leaf2", "swp50"))
    both = merge([*nodes, *leaves, spine])
    assert rows(both) == [("leaf1", "spine1", "n0 n1"), ("leaf2", "spine1", "n2 n3"), ("spine1", None, "")]
    assert both.network is not None
    assert len(both.network.links) == 6
    assert both.disputes == ()


def test_beside_slurm() -> None:
    saved, slurm = conf(TREE, "saved.json"), conf(TREE, "scontrol show topology")
    both = beside_slurm(saved, slurm)
    assert (rows(both), both.notes) == (rows(saved), ())
    assert rows(beside_slurm(saved, flat_fabric(("n1", "n9")))) == rows(saved)
    apart = conf("".join(TREE.splitlines(keepends=True)[:2]), "scontrol show topology")
    kept = beside_slurm(saved, apart)
    assert len(kept.roots) == 2, "Slurm lets no job cross its islands"
    assert kept.notes == ("saved.json and Slurm do not agree about 1 x islands",)


def test_the_rank_of_a_made_up_switch_is_the_last() -> None:
    assert rows(merge([flat_fabric(("n1",)), synthetic("leaf:1 node:2")])) == [("leaf1", None, "n001 n002")]
    assert merge([flat_fabric(("n1",))]).flat
    assert rows(merge([Fabric((), "smi", blocks=(Block("b", ("n1",)),)), build_fabric({"l": None}, {"l": ["n1"]}, "t")])) == [
        ("l", None, "n1")
    ]
