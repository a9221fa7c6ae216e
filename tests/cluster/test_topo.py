"""The network on a real Slurm: a real slurmctld shows what `glaunch topo export` wrote, and a saved fabric counts beside Slurm's."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cluster.conftest import User
from tests.topo.shapes import fat_tree, ibnetdiscover_text

from glaunch.fabric import Fabric, synthetic
from glaunch.hierarchy import fabric_of
from glaunch.parsers.slurm_topology import parse_topology
from glaunch.sandbox.box import Sandbox
from glaunch.writers.slurm_topology import write_tree

pytestmark = pytest.mark.slurm

RAILS = fat_tree(1, 2, 2, 4, 2, 2, 1).network
"""8 nodes of 4 rails under two pods."""


def shown(box: Sandbox) -> Fabric:
    """What Slurm's own command says."""
    fabric = parse_topology(box.exec(["scontrol", "show", "topology"]).stdout, where="scontrol")
    assert fabric is not None
    return fabric


def rows(fabric: Fabric) -> dict[str, tuple[int, str | None, frozenset[str]]]:
    return {switch.name: (switch.tier, switch.parent, frozenset(switch.nodes)) for switch in fabric.switches}


def test_slurm_takes_what_is_exported_and_shows_the_same(ada: User, sandboxes: Callable[..., Sandbox], tmp_path: Path) -> None:
    ada.write("ib.txt", ibnetdiscover_text(RAILS), 0o644)
    done = ada.glaunch("topo", "export", "--format", "slurm-tree", "--from", "ib.txt")
    assert done.code == 0, done.stderr
    assert "slurm-tree leaves out which switches 7 names stand for" in done.stderr
    (tmp_path / "topology.conf").write_text(done.stdout)
    box = sandboxes("exported", topology=tmp_path / "topology.conf")
    assert rows(shown(box)) == rows(fabric_of(RAILS))


def test_slurms_own_topology_is_exported_as_it_is(ada: User) -> None:
    done = ada.glaunch("topo", "export", "--format", "slurm-tree")
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout == write_tree(shown(ada.box))
    document = json.loads(ada.glaunch("topo", "export", "--format", "json").stdout)
    assert document["schema"] == "glaunch.fabric/1"


def test_a_saved_fabric_counts_beside_slurms(ada: User) -> None:
    """Saved: the nodes regrouped, so that two that are far apart for Slurm share a leaf."""
    names = sorted(shown(ada.box).leaf_of)
    assert len(names) == 16
    mixed = synthetic("core:1 leaf:8 node:2")
    pairs = {f"leaf{number + 1}": (names[number], names[number + 8]) for number in range(8)}
    saved = replace(mixed, switches=tuple(replace(one, nodes=pairs.get(one.name, ())) for one in mixed.switches))
    ada.write("net.conf", write_tree(saved), 0o644)
    done = ada.glaunch("topo", "import", "--output", "fabric.json", "net.conf")
    assert (done.code, done.stdout) == (0, "fabric.json\n"), done.stderr
    assert "fabric.topology: /home/ada/fabric.json" in done.stderr
    env = {"GLAUNCH_FABRIC_TOPOLOGY": "/home/ada/fabric.json"}
    way = ada.glaunch("topo", "path", names[0], names[8], env=env)
    assert way.stdout == f"{names[0]} - leaf1 - {names[8]}   1 hop\n", way.stderr
    assert ada.glaunch("topo", "path", names[0], names[8]).stdout != way.stdout, "Slurm's own topology says another way"
    plan = json.loads(ada.glaunch("plan", "./prog.sh", "-N", "2", "--json", env=env).stdout)
    assert set(plan["placement"]["nodes"]) in [set(pair) for pair in pairs.values()]
    assert any("do not agree" in warning for warning in plan["warnings"])


def test_a_saved_fabric_that_is_not_there_is_said_at_once(ada: User) -> None:
    done = ada.glaunch("plan", "./prog.sh", "-N", "2", env={"GLAUNCH_FABRIC_TOPOLOGY": "/nowhere/fabric.json"})
    assert done.code == 2
    assert "GLAUNCH_FABRIC_TOPOLOGY: /nowhere/fabric.json: cannot be read" in done.stderr
    assert "glaunch topo import --output /nowhere/fabric.json" in done.stderr
