"""What is written is read back as it was, and what a form cannot say is named."""

import json
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.topo.shapes import Made, dragonfly, fat_tree, ibnetdiscover_text, made_networks, tangles

from glaunch.fabric import Block, Fabric, build_fabric, synthetic
from glaunch.fabric_json import fabric_document, fabric_from_json
from glaunch.hierarchy import fabric_of
from glaunch.merge import merge
from glaunch.network import Network
from glaunch.network_json import network_document, network_from_json
from glaunch.parsers.ibnetdiscover import parse_ibnetdiscover
from glaunch.parsers.topology_source import parse_source, recognise
from glaunch.writers.slurm_topology import unsaid, write_blocks, write_tree, write_yaml

WRITERS = {"slurm-tree": write_tree, "slurm-block": write_blocks, "slurm-yaml": write_yaml}
NAMES = st.text(alphabet="abcxy019._-", min_size=1, max_size=6)


@st.composite
def trees(draw: st.DrawFn) -> Fabric:
    """Any forest by names, with blocks of the same nodes or none."""
    names = draw(st.lists(NAMES, min_size=1, max_size=10, unique=True))
    parents: dict[str, str | None] = {names[0]: None}
    for index, name in enumerate(names[1:], 1):
        parents[name] = draw(st.sampled_from([None, *names[:index]]))
    leaves = [name for name in names if name not in parents.values()]
    nodes = draw(st.lists(NAMES, max_size=20, unique=True))
    owner = [draw(st.sampled_from(leaves)) for _ in nodes]
    fabric = build_fabric(parents, {leaf: [n for n, at in zip(nodes, owner, strict=True) if at == leaf] for leaf in leaves}, "x")
    cut = draw(st.integers(0, len(nodes)))
    if not cut:
        return fabric
    blocks = tuple(Block(f"b{number}", tuple(nodes[start : start + cut])) for number, start in enumerate(range(0, len(nodes), cut)))
    base = draw(st.integers(1, 18))
    sized = draw(st.booleans())
    return replace(fabric, blocks=blocks, block_sizes=(base, 2 * base) if sized else ())


def read(text: str) -> Fabric:
    return merge(parse_source(text, where="x"))


def facts(fabric: Fabric) -> Fabric:
    """All that a form may say: not where it was seen."""
    return replace(fabric, source="", notes=())


@given(trees())
def test_a_form_that_can_say_all_is_read_back_as_it_was(fabric: Fabric) -> None:
    assert facts(read(json.dumps(fabric_document(fabric)))) == facts(fabric)
    assert facts(read(write_yaml(fabric))) == facts(fabric)
    assert unsaid(fabric, "slurm-yaml") == ()
    back = read(write_tree(fabric))
    assert (facts(back) == facts(fabric)) == (unsaid(fabric, "slurm-tree") == ())
    if fabric.blocks:
        back = read(write_blocks(fabric))
        assert (facts(back) == facts(fabric)) == (unsaid(fabric, "slurm-block") == ())
        assert (back.blocks, back.block_sizes) == (fabric.blocks, fabric.block_sizes), "blocks it says in full"


@settings(max_examples=40)
@given(made_networks())
def test_a_fabric_of_links(made: Made) -> None:
    fabric = fabric_of(made.network)
    back = fabric_from_json(json.loads(json.dumps(fabric_document(fabric))), where="x")
    assert back == fabric
    assert [switch.where for switch in back.switches] == [switch.where for switch in fabric.switches]
    for form in ("slurm-tree", "slurm-yaml"):
        left = unsaid(fabric, form)
        assert any("links" in line for line in left)
        assert any(line.startswith("which switches") for line in left) == any(switch.members for switch in fabric.switches)
        assert any("cabled directly" in line for line in left) == any(switch.virtual for switch in fabric.switches)
        again = read(WRITERS[form](fabric))
        assert [(one.name, one.parent, one.nodes) for one in again.switches] == [
            (one.name, one.parent, one.nodes) for one in fabric.switches
        ]


@settings(max_examples=60)
@given(tangles())
def test_a_network(network: Network) -> None:
    back = network_from_json(json.loads(json.dumps(network_document(network))), where="x")
    assert back == network
    assert [device.where for device in back.devices] == [device.where for device in network.devices]
    assert [link.where for link in back.links] == [link.where for link in network.links]


@settings(max_examples=60)
@given(st.one_of(made_networks().map(lambda made: made.network), tangles().filter(lambda network: bool(network.devices))))
def test_a_dump_is_read_as_it_was_cabled(network: Network) -> None:
    text = ibnetdiscover_text(network)
    read_back = parse_ibnetdiscover(text, where="dump")
    assert recognise(text) == "ibnetdiscover"
    assert set(read_back.links) == set(network.links)
    assert {(one.id, one.kind, one.name, one.host) for one in read_back.devices} == {
        (one.id, one.kind, one.name, one.host) for one in network.devices
    }
    first, second = fabric_of(read_back), fabric_of(network)
    assert [(one.name, one.parent, one.nodes) for one in first.switches] == [(one.name, one.parent, one.nodes) for one in second.switches]


def test_blocks_alone_need_no_switch() -> None:
    text = "BlockName=b1 Nodes=n[1-18]\nBlockName=b2 Nodes=n[19-36]\nBlockName=spare\nBlockSizes=16,32\n"
    fabric = read(text)
    assert fabric.blocks_alone
    assert write_blocks(fabric) == text
    assert unsaid(fabric, "slurm-block") == ()
    assert facts(read(write_yaml(fabric))) == facts(fabric)
    assert "  tree:" not in write_yaml(fabric)


def test_the_texts() -> None:
    fabric = replace(synthetic("spine:1 leaf:2 node:2"), blocks=(Block("nvl1", ("n001", "n002")),), block_sizes=(2, 4))
    assert write_yaml(fabric) == (
        "- topology: fabric\n  cluster_default: true\n  tree:\n    switches:\n"
        '      - switch: "leaf1"\n        nodes: "n[001-002]"\n      - switch: "leaf2"\n        nodes: "n[003-004]"\n'
        '      - switch: "spine1"\n        children: "leaf[1-2]"\n'
        "- topology: blocks\n  cluster_default: false\n  block:\n    block_sizes:\n      - 2\n      - 4\n    blocks:\n"
        '      - block: "nvl1"\n        nodes: "n[001-002]"\n'
    )
    assert write_blocks(fabric) == "BlockName=nvl1 Nodes=n[001-002]\nBlockSizes=2,4\n"


def test_what_is_left_out_is_named() -> None:
    rails = fabric_of(fat_tree(1, 1, 2, 4, 2, 2, 0).network)
    assert unsaid(rails, "slurm-tree") == (
        "which switches 3 names stand for, rails among them (l0-0-r0 stands for 4)",
        "32 links: ports, widths, rates, GUIDs and rails",
    )
    assert "direct" in "".join(unsaid(fabric_of(dragonfly(2, 2, 1, 1).network), "slurm-yaml"))
    long = build_fabric({"x" * 64: None}, {"x" * 64: ["n1"]}, "x")
    assert "more than 63 letters" in "".join(unsaid(long, "slurm-tree"))
