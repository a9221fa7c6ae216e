"""How Slurm is asked for nodes: which way each Slurm, each site and each request gets, and the line that says why."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest
from tests.test_decide import CLUSTER, GPU, Site

from glaunch.asking import parse_wait, wait_words
from glaunch.cluster import Cluster
from glaunch.errors import ConfigError, UsageError
from glaunch.parsers.slurm_nodes import parse_nodes
from glaunch.plan import Plan


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def at(version: tuple[int, ...], plugin: str = "topology/tree", **config: str) -> Cluster:
    """The small cluster (two leaves of two nodes of 8 GPUs) under another Slurm."""
    return replace(CLUSTER, slurm_version=version, config=MappingProxyType({"TopologyPlugin": plugin, **config}))


def asked(plan: Plan) -> Mapping[str, str | None]:
    return {option.name: option.value for option in plan.arguments}


def test_prefer_names_spares_on_the_same_leaves_where_slurm_takes_them(site: Site) -> None:
    site.says("placement.mode: prefer\n")
    plan = site.decide(cluster=at((23, 2, 0)), tasks=8)
    assert plan.mode == "prefer"
    assert plan.placement is not None
    assert plan.placement.nodes == ("n001",)
    assert asked(plan) == {"nodelist": "n[001-002]", "no-requeue": None}
    assert plan.listed == ("n001", "n002")
    assert plan.mode_why == "among the best 1 node and 1 spare node on the same leaves, if it starts within 30 s, else Slurm chooses"
    full = site.decide(cluster=at((23, 2, 0)), tasks=16)
    assert asked(full)["nodelist"] == "n[001-002]"
    assert "with no spare node free on their leaves" in full.mode_why


def test_a_heavier_node_is_no_spare(site: Site) -> None:
    site.says("placement.mode: prefer\n")
    lines = [
        f"NodeName=n00{number} CPUAlloc=0 CPUTot=64 Gres=gpu:h100:8 GresUsed=(null) NodeAddr=n00{number} RealMemory=512000 AllocMem=0 "
        f"State=IDLE Weight={weight} Partitions=gpu"
        for number, weight in ((1, 1), (2, 9), (3, 5), (4, 5))
    ]
    heavy = replace(at((24, 5, 0)), nodes=parse_nodes("\n".join(lines)))
    assert asked(site.decide(cluster=heavy, tasks=8))["nodelist"] == "n001"


@pytest.mark.parametrize(
    ("version", "plugin", "arguments", "says"),
    [
        ((22, 5, 8), "topology/tree", {"switches": "1"}, "which Slurm takes from 23.02 on (here 22.05.8)"),
        ((22, 5, 8), "topology/none", {}, "without topology/tree no number of switches"),
        ((24, 5, 0), "topology/block", {"segment": "2"}, "in segments of 2 nodes, each in one block"),
        ((23, 11, 0), "topology/block", {}, "--segment only from 24.05 on (here 23.11.0)"),
    ],
)
def test_prefer_becomes_what_this_slurm_takes_and_says_why(
    site: Site, version: tuple[int, ...], plugin: str, arguments: Mapping[str, str], says: str
) -> None:
    site.says("placement.mode: prefer\n")
    plan = site.decide(cluster=at(version, plugin))
    assert asked(plan) == arguments
    assert plan.mode == ("prefer" if arguments else "order")
    assert says in plan.mode_why
    assert plan.listed == ()


def test_no_segment_of_one_node(site: Site) -> None:
    site.says("placement.mode: prefer\n")
    plan = site.decide(cluster=at((24, 5, 0), "topology/block"), tasks=24)
    assert (plan.mode, asked(plan)) == ("order", {})
    assert "no segment of two nodes or more fits" in plan.mode_why


def test_auto_stays_pin_or_order_and_the_site_caps_each_way(site: Site) -> None:
    assert site.decide().mode == "pin"
    site.says("placement: {allowed: [prefer, order]}\n")
    assert site.decide().mode == "order"
    site.says("placement: {pin_max_nodes: 1, prefer_max_nodes: 3}\n")
    capped = site.decide()
    assert (capped.mode, capped.mode_why) == ("order", f"{site.file}:1 allows pin up to 1 node")
    assert site.decide(tasks=8).mode == "pin"
    site.says("placement: {mode: prefer, prefer_max_nodes: 1}\n")
    assert site.decide().mode_why == f"{site.file}:1 allows prefer up to 1 node"
    site.says("placement: {mode: prefer, allowed: [pin, order]}\n")
    with pytest.raises(ConfigError, match="placement 'prefer' is switched off here"):
        site.decide()


@pytest.mark.parametrize(
    "words",
    [
        {"array": "0-3"},
        {"dependency": "afterok:1"},
        {"nodelist": "n001,n002"},
        {"reservation": None, "sbatch": (("hold", None),)},
        {"sbatch": (("begin", "now+1hour"),)},
    ],
)
def test_what_may_start_later_is_asked_for_no_nodes(site: Site, words: dict[str, object]) -> None:
    for mode in ("auto", "prefer"):
        site.says(f"placement.mode: {mode}\n")
        for version in ((22, 5, 8), (24, 5, 0)):
            plan = site.decide(cluster=at(version), **words)
            assert (plan.mode, plan.arguments) == ("order", ()), (mode, version)


def test_what_may_be_requeued_gets_no_list_but_a_number_of_switches(site: Site) -> None:
    site.says("placement.mode: prefer\n")
    assert site.decide(cluster=at((24, 5, 0)), requeue=True).mode == "order"
    assert asked(site.decide(cluster=at((22, 5, 8)), requeue=True)) == {"switches": "1"}
    preempted = replace(at((24, 5, 0), PreemptType="preempt/qos"), partitions=(replace(GPU, preempt_mode="REQUEUE"),))
    assert site.decide(cluster=preempted).mode == "order"
    assert asked(site.decide(cluster=replace(preempted, slurm_version=(22, 5, 8)))) == {"switches": "1"}


def test_waiting_for_leaves_is_slurms_and_its_cap_is_named(site: Site) -> None:
    plan = site.decide(wait_for_leaves="2@4:00")
    assert (plan.mode, plan.arguments) == ("order", ())
    assert [option.value for option in plan.directives if option.name == "switches"] == ["2@4:00"]
    assert plan.mode_why == "Slurm waits at most 4 min for nodes on 2 leaf switches, then takes any"
    assert not plan.warnings
    short = at((24, 5, 0), SchedulerParameters="bf_continue,max_switch_wait=60")
    assert "at most 1 min (max_switch_wait=60 of this Slurm) for" in wait_words("2@4:00", short)
    assert "at most 5 min (max_switch_wait, Slurm's default) for" in wait_words("1@10:00", CLUSTER)
    assert "at most 5 min (max_switch_wait, Slurm's default) for" in wait_words("1", CLUSTER)
    assert "even with all nodes free it takes 2 leaves" in " ".join(site.decide(tasks=24, wait_for_leaves="1").warnings)


def test_waiting_for_leaves_and_asking_for_nodes_exclude_each_other(site: Site) -> None:
    site.says("placement.mode: prefer\n")
    with pytest.raises(UsageError, match="prefer and --wait-for-leaves both say which nodes"):
        site.decide(wait_for_leaves="1")
    site.says("")
    with pytest.raises(UsageError, match="--wait-for-leaves and --switches say the same"):
        site.decide(wait_for_leaves="1", sbatch=(("switches", "1"),))
    with pytest.raises(UsageError, match="is no number of leaf switches"):
        site.decide(wait_for_leaves="")


@pytest.mark.parametrize("text", ["", "0", "two", "1@", "-1", "1@soon", "@5"])
def test_a_wait_that_cannot_be_meant_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_wait(text)
