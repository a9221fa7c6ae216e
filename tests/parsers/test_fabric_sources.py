"""Every source of a fabric but Slurm's own texts: what it says is read, what is no such text is refused with its line."""

import json
from collections.abc import Callable

import pytest

from glaunch.errors import ParseError
from glaunch.fabric import Block, Fabric
from glaunch.hierarchy import fabric_of
from glaunch.network import Network
from glaunch.parsers.fabric_file import parse_fabric_file
from glaunch.parsers.ib_words import host_and_hca, rate_of_lane, rate_of_speed
from glaunch.parsers.iblinkinfo import parse_iblinkinfo
from glaunch.parsers.ibnetdiscover import parse_ibnetdiscover, parse_ibnetdiscover_ports
from glaunch.parsers.lldp import parse_lldp
from glaunch.parsers.name_map import parse_name_map
from glaunch.parsers.nvlink import parse_nvlink_domains
from glaunch.parsers.opensm import parse_lfts, parse_subnet_lst
from glaunch.parsers.slurm_topology import parse_topology_conf
from glaunch.parsers.topograph import parse_topograph_model
from glaunch.parsers.topology_source import parse_source, recognise
from glaunch.parsers.topology_yaml import parse_topology_yaml

DUMP = """\
=~=~=~=~=~= PuTTY log =~=~=~=~=
# Topology file: generated on Mon Nov 30 03:44:21 2026

vendid=0x2c9
sysimgguid=0xa1
switchguid=0xa1(a1)
Switch\t41 "S-00000000000000a1"\t\t# "MF0;leaf1:MQM8700/U1" enhanced port 0 lid 3 lmc 0
[1]\t"H-0000000000000b10"[1](b11) \t\t# "n001 HCA-2" lid 4 4xHDR
[2]"H-0000000000000b20"[1](b21) # "odd; "name" mlx5_0" lid 5 4xHDR s=4 w=2
ibwarn: [77] mad_rpc: timeout
[3]\t"H-0000000000000b30"[1](b31) \t\t# "MT4129 ConnectX7   Mellanox Technologies" lid 6 2xHDR
[39]\t"S-00000000000000a2"[1]\t\t# "MF0;spine1:MQM8700/U1" lid 1 4xHDR
[40]\t"S-00000000000000a1"[38]\t\t# "MF0;leaf1:MQM8700/U1" lid 3 4xHDR
[41]\t"H-00000000000000a9"[1](a9) \t\t# "Mellanox Technologies Aggregation Node" lid 9 4xHDR
vendid=0x2c9
caguid=0xb10
Ca\t2 "H-0000000000000b10"\t\t# "n001 HCA-2"
[1](b11) \t"S-00000000000000a1"[1]\t\t# lid 4 lmc 0 "MF0;leaf1:MQM8700/U1" lid 3 4xEDR
"""


def test_a_dump_with_all_that_terminals_and_tools_do_to_it() -> None:
    network = parse_ibnetdiscover(DUMP, where="ib.txt")
    link = next(link for link in network.links if link.one_port == "1" and link.two.endswith("b11"))
    assert (link.width, link.rate_gbps, link.sides, link.where) == (4, 100.0, 2, "ib.txt:8"), "of two rates the lower one"
    assert {one.host for one in network.devices} == {"n001", ""}
    assert [(one.id[-3:], one.name) for one in network.unnamed] == [
        ("b21", 'odd; "name" mlx5_0'),
        ("b31", "MT4129 ConnectX7   Mellanox Technologies"),
    ]
    assert [one.kind for one in network.devices if one.id.endswith("0a9")] == ["engine"]
    assert [(one.one_port, one.two_port) for one in network.links if one.one == one.two] == [("38", "40")]
    assert [one.sides for one in network.links if one.one != one.two and one.two_port != "1"] == []
    fabric = fabric_of(network)
    assert [(one.name, one.parent, one.nodes) for one in fabric.switches] == [("leaf1", "spine1", ("n001",)), ("spine1", None, ())]
    assert "2 adapters belong to hosts that never said their name" in "".join(fabric.notes)


def test_a_card_without_a_cable_is_known() -> None:
    network = parse_ibnetdiscover('caguid=0xb8\nCa\t1 "H-00000000000000b8"\t\t# "n001-c1 HCA-1"\n', where="x")
    assert [(one.host, one.name) for one in network.devices] == [("n001-c1", "HCA-1")]
    assert network.links == ()


@pytest.mark.parametrize(
    ("description", "found"),
    [
        ("n001 HCA-2", ("n001", "HCA-2")),
        ("n001 mlx5_bond_0", ("n001", "mlx5_bond_0")),
        ("SAT1 ibp11s0f0 ", ("SAT1", "ibp11s0f0")),
        ("n001", ("n001", "")),
        ("two words HCA-1", ("", "two words HCA-1")),
        ("MT4129 ConnectX7   Mellanox Technologies", ("", "MT4129 ConnectX7   Mellanox Technologies")),
        ("", ("", "")),
        ("n[1] HCA-1", ("", "n[1] HCA-1")),
    ],
)
def test_the_host_of_a_description(description: str, found: tuple[str, str]) -> None:
    assert host_and_hca(description) == found


def test_every_tool_gives_one_figure_for_one_link() -> None:
    lanes = {
        "SDR": "2.5",
        "DDR": "5.0",
        "QDR": "10.0",
        "FDR10": "10.3125",
        "FDR": "14.0625",
        "EDR": "25.78125",
        "HDR": "53.125",
        "NDR": "106.25",
    }
    for speed, lane in lanes.items():
        assert rate_of_speed(4, speed) == rate_of_lane(4, lane) > 0
    assert (rate_of_speed(4, "???"), rate_of_lane(4, ""), rate_of_lane(1, "33")) == (0.0, 0.0, 33.0)


LINKINFO = """\
CA: n001 HCA-1:
      0x0000000000000b11      4    1[  ] ==( 4X          53.125 Gbps Active/  LinkUp)==>       3    1[  ] "leaf: 1" ( )
Switch: 0x00000000000000a1 leaf: 1:
           3    1[  ] ==( 4X          53.125 Gbps   Init/  LinkUp)==>       4    1[  ] "n001 HCA-1" ( Could be NDR )
           3    2[  ] ==(                Down/ Polling)==>             [  ] "" ( )
"""


def test_iblinkinfo() -> None:
    network = parse_iblinkinfo(LINKINFO, where="x")
    (link,) = network.links
    assert (link.rate_gbps, link.state, link.up, link.sides) == (200.0, "init", False, 2)
    assert [(one.port, one.state, one.where) for one in network.open_ports] == [("2", "Down/Polling", "x:5")]
    assert [(one.kind, one.name) for one in network.devices] == [("hca", "HCA-1"), ("switch", "leaf: 1")]


def test_the_subnet_list_has_hex_ports_and_names_with_braces() -> None:
    guids = "SystemGUID:{:016x} NodeGUID:{:016x} PortGUID:{:016x}"
    end = "{{ {} Ports:40 " + guids + " VenID:000002C9 DevID:D2F0 Rev:000000A1 {{{}}} LID:0001 PN:{} }}"
    leaf, node = end.format("SW-SM", 1, 1, 1, "leaf {1}", "1F"), end.format("CA", 8, 8, 9, "n1 HCA-1", "01")
    network = parse_subnet_lst(f"{leaf} {node} PHY=4x LOG=INI SPD=53.125\n", where="x")
    (link,) = network.links
    assert (link.one_port, link.state, link.sides) == ("31", "init", 1)
    assert [one.name for one in network.devices] == ["leaf {1}", "HCA-1"]


def test_forwarding_tables_of_both_kinds() -> None:
    dump = "Unicast lids [0-3] of switch Lid 1 guid 0xa1 ('s'):\n0x0002 001 # Channel Adapter portguid 0xb1: 'n1'\n1 lids dumped\n"
    script = (
        "Unicast lids [0x0-0x3] of switch DR path slid 0; dlid 0; 0 guid 0xa1 (s):\n  Lid  Out   Destination\n       Port     Info\n"
        "0x0002 001 : (Channel Adapter portguid 0xb1: 'n1')\n1 valid lids dumped\n*** WARNING ***: this command has been replaced\n"
    )
    for text in (dump, script):
        routes = parse_lfts(text, where="x")
        assert dict(routes.tables) == {"0x00000000000000a1": {2: "1"}}
        assert dict(routes.lid_of) == {"0x00000000000000b1": 2}


FABRIC = """\
fabric: alps
hosts:
  - {nodes: "n[1-4]", leaves: "a[0-1]", rate_gbps: 400}
  - {nodes: "n[5-8]", leaves: "b[0-1]", rate_gbps: 400}
links:
  - {from: "a[0-1],b[0-1]", to: "s[1-2]", count: 2, rate_gbps: 800}
blocks: {rack1: "n[1-4]"}
block_sizes: [4, 8]
"""


def test_our_own_file() -> None:
    network, blocks = parse_fabric_file(FABRIC, where="alps.yaml")
    fabric = fabric_of(network)
    assert [(one.nodes, one.members) for one in fabric.switches if one.tier == 0] == [
        (("n1", "n2", "n3", "n4"), ("a0", "a1")),
        (("n5", "n6", "n7", "n8"), ("b0", "b1")),
    ]
    assert sum(link.rate_gbps == 800 for link in network.links) == 16
    assert {one.rail for one in network.hosts["n3"]} == {0, 1}
    assert blocks.blocks == (Block("rack1", ("n1", "n2", "n3", "n4")),)
    assert (blocks.blocks[0].where, blocks.block_sizes) == ("alps.yaml:7", (4, 8))


def lldp(*rows: object) -> str:
    return json.dumps({"lldp": {"interface": list(rows)}})


SWITCH = {"id": {"type": "mac", "value": "0c:4f"}, "capability": [{"type": "Bridge", "enabled": True}]}
PORT = {"id": {"type": "ifname", "value": "swp7"}}


def test_lldp_in_all_its_nestings() -> None:
    named = lldp({"eth0": {"chassis": {"leaf1": SWITCH}, "port": PORT}})
    json0 = json.dumps(
        {
            "lldp": [
                {
                    "interface": [
                        {"name": "eth0", "chassis": [{"id": [SWITCH["id"]], "name": [{"value": "leaf1"}]}], "port": [{"id": [PORT["id"]]}]}
                    ]
                }
            ]
        }
    )
    single = json.dumps({"lldp": {"interface": {"eth0": {"chassis": {"leaf1": SWITCH}, "port": PORT}}}})
    for text in (named, json0, single):
        network = parse_lldp(text, where="n1.json", host="n1")
        (link,) = network.links
        assert {(link.one, link.one_port), (link.two, link.two_port)} == {("leaf1", "swp7"), ("n1/eth0", "eth0")}
    nameless = parse_lldp(lldp({"eth0": {"chassis": SWITCH, "port": PORT}}), where="x", host="n1")
    assert [one.id for one in nameless.switches] == ["0c:4f"]
    phone = {"id": {"value": "x"}, "capability": [{"type": "Bridge", "enabled": False}, {"type": "Station", "enabled": True}]}
    assert parse_lldp(lldp({"eth0": {"chassis": {"n2": phone}, "port": PORT}}), where="x", host="n1").links == ()
    assert "sees no switch" in parse_lldp('{"lldp":{}}', where="x", host="n1").notes[0]


UUID = "5e797fc6-0f46-421a-8724-0e102c0f723c"


def test_nvlink_domains() -> None:
    plain = parse_nvlink_domains(f"n2: {UUID}\nn1: {UUID}\nn9: N/A\n", where="x")
    assert plain.blocks == (Block(f"nvl-{UUID}", ("n1", "n2")),)
    cliques = parse_nvlink_domains(f"n1: {UUID} 1\nn2: {UUID} 2\n", where="x")
    assert [one.name for one in cliques.blocks] == [f"nvl-{UUID}-1", f"nvl-{UUID}-2"]
    gpu = f"        CliqueId                          : 7\n        ClusterUUID                       : {UUID}\n"
    assert parse_nvlink_domains(f"    Fabric\n{gpu}{gpu}", where="x", host="n1").blocks == (Block(f"nvl-{UUID}", ("n1",)),)
    behind = "".join(f"{node}:{line}\n" for node in ("n1", "n2") for line in gpu.splitlines())
    assert parse_nvlink_domains(behind, where="x").blocks[0].nodes == ("n1", "n2")
    none = gpu.replace(UUID, "00000000-0000-0000-0000-000000000000")
    assert parse_nvlink_domains(none, where="x", host="n1").blocks == ()


def test_names_from_a_map() -> None:
    names = parse_name_map('# a comment\n0xb31 "n003 HCA-1"\n"n001 HCA-2" "n901"\n0xa1 leafA  # the first\n', where="map")
    network = names.applied(parse_ibnetdiscover(DUMP, where="x"))
    assert next((one.host, one.name) for one in network.devices if one.kind == "hca") == ("n901", "HCA-2")
    assert set(network.hosts) == {"n901", "n003"}
    assert "leafA" in network.label.values()


MODEL = """\
switches:
  core:
    switches: [sw1, sw2]
blocks:
- switch: sw1
  nodes: ["n[1-2]", n3]
  annotations: {accelerator.topology.test/domain: nvl1}
- switch: sw2
  nodes: ["n4"]
"""


def test_a_model_of_topographs() -> None:
    fabric = parse_topograph_model(MODEL, where="m.yaml")
    assert [(one.name, one.parent, one.nodes) for one in fabric.switches] == [
        ("core", None, ()),
        ("sw1", "core", ("n1", "n2", "n3")),
        ("sw2", "core", ("n4",)),
    ]
    assert fabric.blocks == (Block("nvl1", ("n1", "n2", "n3")),)


YAML = """\
- topology: plain
  flat: true
- topology: tree
  cluster_default: true
  tree: {switches: [{switch: top, children: "l[1-2]"}, {switch: l1, nodes: "0001"}, {switch: l2}]}
- topology: nvl
  block: {block_sizes: [2, 4], blocks: [{block: b1, nodes: "n[1-2]"}]}
"""


def test_topology_yaml() -> None:
    found = parse_topology_yaml(YAML, where="t")
    assert [(one.name, one.kind, one.default) for one in found] == [
        ("plain", "flat", False),
        ("tree", "tree", True),
        ("nvl", "block", False),
    ]
    assert found[1].fabric.leaf_of == {"0001": "l1"}, "a scalar is the text that was written"
    tree, blocks = parse_source(YAML, where="t")
    assert isinstance(tree, Fabric)
    assert isinstance(blocks, Fabric)
    assert (tree.leaves, blocks.block_sizes) == (("l1", "l2"), (2, 4))


def test_an_include_is_followed_to_its_place() -> None:
    files = {"more.conf": "SwitchName=b Nodes=n2\n"}
    text = "SwitchName=a Nodes=n1\nInclude more.conf\nSwitchName=top Switches=a,b\n"
    fabric = parse_topology_conf(text, where="t", include=files.__getitem__)
    assert fabric.leaves == ("a", "b")
    assert fabric.by_name["b"].where == "more.conf:1"
    with pytest.raises(ParseError, match=r"include again\.conf"):
        parse_topology_conf("include again.conf\n", where="t", include=lambda name: f"include {name}\n")


REFUSED: list[tuple[Callable[[str], object], str, int, str]] = [
    (lambda text: parse_ibnetdiscover(text, where="x"), 'Switch 4 "S-00a1" # "s" base port 0 lid 1 lmc 0\n[1] nonsense\n', 2, "PORT"),
    (lambda text: parse_ibnetdiscover(text, where="x"), '[1] "S-a1"[1] # "s" lid 1 4xHDR\n', 1, "before its ports"),
    (lambda text: parse_ibnetdiscover(text, where="x"), "# nothing\n", 1, "Switch"),
    (lambda text: parse_ibnetdiscover_ports(text, where="x"), "SW 1 2 0xa1 4x HDR\n", 1, "LID PORT"),
    (lambda text: parse_iblinkinfo(text, where="x"), LINKINFO.replace("\n           3", "\n           7"), 2, "lid 3"),
    (lambda text: parse_iblinkinfo(text, where="x"), LINKINFO.splitlines()[1], 1, "CA: NAME"),
    (lambda text: parse_subnet_lst(text, where="x"), "{ CA Ports:02 }\n", 1, "SystemGUID"),
    (lambda text: parse_lfts(text, where="x"), "0x0002 001 # Channel Adapter portguid 0xb1: 'n1'\n", 1, "Unicast lids"),
    (lambda text: parse_fabric_file(text, where="x"), "fabric: a\nhosts:\n  - {nodes: n1}\n", 3, "leaves"),
    (lambda text: parse_fabric_file(text, where="x"), "fabric: a\nlinks:\n  - {from: s1, to: 's[1-2]'}\n", 3, "two different switches"),
    (lambda text: parse_fabric_file(text, where="x"), "fabric: a\nhostss: []\n", 2, "hosts, links"),
    (lambda text: parse_fabric_file(text, where="x"), "fabric: a\nhosts:\n  - {nodes: 'n[', leaves: l}\n", 3, "a hostlist"),
    (lambda text: parse_fabric_file(text, where="x"), "hosts: []\n", 1, "fabric: NAME"),
    (lambda text: parse_lldp(text, where="x", host="n1"), '{"lldp":\n nonsense}', 2, "JSON"),
    (lambda text: parse_lldp(text, where="x", host="n1"), lldp({"eth0": {"chassis": {"l": SWITCH}, "port": {}}}), 1, "an id"),
    (lambda text: parse_nvlink_domains(text, where="x"), f"n1: {UUID}\nn1: {UUID[:-1]}d\n", 2, "one domain"),
    (lambda text: parse_nvlink_domains(text, where="x"), f"n1: {UUID}\nwhat\n", 2, "NODE: CLUSTER-UUID"),
    (lambda text: parse_nvlink_domains(text, where="x"), f"   ClusterUUID : {UUID}\n", 1, "NODE:"),
    (lambda text: parse_nvlink_domains(text, where="x", host="n"), f"   ClusterUUID : {UUID}\n", 1, "CliqueId"),
    (lambda text: parse_name_map(text, where="x"), '0xb1 "n1"\n0xb1 "n2"\n', 2, "once"),
    (lambda text: parse_name_map(text, where="x"), "b1 n1\n", 1, "0xGUID"),
    (
        lambda text: parse_topograph_model(text, where="x"),
        "switches: {a: {switches: [b]}}\nblocks:\n- {switch: a, nodes: [n1]}\n",
        1,
        "either",
    ),
    (lambda text: parse_topology_yaml(text, where="x"), "- topology: a\n  tree: {switches: [{switch: s, up: x}]}\n", 2, "children"),
    (lambda text: parse_topology_yaml(text, where="x"), "- topology: a\n  flat: &x true\n", 2, "plain YAML"),
    (lambda text: parse_topology_yaml(text, where="x"), "- flat: true\n  topology: a\n", 1, "the first key"),
    (lambda text: parse_source(text, where="x"), "\nStartDevice,StartPort\n", 2, "topology.conf"),
    (lambda text: parse_source(text, where="x"), '{"schema": "glaunch.plan/1"}', 1, "glaunch.fabric/1"),
    (lambda text: parse_source(text, where="x"), '{"lldp": {}}', 0, "HOST.json"),
]


@pytest.mark.parametrize(("read", "text", "line", "expected"), REFUSED)
def test_what_is_no_such_text_is_refused_with_its_line(read: Callable[[str], object], text: str, line: int, expected: str) -> None:
    with pytest.raises(ParseError) as refused:
        read(text)
    assert refused.value.where == (f"x:{line}" if line else "x")
    assert expected in refused.value.message


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (DUMP, "ibnetdiscover"), (LINKINFO, "iblinkinfo"), (FABRIC, "fabric"), (YAML, "topology.yaml"), (MODEL, "topograph"),
        (lldp(), "lldp"), (f"n1: {UUID}\n", "nvidia-smi"), ("==== NVSMI LOG ====\n\n    Fabric\n      ClusterUUID : N/A\n", "nvidia-smi"),
        ("SwitchName=a Level=0 LinkSpeed=1 Nodes=n1\n", "scontrol"), ("# x\nswitchname=a nodes=n1\n", "topology.conf"),
        ("Unicast lids [0-3] of switch Lid 1 guid 0xa1 ('s'):\n", None), ("", None), ("a,b,c\n", None), ("{}", None),
    ],
)  # fmt: skip
def test_a_text_is_known_by_what_stands_in_it(text: str, kind: str | None) -> None:
    assert recognise(text) == kind


def test_a_network_is_never_made_of_two_readings_of_one_name() -> None:
    (network,) = parse_source(DUMP, where="x")
    assert isinstance(network, Network)
    assert len(network.devices) == len({one.id for one in network.devices})
