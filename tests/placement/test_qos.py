"""Limits of QOS and associations, and who can throw a job out."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import pytest
from tests.decisions import CLUSTER, GPU, Site, options

from glaunch.accounting import Account, Accounting, Association, Limits, Qos
from glaunch.cluster import Cluster, Partition
from glaunch.errors import NeverFits
from glaunch.placement.preemption import preemptible
from glaunch.request import Request

ENFORCED = {"AccountingStorageEnforce": "associations,limits,qos", "TopologyPlugin": "topology/tree"}


def cluster(
    *qos: Qos, own: Limits | None = None, partition: Partition = GPU, enforce: str | None = None, names: tuple[str, ...] = ()
) -> Cluster:
    """The small cluster with these QOS, the first of which is ada's default; 4 nodes of 8 GPUs."""
    row = Association("red", "", names or tuple(one.name for one in qos), qos[0].name, own or Limits())
    known = Accounting({one.name: one for one in qos}, (row,), "red")
    config = {**ENFORCED, **({} if enforce is None else {"AccountingStorageEnforce": enforce})}
    return replace(CLUSTER, accounting=known, config=MappingProxyType(config), partitions=(partition,))


@pytest.mark.parametrize(
    ("limits", "said", "hint"),
    [
        ({"per_job": {"node": 2}}, "QOS small allows a job node=2 (MaxTRESPerJob); this job has 3,", "-n 16 (2 nodes)"),
        ({"per_job": {"gres/gpu": 20}}, "gres/gpu=20 (MaxTRESPerJob); this job has 24,", "-n 16 (2 nodes)"),
        ({"per_job": {"gres/gpu:h100": 4}}, "gres/gpu:h100=4 (MaxTRESPerJob); this job has 24,", "another --qos"),
        ({"per_job": {"cpu": 191}}, "cpu=191 (MaxTRESPerJob); this job has 192,", "-n 16 (2 nodes)"),
        ({"per_node": {"gres/gpu": 4}}, "QOS small allows a node gres/gpu=4 (MaxTRESPerNode); this job has 8,", "another --qos"),
        ({"per_user": {"node": 2}}, "all jobs of a user together node=2 (MaxTRESPerUser); this job has 3,", "-n 16 (2 nodes)"),
        ({"per_account": {"node": 2}}, "all jobs of an account together node=2 (MaxTRESPerAccount)", "-n 16 (2 nodes)"),
        ({"together": {"node": 1}}, "QOS small allows all its jobs together node=1 (GrpTRES); this job has 3,", "-n 8 (1 node)"),
        ({"minutes_per_job": {"gres/gpu": 1439}}, "gres/gpu=1439 minutes (MaxTRESMinsPerJob); this job has 1440,", "a shorter -t"),
        ({"least_per_job": {"node": 4}}, "QOS small asks of a job at least node=4 (MinTRESPerJob); this job has 3,", "-n 32 (4 nodes)"),
        ({"least_per_job": {"gres/gpu:a100": 1}}, "at least gres/gpu:a100=1 (MinTRESPerJob); this job has 0,", "-n 8 (1 node)"),
        ({"max_wall_s": 1800}, "QOS small allows a time limit of 00:30:00 (MaxWall); this job has 01:00:00,", "-t 00:30:00"),
    ],
)
def test_what_one_job_alone_exceeds_is_refused_with_the_limit(site: Site, limits: Mapping[str, object], said: str, hint: str) -> None:
    seen = cluster(Qos("small", Limits(**limits)))  # type: ignore[arg-type]
    with pytest.raises(NeverFits) as refused:
        site.decide(cluster=seen, tasks=24, time="1:00:00")
    assert said in refused.value.message
    assert refused.value.message.endswith("which would wait for ever")
    assert refused.value.hint.startswith(hint)
    assert "--force" in refused.value.hint
    forced = site.decide(cluster=seen, tasks=24, time="1:00:00", force=True)
    assert [one for one in forced.warnings if said in one]
    unenforced = replace(seen, config=MappingProxyType({"AccountingStorageEnforce": "associations"}))
    assert site.decide(cluster=unenforced, tasks=24, time="1:00:00").partition == "gpu"


def test_what_a_rank_or_a_node_may_take_less_of_is_in_the_hint(site: Site) -> None:
    for own, qos, hint in (
        (Limits(per_node={"cpu": 32}), Limits(), "-c 4, or another --account;"),
        (Limits(), Limits(per_node={"cpu": 32}), "-c 4, or another --qos;"),
        (Limits(), Limits(per_node={"cpu": 7}), "another --qos;"),
        (Limits(), Limits(per_job={"cpu": 100}), "-n 8 (1 node), -c 4, or another --qos;"),
        (Limits(), Limits(per_node={"mem": 1000}), "--mem 1000M, or another --qos;"),
        (Limits(), Limits(per_job={"mem": 1000}), "--mem 333M, or another --qos;"),
    ):
        with pytest.raises(NeverFits) as refused:
            site.decide(cluster=cluster(Qos("normal", qos), own=own), tasks=24, mem="64G" if "--mem" in hint else None)
        assert refused.value.hint.startswith(hint)


def test_what_is_just_allowed_is_not_refused(site: Site) -> None:
    exact = Limits(
        max_wall_s=3600,
        per_job={"node": 3, "gres/gpu": 24, "cpu": 192, "billing": 1, "gres/gpu:a100": 0},
        per_node={"gres/gpu": 8},
        minutes_per_job={"gres/gpu": 1440},
        least_per_job={"node": 3},
        together={"node": 3},
        per_user={"node": 3},
        per_account={"node": 3},
    )
    assert site.decide(cluster=cluster(Qos("small", exact), own=exact), tasks=24, time="1:00:00").mode == "pin"


def test_whose_limit_goes_first(site: Site) -> None:
    two, four = Limits(per_job={"node": 2}), Limits(per_job={"node": 4})
    partition = replace(GPU, qos="of-gpu")
    tight, wide = Qos("mine", two), Qos("of-gpu", four)
    assert site.decide(cluster=cluster(tight, wide, partition=partition, own=two), tasks=24), "the partition's QOS goes first"
    for flags, partitions_limit, mine, said in (
        (frozenset[str](), two, four, "QOS of-gpu (of partition gpu) allows a job node=2"),
        (frozenset({"OverPartQOS", "DenyOnLimit"}), four, two, "QOS mine allows a job node=2"),
        (frozenset[str](), Limits(), Limits(), "your part of account red allows a job node=2"),
    ):
        seen = cluster(Qos("mine", mine, flags), Qos("of-gpu", partitions_limit), partition=partition, own=two)
        with pytest.raises(NeverFits) as refused:
            site.decide(cluster=seen, tasks=24)
        assert said in refused.value.message
        assert refused.value.message.endswith("which Slurm refuses" if flags else "which would wait for ever")


def test_accounts_above_limit_all_of_theirs_together(site: Site) -> None:
    plain = cluster(Qos("normal"), own=Limits(together={"node": 4}))
    known = plain.accounting
    assert known is not None

    def above(red: Mapping[str, int], top: Mapping[str, int], qos: Mapping[str, int] = MappingProxyType({})) -> Cluster:
        rows = (Account("red", "top", Limits(together=red)), Account("top", "root", Limits(together=top)))
        named = {"normal": Qos("normal", Limits(together=qos))}
        return replace(plain, accounting=replace(known, qos=named, accounts={one.name: one for one in rows}))

    assert site.decide(cluster=above({"node": 3}, {"node": 3}), tasks=24)
    with pytest.raises(NeverFits, match=r"^account top allows all its jobs together node=2 \(GrpTRES\); this job has 3, which would wait"):
        site.decide(cluster=above({"node": 3}, {"node": 2}), tasks=24)
    assert site.decide(cluster=above({"node": 3}, {"node": 2}, {"node": 9}), tasks=24), "the QOS goes first"


def test_flags_lift_limits_of_the_partition(site: Site) -> None:
    partition = replace(GPU, max_nodes=2, max_time_s=60, min_nodes=0)
    flags = frozenset({"PartitionMaxNodes", "PartitionTimeLimit"})
    assert site.decide(cluster=cluster(Qos("big", flags=flags), partition=partition), tasks=24, time="1:00:00").layout.nodes == 3
    for some in flags:
        with pytest.raises(NeverFits, match="partition gpu"):
            site.decide(cluster=cluster(Qos("big", flags=flags - {some}), partition=partition), tasks=24, time="1:00:00")
    least = replace(GPU, min_nodes=4)
    assert site.decide(cluster=cluster(Qos("big", flags=frozenset({"PartitionMinNodes"})), partition=least)).layout.nodes == 2
    with pytest.raises(NeverFits, match="fewer than 4"):
        site.decide(cluster=cluster(Qos("big"), partition=least))


def test_without_a_time_limit_slurm_gives_what_the_qos_allows(site: Site) -> None:
    short = cluster(Qos("short", Limits(max_wall_s=1800)))
    plan = site.decide(cluster=short)
    assert (plan.time_limit_s, plan.time_limit_why) == (1800, "QOS short: MaxWall; -t asks for less")
    assert options(plan, "time") == []
    longer = cluster(Qos("short", Limits(max_wall_s=1800)), partition=replace(GPU, default_time_s=3600))
    with pytest.raises(NeverFits, match="this job has 01:00:00"):
        site.decide(cluster=longer)


def test_a_qos_that_is_not_yours(site: Site) -> None:
    both = cluster(Qos("normal"), Qos("vip"), names=("normal",))
    with pytest.raises(NeverFits, match="QOS vip is none of yours in account red; you have: normal"):
        site.decide(cluster=both, qos="vip")
    with pytest.raises(NeverFits, match="QOS nono is not known here"):
        site.decide(cluster=both, qos="nono")
    assert site.decide(cluster=cluster(Qos("normal"), Qos("vip"), names=("normal",), enforce="limits"), qos="vip")
    closed = cluster(Qos("normal"), partition=replace(GPU, allow_qos=("vip",)))
    with pytest.raises(NeverFits, match=r"partition gpu lets no job of QOS normal in: AllowQos=vip"):
        site.decide(cluster=closed)
    with pytest.raises(NeverFits, match=r"DenyQos=normal"):
        site.decide(cluster=cluster(Qos("normal"), partition=replace(GPU, deny_qos=("normal",))))


SPARE, NORMAL = Qos("spare", preempt_mode="requeue"), Qos("normal", preempts=frozenset({"spare"}))


@pytest.mark.parametrize(
    ("qos", "config", "time_limit_s", "said"),
    [
        ((SPARE, NORMAL), {}, 3600, "jobs of QOS spare can be preempted by those of QOS normal"),
        ((SPARE, NORMAL), {}, None, "jobs of QOS spare can be preempted by those of QOS normal"),
        ((NORMAL, SPARE), {}, 3600, ""),
        ((replace(SPARE, preempt_mode="cluster"), NORMAL), {}, 3600, "jobs of QOS spare can be preempted by those of QOS normal"),
        ((replace(SPARE, preempt_mode="cluster"), NORMAL), {"PreemptMode": "GANG,SUSPEND"}, 3600, ""),
        ((replace(SPARE, preempt_mode="suspend"), NORMAL), {}, 3600, ""),
        ((replace(SPARE, exempt_s=3600), NORMAL), {}, 3600, ""),
        ((replace(SPARE, exempt_s=3600), NORMAL), {}, None, "jobs of QOS spare can be preempted by those of QOS normal"),
        ((SPARE, NORMAL), {"PreemptExemptTime": "02:00:00"}, 3600, ""),
        (
            (replace(SPARE, exempt_s=0), NORMAL),
            {"PreemptExemptTime": "02:00:00"},
            3600,
            "jobs of QOS spare can be preempted by those of QOS normal",
        ),
        ((replace(SPARE, preempt_mode="requeue,within"),), {}, 3600, "jobs of QOS spare can be preempted by those of QOS spare"),
        ((), {}, 3600, "jobs can be preempted here by QOS, and it is not known which one this job gets"),
        ((SPARE, NORMAL), {"PreemptType": "preempt/none"}, 3600, ""),
    ],
)
def test_who_can_preempt(qos: tuple[Qos, ...], config: Mapping[str, str], time_limit_s: int | None, said: str) -> None:
    seen = cluster(*qos) if qos else CLUSTER
    told = {**seen.config, "PreemptType": "preempt/qos", "PreemptMode": "REQUEUE", **config}
    answer = preemptible(Request(("x",), tasks=8), GPU, replace(seen, config=MappingProxyType(told)), time_limit_s)
    assert answer == said


def test_lower_partitions_are_preempted_unless_they_are_only_suspended() -> None:
    for mode, tier, said in (
        ("REQUEUE", 2, True),
        ("CANCEL", 2, True),
        ("GANG,SUSPEND", 2, False),
        ("OFF", 2, False),
        ("REQUEUE", 1, False),
    ):
        seen = replace(
            CLUSTER, partitions=(GPU, replace(GPU, name="top", priority_tier=tier)), config={"PreemptType": "preempt/partition_prio"}
        )
        assert bool(preemptible(Request(("x",), tasks=8), replace(GPU, preempt_mode=mode), seen, 60)) is said, mode


def test_slurm_does_not_mind_the_case_of_an_account_or_a_qos(site: Site) -> None:
    seen = cluster(
        Qos("normal"), Qos("small", Limits(per_job={"node": 2})), partition=replace(GPU, allow_qos=("small",), allow_accounts=("red",))
    )
    with pytest.raises(NeverFits, match=r"QOS small allows a job node=2 \(MaxTRESPerJob\)"):
        site.decide(cluster=seen, tasks=24, qos="SMALL", account="Red")
    taken = site.decide(cluster=seen, qos="Small", account="RED")
    assert options(taken, "qos")[0][0] == "small"
    assert options(taken, "account")[0][0] == "red"


def test_an_account_that_is_not_yours(site: Site) -> None:
    seen = cluster(Qos("normal"))
    known = seen.accounting
    assert known is not None
    seen = replace(seen, accounting=replace(known, accounts={name: Account(name, "root") for name in ("red", "blue")}))
    with pytest.raises(NeverFits, match="account blue is not yours; you have: red"):
        site.decide(cluster=seen, account="blue")
    with pytest.raises(NeverFits, match="account rde is not known here; you have: red") as refused:
        site.decide(cluster=seen, account="rde")
    assert refused.value.hint == "-A red; to let Slurm say no itself: --force"
    assert site.decide(cluster=seen, account="rde", force=True)
    assert site.decide(cluster=replace(seen, config=MappingProxyType({"AccountingStorageEnforce": "none"})), account="rde")
    elsewhere = replace(known, associations=(replace(known.associations[0], partition="cpu"),))
    with pytest.raises(NeverFits, match="account red is yours in other partitions only: cpu; the job is for gpu"):
        site.decide(cluster=replace(seen, accounting=elsewhere), account="red")


def test_a_misspelt_qos_is_answered_with_the_nearest(site: Site) -> None:
    with pytest.raises(NeverFits, match="QOS smal is not known here; you have: normal, small") as refused:
        site.decide(cluster=cluster(Qos("normal"), Qos("small")), qos="smal")
    assert refused.value.hint.startswith("--qos small;")
