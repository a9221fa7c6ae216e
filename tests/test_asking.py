"""How Slurm is asked for nodes: which way each Slurm, each site and each request gets, and the line that says why."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import pytest
from tests.decisions import BLOCKS, CLUSTER, GPU, NODES, Site

from glaunch.asking import parse_wait, wait_words
from glaunch.cluster import Cluster
from glaunch.errors import ConfigError, NeverFits, UsageError
from glaunch.fabric import Fabric, flat_fabric
from glaunch.hostlist import expand
from glaunch.parsers.slurm_nodes import parse_nodes
from glaunch.parsers.slurm_topology import parse_topology_conf
from glaunch.plan import Plan
from glaunch.segments import list_refused, segment_that_fits


def at(version: tuple[int, ...], topology: Fabric | None = None, **config: str) -> Cluster:
    """The small cluster (two leaves of two nodes of 8 GPUs) under another Slurm."""
    return replace(CLUSTER, slurm_version=version, topology=topology, config=MappingProxyType(config))


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


def test_before_2302_prefer_asks_for_leaf_switches_where_slurm_knows_any(site: Site) -> None:
    site.says("placement.mode: prefer\n")
    plan = site.decide(cluster=at((22, 5, 8)))
    assert (plan.mode, asked(plan), plan.listed) == ("prefer", {"switches": "1"}, ())
    assert "which Slurm takes from 23.02 on (here 22.05.8)" in plan.mode_why
    flat = site.decide(cluster=at((22, 5, 8), flat_fabric(NODES.names)))
    assert (flat.mode, flat.arguments) == ("order", ())
    assert "without topology/tree no number of switches" in flat.mode_why


V24, V26 = (24, 11, 5), (26, 5, 5)


@pytest.mark.parametrize(
    ("version", "mode", "words", "took", "listed", "segment", "says"),
    [
        (V24, "auto", {}, "pin", "n[001-002]", None, "pinned if it starts"),
        (V24, "auto", {"tasks": 24}, "pin", "n[001-003]", None, "pinned if it starts"),
        (V24, "prefer", {"tasks": 8}, "prefer", "n[001-002]", None, "1 spare node on the same leaves, if"),
        (V24, "auto", {"segment": 2}, "pin", "n[001-002]", "2", "in segments of 2 nodes, each in one block"),
        (
            V24,
            "auto",
            {"tasks": 32, "segment": 2},
            "order",
            None,
            "2",
            "beside --segment this Slurm takes no list of nodes (25.11 and later do; here 24.11.5)",
        ),
        (V26, "auto", {"tasks": 32, "segment": 2}, "pin", "n[001-004]", "2", "in segments of 2 nodes"),
        (V24, "prefer", {"tasks": 24, "segment": 1}, "prefer", "n[001-004]", "1", "in segments of 1 node"),
        (V26, "auto", {"tasks": 32, "tp": 16}, "pin", "n[001-004]", "2", "in segments of 2 nodes"),
        (V24, "auto", {"tasks": 32, "tp": 16}, "order", None, "2", "in segments of 2 nodes"),
        (V24, "auto", {"tasks": 24, "tp": 24}, "pin", "n[001,003-004]", None, "pinned if it starts"),
        ((23, 11, 0), "auto", {"tasks": 32, "segment": 2}, "pin", "n[001-004]", None, "pinned if it starts"),
    ],
)
def test_under_blocks_a_list_is_sent_only_where_slurm_takes_it(
    site: Site,
    version: tuple[int, ...],
    mode: str,
    words: dict[str, object],
    took: str,
    listed: str | None,
    segment: str | None,
    says: str,
) -> None:
    site.says(f"placement.mode: {mode}\n")
    plan = site.decide(cluster=at(version, BLOCKS), **words)
    assert (plan.mode, asked(plan).get("nodelist")) == (took, listed)
    assert [option.value for option in plan.directives if option.name == "segment"] == ([segment] if segment else [])
    assert says in plan.mode_why


def test_the_topology_counts_and_not_what_the_plugin_is_called(site: Site) -> None:
    """With a topology.yaml Slurm 26.05 prints the TopologyPlugin of slurm.conf, whatever the partition is placed by."""
    plan = site.decide(cluster=at(V26, BLOCKS, TopologyPlugin="topology/flat"), tasks=32, segment=2)
    assert [option.value for option in plan.directives if option.name == "segment"] == ["2"]
    assert not [option for option in site.decide(cluster=at(V26), tasks=32, segment=2).directives if option.name == "segment"]


def test_a_saved_tree_does_not_hide_that_slurm_places_by_blocks() -> None:
    slurm = parse_topology_conf("BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-8]\nBlockSizes=4\n", where="topology.conf")
    assert list_refused(slurm, expand("n[1-4]"), (), 0, V24) == ""
    assert list_refused(slurm, expand("n[3-6]"), (), 0, V24) == "topology/block takes no list of nodes across these blocks"
    assert list_refused(slurm, expand("n[1-3,5-7]"), (), 2, V26) == "the best free set has no whole segments of 2 nodes"
    assert "in no block" in list_refused(slurm, ("n1", "n9"), (), 0, V24)
    unsized = parse_topology_conf("BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-8]\n", where="topology.conf")
    assert list_refused(unsized, expand("n[1-4]"), (), 0, (23, 11)) == ""
    assert list_refused(unsized, expand("n[1-6]"), (), 0, (23, 11)) != ""


UNEVEN = parse_topology_conf("BlockName=b1 Nodes=n[001-003]\nBlockName=b2 Nodes=n004\nBlockSizes=1,2\n", where="topology.conf")


def test_a_segment_larger_than_a_base_block_is_asked_for_only_where_slurm_takes_it(site: Site) -> None:
    """24.11 refuses it also where a block has more nodes than its size says, 26.05 takes it."""
    with pytest.raises(NeverFits, match=r"--segment 3: a segment lies in one base block, which has 1 node; from 25\.05 on") as no:
        site.decide(cluster=at(V24, UNEVEN), tasks=24, segment=3)
    assert no.value.hint.startswith("--segment 1, or leave it out")
    asking = {
        "forced": {"tasks": 24, "segment": 3, "force": True},
        "grouped": {"tasks": 16, "tp": 16},
        "asked": {"tasks": 24, "segment": 3},
    }
    segments = {
        (what, version): [
            option.value for option in site.decide(cluster=at(version, UNEVEN), **words).directives if option.name == "segment"
        ]
        for what, words in asking.items()
        for version in (V24, V26)
        if (what, version) != ("asked", V24)
    }
    assert segments == {
        ("forced", V24): ["3"], ("forced", V26): ["3"], ("grouped", V24): [], ("grouped", V26): ["2"], ("asked", V26): ["3"],
    }  # fmt: skip
    assert site.decide(cluster=at((23, 11, 0), UNEVEN), tasks=24, segment=3).mode
    assert [segment_that_fits(UNEVEN, ("n001", "n002", "n003"), 3, version) for version in (V24, V26)] == [1, 3]


def test_nothing_is_pinned_where_the_partition_is_not_up(site: Site) -> None:
    plan = site.decide(cluster=replace(CLUSTER, partitions=(replace(GPU, up=False),)))
    assert (plan.mode, plan.arguments) == ("order", ())
    assert plan.mode_why == "partition gpu is not up: nothing starts there now"


def test_a_partition_for_reservations_takes_no_other_job(site: Site) -> None:
    closed = replace(CLUSTER, partitions=(replace(GPU, needs_reservation=True),))
    with pytest.raises(NeverFits, match="partition gpu takes jobs of reservations only"):
        site.decide(cluster=closed)
    assert site.decide(cluster=closed, force=True).mode == "pin"


@pytest.mark.parametrize("option", ["spread-segments", "consolidate-segments"])
def test_how_segments_are_spread_is_slurms_where_the_user_says_so(site: Site, option: str) -> None:
    plan = site.decide(cluster=at(V26, BLOCKS), tasks=32, segment=2, sbatch=((option, None),))
    assert (plan.mode, plan.mode_why) == ("order", f"--{option} asks Slurm for the nodes")


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
