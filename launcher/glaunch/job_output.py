"""The output of a job while it is being written: what its batch script says, and what the ranks of one host say."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from glaunch.attempt import AttemptFolder, batch_logs
from glaunch.growing_file import GrowingFile


class JobOutput:
    """Hands out each line once. `host`: whose ranks ("": those of rank 0's, and the batch script).

    Of an array each line begins with its task, numbered from `offset`.
    """

    def __init__(self, folder: Path, job_id: str, *, array: bool = False, offset: int = 0, host: str = "") -> None:
        self.folder, self.job_id, self.array, self.offset, self.host = folder, job_id, array, offset, host
        self._files: dict[Path, GrowingFile] = {}

    def lines(self, runs: Sequence[AttemptFolder], *, last: bool = False) -> Iterator[str]:
        """The lines that came since the last call, of the job's `runs`; with `last` also those without their newline."""
        for path, prefix in self._shown(runs):
            yield from self._files.setdefault(path, GrowingFile(path, prefix)).lines(last=last)

    def _shown(self, runs: Sequence[AttemptFolder]) -> list[tuple[Path, str]]:
        files = [] if self.host else [(path, "") for path in batch_logs(self.folder, self.job_id)]
        for run in runs:
            hosts = (self.host,) if self.host in run.hosts else () if self.host else run.hosts[:1]
            files += [(run.path / "out" / f"{host}.log", f"[{run.task + self.offset}] " if self.array else "") for host in hosts]
        return files
