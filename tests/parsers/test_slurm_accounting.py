"""What sacctmgr says of QOS and of a user."""

import pytest

from glaunch.accounting import Account, Limits
from glaunch.errors import ParseError
from glaunch.parsers.slurm_accounting import ACCOUNT_FIELDS, QOS_FIELDS, USER_FIELDS, parse_accounting

QOS = """\
Name|Flags|Preempt|PreemptMode|PreemptExemptTime|MaxWall|MaxTRES|MaxTRESPerNode|MaxTRESMins|GrpTRES|GrpTRESRunMins|MinTRES|MaxTRESPU|MaxTRESPA
normal||spare|cluster||||||||||
spare|||requeue|00:10:00|||||||||
small|DenyOnLimit,OverPartQOS||cluster||1-00:30:00|cpu=64,gres/gpu=16,mem=100G,node=2|gres/gpu=8|gres/gpu=900|node=8|cpu=99|node=1|gres/gpu:h100=24|node=3
"""
"""As Slurm 22.05 prints it, the time of `spare` and the limits of `small` added."""
USER = """\
User|Def Acct|Cluster|Account|Partition|QOS|Def QOS|MaxWall|MaxTRES|MaxTRESPerNode|MaxTRESMins|GrpTRES|GrpTRESRunMins
ada|red|sandbox|red||normal,small,spare|normal||node=5||||
ada|red|sandbox|red|gpu|spare|||||||
ada|red|other|blue||normal|normal||||||
"""
ACCOUNTS = """\
Cluster|Account|User|Par Name|GrpTRES|GrpTRESRunMins
sandbox|root||||
sandbox|red||root|gres/gpu=32,node=4|cpu=600
sandbox|red|ada||node=1|
sandbox|deep||red||
other|deep||blue|node=1|
"""


def test_qos_and_associations() -> None:
    known = parse_accounting(QOS, USER, ACCOUNTS, "Sandbox")
    small = known.qos["small"]
    assert small.limits == Limits(
        max_wall_s=88200,
        per_job={"cpu": 64, "gres/gpu": 16, "mem": 102400, "node": 2},
        per_node={"gres/gpu": 8},
        minutes_per_job={"gres/gpu": 900},
        least_per_job={"node": 1},
        together={"node": 8},
        per_user={"gres/gpu:h100": 24},
        per_account={"node": 3},
        minutes_together={"cpu": 99},
    )
    assert small.flags == {"DenyOnLimit", "OverPartQOS"}
    assert known.qos["normal"].preempts == {"spare"}
    assert (known.qos["spare"].preempt_mode, known.qos["spare"].exempt_s) == ("requeue", 600)
    assert [(row.account, row.partition, row.qos, row.default_qos) for row in known.associations] == [
        ("red", "", ("normal", "small", "spare"), "normal"),
        ("red", "gpu", ("spare",), ""),
    ]
    assert known.associations[0].limits.per_job == {"node": 5}
    assert known.default_account == "red"


def test_the_qos_of_a_job_is_what_slurm_takes() -> None:
    known = parse_accounting(QOS, USER, ACCOUNTS, "sandbox")
    names = [
        one and one.name
        for one in (
            known.qos_of("small", None, "gpu"),
            known.qos_of(None, None, "cpu"),
            known.qos_of(None, "red", "gpu"),
            known.qos_of(None, "blue", "cpu"),
            known.qos_of("none", None, "cpu"),
        )
    ]
    assert names == ["small", "normal", "spare", None, None]


@pytest.mark.parametrize(
    ("qos", "user", "accounts", "where"),
    [
        (QOS + "x|y\n", USER, ACCOUNTS, "sacctmgr show qos:5"),
        (QOS.replace("node=8", "node=many"), USER, ACCOUNTS, "sacctmgr show qos:4"),
        (QOS.replace("1-00:30:00", "soon"), USER, ACCOUNTS, "sacctmgr show qos:4"),
        (QOS, USER.replace("node=5", "node"), ACCOUNTS, "sacctmgr show user:2"),
        (QOS, USER, ACCOUNTS.replace("cpu=600", "cpu"), "sacctmgr show assoc:3"),
    ],
)
def test_what_is_none_is_refused_with_its_place(qos: str, user: str, accounts: str, where: str) -> None:
    with pytest.raises(ParseError) as bad:
        parse_accounting(qos, user, accounts, "sandbox")
    assert bad.value.where == where


def test_the_accounts_above_an_account() -> None:
    known = parse_accounting(QOS, USER, ACCOUNTS, "sandbox")
    red = Account("red", "root", Limits(together={"gres/gpu": 32, "node": 4}, minutes_together={"cpu": 600}))
    assert known.line_of("deep") == (Account("deep", "red"), red, Account("root", ""))
    assert known.line_of("nobody's") == ()
    circle = parse_accounting(QOS, USER, ACCOUNTS.replace("root||||", "root||deep||"), "sandbox")
    assert [one.name for one in circle.line_of("deep")] == ["deep", "red", "root"]


def test_no_user_is_no_association() -> None:
    qos, user, accounts = ("|".join(names) + "\n" for names in (QOS_FIELDS, USER_FIELDS, ACCOUNT_FIELDS))
    known = parse_accounting(qos, user, accounts, "sandbox")
    assert (dict(known.qos), known.associations, known.default_account) == ({}, (), "")
