"""Jobs that are over, as accounting lists them; 100,000 of them are columns here, not objects."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PastJobs:
    """One row a job that ran, in accounting's own order; all columns have the same length."""

    ids: tuple[str, ...]
    partitions: tuple[str, ...]
    nodes: tuple[str, ...]
    """Hostlists, as Slurm writes them."""
    elapsed_s: tuple[int, ...]
    states: tuple[str, ...]
    users: tuple[str, ...]
    never_ran: int = 0
    """Jobs that never had a node; they are no rows."""

    def __len__(self) -> int:
        return len(self.ids)
