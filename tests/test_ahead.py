"""What waiting would buy: which nodes come free when, which of these moments are worth a word, and when the rule says wait."""

from dataclasses import replace
from types import MappingProxyType

import pytest
from tests.decisions import CLUSTER, FABRIC, Site

from glaunch.ahead import MOMENTS_MAX, Sight, free_at, freed, gain_s, look_ahead, pays
from glaunch.cluster import Cluster, Reservation
from glaunch.fabric import Fabric, synthetic
from glaunch.job import Occupation
from glaunch.network_model import Network
from glaunch.parsers.slurm_nodes import parse_nodes
from glaunch.plan import Later

NOW_S = 1_000_000


def busy(*nodes: str, cluster: Cluster = CLUSTER) -> Cluster:
    """The small cluster (leaves n001-n002 and n003-n004) with some nodes taken."""
    table = cluster.nodes
    rows = [table.row[node] for node in nodes]
    states = tuple("ALLOCATED" if row in rows else state for row, state in enumerate(table.states))
    cpus = table.cpus_allocated.copy()
    cpus[rows] = 64
    return replace(cluster, nodes=replace(table, states=states, cpus_allocated=cpus))


def look(
    site: Site, cluster: Cluster, *jobs: Occupation, fabric: Fabric = FABRIC, network: Network | None = None, **words: object
) -> Later:
    plan = site.decide(cluster=cluster, **words)
    sight = Sight(cluster, fabric, cluster.partitions[0], jobs, frozenset(), network or Network(), MappingProxyType({}))
    return look_ahead(plan, "hops", sight)


def in_s(seconds: int, *nodes: str) -> Occupation:
    return Occupation(nodes, NOW_S + seconds)


def test_a_node_is_free_when_the_last_of_its_jobs_ends_and_never_where_one_has_no_limit() -> None:
    jobs = (Occupation(("a", "b"), 5), Occupation(("b", "c"), 9), Occupation(("c",), None))
    assert free_at(jobs) == {"a": 5, "b": 9}


def test_flags_of_a_freed_node_stay() -> None:
    table = CLUSTER.nodes
    drained = replace(CLUSTER, nodes=replace(table, states=("MIXED+DRAIN", "ALLOCATED", "ALLOCATED", "DOWN")))
    ends = {"n001": 1, "n002": 2, "n003": 9, "n004": 1}
    assert freed(drained, ends, 5).nodes.states == ("IDLE+DRAIN", "IDLE", "ALLOCATED", "DOWN")


def test_each_better_moment_is_told_and_worse_or_equal_ones_are_not(site: Site) -> None:
    # free: n002 and n003, one on each leaf; n001 comes in ten minutes, n004 (no better) in twenty
    found = look(site, busy("n001", "n004"), in_s(600, "n001"), in_s(1200, "n004"), time="2:00:00")
    assert [(one.in_s, one.nodes, one.cost.leaves) for one in found.moments] == [(600, ("n001", "n002"), 1)]
    assert found.ends == 2
    assert found.hidden == 0


def test_what_cannot_be_had_now_can_be_had_later_and_nothing_is_weighed(site: Site) -> None:
    found = look(site, busy("n001", "n002", "n003"), in_s(60, "n001"), in_s(120, "n002"), Occupation(("n003",), None), tasks=16)
    assert [(one.in_s, one.nodes) for one in found.moments] == [(60, ("n001", "n004")), (120, ("n001", "n002"))]
    assert found.advice == ""


def test_jobs_that_slurm_hides_are_counted_and_never_end(site: Site) -> None:
    found = look(site, busy("n001", "n004"), in_s(600, "n004"))
    assert [one.nodes for one in found.moments] == [("n003", "n004")]
    assert found.hidden == 1
    assert look(site, busy("n001", "n004")).moments == ()


def test_a_reservation_ahead_holds_then_too(site: Site) -> None:
    cluster = busy("n001", "n004")
    maintenance = Reservation("maint", ("n001",), NOW_S + 4000, NOW_S + 9000, ("root",), (), ("MAINT",))
    cluster = replace(cluster, reservations=(maintenance,))
    jobs = (in_s(600, "n001"), in_s(900, "n004"))
    assert [one.nodes for one in look(site, cluster, *jobs, time="1:00:00").moments] == [("n003", "n004")]
    assert [one.nodes for one in look(site, cluster, *jobs, time="10").moments] == [("n001", "n002")]


@pytest.mark.parametrize(
    ("time", "wait_s", "says"),
    [
        ("1:00:00", 600, "start now: a network better by 67% saves at most 8 min"),
        ("2:00:00", 240, "waiting may pay: a network better by 67% saves at most 16 min"),
        ("10", 30, "start now:"),  # what is left is less than any end is sure of
    ],
)
def test_the_rule(site: Site, time: str, wait_s: int, says: str) -> None:
    assert look(site, busy("n001", "n004"), in_s(wait_s, "n001"), time=time).advice.startswith(says)


def test_a_day_long_job_with_a_tenth_better_network_waits_half_an_hour_at_most() -> None:
    assert gain_s(24 * 3600, 0.10) == pytest.approx(28.8 * 60)
    assert pays(gain_s(24 * 3600, 0.10), 23 * 60, 64, 0)
    assert not pays(gain_s(24 * 3600, 0.10), 24 * 60, 64, 0), "five minutes are within the error of any end"
    assert not pays(gain_s(24 * 3600, 0.10), 29 * 60, 64, 0)


@pytest.mark.parametrize(
    ("held", "wait_s", "worth"),
    [(64, 7200, True), (64, 7201, False), (32, 9600, True), (32, 9601, False), (0, 13_000, True)],
)
def test_what_is_kept_idle_counts_against_what_is_gained(held: int, wait_s: int, worth: bool) -> None:
    """Of 64 nodes so many held for the wait; the network saves four hours (14,400 s): idle is less than gained below these figures."""
    assert pays(14_401, wait_s, 64, held * wait_s) is worth


def test_nodes_that_wait_for_the_last_of_a_set_are_idle_until_then(site: Site) -> None:
    # n002 is free, and would stand idle for the ten minutes until n001 comes
    (moment,) = look(site, busy("n001", "n004"), in_s(600, "n001"), in_s(1200, "n004"), time="2:00:00").moments
    assert moment.idle_node_s == 600
    # nothing is free: n001 comes in one minute, and waits one more for n002
    first, last = look(site, busy("n001", "n002", "n003"), in_s(60, "n001"), in_s(120, "n002"), Occupation(("n003",), None)).moments
    assert (first.idle_node_s, last.idle_node_s) == (60, 60)
    wide = replace(CLUSTER, partitions=(replace(CLUSTER.partitions[0], max_time_s=None),))
    said = look(site, busy("n001", "n004", cluster=wide), in_s(3600, "n001"), time="9:00:00").advice
    assert said.startswith("start now: a network better by 67% saves at most 1 h 12 min")
    assert said.endswith("1.0 node-hours kept idle until then are more than the 0.4 it saves")
    assert (
        "with at most 1.0 node-hours idle until then for 1.2 saved"
        in look(site, busy("n001", "n004", cluster=wide), in_s(3600, "n001"), time="12:00:00").advice
    )


def test_the_rule_says_how_to_wait_and_needs_a_time_limit(site: Site) -> None:
    cluster = busy("n001", "n004")
    assert look(site, cluster, in_s(240, "n001"), time="2:00:00").advice.endswith("to wait: --wait-for-leaves 1@4")
    unlimited = replace(cluster, partitions=(replace(cluster.partitions[0], max_time_s=None),))
    assert look(site, unlimited, in_s(3600, "n001"), time="2-0").advice.endswith("to wait: --sbatch begin=now+60minutes")
    assert look(site, unlimited, in_s(60, "n001")).advice.startswith("start now: without a time limit")


def test_of_many_ends_some_are_looked_at_the_last_among_them(site: Site) -> None:
    fabric = synthetic("core:1 leaf:100 node:2")
    names = sorted(fabric.leaf_of)
    lines = [
        f"NodeName={name} CPUAlloc=0 CPUTot=64 Gres=gpu:h100:8 GresUsed=(null) NodeAddr={name} RealMemory=512000 AllocMem=0 "
        f"State=IDLE Weight=1 Partitions=gpu"
        for name in names
    ]
    table = parse_nodes("\n".join(lines))
    cluster = replace(CLUSTER, nodes=table, partitions=(replace(CLUSTER.partitions[0], nodes=tuple(names)),))
    cluster = busy(*names, cluster=cluster)
    jobs = [in_s(60 * number, name) for number, name in enumerate(names, 1)]
    plan = replace(site.decide(cluster=cluster, tasks=8 * 200), best_possible=None)
    found = look_ahead(plan, "hops", Sight(cluster, fabric, cluster.partitions[0], jobs, frozenset(), Network(), MappingProxyType({})))
    assert (found.looked_at, found.ends) == (MOMENTS_MAX, 200)
    assert [one.in_s for one in found.moments] == [60 * 200]
