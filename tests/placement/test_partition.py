"""Which partition a job goes to."""

from types import MappingProxyType

import pytest

from glaunch.cluster import Cluster, Partition
from glaunch.errors import UsageError
from glaunch.parsers.slurm_nodes import parse_nodes
from glaunch.placement.partition import choose_partition, member_rows
from glaunch.request import Request


def part(name: str, **more: object) -> Partition:
    words: dict[str, object] = {
        "name": name, "nodes": (), "up": True, "default": False, "max_time_s": None, "default_time_s": None, "max_nodes": None,
        "min_nodes": 0, "allow_accounts": (), "allow_groups": (), "allow_qos": (), "over_subscribe": "NO", "preempt_mode": "OFF",
        "job_defaults": MappingProxyType({}),
    }  # fmt: skip
    return Partition(**(words | more))  # type: ignore[arg-type]


def cluster(*partitions: Partition, gpus: tuple[str, ...] = ("gpu", "big")) -> Cluster:
    """Two nodes for each partition, with GPUs in those of `gpus`."""
    lines = [
        f"NodeName={partition.name}{number} CPUAlloc=0 CPUTot=8 Gres={'gpu:h100:8' if partition.name in gpus else '(null)'} "
        f"GresUsed=(null) RealMemory=1 State=IDLE Partitions={partition.name}"
        for partition in partitions
        for number in (1, 2)
    ]
    return Cluster("c", (22, 5), 0.0, parse_nodes("\n".join(lines)), partitions, (), {})


def choose(here: Cluster, groups: tuple[str, ...] = (), **words: object) -> str:
    return choose_partition(Request(("x",), tasks=1, **words), here, groups=groups).name  # type: ignore[arg-type]


def test_the_named_one() -> None:
    here = cluster(part("gpu", default=True), part("cpu"), part("secret", hidden=True))
    assert choose(here, partition="cpu") == "cpu"
    assert choose(here, partition="secret") == "secret"
    with pytest.raises(UsageError) as unknown:
        choose(here, partition="gpuu")
    assert "did you mean -p gpu?" in unknown.value.hint
    assert "there are: gpu, cpu" in unknown.value.hint
    assert "secret" not in unknown.value.hint
    with pytest.raises(UsageError, match="several partitions"):
        choose(here, partition="gpu,cpu")


def test_the_default_one_when_it_has_gpus_or_nothing_has() -> None:
    assert choose(cluster(part("big"), part("gpu", default=True))) == "gpu"
    assert choose(cluster(part("cpu", default=True), part("other"), gpus=())) == "cpu"


@pytest.mark.parametrize(
    "closed",
    [
        {"up": False}, {"hidden": True}, {"root_only": True}, {"needs_reservation": True}, {"allow_groups": ("ops",)},
        {"allow_accounts": ("blue",)}, {"deny_accounts": ("red",)}, {"allow_qos": ("high",)}, {"deny_qos": ("low",)},
    ],
)  # fmt: skip
def test_else_the_only_one_with_gpus_that_is_open(closed: dict[str, object]) -> None:
    here = cluster(part("cpu", default=True), part("big", **closed), part("gpu"))
    assert choose(here, groups=("ml",), account="red", qos="low") == "gpu"
    assert choose(here, groups=("ml",), account="RED", qos="Low") == "gpu"


def test_slurm_does_not_mind_the_case_of_who_is_let_in() -> None:
    assert (
        choose(cluster(part("cpu", default=True), part("gpu", allow_accounts=("red",), allow_qos=("low",))), account="RED", qos="Low")
        == "gpu"
    )


def test_else_the_list_of_them() -> None:
    with pytest.raises(UsageError) as several:
        choose(cluster(part("cpu", default=True), part("gpu"), part("big")))
    assert "gpu (2 nodes × 8 h100); big (2 nodes × 8 h100)" in several.value.message
    assert "-p gpu" in several.value.hint
    with pytest.raises(UsageError, match="no partition with GPUs is open to you"):
        choose(cluster(part("cpu", default=True), part("gpu", up=False)))
    with pytest.raises(UsageError, match="no partition"):
        choose(cluster())


def test_members_are_what_the_nodes_say() -> None:
    here = cluster(part("gpu"), part("cpu"))
    assert member_rows(here, here.partitions[1]) == [2, 3]
