"""The report as one HTML file: no script, nothing loaded from anywhere, every text escaped twice over (clean, then autoescape)."""

import shlex
from datetime import datetime, timezone
from itertools import groupby
from typing import Any

from glaunch.job import FORGOTTEN, UNTOLD
from glaunch.report.documents import report_document
from glaunch.report.job import JobReport, cause, headline, logs_words, placement_words
from glaunch.report.plan import shape
from glaunch.report.text import clean, clean_all
from glaunch.secret import shown_words
from glaunch.units import format_size


def job_html(report: JobReport, template: str) -> str:
    """`template` is the text of templates/report/job.html.j2."""
    import jinja2

    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    document: Any = clean_all(report_document(report))
    for tail, raw in zip(document["tails"], report.tails, strict=True):
        tail["text"] = "\n".join(clean(line) for line in raw.lines)
    for host in (document["logs"] or {}).get("hosts", ()):
        host["size"] = format_size(sum(file["size_bytes"] for file in host["files"]))
    return environment.from_string(template).render(
        report=document,
        headline=clean(headline(report)),
        cause=[clean(text) for text in cause(report)],
        shape=clean(shape(report.plan)) if report.plan else "",
        program=clean(" : ".join(shlex.join(shown_words(one.launch.argv)) for one in report.plan.all_components)) if report.plan else "",
        placement=clean_all([list(pair) for pair in placement_words(report)]),
        logs_words=logs_words(report.logs) if report.logs else "",
        standing=_standing(report),
        pods=_pods(report),
        made=datetime.fromtimestamp(report.made_at_s, timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
    )


def _standing(report: JobReport) -> str:
    """The page's colour: good, bad, or wait for a job that is not over."""
    if report.exit_code is None and not report.job.over:
        return "wait"
    return "good" if not report.exit_code and report.job.state in {"COMPLETED", FORGOTTEN, UNTOLD} else "bad"


def _pods(report: JobReport) -> list[dict[str, Any]]:
    """The hosts in rank order under their pods and leaves, each with its ranks; marked where an error was found."""
    spot = {row.node: (row.pod, row.leaf) for row in report.plan.order} if report.plan else {}
    failed = {finding.host for finding in report.findings if finding.severity == "error"}
    by_host: dict[str, list[int]] = {}
    for row in report.ranks:
        by_host.setdefault(row.host, []).append(row.rank)

    def shown(host: str) -> dict[str, object]:
        return {"name": clean(host), "ranks": _ranks(sorted(by_host.get(host, []))), "failed": host in failed}

    pods: list[dict[str, Any]] = []
    for (pod, leaf), hosts in groupby(report.granted or tuple(by_host), lambda host: spot.get(host, ("", ""))):
        if not pods or pods[-1]["name"] != clean(pod):
            pods.append({"name": clean(pod), "leaves": []})
        pods[-1]["leaves"].append({"name": clean(leaf), "hosts": [shown(host) for host in hosts]})
    return pods


def _ranks(numbers: list[int]) -> str:
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    words = ", ".join(str(low) if low == high else f"{low}–{high}" for low, high in spans)
    return f"rank{'s' if len(numbers) > 1 else ''} {words}" if words else "did not say"
