"""What became of a job: one page for a terminal, one for a browser, one document for programs; the same facts in each."""

from collections.abc import Sequence
from dataclasses import dataclass

from glaunch.diagnosis.finding import Finding
from glaunch.hostlist import fold
from glaunch.job import Job
from glaunch.logs import HostLogs, LogBundle, RankRow
from glaunch.placement.placement import Cost
from glaunch.plan import Plan
from glaunch.report.plan import shape
from glaunch.report.text import clean, plural, row, table, wrapped
from glaunch.units import format_size, format_span

_HOSTS_SHOWN = 32
_MARK = {"error": "✗", "warning": "!", "note": "·"}


@dataclass(frozen=True, slots=True)
class Tail:
    """The last lines of a rank that failed."""

    rank: int
    host: str
    where: str
    """The file, below the job's folder."""
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JobReport:
    """All that a report shows of one attempt."""

    job: Job
    name: str
    folder: str
    attempt: str
    """The attempt's folder below the job's: `12.0.0`; "" before the job has started."""
    plan: Plan | None
    exit_code: int | None
    """The job's own, from exit.json, else Slurm's."""
    run_time_s: float | None
    granted: tuple[str, ...]
    """Hosts in rank order."""
    ranks: tuple[RankRow, ...]
    planned_cost: Cost | None
    granted_cost: Cost | None
    best_cost: Cost | None
    granted_leaves: tuple[tuple[str, int], ...]
    """(leaf, nodes on it), in rank order."""
    findings: tuple[Finding, ...]
    logs: LogBundle | None
    tails: tuple[Tail, ...]
    made_at_s: float
    glaunch_version: str


def job_text(report: JobReport, width: int = 80) -> str:
    """The report for people, `width` columns wide."""
    lines = [*wrapped(clean(headline(report)), width, rest="  "), "", *_facts(report, width)]
    if report.findings:
        lines += ["", "findings"]
        for finding in report.findings:
            lines += _finding(finding, width)
    for tail in report.tails:
        lines += ["", *wrapped(f"the end of rank {tail.rank} on {clean(tail.host)} ({clean(tail.where)})", width, rest="  ")]
        lines += [f"  {clean(line)}" for line in tail.lines]
    if report.logs is not None:
        lines += ["", *_logs(report.logs, width)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def headline(report: JobReport) -> str:
    """`job 12 (train): COMPLETED, exit code 0, after 1 min`."""
    job = report.job
    # Slurm calls a job running for a moment after its script has ended, and an allocation for as long as it lasts
    state = "ended" if report.exit_code is not None and job.state in {"RUNNING", "COMPLETING"} else job.state
    words = [f"job {job.id} ({report.name}): {state}"]
    if report.exit_code is not None:
        words.append(f"exit code {report.exit_code}")
    elif job.exit_signal:
        words.append(f"signal {job.exit_signal}")
    if job.reason and job.reason != "None":
        words.append(job.reason)
    if report.run_time_s is not None:
        words.append(f"after {format_span(report.run_time_s)}" if job.over else f"for {format_span(report.run_time_s)}")
    return ", ".join(words)


def placement_words(report: JobReport) -> list[tuple[str, str]]:
    """(got, planned or best, in words), for those that are known."""
    costs = (("got", report.granted_cost), ("planned", report.planned_cost), ("at best", report.best_cost))
    return [(label, _cost_words(cost)) for label, cost in costs if cost is not None]


def _cost_words(cost: Cost) -> str:
    return f"{plural(cost.leaves, 'leaf', 'leaves')} in {plural(cost.pods, 'pod')}, {plural(cost.hops, 'hop')} in all"


def _facts(report: JobReport, width: int) -> list[str]:
    lines: list[str] = []
    if report.plan is not None:
        lines += row("ran" if report.granted else "asked", shape(report.plan), width)
    if report.granted:
        lines += row("nodes", f"{fold(report.granted)} (in rank order)", width)
    if report.granted_leaves:
        lines += row("leaves", ", ".join(f"{leaf}: {plural(count, 'node')}" for leaf, count in report.granted_leaves), width)
    for label, words in placement_words(report):
        lines += row(label, words, width)
    lines += row("folder", report.folder + (f"/{report.attempt}" if report.attempt else ""), width)
    return lines


def _finding(finding: Finding, width: int) -> list[str]:
    start = f"  {_MARK.get(finding.severity, '·')} {finding.code}  "
    lines = wrapped(clean(finding.title), width, first=start, rest=" " * 11)
    lines += wrapped(clean(f"{finding.where}: {finding.evidence}"), width, first=" " * 11, rest=" " * 13)
    if finding.advice:
        lines += wrapped(clean(f"→ {finding.advice}"), width, first=" " * 11, rest=" " * 13)
    return lines


def _logs(logs: LogBundle, width: int) -> list[str]:
    home = [host for host in logs.hosts if host.archive]
    lines = wrapped(logs_words(logs), width, rest="  ")
    shown = [*logs.missing, *home][:_HOSTS_SHOWN]
    order = {host.host: index for index, host in enumerate(logs.hosts)}
    rows = [_host_cells(host) for host in sorted(shown, key=lambda host: order[host.host])]
    if rows:
        lines += [f"  {line}" for line in table(("host", "came", "files", "bytes", "archive or reason"), rows, width - 2)]
    if len(logs.hosts) > len(shown):
        lines.append(f"  and {plural(len(logs.hosts) - len(shown), 'more host')} whose logs are home")
    return lines


def bundle_text(logs: LogBundle, width: int = 80) -> str:
    """What `glaunch collect` prints: each host, and its archive or why there is none."""
    return "\n".join(line.rstrip() for line in _logs(logs, width)) + "\n"


def logs_words(logs: LogBundle) -> str:
    """`logs of 8 hosts: all home (8 gathered by the job)`."""
    gathered = sum(host.how == "gathered" for host in logs.hosts)
    fetched = sum(host.how == "ssh" for host in logs.hosts)
    ways = ", ".join(
        words for count, words in ((gathered, f"{gathered} gathered by the job"), (fetched, f"{fetched} fetched over SSH")) if count
    )
    missing = len(logs.missing)
    state = f"{plural(missing, 'host')} missing" if missing else "all home"
    return f"logs of {plural(len(logs.hosts), 'host')}: {state}" + (f" ({ways})" if ways else "")


def _host_cells(host: HostLogs) -> Sequence[str]:
    size = format_size(sum(file.size_bytes for file in host.files)) if host.archive else "-"
    return (host.host, host.how if host.archive else "missing", str(len(host.files)), size, host.archive or f"{host.reason}: {host.detail}")
