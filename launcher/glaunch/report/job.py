"""What became of a job: one page for a terminal, one for a browser, one document for programs; the same facts in each."""

from collections.abc import Sequence
from dataclasses import dataclass

from glaunch.diagnosis.finding import Finding
from glaunch.hostlist import fold
from glaunch.job import FORGOTTEN, UNTOLD, Job
from glaunch.logs import HostLogs, LogBundle, RankRow
from glaunch.placement.placement import Cost
from glaunch.plan import Plan
from glaunch.reasons import in_words
from glaunch.report.findings import MARK, finding_lines
from glaunch.report.plan import shape
from glaunch.report.text import clean, row, table, wrapped
from glaunch.units import format_size, format_span, plural

_HOSTS_SHOWN = 32


@dataclass(frozen=True, slots=True)
class Tail:
    """The last lines of a rank that failed."""

    rank: int
    host: str
    where: str
    """The file, below the job's folder."""
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Component:
    """Of a heterogeneous job one component: what it got."""

    nodes: tuple[str, ...]
    """In rank order."""
    first_rank: int
    tasks: int
    cost: Cost | None
    """None where no path joins the nodes."""
    best_cost: Cost | None
    """The least possible on its partition's whole fabric, for it alone."""

    def in_words(self) -> str:
        """`n[003,006], ranks 0–3: 1 leaf, 1 switch between any two nodes, the best there could be`."""
        last = self.first_rank + self.tasks - 1
        ranks = f"rank {last}" if self.tasks == 1 else f"ranks {self.first_rank}–{last}"
        got, best = (cost.in_words(len(self.nodes)) if cost is not None else "" for cost in (self.cost, self.best_cost))
        beside = "" if not best or len(self.nodes) == 1 else ", the best there could be" if got == best else f"; at best, alone: {best}"
        return f"{fold(self.nodes)}, {ranks}: {got or 'no path joins its nodes'}{beside}"


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
    components: tuple[Component, ...] = ()
    """Of a heterogeneous job whose nodes are known; () for a plain one."""


def job_text(report: JobReport, width: int = 80) -> str:
    """The report for people, `width` columns wide: how it ended and why first, then the facts, then what was looked at."""
    lines = [*wrapped(clean(headline(report)), width, rest="  "), *_cause(report, width), "", *_facts(report, width)]
    if report.findings:
        lines += ["", "findings"]
        for finding in report.findings:
            lines += finding_lines(finding, width)
    for tail in report.tails:
        lines += ["", *wrapped(f"the end of rank {tail.rank} on {clean(tail.host)} ({clean(tail.where)})", width, rest="  ")]
        lines += [f"  {clean(line)}" for line in tail.lines]
    if report.logs is not None and report.logs.missing:
        lines += ["", "logs that are not home", *_log_table(report.logs.missing, width)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def headline(report: JobReport) -> str:
    """`job 12 (train) failed after 1 min, exit code 5`."""
    job = report.job
    state = in_words(job)
    # Slurm calls a job running for a moment after its script has ended, and an allocation for as long as it lasts
    if job.state == FORGOTTEN or (report.exit_code is not None and job.state in {"RUNNING", "COMPLETING", UNTOLD}):
        state = "is over" if report.exit_code is None else "failed" if report.exit_code else "is done"
        if any(finding.code == "GL206" for finding in report.findings):  # before Slurm's own answer says so
            state = in_words(Job(job.id, "CANCELLED"))
    if job.state == "COMPLETED" and report.exit_code is None and any(finding.code == "GL213" for finding in report.findings):
        state = "ended and started no rank"
    if job.never_ran and not report.attempt:  # 0:53 is no signal
        return f"job {job.id} ({report.name}) never ran"
    words = f"job {job.id} ({report.name}) {state}"
    if report.run_time_s is not None:
        words += f" {'after' if job.over or report.exit_code is not None else 'for'} {format_span(report.run_time_s)}"
    if report.exit_code is not None:
        return f"{words}, exit code {report.exit_code}"
    return f"{words}, signal {job.exit_signal}" if job.exit_signal else words


def cause(report: JobReport) -> tuple[str, str]:
    """(the first error, the last words of the rank that failed), each "" where there is none: what stands right below the headline."""
    errors = [finding.title for finding in report.findings if finding.severity == "error"]
    words = [f"{tail.rank}: {line}" for tail in report.tails for line in tail.lines if line.strip()]
    return (errors[0], words[-1] if words else "") if errors else ("", "")


def _cause(report: JobReport, width: int) -> list[str]:
    title, words = cause(report)
    lines = wrapped(clean(title), width, first=f"  {MARK['error']} ", rest="    ") if title else []
    return lines + (wrapped(clean(words), width, first="    ", rest="      ") if words else [])


def placement_words(report: JobReport) -> list[tuple[str, str]]:
    """What the nodes cost beside the plan and the best there could be, as (label, words); one line where they are the same."""
    asked = report.plan.layout.nodes if report.plan else 0
    costs = (
        ("got", report.granted_cost, len(report.granted)),
        ("planned", report.planned_cost, asked),
        ("at best", report.best_cost, asked),
    )
    known = {label: cost.in_words(nodes) for label, cost, nodes in costs if cost is not None}
    got = known.get("got")
    same = [
        words for label, words in (("planned", "as planned"), ("at best", "the best there could be")) if got and known.get(label) == got
    ]
    if got and same:
        known["got"] = f"{got}: {', '.join(same)}"
    shown = [(label, words) for label, words in known.items() if label == "got" or words != got]
    return [*shown, *(("component", f"{number}: {one.in_words()}") for number, one in enumerate(report.components))]


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
    if report.logs is not None:
        lines += row("logs", logs_words(report.logs), width)
    lines += row("folder", report.folder + (f"/{report.attempt}" if report.attempt else ""), width)
    return lines


def _log_table(hosts: Sequence[HostLogs], width: int) -> list[str]:
    shown = hosts[:_HOSTS_SHOWN]
    lines = [
        f"  {line}"
        for line in table(("host", "came", "files", "bytes", "archive or reason"), [_host_cells(one) for one in shown], width - 2)
    ]
    return lines + ([f"  and {plural(len(hosts) - len(shown), 'more host')}"] if hosts[len(shown) :] else [])


def bundle_text(logs: LogBundle, width: int = 80) -> str:
    """What `glaunch collect` prints: each host (where there are many, the missing ones first), and its archive or why there is none."""
    hosts = logs.hosts
    if len(hosts) > _HOSTS_SHOWN:
        hosts = (*logs.missing, *(host for host in hosts if host.archive))
    lines = [*wrapped(f"logs {logs_words(logs)}", width, rest="  "), *(_log_table(hosts, width) if hosts else [])]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def logs_words(logs: LogBundle) -> str:
    """`of 8 hosts: all home (8 gathered by the job)`."""
    gathered = sum(host.how == "gathered" for host in logs.hosts)
    fetched = sum(host.how == "ssh" for host in logs.hosts)
    ways = ", ".join(
        words for count, words in ((gathered, f"{gathered} gathered by the job"), (fetched, f"{fetched} fetched over SSH")) if count
    )
    if not logs.hosts:
        return "none: it came to no node's ranks"
    missing = len(logs.missing)
    state = f"{plural(missing, 'host')} missing" if missing else "all home"
    return f"of {plural(len(logs.hosts), 'host')}: {state}" + (f" ({ways})" if ways else "")


def _host_cells(host: HostLogs) -> Sequence[str]:
    size = format_size(sum(file.size_bytes for file in host.files)) if host.archive else "-"
    return (host.host, host.how if host.archive else "missing", str(len(host.files)), size, host.archive or f"{host.reason}: {host.detail}")
