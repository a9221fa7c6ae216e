"""`sacctmgr -P show qos`, `show user … withassoc` and `show assoc user=` as what accounting allows.

**Source:** sacctmgr(1); answers of 22.05 and 24.11.
"""

from collections.abc import Mapping
from types import MappingProxyType

from glaunch.accounting import Account, Accounting, Association, Limits, Qos
from glaunch.errors import ParseError, UsageError
from glaunch.parsers.slurm_fields import NOTHING, limit_s
from glaunch.units import parse_memory_mib

_LIMITS = ("MaxWall", "MaxTRES", "MaxTRESPerNode", "MaxTRESMins", "GrpTRES", "GrpTRESRunMins")
QOS_FIELDS = ("Name", "Flags", "Preempt", "PreemptMode", "PreemptExemptTime", *_LIMITS, "MinTRES", "MaxTRESPU", "MaxTRESPA")
USER_FIELDS = ("User", "DefaultAccount", "Cluster", "Account", "Partition", "QOS", "DefaultQOS", *_LIMITS)
ACCOUNT_FIELDS = ("Cluster", "Account", "User", "ParentName", "GrpTRES", "GrpTRESRunMins")


def parse_accounting(qos: str, user: str, accounts: str, cluster: str) -> Accounting:
    """All QOS, and the user's associations and all accounts of the cluster of that name.

    From the three answers with QOS_FIELDS, USER_FIELDS and ACCOUNT_FIELDS (of those, rows of users are passed over).
    Raises ParseError (`sacctmgr show qos:LINE`) for another number of fields, and for a limit that is none.
    """
    found = [_qos(row, where) for row, where in _rows(qos, QOS_FIELDS, "sacctmgr show qos")]
    here = cluster.casefold()
    rows = [(row, where) for row, where in _rows(user, USER_FIELDS, "sacctmgr show user") if row["Cluster"].casefold() == here]
    above = [
        Account(row["Account"], row["ParentName"], _limits(row, where))
        for row, where in _rows(accounts, ACCOUNT_FIELDS, "sacctmgr show assoc")
        if row["Cluster"].casefold() == here and not row["User"]
    ]
    return Accounting(
        qos=MappingProxyType({one.name: one for one in found}),
        associations=tuple(_association(row, where) for row, where in rows),
        default_account=rows[0][0]["DefaultAccount"] if rows else "",
        accounts=MappingProxyType({one.name: one for one in above}),
    )


def _rows(text: str, names: tuple[str, ...], what: str) -> list[tuple[Mapping[str, str], str]]:
    """The rows below the head line, each with its place."""
    found: list[tuple[Mapping[str, str], str]] = []
    for number, line in enumerate(text.split("\n"), 1):
        cells = line.split("|")
        if number > 1 and line.strip():
            if len(cells) != len(names):
                raise ParseError(f"{what}:{number}", line, f"{len(names)} fields")
            found.append((dict(zip(names, cells, strict=True)), f"{what}:{number}"))
    return found


def _qos(row: Mapping[str, str], where: str) -> Qos:
    exempt = row["PreemptExemptTime"]
    return Qos(
        name=row["Name"],
        limits=_limits(row, where),
        flags=frozenset(_words(row["Flags"])),
        preempts=frozenset(_words(row["Preempt"])),
        preempt_mode=row["PreemptMode"] or "cluster",
        exempt_s=limit_s(exempt, where) if exempt not in NOTHING else None,
    )


def _association(row: Mapping[str, str], where: str) -> Association:
    return Association(row["Account"], row["Partition"], _words(row["QOS"]), row["DefaultQOS"], _limits(row, where))


def _limits(row: Mapping[str, str], where: str) -> Limits:
    def resources(key: str) -> Mapping[str, int]:
        return _resources(row.get(key, ""), where)

    return Limits(
        max_wall_s=limit_s(row.get("MaxWall", ""), where),
        per_job=resources("MaxTRES"),
        per_node=resources("MaxTRESPerNode"),
        minutes_per_job=resources("MaxTRESMins"),
        least_per_job=resources("MinTRES"),
        together=resources("GrpTRES"),
        per_user=resources("MaxTRESPU"),
        per_account=resources("MaxTRESPA"),
        minutes_together=resources("GrpTRESRunMins"),
    )


def _resources(text: str, where: str) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for word in _words(text):
        name, equals, value = word.partition("=")
        try:
            found[name] = parse_memory_mib(value) if name == "mem" else int(value)
        except (UsageError, ValueError) as bad:
            raise ParseError(where, word, "RESOURCE=NUMBER") from bad
        if not equals:
            raise ParseError(where, word, "RESOURCE=NUMBER")
    return MappingProxyType(found)


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for word in text.split(",") if word)
