"""Findings in words, as every report shows them."""

from glaunch.diagnosis.finding import Finding
from glaunch.report.text import clean, wrapped

MARK = {"error": "✗", "warning": "!", "note": "·"}


def finding_lines(finding: Finding, width: int) -> list[str]:
    """What it is, the line that shows it, and what to do."""
    start = f"  {MARK.get(finding.severity, '·')} {finding.code}  "
    lines = wrapped(clean(finding.title), width, first=start, rest=" " * 11)
    lines += wrapped(clean(f"{finding.where}: {finding.evidence}"), width, first=" " * 11, rest=" " * 13)
    if finding.advice:
        lines += wrapped(clean(f"→ {finding.advice}"), width, first=" " * 11, rest=" " * 13)
    return lines
