"""Which nodes failed a job by their own fault, as far as its lines say so."""

import re
from collections.abc import Iterable

from glaunch.diagnosis.finding import Finding
from glaunch.hostlist import expand

_FAILED = re.compile(r"Node failure on (\S+)")
"""srun's own words; where it is the batch step that speaks, the host it names is the one it ran on."""


def faulty_nodes(findings: Iterable[Finding], granted: Iterable[str]) -> tuple[str, ...]:
    """Nodes that Slurm lost (GL204), and those that could not take part where others could (GL213); never all of a job that could not."""
    of_job = frozenset(granted)
    found: dict[str, None] = {}
    for finding in findings:
        lost = _FAILED.search(finding.evidence) if finding.code == "GL204" else None
        hosts = expand(lost[1].rstrip(",.;:")) if lost else expand(finding.host) if finding.code == "GL213" else ()
        if finding.code == "GL204" or len(set(hosts)) < len(of_job):
            found.update(dict.fromkeys(host for host in hosts if host in of_job))
    return tuple(found)
