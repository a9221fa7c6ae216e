"""Facts of a job in, findings out: every rule is asked, the worst comes first."""

from collections.abc import Callable, Iterable

from glaunch.diagnosis.facts import JobFacts
from glaunch.diagnosis.failures import failures
from glaunch.diagnosis.finding import Finding
from glaunch.diagnosis.hosts import hosts
from glaunch.diagnosis.placed import placed
from glaunch.diagnosis.ranks import ranks

Rule = Callable[[JobFacts], Iterable[Finding]]

RULES: tuple[Rule, ...] = (failures, ranks, placed, hosts)

_SEVERITY = {"error": 0, "warning": 1, "note": 2}


def diagnose(facts: JobFacts) -> tuple[Finding, ...]:
    """All findings, errors first, in the order of the rules. Pure: equal facts, equal findings."""
    found = [finding for rule in RULES for finding in rule(facts)]
    return tuple(sorted(found, key=lambda finding: _SEVERITY[finding.severity]))
