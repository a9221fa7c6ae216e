"""The report as one HTML file: no script, nothing loaded from anywhere, every text escaped twice over (clean, then autoescape)."""

from typing import Any

from glaunch.report.documents import report_document
from glaunch.report.job import JobReport, headline, logs_words, placement_words
from glaunch.report.plan import shape
from glaunch.report.text import clean, clean_all
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
        shape=clean(shape(report.plan)) if report.plan else "",
        placement=clean_all([list(pair) for pair in placement_words(report)]),
        logs_words=logs_words(report.logs) if report.logs else "",
        good=report.job.state == "COMPLETED" and not report.exit_code,
        ranks=_ranks_by_host(report),
    )


def _ranks_by_host(report: JobReport) -> list[tuple[str, str]]:
    """(host, its ranks `0–7`), in rank order."""
    by_host: dict[str, list[int]] = {}
    for row in report.ranks:
        by_host.setdefault(row.host, []).append(row.rank)
    hosts = report.granted or tuple(by_host)
    return [(clean(host), _spans(sorted(by_host.get(host, [])))) for host in hosts]


def _spans(numbers: list[int]) -> str:
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ", ".join(str(low) if low == high else f"{low}–{high}" for low, high in spans)
