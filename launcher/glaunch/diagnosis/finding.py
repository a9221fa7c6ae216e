"""One thing worth knowing about a job, with the place where it was seen."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """Never without its evidence."""

    code: str
    """GL101: stable, documented in docs/findings.md."""
    severity: str
    """error, warning or note."""
    title: str
    host: str
    """"" when it is not about one host."""
    rank: int | None
    where: str
    """FILE:LINE below the job's folder, or the command whose answer showed it."""
    evidence: str
    """The line itself."""
    advice: str
