"""Asking newer Slurms for nodes: lists with spares, blocks and segments, several topologies; and what is written for them."""

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cluster.conftest import PROGRAM, User, idle, job_id_of, until
from tests.controller import Controller, missing

from glaunch.fabric import Block, synthetic
from glaunch.hostlist import expand, fold
from glaunch.parsers.slurm_topology import parse_topology
from glaunch.parsers.topology_yaml import parse_topology_yaml
from glaunch.placement.cost import cost_of
from glaunch.placement.place import Candidates, place
from glaunch.sandbox.box import Sandbox
from glaunch.spares import worst_of

pytestmark = [pytest.mark.slurm, pytest.mark.since_slurm("24.05")]

ONE_EACH = ("--ntasks-per-node", "1")
BLOCKS = (
    "BlockName=b1 Nodes=n[001,003,005,007]\nBlockName=b2 Nodes=n[002,004,006,008]\n"
    "BlockName=b3 Nodes=n[009-012]\nBlockName=b4 Nodes=n[013-016]\nBlockSizes=4,8\n"
)
SEVERAL = """\
- topology: cables
  cluster_default: true
  tree:
    switches:
      - {switch: core, children: "leaf[1-2]"}
      - {switch: leaf1, nodes: "n[001-004]"}
      - {switch: leaf2, nodes: "n[005-008]"}
- topology: nvl
  cluster_default: false
  block:
    block_sizes: [2, 4]
    blocks:
      - {block: b1, nodes: "n[001-002]"}
      - {block: b2, nodes: "n[003-004]"}
      - {block: b3, nodes: "n[005-006]"}
      - {block: b4, nodes: "n[007-008]"}
"""


def plan(user: User, *words: str) -> dict[str, object]:
    done = user.glaunch("plan", "./prog.sh", *words, "--json")
    assert done.code == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="session")
def blocks_conf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("blocks") / "topology.conf"
    file.write_text(BLOCKS)
    return file


@pytest.fixture
def blocks(sandboxes: Callable[..., Sandbox], blocks_conf: Path) -> Iterator[User]:
    """ada where Slurm places by topology/block, with names across the blocks."""
    user = User(sandboxes("blocks", topology=blocks_conf))
    user.write("prog.sh", PROGRAM)
    yield user
    user.box.exec(["scancel", "--user=root"])
    idle(user.box)


def half_busy(user: User) -> None:
    """Two nodes of each block are gone."""
    for nodes in ("n[001,003]", "n[002,004]", "n[009-010]", "n[013-014]"):
        user.box.exec(["sbatch", "-N", "2", "-w", nodes, "--exclusive", "-o", "/dev/null", "--wrap", "sleep 900"])
    until(lambda: user.box.exec(["squeue", "-h", "-t", "R", "-o", "%i"]).stdout.count("\n") == 4, 60, "they are gone")


def test_prefer_is_a_list_with_spares_of_which_slurm_takes_its_nodes(ada: User) -> None:
    done = ada.glaunch("./prog.sh", "-N", "6", *ONE_EACH, "--place", "prefer")
    assert done.code == 0, done.stderr
    assert "among the best 6 nodes and 2 spare nodes on the same leaves (at worst 2.20 switches between two nodes" in done.stderr
    job = ada.job(job_id_of(done))
    listed = expand(job["ReqNodeList"])
    (attempt,) = ada.attempts(job_id_of(done))
    assert len(listed) == 8
    assert set(attempt.hosts) < set(listed)
    assert job["Requeue"] == "0"


def test_slurms_pick_of_a_set_with_spares_is_no_worse_than_was_said(tmp_path: Path) -> None:
    if lacking := missing():
        pytest.skip(lacking)
    fabric, r = synthetic("core:1 spine:5 leaf:4 node:6"), random.Random(0)
    slurm = Controller(tmp_path / "slurm", fabric)
    try:
        taken = r.sample(sorted(fabric.nodes), len(fabric.nodes) // 2)
        slurm.occupy(taken)
        free = tuple(node for node in fabric.nodes if node not in taken)
        looked = 0
        for n in range(2, 40, 2):
            best = place(fabric, Candidates(free, (1,) * len(free)), n)
            assert best is not None
            leaves = {fabric.leaf_of[node] for node in best.nodes}
            more = [node for node in free if node not in best.nodes and fabric.leaf_of[node] in leaves][: max(2, n // 8)]
            if more:
                cost = cost_of(fabric, slurm.choice(n, f"--nodelist={fold((*best.nodes, *more))}"))
                assert cost is not None
                assert (cost.leaves, cost.pods) <= (best.cost.leaves, best.cost.pods)
                assert best.cost.hops <= cost.hops <= worst_of(fabric, best, more).hops
                looked += 1
        assert looked > 3
    finally:
        slurm.close()


def test_a_preferred_job_whose_nodes_were_taken_gets_others(ada: User) -> None:
    ada.write(
        "bin/sbatch",
        "#!/bin/sh\nif [ ! -e $HOME/taken ]; then : >$HOME/taken\n"
        'id=$(/usr/bin/sbatch --parsable -N12 -w "n[001-012]" --exclusive -o /dev/null --wrap "sleep 900")\n'
        'until [ "$(squeue -h -j "$id" -t R -o %i)" ]; do sleep 0.1; done; fi\nexec /usr/bin/sbatch "$@"\n',
    )
    env = {"PATH": "/home/ada/bin:/usr/local/bin:/usr/bin:/bin"}
    done = ada.glaunch("./prog.sh", "-N", "3", *ONE_EACH, "--place", "prefer", env=env)
    (ada.home / "taken").unlink()
    assert done.code == 0, done.stderr
    assert "the pin is lifted" in done.stderr
    assert ada.job(job_id_of(done))["ReqNodeList"] == "(null)"


def test_what_a_killed_glaunch_preferred_is_lifted_by_the_next_command(ada: User) -> None:
    ada.box.exec(["scontrol", "update", "PartitionName=gpu", "State=DOWN"])
    env = {"GLAUNCH_PIN_PATIENCE_S": "2"}  # of the next command; this one would wait for 30 s
    words = "./prog.sh -N 3 --ntasks-per-node 1 --place prefer"
    launch = ada.box.popen(["sh", "-c", f"echo $$ >$HOME/pid; exec glaunch {words}"], "ada")
    until(lambda: "PENDING" in ada.run("squeue", "-h", "-o", "%T").stdout, 60, "submitted")
    ada.box.exec(["kill", "-9", (ada.home / "pid").read_text().strip()])
    launch.communicate(timeout=30)
    job_id = ada.run("squeue", "-h", "-o", "%i").stdout.strip()
    assert len(expand(ada.job(job_id)["ReqNodeList"])) == 4
    until(lambda: "lifted" in ada.glaunch("status", env=env).stderr, 60, "the next command lifts it")
    assert ada.job(job_id)["ReqNodeList"] == "(null)"


def test_under_blocks_no_list_is_refused_whatever_is_free(blocks: User) -> None:
    """Each plan's own line goes to `sbatch --test-only`, on an empty cluster and with two nodes of each block gone."""
    asked = 0
    for busy in (False, True):
        if busy:
            half_busy(blocks)
            blocks.run("rm", "-rf", ".local/state/glaunch/kept")
        for words in (("-N", "3"), ("-N", "6"), ("-N", "8", "--segment", "2"), ("-N", "8", "--tp", "2"), ("-N", "12")):
            for way in ("auto", "prefer"):
                found = plan(blocks, *words, *ONE_EACH, "--place", way)
                told = [*found["directives"], *found["arguments"]]  # type: ignore[misc]
                skipped = {"output", "chdir", "open-mode"}
                options = [f"--{one['name']}={one['value'] or ''}".rstrip("=") for one in told if one["name"] not in skipped]
                done = blocks.run("sbatch", "--test-only", *options, "--wrap", "true")
                assert done.code == 0, (words, way, options, done.stderr)
                asked += "--nodelist" in " ".join(options)
    assert asked >= 6


def test_under_blocks_ranks_stand_in_the_plans_order(blocks: User) -> None:
    done = blocks.glaunch("./prog.sh", "-N", "6", *ONE_EACH)
    assert done.code == 0, done.stderr
    assert "pinned if it starts" in done.stderr
    job_id = job_id_of(done)
    (attempt,) = blocks.attempts(job_id)
    assert list(attempt.hosts) == json.loads((blocks.folder(job_id) / "plan.json").read_text())["placement"]["nodes"]
    assert json.loads((attempt.path / "audit.json").read_text())["order"] == "planned"
    assert tuple(row.host for row in attempt.ranks) == attempt.hosts
    # and without the plan's table: whatever order Slurm takes by itself, rank 0's host is the master
    (blocks.folder(job_id) / "order.tsv").write_text("")
    again = blocks.run("sh", "-c", f"sbatch --parsable --wait '{blocks.job(job_id)['Command']}' by-hand").stdout.strip()
    second = blocks.attempts(job_id)[-1]
    assert second.path.name.startswith(f"{again}.")
    assert json.loads((second.path / "audit.json").read_text())["order"] == "slurm"
    assert json.loads((second.path / "audit.json").read_text())["first"] == second.ranks[0].host
    assert tuple(row.host for row in second.ranks) == second.hosts


def test_segments_are_asked_for_and_start_where_a_job_without_them_would_wait(blocks: User) -> None:
    half_busy(blocks)
    blocks.run("rm", "-rf", ".local/state/glaunch/kept")
    alone = plan(blocks, "-N", "6", *ONE_EACH)
    assert alone["placement"] is None, "topology/block gives no job nodes of so many blocks"
    assert "what would start sooner: --segment 2, 2 nodes or more in each block" in alone["notes"]  # type: ignore[operator]
    done = blocks.glaunch("./prog.sh", "-N", "6", *ONE_EACH, "--segment", "2")
    assert done.code == 0, done.stderr
    (attempt,) = blocks.attempts(job_id_of(done))
    block_of = {node: row.split()[0] for row in BLOCKS.splitlines()[:4] for node in expand(row.split("Nodes=")[1])}
    pairs = [{block_of[node] for node in attempt.hosts[at : at + 2]} for at in (0, 2, 4)]
    assert all(len(pair) == 1 for pair in pairs), attempt.hosts


@pytest.mark.since_slurm("25.05")
def test_the_topology_of_the_jobs_partition_counts(sandboxes: Callable[..., Sandbox], tmp_path: Path) -> None:
    file = tmp_path / "topology.yaml"
    file.write_text(SEVERAL)
    lines = ("PartitionName=nvl Nodes=ALL Topology=nvl State=UP",)
    user = User(sandboxes("several", topology=file, slurm_conf=lines))
    user.write("prog.sh", PROGRAM)
    here, there = (plan(user, "-p", partition, "-N", "4", *ONE_EACH, "--segment", "2") for partition in ("gpu", "nvl"))
    assert [here["fabric_source"], there["fabric_source"]] == ["scontrol show topology", "scontrol show topology nvl"]
    assert [leaf for leaf, _ in here["placement"]["leaves"]] == ["leaf1"]  # type: ignore[index]
    assert [leaf for leaf, _ in there["placement"]["leaves"]] == ["b1", "b2"]  # type: ignore[index]
    assert not [one for one in here["directives"] if one["name"] == "segment"]  # type: ignore[attr-defined]
    assert [one["value"] for one in there["directives"] if one["name"] == "segment"] == ["2"]  # type: ignore[attr-defined]
    done = user.glaunch("./prog.sh", "-p", "nvl", "-N", "4", *ONE_EACH)
    assert done.code == 0, done.stderr
    shown = user.glaunch("topo", "show", "-p", "nvl").stdout
    assert "b1" in shown
    assert "Slurm has another topology too: cables (partition gpu)" in shown
    assert "leaf1" in user.glaunch("topo", "show").stdout
    exported = user.glaunch("topo", "export", "--format", "slurm-block", "--name", "nvl")
    assert (exported.code, exported.stdout.splitlines()[0]) == (0, "BlockName=b1 Nodes=n[001-002]")
    gone = user.glaunch("topo", "show", "--name", "nowhere")
    assert (gone.code, "there are: cables, nvl" in gone.stderr) == (2, True), gone.stderr
    user.run("sh", "-c", "rm -rf capture; glaunch snapshot --plain capture")
    replayed = json.loads(user.run("glaunch", "--snapshot", "capture", "plan", "./prog.sh", "-p", "nvl", "-N", "4", "--json").stdout)
    assert replayed["fabric_source"] == "scontrol show topology nvl"


@pytest.mark.parametrize("form", ["slurm-block", pytest.param("slurm-yaml", marks=pytest.mark.since_slurm("25.05"))])
def test_slurm_takes_what_is_exported_and_shows_the_same(ada: User, sandboxes: Callable[..., Sandbox], tmp_path: Path, form: str) -> None:
    tree = synthetic("core:1 spine:2 leaf:2 node:4")
    text = "fabric: hall\nblock_sizes: [4, 8]\nblocks:\n" + "".join(
        f"  rack{number}: n[{number * 4 - 3:03d}-{number * 4:03d}]\n" for number in range(1, 5)
    )
    ada.write("hall.yaml", text, mode=0o644)
    done = ada.glaunch("topo", "export", "--from", "hall.yaml", "--format", form)
    assert done.code == 0, done.stderr
    file = tmp_path / "topology"
    file.write_text(done.stdout)
    box = sandboxes(f"exported-{form}", topology=file)
    seen = parse_topology(box.exec(["scontrol", "-o", "show", "topology"]).stdout, where="scontrol")
    assert seen is not None
    assert seen.blocks == tuple(Block(f"rack{number}", tree.nodes[number * 4 - 4 : number * 4]) for number in range(1, 5))
    assert seen.block_sizes == (4, 8)
    if form == "slurm-yaml":
        (only,) = parse_topology_yaml(done.stdout, where="exported")
        assert only.fabric.blocks == seen.blocks
