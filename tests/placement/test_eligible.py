"""Which nodes a request can use now, which ever, and why the others not."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glaunch.cluster import Cluster, Partition, Reservation
from glaunch.errors import UsageError
from glaunch.parsers.slurm_nodes import parse_nodes
from glaunch.placement.eligible import Eligible, eligible
from glaunch.placement.standing import FREE, PART, STARTABLE, standing
from glaunch.request import Request

NOW = 1_000_000


def node(
    name: str, state: str = "IDLE", gres: str = "gpu:h100:8", used: str = "", features: str = "ib", taken: int = 0, weight: int = 1
) -> str:
    """A line of `show node`: 64 CPUs, `taken` of them in use."""
    return (
        f"NodeName={name} CPUAlloc={taken} CPUEfctv=64 CPUTot=64 ActiveFeatures={features} Gres={gres} GresUsed={used or '(null)'} "
        f"NodeAddr={name} RealMemory=512000 AllocMem={taken * 8000} State={state} Weight={weight} Partitions=gpu"
    )


PARTITION = Partition("gpu", (), True, True, None, None, None, 0, (), (), (), "NO", "OFF", MappingProxyType({}))


def cluster(*lines: str, reservations: tuple[Reservation, ...] = (), config: Mapping[str, str] = MappingProxyType({})) -> Cluster:
    """A cluster of these nodes with one partition."""
    table = parse_nodes("\n".join(lines))
    return Cluster("c", (22, 5, 8), NOW, table, (replace(PARTITION, nodes=table.names),), reservations, config)


def ask(
    here: Cluster,
    *,
    limit_s: int | None = 3600,
    excluded: frozenset[str] = frozenset(),
    partition: Partition | None = None,
    **words: object,
) -> Eligible:
    """The answer for a request of 8 ranks unless it says otherwise."""
    request = Request(("x",), **({} if {"tasks", "nodes"} & set(words) else {"tasks": 8}), **words)  # type: ignore[arg-type]
    return eligible(request, here, partition or here.partitions[0], now_s=NOW, time_limit_s=limit_s, excluded=excluded)


@pytest.mark.parametrize(
    ("state", "where"),
    [
        ("IDLE", FREE),
        ("IDLE+CLOUD", FREE),
        ("MIXED", PART),
        ("IDLE+CLOUD+POWERED_DOWN", STARTABLE),
        ("IDLE+POWERED_DOWN", STARTABLE),
    ],
)
def test_states_in_which_a_job_can_start(state: str, where: str) -> None:
    assert standing(state) == (where, "")


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ("ALLOCATED", "busy"),
        ("IDLE+DRAIN", "drained"),
        ("MIXED+DRAIN", "drained"),
        ("DOWN", "down"),
        ("DOWN+NOT_RESPONDING", "down"),
        ("IDLE+NOT_RESPONDING", "not responding"),
        ("IDLE+FAIL", "failing"),
        ("MAINTENANCE", "in maintenance"),
        ("IDLE+MAINT", "in maintenance"),
        ("IDLE+RESERVED", "reserved"),
        ("IDLE+PLANNED", "planned for other jobs"),
        ("IDLE+COMPLETING", "completing"),
        ("IDLE+CLOUD+POWERING_UP", "powering up or down"),
        ("IDLE+POWERING_DOWN", "powering up or down"),
        ("IDLE+BLOCKED", "blocked"),
        ("IDLE+REBOOT_ISSUED", "rebooting"),
        ("IDLE+DYNAMIC_NORM", "dynamic"),
        ("FUTURE", "not there yet"),
        ("UNKNOWN", "in an unknown state"),
        ("IDLE+SOMETHING_NEW", "in state IDLE+SOMETHING_NEW"),
        ("WEIRD", "in state WEIRD"),
        ("", "in state "),
    ],
)
def test_states_that_are_not_free(state: str, why: str) -> None:
    assert standing(state) == ("", why)


@given(st.lists(st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ_", min_size=1), min_size=1, max_size=4))
def test_a_flag_that_nobody_knows_never_reads_as_free(flags: list[str]) -> None:
    unknown = [flag for flag in flags if flag not in {"CLOUD", "POWERED_DOWN", "POWER_SAVING", "PERFCTRS"}]
    if unknown:
        assert standing("+".join(["IDLE", *flags]))[0] == ""


def test_every_node_is_counted_once_with_its_reason() -> None:
    here = cluster(
        node("a1"), node("a2", "IDLE+DRAIN"), node("a3", "ALLOCATED"), node("a4", "DOWN"), node("a5", "IDLE+CLOUD+POWERED_DOWN"),
        node("a6"),
        node("a7", features="(null)"), node("a8"), node("a9", gres="gpu:a100:4"),
    )  # fmt: skip
    answer = ask(here, constraint="ib", exclude="a8", excluded=frozenset({"a6"}))
    assert answer.nodes == ("a1",)
    assert answer.startable == ("a5",)
    assert answer.could_ever == ("a1", "a2", "a3", "a4", "a5", "a6")
    assert dict(answer.left_out) == {
        "drained": 1, "busy": 1, "down": 1, "asked for by your own launches": 1, "without ib": 1, "excluded with -x": 1,
        "with other GPUs": 1,
    }  # fmt: skip
    assert dict(answer.never) == {"without ib": 1, "excluded with -x": 1, "with other GPUs": 1}
    assert answer.decided


STATES = st.sampled_from(["IDLE", "MIXED", "ALLOCATED", "IDLE+DRAIN", "DOWN", "IDLE+CLOUD+POWERED_DOWN", "FUTURE", "IDLE+NEW"])
GRES = st.sampled_from(["gpu:h100:8", "gpu:a100:4", "gpu:8", "(null)", "gpu:a100:2,gpu:v100:2"])


@given(st.lists(st.tuples(STATES, GRES, st.integers(0, 8)), min_size=1, max_size=12), st.integers(1, 40), st.booleans())
def test_laws(nodes: list[tuple[str, str, int]], tasks: int, exclusive: bool) -> None:
    here = cluster(
        *(node(f"n{number}", state, gres, gres.replace(":8", f":{used}"), taken=used) for number, (state, gres, used) in enumerate(nodes))
    )
    answer = ask(here, tasks=tasks, exclusive=exclusive)
    table = here.nodes
    assert len(answer.nodes) + len(answer.startable) + sum(count for _, count in answer.left_out) == len(table)
    assert set(answer.nodes) | set(answer.startable) <= set(answer.could_ever)
    assert len({(table.gpu_types[table.row[name]], int(table.gpus_total[table.row[name]])) for name in answer.could_ever}) <= 1
    assert answer.nodes == tuple(name for name in table.names if name in answer.nodes)
    for name in answer.nodes:
        row = table.row[name]
        assert table.states[row] == "IDLE" or (table.states[row] == "MIXED" and not exclusive)
        assert int(table.gpus_total[row] - table.gpus_allocated[row]) >= answer.share.gpus
        assert int(table.cpus_total[row] - table.cpus_allocated[row]) >= answer.share.cpus
    assert (answer.layout.nodes - 1) * answer.layout.tasks_per_node < tasks <= answer.layout.nodes * answer.layout.tasks_per_node


def test_types_and_counts_are_never_mixed() -> None:
    here = cluster(
        *(node(f"h{i}", "ALLOCATED") for i in range(4)), *(node(f"a{i}", gres="gpu:a100:4") for i in range(4)), node("c1", gres="(null)")
    )
    assert ask(here, tasks=16).nodes == ("a0", "a1", "a2", "a3")
    assert ask(here, tasks=16).layout.tasks_per_node == 4
    assert ask(here, tasks=32).could_ever == ("h0", "h1", "h2", "h3")
    assert ask(here, tasks=8, gpus_per_node="h100:8").nodes == ()
    assert ask(here, tasks=8, gpus_per_node="h100:8").could_ever == ("h0", "h1", "h2", "h3")
    assert ask(here, nodes=2, gpus_per_node="0").nodes == ("a0", "a1", "a2", "a3", "c1")


def test_a_slice_counts_only_by_its_name() -> None:
    here = cluster(node("m1", gres="gpu:a100_1g.5gb:7", used="gpu:a100_1g.5gb:2"), node("h1"))
    assert ask(here, tasks=8).nodes == ("h1",)
    assert ask(here, tasks=5, gpus_per_node="a100_1g.5gb:5").nodes == ("m1",)
    assert ask(here, tasks=6, gpus_per_node="a100_1g.5gb:6").nodes == ()


def test_shared_nodes_need_their_whole_share() -> None:
    here = cluster(
        node("n1", "MIXED", used="gpu:h100:4(IDX:0-3)", taken=32), node("n2", "MIXED", used="gpu:h100:4", taken=33), node("n3"),
        config={"SelectTypeParameters": "CR_CORE_MEMORY"},
    )  # fmt: skip
    assert ask(here, tasks=4).nodes == ("n1", "n3")
    assert ask(here, tasks=4).share == ask(here, tasks=4).share.__class__(4, 32, 256000)
    assert ask(here, tasks=4, exclusive=True).nodes == ("n3",)
    assert ask(here, tasks=4, cpus_per_task=1, mem="1G").nodes == ("n1", "n2", "n3")
    assert ask(here, tasks=4, partition=replace(here.partitions[0], over_subscribe="EXCLUSIVE")).nodes == ("n3",)
    small = replace(here.partitions[0], job_defaults=MappingProxyType({"DefCpuPerGPU": "1", "DefMemPerGPU": "1000"}))
    assert ask(here, tasks=4, partition=small).nodes == ("n1", "n2", "n3")
    assert ask(here, tasks=8, mem="600G").never == (("with less than 600 GiB of memory", 3),)
    assert ask(here, tasks=8, cpus_per_task=9).never == (("with fewer than 72 CPUs", 3),)
    assert ask(here, tasks=8, gpus_per_node="a100:8").never == (("with h100 and no a100", 3),)
    assert ask(here, tasks=8, gpus_per_node="9").never == (("with fewer than 9 GPUs", 3),)


def reservation(name: str, nodes: tuple[str, ...], start: int, end: int) -> Reservation:
    return Reservation(name, nodes, NOW + start, NOW + end, (), (), ())


def test_reservations() -> None:
    here = cluster(
        *(node(f"n{number}") for number in range(1, 6)),
        node("n6", "IDLE+RESERVED"),
        reservations=(
            reservation("now", ("n1", "n6"), -60, 7200),
            reservation("soon", ("n2",), 1800, 7200),
            reservation("later", ("n3",), 5400, 7200),
            reservation("over", ("n4",), -7200, -1),
            reservation("even later", ("n5",), 5000, 7200),
        ),
    )
    assert ask(here).nodes == ("n3", "n4", "n5")
    assert ask(here, limit_s=None).nodes == ("n4",)
    assert dict(ask(here).left_out) == {"reserved": 2, "reserved before the job would end": 1}
    assert ask(here, reservation="now").nodes == ("n1", "n6")
    assert ask(here, reservation="soon").nodes == ()
    assert ask(here, reservation="soon").could_ever == ("n2",)
    with pytest.raises(UsageError, match="no reservation 'nope'"):
        ask(here, reservation="nope")
    assert ask(here, tasks=16, limit_s=6000).soonest_limit_s == 5400
    assert ask(here, tasks=24, limit_s=6000).soonest_limit_s == 4980
    assert ask(here, tasks=48, limit_s=6000).soonest_limit_s is None
    assert ask(here, tasks=8, limit_s=6000).soonest_limit_s is None


def test_lists_of_nodes() -> None:
    here = cluster(*(node(f"n{number}") for number in range(1, 5)))
    assert ask(here, tasks=16, nodelist="n[2-4]").nodes == ("n2", "n3", "n4")
    assert ask(here, tasks=16, nodelist="n3").nodes == ("n1", "n2", "n3", "n4")
    with pytest.raises(UsageError, match="-w: no node 'n9'"):
        ask(here, nodelist="n[4,9]")
    with pytest.raises(UsageError, match="-x: no node 'n9'"):
        ask(here, exclude="n[4,9]")


def test_constraints() -> None:
    here = cluster(node("n1", features="ib,gen1"), node("n2", features="ib"), node("n3", features="gen1"))
    assert ask(here, constraint="ib&gen1").nodes == ("n1",)
    assert ask(here, constraint="ib|gen1").nodes == ("n1", "n2", "n3")
    for hard in ("[ib|gen1]", "ib*2", "(ib|gen1)&x", "!ib"):
        answer = ask(here, constraint=hard)
        assert not answer.decided
        assert hard in answer.notes[0]
    assert not ask(here, sbatch=(("gres", "gpu:8"),)).decided


def test_weights_and_an_empty_partition() -> None:
    answer = ask(cluster(node("n1", weight=5), node("n2", "IDLE+POWERED_DOWN", weight=7), node("n3", "DOWN", weight=9)))
    assert (answer.weights, answer.startable_weights, answer.could_ever) == ((5,), (7,), ("n1", "n2", "n3"))
    with pytest.raises(UsageError, match="has no nodes"):
        ask(cluster())


A100, H100 = "gpu:a100:4", "gpu:h100:8"
BOTH = [*(node(f"h{number}", gres=H100) for number in (1, 2)), *(node(f"a{number}", gres=A100) for number in (1, 2, 3))]


def test_kinds_are_mixed_only_where_that_was_said_and_no_single_one_is_free() -> None:
    here = cluster(*BOTH)
    apart = ask(here, nodes=4)
    assert (apart.nodes, apart.mixture) == (("h1", "h2"), ()), "of one kind"
    mixed = ask(here, nodes=4, mixed=True)
    assert mixed.nodes == ("h1", "h2", "a1", "a2", "a3")
    assert (mixed.layout.tasks, mixed.layout.tasks_per_node, mixed.layout.gpus_per_node, mixed.layout.gpu_type) == (16, 4, 4, "")
    assert mixed.mixture == (("a100", 4, 3), ("h100", 8, 2))
    assert mixed.decided
    one_kind = ask(here, nodes=2, mixed=True)
    assert (one_kind.nodes, one_kind.layout.gpu_type, one_kind.layout.gpus_per_node, one_kind.mixture) == (("h1", "h2"), "h100", 8, ())


def test_ranks_on_mixed_nodes_are_as_many_as_the_least_has_gpus() -> None:
    here = cluster(*BOTH)
    assert ask(here, tasks=20, mixed=True).layout.nodes == 5
    eight = ask(here, tasks=24, gpus_per_node="8", mixed=True)
    assert (eight.layout.nodes, eight.could_ever) == (3, ("h1", "h2")), "asked for eight, those with four are none"
    without = ask(here, nodes=3, exclude="a1,a2", mixed=True)
    assert (without.nodes, without.layout.gpus_per_node) == (("h1", "h2", "a3"), 4)
    least = ask(cluster(*BOTH, node("t1", gres="gpu:t4:1")), nodes=4, exclude="t1", mixed=True)
    assert least.layout.gpus_per_node == 4, "a node that is left out does not count"


def test_one_type_in_two_numbers_keeps_its_type() -> None:
    here = cluster(node("x1", gres="gpu:h100:4"), node("x2", gres="gpu:h100:8"), node("y1", gres="gpu:a100:8"))
    mixed = ask(here, nodes=2, gpus_per_node="h100:4", mixed=True)
    assert (mixed.nodes, mixed.layout.gpu_type, mixed.layout.gpus_per_node) == (("x1", "x2"), "h100", 4)
    assert ask(here, nodes=2, gpus_per_node="h100:4").could_ever != mixed.could_ever


def test_a_mixed_job_counts_what_is_free_of_each_node() -> None:
    part, full = (node("h1", "MIXED", H100, "gpu:h100:4(IDX:0-3)", taken=32), node("h2", "ALLOCATED", H100, taken=64))
    mixed = ask(cluster(part, full, *BOTH[2:]), nodes=4, mixed=True)
    assert mixed.nodes == ("h1", "a1", "a2", "a3")
    assert mixed.share.cpus == 32, "a GPU's share where it is smallest: 64 cores for 8 GPUs"
    alike = ask(cluster(*BOTH[:2]), nodes=4, mixed=True)
    assert (alike.mixture, alike.layout.gpu_type) == ((), "h100")
