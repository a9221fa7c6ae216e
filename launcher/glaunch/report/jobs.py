"""The table that `glaunch status` prints."""

from collections.abc import Sequence
from dataclasses import dataclass

from glaunch.job import Job
from glaunch.report.text import clean, table
from glaunch.units import format_span


@dataclass(frozen=True, slots=True)
class JobLine:
    """One submission of glaunch's. `job` is None where Slurm says nothing of it any more (or not yet)."""

    submission_id: str
    job_id: str
    name: str
    job: Job | None
    state: str
    """In words: `waits for free nodes`, `runs`, `ended with exit code 7`, `Slurm has forgotten it`."""
    where: str
    """Nodes it runs on, or why it waits."""
    age_s: float
    folder: str
    tasks: str = ""
    """Of an array that is several submissions: its part of the indexes that were asked for."""


def jobs_text(jobs: Sequence[JobLine], width: int = 80) -> str:
    """Newest first as given; a state is cut only where the line has no room for it, and folders are left out there."""
    if not jobs:
        return "no jobs\n"
    rows = [[one.job_id or "-", _named(one), one.state, format_span(one.age_s), one.where] for one in jobs]
    head = ["job", "name", "state", "age", "nodes"]
    if width >= 100:
        head = [*head, "folder"]
        rows = [[*cells, one.folder] for cells, one in zip(rows, jobs, strict=True)]
    return "\n".join(table(head, rows, width)) + "\n"


def _named(job: JobLine) -> str:
    return _short(job.name) + (f" [{_short(job.tasks)}]" if job.tasks else "")


def _short(name: str) -> str:
    name = clean(name)
    return name if len(name) <= 20 else name[:19] + "…"
