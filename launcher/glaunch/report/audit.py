"""Past jobs on the fabric, in words and as a document."""

from collections.abc import Sequence
from typing import Any

from glaunch.doctor.audit import Audit
from glaunch.document import to_document
from glaunch.report.text import table, wrapped
from glaunch.units import format_span, plural

WIDE = 72

_LEGEND = "leaves 2.3/1.0: a job used 2.3, and could have used 1.0; apart: the share of node-hours that were on more than that"


def audit_text(audit: Audit, when: str, remarks: Sequence[str], width: int = 80) -> str:
    """The verdict, a row for each partition and size, the worst jobs, and what could not be seen."""
    lines = wrapped(_verdict(audit, when), width, rest="  ")
    if audit.groups:
        lines += ["", *_group_table(audit, width), *wrapped(_LEGEND, width)]
    if audit.worst:
        lines += ["", "the farthest apart", *(f"  {line}" for line in _worst_table(audit, width - 2))]
    notes = [*remarks, *_left_out(audit)]
    if notes:
        lines += ["", *(line for note in notes for line in wrapped(note, width, first="  · ", rest="    "))]
    return "\n".join(lines) + "\n"


def _verdict(audit: Audit, when: str) -> str:
    several = [group for group in audit.groups if group.most_nodes > 1]
    jobs, best = sum(group.jobs for group in several), sum(group.at_fewest for group in several)
    node_s, lost_s = sum(group.node_s for group in several), sum(group.apart_node_s for group in several)
    place = f"{plural(audit.leaves, 'leaf', 'leaves')} in {plural(audit.pods, 'pod')} ({audit.fabric})"
    jobs_in_all = f"{audit.jobs:,} {'job' if audit.jobs == 1 else 'jobs'}"
    if not jobs:
        return f"{jobs_in_all} {when} on {place}, and none of them on more than one node that it knows"
    return (
        f"{jobs_in_all} {when} on {place}; of {jobs:,} on more than one node {jobs - best:,} ({_share(jobs - best, jobs)}) "
        f"were farther apart than they must be, {_share(lost_s, node_s)} of {_hours(node_s)} node-hours"
    )


def _hours(node_s: int) -> str:
    hours = node_s / 3600
    return f"{hours:,.0f}" if hours >= 10 else f"{hours:.1f}"


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "0 %"


def _group_table(audit: Audit, width: int) -> list[str]:
    """`2.3/1.0`: 2.3 leaves a job where 1.0 would have been the fewest. A narrow terminal sees neither pods nor hours."""
    wide = width >= WIDE
    head = (
        "partition",
        "nodes",
        "jobs",
        "nearest",
        "leaves",
        *(("pods",) if wide and audit.pods > 1 else ()),
        *(("node-h",) if wide else ()),
        "apart",
    )
    rows = []
    for group in audit.groups:
        size = str(group.most_nodes) if group.least_nodes == group.most_nodes else f"{group.least_nodes}-{group.most_nodes}"
        row = [
            group.partition,
            size,
            f"{group.jobs:,}",
            _share(group.at_fewest, group.jobs),
            _means(group.leaves, group.fewest_leaves, group.jobs),
        ]
        if wide and audit.pods > 1:
            row.append(_means(group.pods, group.fewest_pods, group.jobs))
        if wide:
            row.append(_hours(group.node_s))
        rows.append([*row, _share(group.apart_node_s, group.node_s)])
    return table(head, rows, width)


def _means(used: int, fewest: int, jobs: int) -> str:
    return f"{used / jobs:.1f}/{fewest / jobs:.1f}"


def _worst_table(audit: Audit, width: int) -> list[str]:
    head = ("job", "user", "nodes", "leaves", *(("pods",) if audit.pods > 1 else ()), "ran", "on")
    rows = []
    for job in audit.worst:
        pods = (f"{job.pods} for {job.fewest_pods}",) if audit.pods > 1 else ()
        rows.append(
            (job.id, job.user, str(job.node_count), f"{job.leaves} for {job.fewest_leaves}", *pods, format_span(job.elapsed_s), job.nodes)
        )
    return table(head, rows, width)


def _left_out(audit: Audit) -> list[str]:
    said = []
    if audit.off_fabric:
        names = ", ".join(audit.unknown_nodes[:3])
        said.append(f"{plural(audit.off_fabric, 'job')} left out: the fabric does not know all of their nodes, such as {names}")
    if audit.never_ran:
        said.append(f"{plural(audit.never_ran, 'job')} left out that never had a node")
    return said


def audit_document(audit: Audit, remarks: Sequence[str]) -> dict[str, Any]:
    """Schema glaunch.audit/1; `unseen` says what could not be seen."""
    return {**to_document("audit", 1, audit), "unseen": list(remarks)}
