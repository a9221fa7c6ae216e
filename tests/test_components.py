"""A job of several components, decided on a small cluster: what each has of its own, what is the whole job's, and what is refused."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from tests.decisions import CLUSTER, FABRIC, GPU, options

from glaunch import config
from glaunch.cli import glaunch
from glaunch.cluster import Cluster
from glaunch.commands.options import LaunchCommand, launch_options, request_from
from glaunch.components import decide_all
from glaunch.decide import Ground
from glaunch.errors import ConfigError, NeverFits, UsageError
from glaunch.job import Job, whole
from glaunch.parsers.slurm_nodes import parse_nodes
from glaunch.placement.placement import Cost
from glaunch.plan import Plan
from glaunch.report.documents import plan_document, plan_from_document
from glaunch.report.job import Component
from glaunch.report.plan import plan_text
from glaunch.report.summary import summary
from glaunch.request import Caller, Request

SPLIT = parse_nodes(
    "\n".join(
        f"NodeName=n00{number} CPUAlloc=0 CPUEfctv=64 CPUTot=64 Gres=gpu:h100:8 GresUsed=(null) NodeAddr=n00{number} RealMemory=512000 "
        f"AllocMem=0 State=IDLE Weight=1 Partitions={'gpu' if number < 3 else 'gpu,cpu' if number == 3 else 'cpu'}"
        for number in range(1, 5)
    )
)
TWO = replace(
    CLUSTER,
    nodes=SPLIT,
    partitions=(replace(GPU, nodes=SPLIT.names[:3]), replace(GPU, name="cpu", nodes=SPLIT.names[2:], default=False)),
)
"""n001 to n003 are the default partition gpu, n003 and n004 are cpu."""

Decide = Callable[..., Plan]


@pytest.fixture
def decide(tmp_path: Path) -> Decide:
    settings = config.load(home=tmp_path, cwd=tmp_path, environ={}, etc=tmp_path)
    caller = Caller("ada", frozenset(), "/home/ada", ("./a.out",), "a.out", {})

    def decided(*components: Request, cluster: Cluster = TWO, options: config.Options | None = None) -> Plan:
        first, *others = components
        chosen = config.load(home=tmp_path, cwd=tmp_path, environ={}, etc=tmp_path, options=options) if options else settings
        ground = Ground(chosen, config.load_rules(), cluster, FABRIC, "ab12", "/home/ada/j", 1_000_000)
        return decide_all(replace(first, components=tuple(others)), caller, ground, programs=[one.command for one in others])

    return decided


FIRST = Request(("./a.out",), nodes=2, tasks_per_node=4, partition="gpu", time="1:00:00", account="red", sbatch=(("signal", "USR1@60"),))
SECOND = Request(("./server", "x"), nodes=1, tasks=2, partition="cpu")


def test_each_component_has_nodes_a_program_and_directives_of_its_own(decide: Decide) -> None:
    plan = decide(FIRST, SECOND)
    (other,) = plan.components
    assert (plan.tasks, plan.nodes, other.layout.tasks, other.launch.argv) == (10, 3, 2, ("./server", "x"))
    assert [option.name for option in other.directives] == [
        *("partition", "nodes", "ntasks", "ntasks-per-node", "gres", "cpus-per-task", "time", "account"),
    ]
    assert options(other, "partition") == [("cpu", "")]
    assert plan.placement is not None
    assert other.placement is not None
    assert not set(plan.placement.nodes) & set(other.placement.nodes)
    assert [row.node for row in plan.order] == ["n001", "n002", "n003", "n004"]
    assert other.order == ()


def test_what_a_component_does_not_say_it_has_from_the_first_but_not_the_partition(decide: Decide) -> None:
    (other,) = decide(replace(FIRST, partition="cpu", nodes=1), replace(SECOND, partition=None, time=None)).components
    assert (other.partition, other.time_limit_s, other.request.account) == ("gpu", 3600, "red")
    plan = decide(FIRST, replace(SECOND, time="30"))
    assert any(note.startswith("component 1 ends first, after 00:30:00: Slurm then ends its ranks alone") for note in plan.notes)


def test_it_is_never_pinned(decide: Decide) -> None:
    plan = decide(FIRST, SECOND)
    assert (plan.mode, plan.mode_why, plan.arguments) == ("order", "a job of several components is never pinned", ())
    with pytest.raises(UsageError, match="never pinned"):
        decide(FIRST, SECOND, options={"placement.mode": ("pin", "--place")})


def test_the_environment_is_that_of_all_nodes(decide: Decide) -> None:
    slingshot: config.Options = {"fabric.class": ("slingshot", "--fabric-class")}
    alone = decide(replace(FIRST, nodes=1), options=slingshot)
    both = decide(replace(FIRST, nodes=1), replace(SECOND, nodes=2, tasks=4), options=slingshot)
    wide = decide(FIRST, options=slingshot)
    assert both.environment == wide.environment
    assert "NCCL_NET" in {variable.name for variable in both.environment.variables}
    assert alone.environment != wide.environment
    assert both.components[0].environment.variables == ()


@pytest.mark.parametrize(
    ("first", "key", "words"),
    [
        (replace(FIRST, array="0-3"), {}, "an array of jobs cannot have components"),
        (FIRST, {"launch.form": ("torchrun", "--launcher")}, "--launcher torchrun: the components of a job"),
        (FIRST, {"placement.on_bad": ("fail", "--on-bad-placement")}, "--on-bad-placement fail: a job of several components"),
        (replace(FIRST, nodes=3), {}, "the components want 4 nodes of partition gpu, which has 3"),
    ],
)
def test_what_it_cannot_be_is_refused(decide: Decide, first: Request, key: config.Options, words: str) -> None:
    second = replace(SECOND, partition="gpu") if not key and first.array is None else SECOND
    with pytest.raises((UsageError, NeverFits, ConfigError), match=words):
        decide(first, second, options=key or None)


def test_a_plan_comes_back_from_its_document_and_is_shown_component_by_component(decide: Decide) -> None:
    plan = decide(FIRST, SECOND)
    assert plan_from_document(json.loads(json.dumps(plan_document(plan))), "plan.json") == plan
    text = plan_text(plan)
    assert text.startswith("a.out: 2 nodes × 4 GPUs (h100) = 8 ranks + 1 node × 2 GPUs (h100) = 2 ranks\n")
    assert "\ncomponent 1: 1 node × 2 GPUs (h100) = 2 ranks\n" in text
    assert "ranks 8–9" in text
    assert text.count("  folder ") == 1
    assert "\n\ncomponent 0: 2 nodes × 4 GPUs (h100) = 8 ranks\n  nodes " in text
    lines = summary(plan)
    assert lines[1].startswith("component 0: best free nodes n[001-002]: 1 leaf, 1 switch between any two nodes, proven optimal")
    assert lines[2].startswith("component 1: partition cpu, limit 01:00:00; best free nodes n003: 1 node, no switch to cross")


def test_the_nodes_of_the_components_before_are_told_apart_from_those_of_other_launches(decide: Decide) -> None:
    (other,) = decide(FIRST, replace(SECOND, partition="gpu")).components
    assert other.placement is not None
    assert other.placement.nodes == ("n003",)
    assert other.notes == ("not free: 2 for the components before it",)


@pytest.mark.parametrize(
    ("where", "hint"),
    [("--container", "leave it out, and each"), ("/etc/glaunch/site.yaml:3", "/etc/glaunch/site.yaml:3 names it: --container none, and")],
)
def test_a_container_is_refused_with_what_to_type_instead(decide: Decide, where: str, hint: str) -> None:
    with pytest.raises(UsageError, match="start outside of containers") as refused:
        decide(FIRST, SECOND, options={"container.image": ("ubuntu:24.04", where)})
    assert refused.value.hint.startswith(hint)
    assert refused.value.hint.endswith("-N 1 apptainer exec IMAGE PROGRAM")


def test_a_report_says_of_each_component_how_near_its_nodes_are_and_could_have_been() -> None:
    near, far, one_leaf = Cost(0, 1, 1, 1), Cost(0, 3, 1, 2), "1 leaf, 1 switch between any two nodes"
    two_leaves = "2 leaves in 1 pod, 3.00 switches between two nodes on average"
    pair = ("n1", "n2")
    assert Component(pair, 0, 4, near, near).in_words() == f"n[1-2], ranks 0–3: {one_leaf}, the best there could be"
    assert Component(pair, 4, 2, far, near).in_words() == f"n[1-2], ranks 4–5: {two_leaves}; at best, alone: {one_leaf}"
    assert Component(pair, 4, 2, None, near).in_words() == f"n[1-2], ranks 4–5: no path joins its nodes; at best, alone: {one_leaf}"
    assert Component(("n3",), 6, 1, near, None).in_words() == "n3, rank 6: 1 node"


def asked(*words: str) -> Request:
    """The request of a launch line."""
    found: list[Request] = []

    @click.command(cls=LaunchCommand)
    @launch_options
    def line(**params: object) -> None:
        found.append(request_from(params))

    done = CliRunner().invoke(line, list(words), standalone_mode=False, catch_exceptions=True)
    if done.exception is not None:
        raise done.exception
    return found[0]


def test_each_component_of_a_line_is_read_as_a_launch_line() -> None:
    request = asked("train.py", "-N", "2", "--", "--lr", "1")
    assert request.components == ()
    request = asked("-N", "2", "train.py", "-n", "5", ":", "-N", "1", "-L", "a:1", "--", "./server", ":", "--", "x")
    assert (request.command, request.nodes, request.tasks) == (("train.py", "-n", "5"), 2, None)
    (server,) = request.components
    assert (server.command, server.nodes, server.sbatch) == (("./server", ":", "--", "x"), 1, (("licenses", "a:1"),))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("-N 1 a :", "behind it there is no program"),
        ("-N 1 a : b", "no -n and no -N for b"),
        ("-N 1 a : -N 1 -J x b", "-J behind a ':': it is the whole job's"),
        ("-N 1 a : -N 1 -d afterok:1 b", "-d behind a ':': it is the whole job's"),
        ("-N 1 a : -N 1 --env A=1 b", "--env behind a ':': it is the whole job's"),
        ("-N 1 a : -N 1 --launcher srun b", "--launcher behind a ':': it is the whole job's"),
        ("-N 1 a : -N 1 --sbatch signal=USR1 b", "--signal behind a ':': it is the whole job's"),
        ("-N 1 a : -N 1 --hold b", "--hold behind a ':': it is the whole job's"),
    ],
)
def test_what_stands_behind_a_colon_and_is_no_component_is_refused(line: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        asked(*line.split())


def test_the_rows_of_components_are_one_job() -> None:
    rows = (Job("12+1", "RUNNING", nodes="n001", node_count=1), Job("12+0", "RUNNING", nodes="n[003-004]", node_count=2))
    assert whole(rows) == (Job("12", "RUNNING", nodes="n[003-004,001]", node_count=3),)
    assert whole((Job("12_1", "RUNNING"), Job("12_2", "PENDING"))) == (Job("12_1", "RUNNING"), Job("12_2", "PENDING"))
    assert whole(()) == ()


def test_help_says_how() -> None:
    assert ":" in CliRunner().invoke(glaunch, ["run", "--help"]).output.split("Examples:")[1].split("Options:")[0]
