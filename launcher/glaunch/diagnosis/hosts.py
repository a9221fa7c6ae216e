"""GL30x: hosts whose logs are not home."""

from collections.abc import Iterator

from glaunch.diagnosis.facts import JobFacts
from glaunch.diagnosis.finding import Finding
from glaunch.hostlist import fold
from glaunch.logs import HostLogs

_ADVICE = {
    "refused": "the centre lets nobody onto a node without a job there; the job's own gathering is what brings logs home then",
    "auth": "is your public key in ~/.ssh/authorized_keys, and is your agent running? ssh HOST must work without a question",
    "unknown-host-key": "connect once with ssh and check the key, or ask your centre for an /etc/ssh/ssh_known_hosts",
    "changed-host-key": "was the node installed anew? Ask your centre before you remove the old key: somebody may be in between",
    "unreachable": "is the node down? sinfo -R may say why",
    "timeout": "the node or the way to it hangs; glaunch collect tries again",
    "too-large": "raise logs.max_host_mib, or log less",
    "broken": "glaunch collect tries again while the job's nodes keep its logs",
    "no-logs": "a program writes there only when it uses $GLAUNCH_LOG_DIR",
    "not-attempted": "glaunch collect goes on where it stopped",
}


def hosts(facts: JobFacts) -> Iterator[Finding]:
    """One finding a reason for hosts without logs, and one for hosts whose archive came with a remark."""
    if facts.logs is None:
        return
    by_reason: dict[str, list[HostLogs]] = {}
    remarks: dict[str, list[HostLogs]] = {}
    for host in facts.logs.hosts:
        if not host.archive:
            by_reason.setdefault(host.reason, []).append(host)
        elif host.detail:
            remarks.setdefault(host.detail, []).append(host)
    for reason, some in by_reason.items():
        severity = "note" if reason == "no-logs" else "warning"
        names = fold(one.host for one in some)
        title = f"no logs from {names}: {reason.replace('-', ' ')}"
        yield Finding("GL301", severity, title, names, None, _where(facts, some[0]), some[0].detail, _ADVICE.get(reason, ""))
    for detail, some in remarks.items():
        names = fold(one.host for one in some)
        yield Finding("GL302", "note", f"the logs of {names} are home, with a remark", names, None, _where(facts, some[0]), detail, "")


def _where(facts: JobFacts, host: HostLogs) -> str:
    return facts.file(host.where or "manifest.jsonl")
