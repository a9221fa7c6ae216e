"""Partitions, reservations, configuration, version."""

import os
from pathlib import Path

import pytest

from glaunch.errors import ParseError
from glaunch.parsers.slurm_config import parse_config, parse_version
from glaunch.parsers.slurm_partitions import parse_partitions
from glaunch.parsers.slurm_reservations import parse_reservations

SHARED = Path(os.environ.get("GLAUNCH_SHARED") or Path(__file__).resolve().parents[3] / "shared")
CAPTURES = sorted(SHARED.glob("captures/*/*"))

PARTITION = (
    "PartitionName=gpu AllowGroups=ml,ops AllowAccounts=ALL AllowQos=normal AllocNodes=ALL Default=YES QoS=N/A DefaultTime=01:00:00 "
    "DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO MaxNodes=4 MaxTime=1-00:00:00 MinNodes=2 LLN=NO MaxCPUsPerNode=UNLIMITED "
    "Nodes=n[1-3,7] PriorityJobFactor=1 PriorityTier=5 RootOnly=NO ReqResv=NO OverSubscribe=EXCLUSIVE OverTimeLimit=NONE "
    "PreemptMode=REQUEUE State=UP TotalCPUs=256 TotalNodes=4 SelectTypeParameters=NONE JobDefaults=DefCpuPerGPU=4,DefMemPerGPU=1000"
)


def test_a_partition() -> None:
    (partition,) = parse_partitions(PARTITION + " DefMemPerNode=UNLIMITED\n\n")
    assert (partition.name, partition.nodes) == ("gpu", ("n1", "n2", "n3", "n7"))
    assert (partition.up, partition.default, partition.hidden) == (True, True, False)
    assert (partition.max_time_s, partition.default_time_s) == (86400, 3600)
    assert (partition.max_nodes, partition.min_nodes, partition.priority_tier) == (4, 2, 5)
    assert (partition.allow_groups, partition.allow_accounts, partition.allow_qos) == (("ml", "ops"), (), ("normal",))
    assert (partition.over_subscribe, partition.preempt_mode) == ("EXCLUSIVE", "REQUEUE")
    assert dict(partition.job_defaults) == {"DefCpuPerGPU": "4", "DefMemPerGPU": "1000"}


def test_no_limits_and_denials() -> None:
    (partition,) = parse_partitions(
        "PartitionName=x DenyAccounts=red DenyQos=a,b MaxNodes=UNLIMITED MaxTime=UNLIMITED DefaultTime=NONE Nodes=(null) State=DOWN"
    )
    assert (partition.max_nodes, partition.max_time_s, partition.default_time_s, partition.nodes, partition.up) == (
        None,
        None,
        None,
        (),
        False,
    )
    assert (partition.deny_accounts, partition.deny_qos, dict(partition.job_defaults)) == (("red",), ("a", "b"), {})


def test_reservations() -> None:
    text = (
        "ReservationName=maint StartTime=1796033195 EndTime=1796036795 Duration=01:00:00 Nodes=n[1-2] NodeCnt=2 CoreCnt=64 Features=(null) "
        "PartitionName=gpu Flags=MAINT,SPEC_NODES TRES=cpu=64 Users=root,ada Groups=(null) Accounts=red Licenses=(null) State=INACTIVE "
        "Comment=x Nodes=n9\nmore Nodes=n8\n"
        "ReservationName=words StartTime=2026-11-30T05:34:12 EndTime=2026-11-30T07:34:12 Nodes=(null) Users=(null) Flags=\n"
    )
    first, second = parse_reservations(text)
    assert (first.name, first.nodes, first.start_s, first.end_s) == ("maint", ("n1", "n2"), 1796033195, 1796036795)
    assert (first.users, first.accounts, first.flags, first.partition) == (("root", "ada"), ("red",), ("MAINT", "SPEC_NODES"), "gpu")
    assert (second.nodes, second.end_s - second.start_s) == ((), 7200)
    assert parse_reservations("No reservations in the system\n") == ()


@pytest.mark.parametrize(
    "text",
    [
        "what",
        "PartitionName=x Nodes=n[1-",
        "PartitionName=x State=UP Nodes=n[3-1]",
        "PartitionName=x State=UP MaxNodes=few",
        "PartitionName=x State=UP MaxTime=soon",
    ],
)
def test_what_is_no_partition_is_said(text: str) -> None:
    with pytest.raises(ParseError, match="scontrol show partition:1"):
        parse_partitions(text)


@pytest.mark.parametrize("text", ["what", "ReservationName=x StartTime=1", "ReservationName=x StartTime=now EndTime=5"])
def test_what_is_no_reservation_is_said(text: str) -> None:
    with pytest.raises(ParseError, match="scontrol show reservation:1"):
        parse_reservations(text)


def test_config_and_version() -> None:
    config = parse_config(
        "Configuration data as of 1\nClusterName             = x = y\nSlurmctldHost[0]        = ctl(10.77.0.1)\n"
        "Prolog = (null)\n\nSlurmctld(primary) at ctl is UP\n"
    )
    assert dict(config) == {"ClusterName": "x = y", "SlurmctldHost[0]": "ctl(10.77.0.1)", "Prolog": ""}
    assert parse_version("slurm-wlm 22.05.8\n") == (22, 5, 8)
    assert parse_version("slurm 25.11.8-0pre1") == (25, 11, 8)
    for wrong in (lambda: parse_config("hello"), lambda: parse_version("no")):
        with pytest.raises(ParseError):
            wrong()


@pytest.mark.skipif(not CAPTURES, reason="no captures of other Slurm versions here")
@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: f"{path.parent.name}-{path.name}" if isinstance(path, Path) else "none")
def test_other_versions(capture: Path) -> None:
    batch, small = parse_partitions((capture / "scontrol-show-partition-oneliner.txt").read_text())
    assert (batch.name, batch.default, batch.max_time_s, len(batch.nodes)) == ("batch", True, 3600, 8)
    assert (small.name, small.default, small.max_time_s, len(small.nodes)) == ("small", False, 600, 4)
    assert parse_reservations((capture / "scontrol-show-reservation.txt").read_text()) == ()
    assert parse_config((capture / "scontrol-show-config.txt").read_text())["ClusterName"]
    assert parse_version((capture / "version.txt").read_text()) >= (22, 5)
