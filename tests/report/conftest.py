"""A plan and a report with something in every field, and the same with a hostile text wherever a text can come from outside."""

import dataclasses
from pathlib import Path

import pytest

from glaunch.diagnosis.finding import Finding
from glaunch.job import Job
from glaunch.logs import HostLogs, LogBundle, LogFile, RankRow
from glaunch.placement.placement import Cost, OrderRow, Placement
from glaunch.plan import Launch, Option, Plan, RankLayout
from glaunch.report.job import JobReport, Tail
from glaunch.request import Request
from glaunch.tuning import Environment, Variable

EVIL = "a b\x1b]8;;http://x\x07\x9b31m'\"<script>alert(1)</script>&amp;\u202egpj\n#SBATCH $(id) `id` {{7*7}} {%x%}\udcff\u2028é漢"

NODES = tuple(f"n{number:03d}" for number in range(1, 9))


def _plan(text: str) -> Plan:
    """`text` stands in every field that a user, a site or a cluster fills."""
    end = f" {text}" if text else ""
    leaves = (("leaf1" + end, 4), ("leaf2" + end, 4))
    order = tuple(OrderRow(node, index, "leaf1" + end if index < 4 else "leaf2" + end, "spine" + end) for index, node in enumerate(NODES))
    placement = Placement(NODES, Cost(8, 60, 1, 2, 12), Cost(8, 60, 1, 2), leaves, (("spine" + end, 8),), 60 / 28)
    command = ("train.py", "--lr", "1e-3", *([text] if text else []))
    return Plan(
        submission_id="5f2c91d07ab3",
        name="train" + end,
        folder="/home/ada/glaunch-jobs/train-5f2c91d07ab3" + end,
        request=Request(command, tasks=64),
        partition="gpu" + end,
        time_limit_s=3600,
        time_limit_why="time, /etc/glaunch/site.yaml:12" + end,
        layout=RankLayout(64, 8, 8, 8, "h100" + end),
        mode="pin",
        mode_why="all 8 nodes are free now" + end,
        placement=placement,
        best_possible=placement,
        order=order,
        directives=(
            Option("job-name", "train" + end),
            Option("partition", "gpu" + end, "the default partition" + end),
            Option("nodes", "8", "64 ranks, 8 a node"),
            Option("gpus-per-node", "h100:8", "what the partition's nodes have" + end),
            Option("account", "red" + end, ""),
        ),
        arguments=(
            Option("nodelist", "n[001-008]", "the pin"),
            Option("no-requeue", None, "a pinned job would wait for its own nodes" + end),
        ),
        environment=Environment(
            (Variable("NCCL_DEBUG" + end, "WARN" + end, "R64" + end, "NCCL says nothing of its failures otherwise" + end, "NCCL manual"),),
            (Variable("NCCL_IB_HCA" + end, "mlx5_0" + end, "your environment", "R01 would name every adapter" + end, ""),),
            ("no fabric class is named" + end,),
            (Variable("NCCL_NET" + end, "IB" + end, "R02" + end, "one node needs no fabric" + end, "OLCF" + end),),
        ),
        launch=Launch("srun", ("/usr/bin/python3", "/home/ada/train.py", "--lr", "1e-3", *([text] if text else [])), "/home/ada" + end),
        fabric_source="scontrol show topology" + end,
        cluster_taken_at_s=1_790_000_000.0,
        warnings=("/home/ada is not named shared" + end,),
        notes=("the script asks for whole nodes" + end,),
    )


def _report(text: str) -> JobReport:
    end = f" {text}" if text else ""
    plan = _plan(text)
    logs = LogBundle(
        "/home/ada/glaunch-jobs/train-5f2c91d07ab3/12.0.0",
        (
            HostLogs("n001" + end, "gathered", "logs/n001.tar.gz", (LogFile("comm.0.log" + end, 2048, "0" * 64),), "", "" + end),
            HostLogs("n002" + end, "ssh", "logs/n002.tar.gz", (LogFile("comm.8.log" + end, 3 << 20, "1" * 64),), "", ""),
            HostLogs("n003" + end, "none", "", (), "unreachable", "10.77.1.3 port 22: no answer within 10 s" + end, "manifest.jsonl:3"),
        ),
    )
    evidence = "srun: error: n003: task 17: Exited with exit code 5" + end
    return JobReport(
        job=Job("12", "FAILED", "NonZeroExitCode" + end, "train" + end, "gpu" + end, exit_code=5),
        name="train" + end,
        folder=plan.folder,
        attempt="12.0.0",
        plan=plan,
        exit_code=5,
        run_time_s=63.0,
        granted=(*NODES[:2], "n003" + end),
        ranks=tuple(RankRow(rank, NODES[rank // 8], rank % 8) for rank in range(24)),
        planned_cost=Cost(8, 60, 1, 2),
        granted_cost=Cost(8, 9, 1, 3),
        best_cost=Cost(8, 60, 1, 2),
        granted_leaves=(("leaf1" + end, 3),),
        findings=(
            Finding(
                "GL201",
                "error",
                "rank 17 on n003 exited with code 5" + end,
                "n003" + end,
                17,
                "12.0.0/batch.log:7" + end,
                evidence,
                "look there" + end,
            ),
            Finding(
                "GL110", "note", "all 24 ranks ran where the plan's order puts them", "", None, "12.0.0/ranks.tsv:24", "23\tn003\t7", ""
            ),
        ),
        logs=logs,
        tails=(Tail(17, "n003" + end, "12.0.0/out/n003.log" + end, ("Traceback (most recent call last):", "ValueError: 5" + end)),),
        made_at_s=1_790_000_100.0,
        glaunch_version="0.1.0",
    )


@pytest.fixture
def plan() -> Plan:
    return _plan("")


@pytest.fixture
def evil_plan() -> Plan:
    return _plan(EVIL)


@pytest.fixture
def report() -> JobReport:
    return _report("")


@pytest.fixture
def evil_report() -> JobReport:
    return _report(EVIL)


@pytest.fixture
def queued_report() -> JobReport:
    """Nothing has run yet: almost all is unknown."""
    empty = dataclasses.replace(
        _report(""), job=Job("13", "PENDING", "Resources"), attempt="", exit_code=None, run_time_s=None, granted=(), ranks=()
    )
    return dataclasses.replace(
        empty, plan=None, planned_cost=None, granted_cost=None, best_cost=None, granted_leaves=(), findings=(), logs=None, tails=()
    )


@pytest.fixture
def template() -> str:
    return (Path(__file__).resolve().parents[2] / "templates" / "report" / "job.html.j2").read_text(encoding="utf-8")
