"""What is wrong with a fabric: every rule once, the worst first."""

from glaunch.diagnosis.finding import Finding
from glaunch.doctor.blocks import block_findings
from glaunch.doctor.cables import cable_findings
from glaunch.doctor.checkup import Checkup
from glaunch.doctor.names import name_findings
from glaunch.doctor.oversubscription import subscription_findings
from glaunch.doctor.rails import rail_findings
from glaunch.doctor.scheduling import scheduling_findings
from glaunch.doctor.trees import tree_findings

RULES = (scheduling_findings, name_findings, tree_findings, block_findings, cable_findings, rail_findings, subscription_findings)
WRONG = frozenset({"error", "warning"})
_SEVERITIES = ("error", "warning", "note")


def examine(checkup: Checkup) -> tuple[Finding, ...]:
    """All findings, errors before warnings before notes, each kind in the order of the rules."""
    unread = [
        Finding("GL400", "error", f"cannot be read: expected {one.expected}", "", None, one.where, one.seen[:200], one.hint)
        for one in checkup.unread
    ]
    found = [*unread, *(finding for rule in RULES for finding in rule(checkup))]
    return tuple(sorted(dict.fromkeys(found), key=lambda one: _SEVERITIES.index(one.severity)))


def wrong(findings: tuple[Finding, ...]) -> bool:
    """True when anything is worse than a note."""
    return any(finding.severity in WRONG for finding in findings)
