"""What accounting allows this user, asked of the database and kept: a cluster is whole without it, and says so."""

from collections.abc import Mapping
from dataclasses import replace

from glaunch.accounting import Accounting
from glaunch.cluster import Cluster, parameters
from glaunch.errors import ParseError, SlurmError
from glaunch.gateways.kept import Answer, Kept
from glaunch.gateways.slurm import SlurmCommands
from glaunch.parsers.slurm_accounting import parse_accounting

ANSWERS = 3
"""So many texts are kept as one: all QOS, the user, all accounts."""
ALONE_S = 300.0
"""A database that did not answer is not asked again for so long."""


def counts(config: Mapping[str, str]) -> bool:
    """Whether a plan depends on what accounting allows: a slurmdbd enforces limits or QOS, or QOS preempt each other."""
    enforced = parameters(config, "AccountingStorageEnforce").keys() & {"limits", "qos", "safe", "all"}
    by_qos = config.get("PreemptType") == "preempt/qos"
    return config.get("AccountingStorageType", "").endswith("/slurmdbd") and (bool(enforced) or by_qos)


def with_accounting(
    cluster: Cluster, gateway: SlurmCommands, user: str, now_s: float, kept: Kept | None = None, *, anew: bool = False
) -> Cluster:
    """The cluster with what accounting allows this user, asked only where that `counts`.

    No RPC to the controller; kept as long as partitions are. A database that does not answer, or not so that it can be read, is a note and
    is left alone for ALONE_S. `anew`: ask, whatever is kept, as before a refusal: limits change without slurm.conf changing.
    """
    if not counts(cluster.config):
        return cluster
    if kept and (failed := kept.get("no-allowance", now_s, min(kept.keep_s, ALONE_S))):
        return replace(cluster, accounting_note=failed.text)
    answer = kept.get("allowance", now_s, kept.keep_s) if kept and kept.keep_s and not anew else None
    found, told = _kept_one(answer, cluster.name), None
    try:
        if found is None:
            qos, users, accounts = told = gateway.allowance(user)
            found = parse_accounting(qos, users, accounts, cluster.name)
    except (SlurmError, ParseError) as failure:
        note = f"what your account and QOS allow is not known: {failure.message}"
        if kept and kept.keep_s:
            kept.put("no-allowance", Answer(note, now_s))
        return replace(cluster, accounting_note=note)
    if kept and kept.keep_s and told:
        kept.put("allowance", Answer("\f".join(told), now_s))
    return replace(cluster, accounting=found)


def _kept_one(answer: Answer | None, cluster: str) -> Accounting | None:
    """What a kept answer says of accounting; None where there is none, or it cannot be read."""
    told = answer.text.split("\f") if answer else []
    if len(told) != ANSWERS:
        return None
    qos, users, accounts = told
    try:
        return parse_accounting(qos, users, accounts, cluster)
    except ParseError:
        return None
