"""One cluster, two gateways: what pyslurm tells is what Slurm's commands tell, field by field, and so are the plans made of it."""

import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from tests.gateways.conftest import Live

from glaunch.cluster import Cluster, NodeTable, Partition, Reservation
from glaunch.gateways.kept import read_cluster
from glaunch.parsers.pyslurm_answers import tells_gpus
from glaunch.sandbox.box import Sandbox

pytestmark = [pytest.mark.slurm, pytest.mark.needs_pyslurm]

PARTITIONS = (
    "PartitionName=limited Nodes=n[001-004] MaxTime=2:30:00 DefaultTime=10 MaxNodes=3 MinNodes=2 AllowAccounts=red,blue "
    "AllowQos=normal,small PriorityTier=5 PreemptMode=OFF JobDefaults=DefCpuPerGPU=4,DefMemPerGPU=2048",
    "PartitionName=closed Nodes=n[005-006] State=DOWN Hidden=YES RootOnly=YES OverSubscribe=EXCLUSIVE DenyAccounts=blue DenyQos=spare "
    "AllowGroups=ada,bob QOS=small",
    "PartitionName=booked Nodes=n008 ReqResv=YES OverSubscribe=FORCE:3 MaxTime=UNLIMITED State=DRAIN",
    "PartitionName=shared Nodes=n[001,003] OverSubscribe=YES:2",
    "PartitionName=empty",
)
RESERVATIONS = (
    "ReservationName=soon StartTime=now+2hours Duration=60 Nodes=n[005-006] Users=ada,bob Flags=MAINT,IGNORE_JOBS",
    "ReservationName=daily StartTime=now+1days Duration=30 NodeCnt=1 Accounts=red Flags=DAILY,FLEX PartitionName=gpu",
    "ReservationName=whole StartTime=now+9days Duration=5 Nodes=ALL Groups=bob Flags=MAINT,OVERLAP,IGNORE_JOBS",
)


@pytest.fixture(scope="module")
def both(accounting_box: Sandbox) -> Iterator[tuple[Live, Live]]:
    """The two gateways on a cluster on which much is going on; it is quiet again afterwards."""
    commands, native = Live(accounting_box), Live(accounting_box, "pyslurm")
    commands.quiet()
    gateway, sleep = commands.gateway(), commands.script("sleep.sh", "exec sleep 1500")
    for words in PARTITIONS:
        commands.ask("scontrol", "create", *words.split())
    for words in RESERVATIONS:
        commands.ask("scontrol", "create", "reservation", *words.split())
    commands.ask("scontrol", "update", "NodeName=n003", "Weight=70", "AvailableFeatures=big,ib,rack2", "ActiveFeatures=big,ib")
    commands.ask("scontrol", "update", "NodeName=n008", "State=DRAIN", "Reason=State=IDLE Gres=gpu:x:9")
    commands.ask("scontrol", "update", "NodeName=n007", "State=DOWN", "Reason=ü")
    jobs = [
        gateway.submit(sleep, [f"--nodelist={node}", "--time=30", *more]).job_id
        for node, *more in (
            ("n001", "--gpus-per-node=3", "--mem=1000"),
            ("n002", "--gpus-per-node=8", "--exclusive"),
            ("n003", "--cpus-per-task=8"),
            ("n004", "--gpus-per-node=h100:8", "--mem=0", "--cpus-per-task=2"),
        )
    ]
    try:
        commands.until(lambda: {job.state for job in gateway.jobs(jobs)} == {"RUNNING"})
        yield commands, native
    finally:
        for node in ("n007", "n008"):  # refused for one that is idle again; `quiet` sees that they are
            commands.sandbox.exec(["scontrol", "update", f"NodeName={node}", "State=RESUME"])
        commands.ask("scontrol", "update", "NodeName=n003", "Weight=1", "AvailableFeatures=", "ActiveFeatures=")
        for words in RESERVATIONS:
            commands.ask("scontrol", "delete", words.split()[0])
        for words in PARTITIONS:
            commands.ask("scontrol", "delete", words.split()[0])
        commands.quiet()


def differences(one: Cluster, two: Cluster) -> list[str]:
    """Every field in which two snapshots differ."""
    found = []
    for column in fields(NodeTable):
        here, there = getattr(one.nodes, column.name), getattr(two.nodes, column.name)
        if not (np.array_equal(here, there) if isinstance(here, np.ndarray) else here == there):
            found.append(f"nodes.{column.name}: {here} / {there}")
    for name, kind in (("partitions", Partition), ("reservations", Reservation)):
        rows, others = getattr(one, name), getattr(two, name)
        if [row.name for row in rows] != [row.name for row in others]:
            found.append(f"{name}: {rows} / {others}")
        for row, other in zip(rows, others, strict=False):
            for field in fields(kind):
                here, there = getattr(row, field.name), getattr(other, field.name)
                if here != there:
                    found.append(f"{name} {row.name}.{field.name}: {here} / {there}")
    return found


def down(live: Live) -> None:
    """n007 is down. It comes back when its slurmd registers, which may be at any moment (ReturnToService=2)."""
    live.ask("scontrol", "update", "NodeName=n007", "State=DOWN", "Reason=ü")


def test_every_field_is_the_same(both: tuple[Live, Live]) -> None:
    for _ in range(10):
        down(both[0])
        commands, native, after = (read_cluster(one.gateway(), time.time())[0] for one in (*both, both[0]))
        if differences(commands, after) == []:  # nothing has changed meanwhile
            break
    assert differences(commands, native) == []
    assert tells_gpus(native.config)  # else the nodes came from the commands, and nothing was compared
    assert (commands.name, commands.slurm_version) == (native.name, native.slurm_version)
    # the scene is as it was meant to be, so that the fields above were not all empty
    assert list(commands.nodes.gpus_allocated) == [3, 8, 0, 8, 0, 0, 0, 0]
    assert len(set(commands.nodes.states)) >= 4
    assert len({len(partition.nodes) for partition in commands.partitions}) >= 4
    assert {flag for reservation in commands.reservations for flag in reservation.flags} >= {"MAINT", "DAILY", "FLEX"}


def test_the_configuration_is_the_same_as_far_as_glaunch_looks_at_it(both: tuple[Live, Live]) -> None:
    commands, native = (read_cluster(one.gateway(), time.time())[0].config for one in both)
    assert {key: (commands.get(key, ""), value) for key, value in native.items() if commands.get(key, "") != value} == {}


@pytest.mark.parametrize("words", [["-n", "16"], ["-N", "1"], ["-n", "8", "-p", "limited", "-N", "2", "--place", "pin"], ["-n", "40"]])
def test_the_same_plan_comes_of_it(both: tuple[Live, Live], words: list[str]) -> None:
    def plan(gateway: str) -> Mapping[str, Any]:
        done = both[0].sandbox.exec(
            ["glaunch", "plan", "--json", *words, "sleep.sh"], "ada", timeout_s=120, env={"GLAUNCH_SLURM_GATEWAY": gateway}
        )
        if done.code:
            return {"refused": done.stderr.splitlines()[-2:]}
        document = json.loads(done.stdout)
        for key in ("submission_id", "cluster_taken_at_s"):
            document.pop(key, None)
        return dict(json.loads(re.sub(r"sleep-[0-9a-f]{8}", "sleep-ID", json.dumps(document))))

    for _ in range(5):
        down(both[0])
        before, native, after = (plan(how) for how in ("commands", "pyslurm", "commands"))
        if before == after:  # nothing has changed meanwhile
            break
    assert native == before


def test_where_gpus_in_use_are_not_counted_the_commands_tell_the_nodes(cluster: Sandbox) -> None:
    """Without AccountingStorageTRES=gres/gpu pyslurm would show every GPU as free."""
    commands, native = Live(cluster), Live(cluster, "pyslurm")
    commands.quiet()
    gateway = commands.gateway()
    busy = gateway.submit(commands.script("sleep.sh", "exec sleep 600"), ["--nodelist=n001", "--gpus-per-node=3", "--time=30"]).job_id
    try:
        commands.until(lambda: {job.state for job in gateway.jobs([busy])} == {"RUNNING"})
        asked = native.gateway()
        assert asked.answer("nodes").startswith("NodeName=")
        assert asked.answer("partitions").startswith("{")
        one, two = (read_cluster(gateway, time.time())[0] for gateway in (commands.gateway(), asked))
        assert differences(one, two) == []
        assert int(two.nodes.gpus_allocated[0]) == 3
    finally:
        commands.quiet()
