"""The whole decision on a small cluster: who wins where the user, the site and Slurm all have a word, and what is told."""

from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest
from tests.decisions import BLOCKS, CLUSTER, FABRIC, NODE_LINES, NODES, Site, options

from glaunch import __version__, config
from glaunch.decide import Ground, decide
from glaunch.errors import ConfigError, NeverFits, UsageError
from glaunch.fabric import Fabric, synthetic
from glaunch.parsers.slurm_nodes import parse_nodes
from glaunch.parsers.slurm_topology import SLURMS_OWN, parse_topology_conf
from glaunch.plan import Plan
from glaunch.report.plan import plan_text, versions_text
from glaunch.request import Caller, Request


def test_the_users_own_option_is_the_only_one_where_the_site_has_another(site: Site) -> None:
    site.says("sbatch: {constraint: fast, mail-type: FAIL}\n")
    assert options(site.decide(), "constraint") == [("fast", f"{site.file}:1")]
    plan = site.decide(constraint="ib")
    assert options(plan, "constraint") == [("ib", "")]
    assert options(plan, "mail-type") == [("FAIL", f"{site.file}:1")]
    assert options(site.decide(sbatch=(("mail-type", "ALL"),)), "mail-type") == [("ALL", "")]


def test_what_the_site_asks_of_nodes_is_seen_by_the_placement(site: Site) -> None:
    site.says("sbatch: {constraint: fast}\n")
    plan = site.decide()
    assert plan.placement is not None
    assert plan.placement.nodes == ("n001", "n002")
    with pytest.raises(NeverFits, match="has 2 such nodes"):
        site.decide(tasks=24)


def test_where_a_default_was_set_is_told(site: Site) -> None:
    site.says("account: red\nqos: long\ntime: 1:00:00\npartition: gpu\ngpus_per_node: h100:4\n")
    plan = site.decide()
    told = {name: options(plan, name) for name in ("account", "qos", "time", "partition", "gres")}
    assert told == {
        "account": [("red", f"{site.file}:1")],
        "qos": [("long", f"{site.file}:2")],
        "time": [("1:00:00", f"{site.file}:3")],
        "partition": [("gpu", f"{site.file}:4")],
        "gres": [("gpu:h100:4", f"{site.file}:5")],
    }


def test_a_partitions_section_wins_over_the_general_part_of_its_file(site: Site) -> None:
    site.says("account: red\npartitions:\n  gpu: {account: blue, qos: long, gpus_per_node: 4}\n")
    plan = site.decide()
    assert options(plan, "account") == [("blue", f"{site.file}:3")]
    assert (options(plan, "qos"), plan.layout.gpus_per_node) == ([("long", f"{site.file}:3")], 4)
    assert options(site.decide(account="mine"), "account") == [("mine", "")]


@pytest.mark.parametrize("time", ["0", "UNLIMITED", "3:00:00"])
def test_a_time_limit_over_the_partitions_is_refused_also_when_it_is_none(site: Site, time: str) -> None:
    with pytest.raises(NeverFits, match="over partition gpu's maximum, 02:00:00"):
        site.decide(time=time)
    assert site.decide(time="2:00:00").time_limit_s == 7200


def test_percent_signs_in_the_folder_are_no_pattern_of_slurms(site: Site) -> None:
    settings = config.load(home=site.etc, cwd=site.etc, environ={}, etc=site.etc)
    caller = Caller("ada", frozenset(), "/home/ada", ("./a.out",), "a.out", {})
    plan = decide(Request(("./a.out",), tasks=16), caller, Ground(settings, (), CLUSTER, FABRIC, "ab12", "/home/100%j", 1_000_000))
    assert [value for value, _ in options(plan, "output")] == ["/home/100%%j/batch-%j.log"]


def test_slurm_is_told_whose_script_it_is_where_nobody_else_says_anything(site: Site) -> None:
    assert options(site.decide(), "comment")[0][0] == f"glaunch/{__version__}"
    assert options(site.decide(sbatch=(("comment", "mine"),)), "comment") == [("mine", "")]
    site.says("sbatch: {comment: ours}\n")
    assert options(site.decide(), "comment") == [("ours", f"{site.file}:1")]


def nodes_of(plan: Plan) -> tuple[str, ...]:
    """The planned nodes."""
    assert plan.placement is not None
    return plan.placement.nodes


def test_health_decides_among_equals_only(site: Site) -> None:
    assert nodes_of(site.decide(tasks=8)) == ("n001",)
    site.says('placement:\n  penalties:\n    "n[001-002]": {value: 5, reason: link flaps}\n    n003: 2\n')
    site.failed = {"n003": 1, "n002": 2, "gone": 9}
    plan = site.decide(tasks=8)
    site.failed = {}
    assert nodes_of(plan) == ("n004",)
    assert [(one.node, one.points, one.why) for one in plan.health] == [
        ("n001", 5, f"link flaps; {site.file}:3"),
        ("n002", 7, f"link flaps; {site.file}:3, failed 2 jobs of yours in the last days"),
        ("n003", 3, f"{site.file}:4, failed 1 job of yours in the last days"),
    ]
    assert nodes_of(site.decide(tasks=16)) == ("n003", "n004"), "a leaf with 2 points rather than one with 10"
    busy = replace(NODES, states=("IDLE", "IDLE", "IDLE", "ALLOCATED"))
    assert nodes_of(site.decide(tasks=8, cluster=replace(CLUSTER, nodes=busy))) == ("n003",)
    site.says("placement: {penalties: {n003: 900000}}\n")
    assert nodes_of(site.decide(tasks=8, cluster=replace(CLUSTER, nodes=busy))) == ("n003",), "what is left for others goes first"
    assert nodes_of(site.decide(tasks=24, cluster=replace(CLUSTER, nodes=busy))) == ("n001", "n002", "n003"), "and it is no exclusion"
    shown = plan_text(plan, 200, verbose=True)
    assert "n002: left alone among equals, 7 points (link flaps;" in shown
    assert "left alone" not in plan_text(plan, 200)


@pytest.mark.parametrize(
    ("line", "said"), [("n[1-: 5", "a bracket is not closed"), ('"n[2-1]": 5', "runs down"), ("n1: many", "points"), ("n1: -1", "points")]
)
def test_penalties_that_cannot_be_meant_are_refused_with_their_line(site: Site, line: str, said: str) -> None:
    site.says(f"placement:\n  penalties:\n    {line}\n")
    with pytest.raises(ConfigError, match=f"{site.file}:3: .*{said}"):
        site.decide()


def test_a_mixed_job_asks_for_no_type_and_is_warned(site: Site) -> None:
    gres = ("gpu:h100:8", "gpu:h100:8", "gpu:a100:4", "gpu:a100:4")
    lines = [
        f"NodeName=n00{number} CPUAlloc=0 CPUTot=64 Gres={kind} GresUsed=(null) NodeAddr=n00{number} RealMemory=512000 AllocMem=0 "
        f"State=IDLE Weight=1 Partitions=gpu"
        for number, kind in enumerate(gres, 1)
    ]
    cluster = replace(CLUSTER, nodes=parse_nodes("\n".join(lines)))
    with pytest.raises(NeverFits, match="has 2 such nodes") as refused:
        site.decide(cluster=cluster, tasks=None, nodes=3)
    assert "--mixed takes those with other GPUs too" in refused.value.hint
    with pytest.raises(NeverFits) as refused:
        site.decide(cluster=cluster, tasks=None, nodes=3, mixed=True, gpus_per_node="h100:8")
    assert "--mixed" not in refused.value.hint, "it is there already"
    plan = site.decide(cluster=cluster, tasks=None, nodes=3, mixed=True)
    assert [value for value, _ in options(plan, "gres")] == ["gpu:4"]
    assert (plan.mode, plan.layout.tasks) == ("pin", 12)
    assert any("2 nodes × 4 a100, 2 nodes × 8 h100" in one and "the slowest sets the pace" in one for one in plan.warnings)
    assert any(one.startswith("4 GPUs of each node are used") for one in plan.warnings)
    needless = site.decide(cluster=cluster, mixed=True)
    assert [value for value, _ in options(needless, "gres")] == ["gpu:h100:8"]
    assert "--mixed was not needed: enough nodes of one kind are free" in needless.notes
    site.fabric = synthetic("leaf:2 node:2")
    islands = site.decide(cluster=cluster, tasks=None, nodes=3, mixed=True)
    assert islands.placement is None
    assert any("no island has 3 such nodes" in one and "--mixed joins kinds of GPUs, not islands" in one for one in islands.warnings)


def spans(plan: Plan) -> list[str]:
    """Since when each row of the table of Slurm's versions that the plan shows."""
    return [one.partition(":")[0] for one in plan.by_version]


@pytest.mark.parametrize(
    ("version", "topology", "shown"),
    [
        ((22, 5, 8), None, ["20.11", "22.05, before 23.11", "not before 23.02"]),
        ((24, 11, 5), None, ["20.11", "23.02", "23.11", "24.11"]),
        ((26, 5, 5), None, ["20.11", "23.02", "23.11", "24.11", "26.05"]),
        ((23, 11, 0), BLOCKS, ["20.11", "23.02", "23.11", "not before 24.05"]),
        ((24, 11, 5), BLOCKS, ["20.11", "23.02", "23.11", "24.05", "24.11", "not before 25.11"]),
        ((26, 5, 5), BLOCKS, ["20.11", "23.02", "23.11", "24.05", "24.11", "25.11", "25.11", "26.05"]),
    ],
)
def test_the_plan_knows_which_changes_of_slurm_it_meets(
    site: Site, version: tuple[int, ...], topology: Fabric | None, shown: list[str]
) -> None:
    site.says("placement.mode: prefer\n")
    plan = site.decide(cluster=replace(CLUSTER, slurm_version=version, topology=topology), segment=2 if topology else None)
    assert spans(plan) == shown
    assert not [warning for warning in plan.warnings if "is newer" in warning]
    assert versions_text(plan).splitlines()[0] == f"  Slurm {plan.slurm_version}: what its version means for this job"


def test_a_slurm_that_nobody_has_tried_is_named_in_a_warning(site: Site) -> None:
    (newer,) = site.decide(cluster=replace(CLUSTER, slurm_version=(27, 5, 0))).warnings
    assert newer.startswith("Slurm 27.05.0 is newer than all that is known here (glaunch is tried on 22.05 to 26.05)")
    (older,) = site.decide(cluster=replace(CLUSTER, slurm_version=(21, 8, 1))).warnings
    assert older.startswith("Slurm 21.08.1 is older")
    assert site.decide(cluster=replace(CLUSTER, slurm_version=())).warnings == ()


def test_an_array_beyond_max_array_size_is_several_submissions_and_the_plan_says_so(site: Site) -> None:
    small = replace(CLUSTER, config=MappingProxyType({"TopologyPlugin": "topology/tree", "MaxArraySize": "11"}))
    plan = site.decide(cluster=small, array="0-24%6")
    assert [part.indexes for part in plan.parts] == ["0-9%6", "0-9%6", "0-4%6"]
    assert options(plan, "array") == [("0-9%6", "")]
    assert any("25 tasks in 3 submissions (0-9; 10-19; 20-24), since MaxArraySize is 11 here" in note for note in plan.notes)
    with pytest.raises(UsageError, match="aftercorr joins the indexes of two arrays"):
        site.decide(cluster=small, array="0-24", dependency="aftercorr:7")
    assert site.decide(cluster=CLUSTER, array="0-24").parts == ()


def test_what_slurm_keeps_apart_is_refused_and_what_only_a_saved_fabric_does_is_not(site: Site) -> None:
    site.fabric = synthetic("leaf:2 node:2")
    assert (
        site.decide(tasks=24).warnings[0].startswith("no island has 3 such nodes; the most has leaf2: 2: between islands no path is known")
    )
    site.fabric = replace(site.fabric, source="scontrol show topology")
    with pytest.raises(NeverFits, match="no island has 3 such nodes") as refused:
        site.decide(tasks=24)
    assert refused.value.hint == "-n 16 fits; to let Slurm say no itself: --force"
    for tasks, hint in ((None, "-N 2 fits"), (24, "-N 2 -n 16 fits")):  # in the options of the line
        with pytest.raises(NeverFits) as refused:
            site.decide(tasks=tasks, nodes=3)
        assert refused.value.hint.startswith(hint)
    forced = site.decide(tasks=24, force=True)
    assert forced.placement is None
    assert any(line.startswith("Slurm will refuse this or never run it") for line in forced.warnings)
    assert not any("starts when Slurm finds the rest" in line for line in forced.notes)
    optional = MappingProxyType({"TopologyParam": "TopoOptional"})
    assert site.decide(tasks=24, cluster=replace(CLUSTER, config=optional)).placement is None
    site.fabric = parse_topology_conf("BlockName=a Nodes=n[001-002]\nBlockName=b Nodes=n[003-004]\nBlockSizes=2,4\n", where=SLURMS_OWN)
    assert nodes_of(site.decide(tasks=24)) == ("n001", "n002", "n003")
    with pytest.raises(NeverFits, match="topology/block keeps a job of 2 nodes in one block of the size that holds it") as blocks:
        site.decide(tasks=16, exclude="n001,n003")
    assert blocks.value.hint.startswith("-n 8 fits")


def test_a_time_or_size_that_is_none_names_whose_it_is(site: Site) -> None:
    for words, said in (
        ({"time": "5x"}, "-t '5x' is no time"),
        ({"wait_for_leaves": "2@x"}, "--wait-for-leaves '2@x': 'x' is no time"),
        ({"mem": "9Q"}, "--mem '9Q' is no memory size"),
    ):
        with pytest.raises(UsageError) as refused:
            site.decide(**words)  # type: ignore[arg-type]
        assert refused.value.message == said


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ({"tasks": 32}, "-n 16 (2 nodes)"),
        ({"tasks": None, "nodes": 4}, "-N 2"),
        ({"tasks": 32, "nodes": 4}, "-N 2 -n 16"),
        ({"tasks": None, "nodes": 4, "tasks_per_node": 2}, "-N 2"),
    ],
)
def test_what_would_start_sooner_is_said_in_the_options_of_the_line(site: Site, words: dict[str, object], hint: str) -> None:
    busy = parse_nodes(NODE_LINES.replace("IDLE", "ALLOCATED", 2))
    plan = site.decide(cluster=replace(CLUSTER, nodes=busy), **words)
    assert plan.placement is None
    assert f"what would start sooner: {hint}" in plan.notes


@pytest.mark.parametrize(
    ("words", "more", "said"),
    [
        (
            "torchrun --nproc_per_node=8 train.py",
            {},
            "torchrun starts ranks itself, and here it is started 16 times, once a rank: --launcher torchrun",
        ),
        ("/v/bin/python3 -m torch.distributed.run train.py", {}, "torch.distributed.run starts ranks itself"),
        ("mpirun -n 16 ./a.out", {"tasks_per_node": 1, "tasks": 2}, "started 2 times, once a rank: --launcher mpi takes the program alone"),
        ("/usr/bin/srun ./a.out", {}, "once a rank: leave it out, or --launcher exec starts it once"),
        ("torchrun --node_rank x train.py", {"tasks_per_node": 1, "tasks": 2}, ""),
        ("srun ./a.out", {"tasks": 1}, ""),
        ("./srun.py", {}, ""),
        ("python3 -m trainer torchrun", {}, ""),
    ],
)
def test_a_launcher_that_is_launched_once_a_rank_is_warned_of(site: Site, words: str, more: dict[str, Any], said: str) -> None:
    warned = [one for one in site.decide(command=tuple(words.split()), **more).warnings if "starts ranks itself" in one]
    assert len(warned) == bool(said)
    assert all(said in one for one in warned)
    site.says("launch.form: exec\n")
    assert not [one for one in site.decide(command=tuple(words.split()), **more).warnings if "starts ranks itself" in one]
