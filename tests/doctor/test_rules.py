"""Every rule of the doctor about what is written down, each with a description that breaks it and one that does not."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.topo.shapes import fat_tree

from glaunch.cluster import Cluster, NodeTable, Partition
from glaunch.diagnosis.finding import Finding
from glaunch.doctor.check import examine, wrong
from glaunch.doctor.checkup import Checkup, Unread
from glaunch.fabric import Fabric, flat_fabric, synthetic
from glaunch.hierarchy import fabric_of
from glaunch.hostlist import expand
from glaunch.parsers.slurm_topology import parse_topology
from glaunch.parsers.topology_source import parse_source
from glaunch.writers.slurm_topology import write_tree

TREE = "SwitchName=l1 Nodes=n[1-4]\nSwitchName=l2 Nodes=n[5-8]\nSwitchName=top Switches=l[1-2]\n"
CONF = "topology.conf"


def table(names: Sequence[str], weights: Mapping[str, int], states: Mapping[str, str]) -> NodeTable:
    count = len(names)
    zeros = np.zeros(count, dtype=np.int64)
    return NodeTable(
        names=tuple(names),
        addresses=tuple(names),
        states=tuple(states.get(name, "IDLE") for name in names),
        cpus_total=zeros + 8,
        cpus_allocated=zeros,
        memory_total_mib=zeros + 1000,
        memory_allocated_mib=zeros,
        gpus_total=zeros,
        gpus_allocated=zeros,
        gpu_types=("",) * count,
        weights=np.array([weights.get(name, 1) for name in names], dtype=np.int64),
        features=(frozenset(),) * count,
        partitions=(frozenset({"gpu"}),) * count,
    )


def partition(name: str, nodes: Sequence[str]) -> Partition:
    return Partition(name, tuple(nodes), True, True, None, None, None, 1, (), (), (), "NO", "OFF", MappingProxyType({}))


def slurm(
    nodes: str = "n[1-8]",
    version: tuple[int, ...] = (24, 11, 5),
    weights: Mapping[str, int] = MappingProxyType({}),
    states: Mapping[str, str] = MappingProxyType({}),
    **config: str,
) -> Cluster:
    names = expand(nodes)
    known = {"TopologyPlugin": "topology/tree", "TopologyParam": "SwitchAsNodeRank", **config}
    return Cluster("c", version, 0.0, table(names, weights, states), (partition("gpu", names),), (), known)


def conf(text: str, where: str = CONF) -> Fabric:
    (source,) = parse_source(text, where=where)
    assert isinstance(source, Fabric)
    return source


def look(text: str = TREE, cluster: Cluster | None = None, *, shown: str | None = None, beside: Sequence[str] = ()) -> tuple[Finding, ...]:
    """topology.conf beside what slurmctld has (the same, unless `shown` says otherwise)."""
    fabric = conf(text)
    lines = {CONF: tuple(text.splitlines())}
    seen = replace(conf(text if shown is None else shown), source="scontrol show topology")
    if cluster is None:
        return examine(Checkup((fabric,), texts=lines))
    return examine(Checkup((fabric,), seen, cluster, lines, {name: f"/etc/slurm/{name}" for name in beside}))


def only(findings: Sequence[Finding], code: str) -> Finding:
    (found,) = [finding for finding in findings if finding.code == code]
    return found


def codes(findings: Sequence[Finding]) -> list[str]:
    return [finding.code for finding in findings if finding.severity != "note"]


def test_what_is_right_is_right() -> None:
    findings = look(TREE, slurm())
    assert findings == ()
    assert not wrong(findings)
    assert look(TREE) == ()


@given(st.sampled_from(["leaf:1 node:4", "spine:1 leaf:3 node:2", "core:1 spine:3 leaf:2 node:4"]))
def test_regular_trees_are_right(shape: str) -> None:
    text = write_tree(synthetic(shape))
    assert look(text, slurm(",".join(synthetic(shape).leaf_of))) == ()


def test_nodes_that_the_topology_lacks() -> None:
    found = only(look(TREE, slurm("n[1-9],login")), "GL401")
    assert found.title == "2 nodes of Slurm's are not in topology.conf: login,n9"
    assert "NodeName=n9 State=IDLE" in found.evidence
    assert "scontrol reconfigure" in found.advice
    assert look(TREE, slurm("n[1-9]", states={"n9": "FUTURE"})) == ()


@pytest.mark.parametrize(
    ("written", "advice"),
    [("N[1-4]", "write n1 for N1"), ("n[01-04]", "write n1 for n01"), ("ALL", "ALL means nothing"), ("gone[1-2]", "take them out")],
)
def test_names_that_slurm_does_not_know_are_named_with_their_line(written: str, advice: str) -> None:
    text = TREE.replace("n[1-4]", f"n[1-4],{written}")
    found = only(look(text, slurm()), "GL402")
    assert found.where == "topology.conf:1"
    assert found.evidence == f"SwitchName=l1 Nodes=n[1-4],{written}"
    assert found.advice.startswith(advice)


def test_hidden_nodes_are_no_unknown_ones() -> None:
    findings = look(TREE, slurm("", PrivateData="jobs,nodes"))
    assert codes(findings) == []
    assert only(findings, "GL409").evidence == "PrivateData = jobs,nodes"


def test_a_node_in_two_places() -> None:
    found = only(look(TREE.replace("n[5-8]", "n[4-8]"), slurm()), "GL403")
    assert found.title == "1 node stands in leaves l1 and l2: n4"
    assert found.where == "topology.conf:2"
    assert only(look(TREE.replace("n[5-8]", "n[5-8,5]"), slurm()), "GL403").title == "1 node stands in leaf l2 twice: n5"


def test_islands_are_wrong_where_a_partition_lies_on_several() -> None:
    text = "\n".join(TREE.splitlines()[:2])
    found = only(look(text, slurm()), "GL410")
    assert found.severity == "warning"
    assert "partition gpu lies on 2 islands" in found.title
    assert "the largest of 4 nodes" in found.title
    assert only(look(text, slurm(TopologyParam="TopoOptional,SwitchAsNodeRank")), "GL410").severity == "note"
    apart = replace(slurm(), partitions=(partition("a", expand("n[1-4]")), partition("b", expand("n[5-8]"))))
    assert only(look(text, apart), "GL410").severity == "note"
    assert only(look(text), "GL410").severity == "note"


def test_a_made_up_root_is_seen_against_the_cables() -> None:
    network = fat_tree(2, 1, 2, 1, 3, 2, 0).network
    parted = fabric_of(network)
    assert len(parted.roots) == 2
    text = write_tree(replace(parted, network=None)) + f"SwitchName=bidon Switches={','.join(parted.roots)}\n"
    checkup = Checkup((conf(text), network), texts={CONF: tuple(text.splitlines())})
    found = only(examine(checkup), "GL411")
    assert found.title.startswith("bidon stands above fabrics that are apart")
    assert "TopoOptional" in found.advice
    joined = fabric_of(fat_tree(1, 1, 2, 1, 3, 2, 0).network)
    assert codes(examine(Checkup((conf(write_tree(replace(joined, network=None))), fat_tree(1, 1, 2, 1, 3, 2, 0).network)))) == []


def test_leaves_of_uneven_size_are_told() -> None:
    text = "SwitchName=l1 Nodes=n[1-3]\nSwitchName=l2 Nodes=n[4-6]\nSwitchName=l3 Nodes=n[7-8]\nSwitchName=top Switches=l[1-3]\n"
    found = only(look(text, slurm()), "GL412")
    assert found.title == "leaves of uneven size: 2 leaves of 3, 1 leaf of 2 (not of 3: l3)"
    assert (found.severity, found.where) == ("note", "topology.conf:3")


def test_a_file_that_slurmctld_has_not_read_yet() -> None:
    moved = TREE.replace("n[1-4]", "n[1-3]").replace("n[5-8]", "n[4-8]")
    found = only(look(moved, slurm(), shown=TREE), "GL414")
    assert "n4" in found.title
    assert "scontrol reconfigure" in found.advice


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ("4,6", "6 is not 4 times a power of two"),
        ("8,4", "4 is not 8 times a power of two"),
        ("4,16,8", "they do not rise"),
        ("4,8,16", ""),
    ],
)
def test_block_sizes_that_slurm_refuses(sizes: str, said: str) -> None:
    text = f"BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-8]\nBlockSizes={sizes}\n"
    findings = look(text, slurm(version=(25, 11, 0), TopologyPlugin="topology/block"))
    assert [said in one.title and one.where == "topology.conf:3" for one in findings if one.code == "GL433"] == ([True] if said else [])


def test_a_block_below_the_base_is_fatal_before_25_05() -> None:
    text = "BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-7]\nBlockSizes=4\n"
    found = only(look(text, slurm("n[1-7]", TopologyPlugin="topology/block")), "GL433")
    assert (found.severity, found.where) == ("error", "topology.conf:2")
    assert look(text, slurm("n[1-7]", version=(25, 5, 0), TopologyPlugin="topology/block")) == ()


def test_padding_of_blocks() -> None:
    text = "BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-7],pad1\nBlockSizes=4\n"
    findings = look(text, slurm("n[1-7]", version=(25, 11, 0), TopologyPlugin="topology/block"))
    assert only(findings, "GL434").title == "padding: 1 name in blocks is no node of Slurm's: pad1"
    assert only(findings, "GL434").where == "topology.conf:2"
    assert codes(look(text, slurm("n[1-7],pad1", version=(25, 11, 0), TopologyPlugin="topology/block"))) == []


def test_weights_go_before_the_topology() -> None:
    found = only(look(TREE, slurm(weights={"n1": 10, "n5": 10})), "GL430")
    assert "takes the 6 nodes of Weight 1 before those of 10" in found.title
    assert found.evidence == "n[2-4,6-8] Weight=1; n[1,5] Weight=10"
    two = replace(slurm(weights={"n5": 10, "n6": 10, "n7": 10, "n8": 10}))
    apart = replace(two, partitions=(partition("a", expand("n[1-4]")), partition("b", expand("n[5-8]"))))
    assert look(TREE, apart) == ()


MIXED = TREE.replace("n[1-4]", "n[1,3,5,7]").replace("n[5-8]", "n[2,4,6,8]")


@pytest.mark.parametrize(
    ("text", "version", "param", "told"),
    [
        (MIXED, (24, 11), "", True),
        (MIXED, (24, 11), "RouteTree,switchasnoderank", False),
        (MIXED, (22, 5), "", False),
        (MIXED, (26, 5), "", False),
        (TREE, (24, 11), "", False),
    ],
)
def test_an_order_of_nodes_that_crosses_leaves(text: str, version: tuple[int, ...], param: str, told: bool) -> None:
    findings = [one for one in look(text, slurm(version=version, TopologyParam=param)) if one.code == "GL431"]
    assert [one.evidence.endswith("n1 (l1), n2 (l2), n3 (l1)") for one in findings] == ([True] if told else [])


@pytest.mark.parametrize(("version", "unread"), [((25, 5), "topology.conf"), ((24, 11), "topology.yaml")])
def test_one_topology_file_hides_the_other(version: tuple[int, ...], unread: str) -> None:
    found = only(look(TREE, slurm(version=version), beside=("topology.conf", "topology.yaml")), "GL432")
    assert found.where == f"/etc/slurm/{unread}"
    assert look(TREE, slurm(version=version), beside=("topology.conf",)) == ()


@pytest.mark.parametrize(
    ("plugin", "version", "beside", "told"),
    [
        ("topology/none", (22, 5), (), True),
        ("topology/default", (24, 11), (), True),
        ("topology/flat", (25, 11), (), True),
        ("topology/flat", (25, 11), ("topology.yaml",), False),
        ("topology/tree", (25, 11), (), False),
        ("topology/block", (25, 11), (), False),
    ],
)
def test_a_topology_that_the_scheduler_ignores(plugin: str, version: tuple[int, ...], beside: Sequence[str], told: bool) -> None:
    findings = look(TREE, slurm(version=version, TopologyPlugin=plugin), beside=beside)
    assert [one.evidence for one in findings if one.code == "GL435"] == ([f"TopologyPlugin = {plugin}"] if told else [])


def test_a_file_that_nothing_reads_is_told_where_slurm_shows_none() -> None:
    checkup = Checkup((conf(TREE),), None, slurm(TopologyPlugin="topology/none"), beside={CONF: "/etc/slurm/topology.conf"})
    assert only(examine(checkup), "GL435").title.startswith("/etc/slurm/topology.conf describes a topology")
    assert examine(Checkup((), None, slurm(TopologyPlugin="topology/none"))) == ()
    flat = flat_fabric(expand("n[1-8]"))
    assert examine(Checkup((), flat, slurm(TopologyPlugin="topology/flat"))) == ()


def test_hosts_on_the_cables_that_slurm_does_not_know_are_a_note() -> None:
    network = fat_tree(1, 1, 2, 1, 3, 2, 0).network
    nodes = ",".join(sorted(network.hosts)[:-1])
    findings = examine(Checkup((network,), None, slurm(nodes)))
    assert only(findings, "GL402").severity == "note"
    assert only(findings, "GL402").title == "1 host with cables is no node of Slurm's: n0-1-2"
    missing = only(examine(Checkup((network,), None, slurm(",".join([*sorted(network.hosts), "n9"])))), "GL401")
    assert missing.title == "1 node of Slurm's is not in made: n9"


def test_what_cannot_be_read_is_an_error_with_its_line() -> None:
    findings = examine(Checkup((), unread=(Unread("x.conf:3", "SwitchName", "KEY=VALUE", "fix it"),)))
    assert findings == (Finding("GL400", "error", "cannot be read: expected KEY=VALUE", "", None, "x.conf:3", "SwitchName", "fix it"),)
    assert wrong(findings)


def test_every_code_is_documented() -> None:
    root = Path(__file__).resolve().parents[2]
    used = {code for path in (root / "launcher/glaunch/doctor").glob("*.py") for code in re.findall(r'"(GL4\d\d)"', path.read_text())}
    page = (root / "docs/findings.md").read_text()
    assert used
    assert {code for code in used if f"| {code} |" not in page} == set()


def test_scontrol_of_older_slurms_is_compared_by_what_it_means() -> None:
    lines = (
        "l1 Level=0 LinkSpeed=1 Nodes=n[1-4]",
        "l2 Level=0 LinkSpeed=1 Nodes=n[5-8]",
        "top Level=1 LinkSpeed=1 Nodes=n[1-8] Switches=l[1-2]",
    )
    shown = "".join(f"SwitchName={line}\n" for line in lines)
    fabric = parse_topology(shown, where="scontrol show topology")
    assert examine(Checkup((conf(TREE),), fabric, slurm())) == ()
