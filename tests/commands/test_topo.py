"""`glaunch topo` as an admin types it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.topo.shapes import fat_tree, ibnetdiscover_text

from glaunch.commands.topo import command
from glaunch.errors import ConfigError, GlaunchError, ParseError, UsageError
from glaunch.gateways.capture import Recorded, read_capture, write_capture
from glaunch.gateways.process import Completed
from glaunch.gateways.slurm import QUESTIONS

DEMO = Path(__file__).resolve().parents[2] / "site" / "captures" / "demo16"
TREE = "SwitchName=l1 Nodes=n[1-4]\nSwitchName=l2 Nodes=n[5-8]\nSwitchName=top Switches=l[1-2]\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home and a working folder of our own, without a site."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("XDG_CONFIG_HOME", "GLAUNCH_SITE", "GLAUNCH_FABRIC_TOPOLOGY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "topology.conf").write_text(TREE)
    (tmp_path / "ib.txt").write_text(ibnetdiscover_text(fat_tree(1, 1, 2, 4, 2, 2, 0).network))
    return tmp_path


def topo(*words: str, capture: str | None = None) -> Result:
    done = CliRunner().invoke(command, words, obj={"snapshot": capture}, standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done


def test_import_saves_and_says_what_was_read(here: Path) -> None:
    done = topo("import", "--output", "fabric.json", "ib.txt", "topology.conf")
    assert done.stdout == "fabric.json\nfabric.network.json\n"
    assert "12 nodes, 4 leaves, 2 tiers, 2 islands" in done.stderr
    assert "10 switches, 32 links" in done.stderr
    assert f"fabric.topology: {here}/fabric.json" in done.stderr
    again = json.loads(topo("export", "--format", "json", "--from", "fabric.json").stdout)
    assert len(again["network"]["links"]) == 32
    topo("import", "--output", "fabric.json", "topology.conf")
    assert not (here / "fabric.network.json").exists(), "the cables of another import are not kept"


def test_sources_that_differ_are_said(here: Path) -> None:
    (here / "old.conf").write_text(TREE.replace("n[1-4]", "n[1-3]").replace("n[5-8]", "n[4-8]"))
    said = topo("import", "--output", "fabric.json", "topology.conf", "old.conf").stderr
    assert "the sources differ about leaf n4:\n  under l1   (topology.conf:1)\n  under l2, with n5   (old.conf:2)\n" in said
    kept = json.loads((here / "fabric.json").read_text())["disputes"]
    assert [(one["about"], one["subject"]) for one in kept] == [("leaf", "n4")]


def test_where_to_save_comes_from_the_settings_or_the_line(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"fabric\.topology names no file"):
        topo("import", "topology.conf")
    monkeypatch.setenv("GLAUNCH_FABRIC_TOPOLOGY", str(here / "site.json"))
    assert topo("import", "topology.conf").stdout == f"{here}/site.json\n"
    with pytest.raises(GlaunchError, match="cannot be written"):
        topo("import", "--output", "nowhere/fabric.json", "topology.conf")


def test_a_file_that_is_none_is_refused_with_its_line(here: Path) -> None:
    (here / "bad.conf").write_text("SwitchName=a Nodes=n1\nSwitchName=b Switches=c\n")
    with pytest.raises(ParseError, match=r"bad.conf:2: expected a switch that has a line of its own, got 'c'"):
        topo("import", "--output", "f.json", "bad.conf")
    with pytest.raises(GlaunchError, match=r"missing\.txt: cannot be read"):
        topo("export", "--format", "json", "--from", "missing.txt")


def test_an_include_is_looked_for_beside_its_file(here: Path) -> None:
    (here / "sub").mkdir()
    (here / "sub" / "topology.conf").write_text("include more.conf\nSwitchName=top Switches=a\n")
    (here / "sub" / "more.conf").write_text("SwitchName=a Nodes=n1\n")
    assert (
        topo("export", "--format", "slurm-tree", "--from", "sub/topology.conf").stdout
        == "SwitchName=a Nodes=n1\nSwitchName=top Switches=a\n"
    )


def test_export_names_what_a_form_leaves_out() -> None:
    done = topo("export", "--format", "slurm-tree", "--from", "ib.txt")
    assert done.stdout.startswith("SwitchName=l0-0-r0 Nodes=n0-0-[0-1]\n")
    assert done.stderr == (
        "slurm-tree leaves out which switches 3 names stand for, rails among them (l0-0-r0 stands for 4)\n"
        "slurm-tree leaves out 32 links: ports, widths, rates, GUIDs and rails\n"
    )
    assert topo("export", "--format", "slurm-tree", "--from", "topology.conf").stderr == ""
    with pytest.raises(UsageError, match="no blocks are known"):
        topo("export", "--format", "slurm-block", "--from", "topology.conf")


def test_blocks_from_nvidia_smi_go_into_topology_yaml(here: Path) -> None:
    uuid = "5e797fc6-0f46-421a-8724-0e102c0f723c"
    (here / "smi.txt").write_text("".join(f"n{number}: {uuid}\n" for number in range(1, 5)))
    text = topo("export", "--format", "slurm-yaml", "--from", "topology.conf", "--from", "smi.txt").stdout
    assert f'      - block: "nvl-{uuid}"\n        nodes: "n[1-4]"\n' in text


def test_path_by_links_and_by_tree() -> None:
    assert topo("path", "n0-0-0", "n0-1-1", "--from", "ib.txt").stdout == "n0-0-0 - l0-0-r0 - s0-0-0 - l0-1-r0 - n0-1-1   3 hops\n"
    assert topo("path", "n1", "n2", "--from", "topology.conf").stdout == "n1 - l1 - n2   1 hop\n"
    document = json.loads(topo("path", "n1", "n8", "--from", "topology.conf", "--json").stdout)
    assert document == {
        "schema": "glaunch.way/1", "from": "n1", "to": "n8", "by": "tree", "hops": 3, "switches": ["l1", "top", "l2"],
    }  # fmt: skip
    with pytest.raises(UsageError, match="no node is called 'n0-0-9'") as wrong:
        topo("path", "n0-0-9", "n0-1-1", "--from", "ib.txt")
    assert wrong.value.hint.startswith("did you mean n0-")


def test_nodes_that_nothing_joins_end_with_1(here: Path) -> None:
    (here / "apart.conf").write_text("SwitchName=l1 Nodes=n1\nSwitchName=l2 Nodes=n2\n")
    done = topo("path", "n1", "n2", "--from", "apart.conf")
    assert (done.stdout, done.return_value) == ("nothing joins n1 and n2\n", 1)


def test_names_from_a_map(here: Path) -> None:
    (here / "map.txt").write_text('"n0-0-0" gpu001\n')
    (here / "one.json").write_text("")
    assert topo("path", "gpu001", "n0-0-1", "--from", "ib.txt", "--names", "map.txt").stdout == "gpu001 - l0-0-r0 - n0-0-1   1 hop\n"


def test_a_saved_fabric_that_is_gone_is_said(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from glaunch import pipeline
    from glaunch.fabric_files import saved_fabric

    monkeypatch.setenv("GLAUNCH_FABRIC_TOPOLOGY", str(here / "gone.json"))
    with pytest.raises(ConfigError, match=r"GLAUNCH_FABRIC_TOPOLOGY: .*gone.json: cannot be read"):
        saved_fabric(pipeline.open_world().settings)
    (here / "gone.json").write_text('{"schema":\n')
    with pytest.raises(ParseError, match=r"gone\.json:2: expected JSON"):
        saved_fabric(pipeline.open_world().settings)


YAML = """\
- topology: cables
  tree: {switches: [{switch: leaf1, nodes: "node[001-016]"}]}
- topology: nvl
  block: {block_sizes: [4], blocks: [{block: b1, nodes: "node[001-004]"}, {block: b2, nodes: "node[005-008]"}]}
"""
TOPOLOGIES = {
    "": "SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=node[001-016]\n",
    "nvl": "BlockName=b1 BlockIndex=0 Nodes=node[001-004] BlockSize=4\nBlockName=b2 BlockIndex=1 Nodes=node[005-008] BlockSize=4\n",
}


def several(folder: Path, version: str = "26.05.5", *, file: bool = False) -> str:
    """A capture of a Slurm whose partition nvl has a topology of its own; `file`: with its topology.yaml."""
    recorded = []
    for one in read_capture(DEMO):
        argv, text = one.done.argv, one.done.stdout
        if argv == QUESTIONS["version"]:
            text = f"slurm {version}\n"
        elif argv == QUESTIONS["partitions"]:
            text += text.replace("Name=gpu", "Name=nvl Topology=nvl").replace("Default=YES", "Default=NO")
        elif argv == QUESTIONS["topology"]:
            text = TOPOLOGIES[""]
        recorded.append(Recorded(replace(one.done, stdout=text), one.when_s))
    recorded.append(Recorded(Completed((*QUESTIONS["topology"], "nvl"), 0, TOPOLOGIES["nvl"], ""), 1.0))
    write_capture(folder / "capture", recorded, plain=True, topology={"topology.yaml": YAML} if file else {})
    return str(folder / "capture")


def test_of_several_topologies_a_name_or_a_partition_chooses_and_the_others_are_named(here: Path) -> None:
    capture = several(here)
    default = topo("show", capture=capture).stdout
    assert default.startswith("scontrol show topology: 16 nodes on 1 leaf")
    assert default.endswith("\nSlurm has another topology too: nvl (partition nvl); --name nvl shows it\n")
    for words in (("--name", "nvl"), ("-p", "nvl")):
        shown = topo("show", *words, capture=capture).stdout
        assert shown.startswith("scontrol show topology nvl: 8 nodes on 2 leaves")
        assert "the default one (partition gpu)" in shown
        blocks = topo("export", "--format", "slurm-block", *words, capture=capture)
        assert blocks.stdout == "BlockName=b1 Nodes=node[001-004]\nBlockName=b2 Nodes=node[005-008]\nBlockSizes=4\n"
        assert blocks.stderr.startswith("Slurm has another topology too: the default one (partition gpu)")
    document = json.loads(topo("show", "--json", "-p", "nvl", capture=capture).stdout)
    assert (document["topology"], document["other_topologies"]) == ("nvl", {"": ["gpu"]})
    assert topo("path", "node001", "node002", "-p", "nvl", capture=capture).stdout.startswith("node001 - b1 - node002 ")


def test_a_topology_yaml_that_can_be_read_says_how_the_default_one_is_called(here: Path) -> None:
    capture = several(here, file=True)
    assert "too: cables (partition gpu); --name cables shows it" in topo("show", "--name", "nvl", capture=capture).stdout
    assert topo("show", "--name", "cables", capture=capture).stdout == topo("show", capture=capture).stdout


def test_a_topology_that_cannot_be_had_is_refused_with_those_that_can(here: Path) -> None:
    capture = several(here)
    for words, said, hint in (
        (("--name", "nvk"), "Slurm shows no topology that is called 'nvk'", "there are: nvl"),
        (("-p", "nvk"), "no partition 'nvk'", "did you mean -p nvl?"),
        (("-p", "nvl", "--name", "nvl"), "--name and --partition both", "leave one out"),
    ):
        with pytest.raises(UsageError, match=said) as refused:
            topo("show", *words, capture=capture)
        assert hint in refused.value.hint
    with pytest.raises(UsageError, match="--partition asks Slurm"):
        topo("export", "--format", "json", "--from", "topology.conf", "-p", "nvl")
    old = several(here / "old", "24.11.5")
    with pytest.raises(UsageError, match=r"--name nvl: Slurm 24\.11\.5 has one topology \(several: from 25\.05 on\)"):
        topo("show", "--name", "nvl", capture=old)


def test_a_name_chooses_within_a_file_too(here: Path) -> None:
    (here / "topology.yaml").write_text(YAML)
    line = ("export", "--format", "slurm-block", "--from", "topology.yaml", "--name")
    assert topo(*line, "nvl").stdout.startswith("BlockName=b1 Nodes=node[001-004]\n")
    with pytest.raises(ParseError, match="expected a topology that is called nvk, got 'cables, nvl'"):
        topo(*line, "nvk")
