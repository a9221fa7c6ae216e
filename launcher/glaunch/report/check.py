"""What is wrong with a fabric, in words and as a document."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from glaunch.diagnosis.finding import Finding
from glaunch.doctor.checkup import Checkup
from glaunch.doctor.oversubscription import subscriptions
from glaunch.document import to_document
from glaunch.report.findings import finding_lines
from glaunch.report.text import clean, wrapped
from glaunch.units import plural

SHOWN = 8
"""Findings of one code that are written out; the others are counted. `--json` has all."""


def check_text(checkup: Checkup, findings: Sequence[Finding], width: int = 80) -> str:
    """The verdict first, then every finding with its line and what to do."""
    counts = Counter(finding.severity for finding in findings)
    words = [plural(counts[kind], kind) for kind in ("error", "warning", "note") if counts[kind]]
    lines = wrapped(f"{', '.join(words) if words else 'nothing is wrong'}: {looked_at(checkup)}", width, rest="  ")
    shown: Counter[str] = Counter()
    for finding in findings:
        shown[finding.code] += 1
        if shown[finding.code] <= SHOWN:
            lines += ["", *finding_lines(finding, width)]
    rest = [f"{number - SHOWN} more {code}" for code, number in shown.items() if number > SHOWN]
    if rest:
        lines += ["", *wrapped(f"and {', '.join(rest)}: glaunch topo check --json has all", width, first="  ", rest="    ")]
    return "\n".join(lines) + "\n"


def looked_at(checkup: Checkup) -> str:
    """The sources by name, and how large what they describe is."""
    names = list(dict.fromkeys(clean(source.source) for source in checkup.sources))
    if checkup.slurm is not None:
        names.append(clean(checkup.slurm.source))
    if checkup.cluster is not None:
        names.append(f"Slurm's {plural(len(checkup.cluster.nodes), 'node')}")
    fabric = checkup.merged
    size = f" ({plural(len(fabric.leaf_of), 'node')} on {plural(len(fabric.leaves), 'leaf', 'leaves')})" if fabric is not None else ""
    return (", ".join(names) or "no topology at all") + size


def check_document(checkup: Checkup, findings: Sequence[Finding], *, wrong: bool) -> dict[str, Any]:
    """Schema glaunch.check/1: `wrong` is what the exit code says; `oversubscription` has every switch between nodes and a root."""
    rows = []
    for one in subscriptions(checkup):
        row = to_document("subscription", 1, one)
        row.pop("schema")
        rows.append({**row, "ratio": round(one.ratio, 3)})
    documents = [to_document("finding", 1, finding) for finding in findings]
    for document in documents:
        for key in ("schema", "rank"):
            document.pop(key)
    sources = [*(source.source for source in checkup.sources), *([checkup.slurm.source] if checkup.slurm is not None else [])]
    return {"schema": "glaunch.check/1", "wrong": wrong, "sources": sources, "findings": documents, "oversubscription": rows}
