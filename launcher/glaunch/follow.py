"""Staying with a job: its pin, its output, its end. Files tell most of it; the controller is asked rarely.

The job's own folder shows that it runs (an attempt folder appears) and that it ended (exit.json), without a single RPC.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Protocol

from glaunch.errors import SlurmError
from glaunch.job import Job
from glaunch.pin import LOOKS_S, Unpins, give_back
from glaunch.reasons import in_words
from glaunch.rundir import AttemptFolder, attempts, batch_logs, last_runs

TICK_S = 0.2
RUNS_A_TICK = 10
"""Each look at the folder opens some files of every run: an array of hundreds of tasks is looked at more seldom."""
EXIT_LAG_S = 3.0
"""How long exit.json may stay unseen after Slurm called the job over; a job that was killed hard writes none."""


class Controller(Unpins, Protocol):
    """The part of the gateway that following needs."""

    def job(self, job_id: str) -> Job | None:
        """One look at one job; None when Slurm does not know it (any more)."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How long a pinned job may wait for its nodes, and the pauses between two looks at Slurm: at first, and at most."""

    patience_s: float
    poll_s: float
    max_poll_s: float


@dataclass(frozen=True, slots=True)
class Ending:
    """How following ended; `told_by` says whether the code is the job's own."""

    code: int
    told_by: str
    job: Job | None
    message: str


class GrowingFile:
    """Follows one file as it is written; gives whole lines, and the rest at the end."""

    def __init__(self, path: Path, prefix: str = "") -> None:
        self.path = path
        self.prefix = prefix
        self._offset = 0
        self._rest = b""

    def lines(self, *, last: bool = False) -> list[str]:
        """The lines that came since the last call; with `last` also one without its newline."""
        try:
            with self.path.open("rb") as file:
                file.seek(self._offset)
                new = file.read()
        except OSError:
            # Not there yet, or a network file system that stumbles: the next call reads it.
            return []
        self._offset += len(new)
        *whole, self._rest = (self._rest + new).split(b"\n")
        if last and self._rest:
            whole, self._rest = [*whole, self._rest], b""
        return [self.prefix + line.decode(errors="surrogateescape") for line in whole]


class Follower:
    """Follows one submission to its end: `run`. `pinned` says whether it still asks for its planned nodes."""

    def __init__(
        self,
        controller: Controller,
        folder: Path,
        job_id: str,
        *,
        pinned: bool,
        array: bool,
        pace: Pace,
        out: Callable[[str], None] | None,
        talk: Callable[[str], None],
        on_pin: Callable[[str], None],
        on_start: Callable[[AttemptFolder], None],
    ) -> None:
        self.controller, self.folder, self.job_id = controller, folder, job_id
        self.pinned, self.array, self.pace = pinned, array, pace
        self.out, self.talk, self.on_pin, self.on_start = out, talk, on_pin, on_start
        self._began = monotonic()
        self._early = [look for look in LOOKS_S if look < pace.patience_s] + [pace.patience_s]
        self._last_look_s, self._next_look_s = 0.0, self._early[0]
        self._pause_s = pace.poll_s
        self._runs: tuple[AttemptFolder, ...] = ()
        """As the folder showed them last."""
        self._said = ""
        self._silent = False
        self._over_since_s: float | None = None
        self._files: dict[Path, GrowingFile] = {}

    def run(self, until: Callable[[], bool] = lambda: False) -> Ending | None:
        """Follow to the end, or until `until` says so (None)."""
        while not until():
            ending = self._step()
            if ending is not None:
                self._show(last=True)
                return ending
            sleep(TICK_S * max(1.0, len(self._runs) / RUNS_A_TICK))
        return None

    def lift_pin(self) -> None:
        """On leaving early: a pin must not stay behind on a job that still waits."""
        if self.pinned:
            job = self._ask()
            if not self._silent:
                self._judge_pin(job, waited_s=self.pace.patience_s)

    def _step(self) -> Ending | None:
        """One round: what the folder shows, new output, and now and then one look at Slurm."""
        before = {run.path: run for run in self._runs}
        self._runs = attempts(self.folder, self.job_id)
        for run in self._runs:
            if run.path not in before:
                self._settle("settled")
                self.on_start(run)
                # It runs: nothing is to be expected from Slurm for a while.
                self._next_look_s = max(self._next_look_s, self._waited() + self.pace.poll_s)
        self._show()
        for run in self._runs:
            if run.end is not None and (run.path not in before or before[run.path].end is None):
                ending = self._at_exit(run)
                if ending is not None:
                    return ending
        return self._look() if self._waited() >= self._next_look_s else None

    def _at_exit(self, run: AttemptFolder) -> Ending | None:
        """exit.json is there: the end, or one run of a job that Slurm runs again; of an array one task of many."""
        if self.array:
            if all(other.end is not None for other in self._runs):
                self._next_look_s = max(self._waited(), self._last_look_s + self.pace.poll_s)
            return None
        job = self._ask()
        if job is not None and (job.restarts > run.restart or job.state in {"PENDING", "REQUEUED"}):
            self.talk(f"job {self.job_id} is back in the queue: {in_words(job)}")
            self._next_look_s = self._waited() + self.pace.poll_s
            return None
        return self._ending(job)

    def _look(self) -> Ending | None:
        """One look at Slurm: its words, the pin, and an end that left no file."""
        job = self._ask()
        self._plan_next_look()
        if self._silent:
            return None
        if job is None:
            return self._ending(None)
        words = in_words(job)
        if words != self._said and not (job.state == "RUNNING" and self._runs):
            self._said = words
            self.talk(f"job {self.job_id} {words}")
        if self.pinned:
            self._judge_pin(job, self._waited())
        return self._ending(job) if job.over and not self._files_will_tell() else None

    def _ask(self) -> Job | None:
        self._last_look_s = self._waited()
        try:
            job = self.controller.job(self.job_id)
        except SlurmError as error:
            if not self._silent:
                self.talk(f"{error.message}; still following the job's files")
            self._silent = True
            return None
        self._silent = False
        return job

    def _plan_next_look(self) -> None:
        waited = self._waited()
        ahead = [look for look in self._early if look > waited + 0.5]
        if ahead and not self._runs:
            self._next_look_s = ahead[0]
        else:
            self._pause_s = min(self.pace.max_poll_s, self._pause_s * 1.5)
            self._next_look_s = waited + self._pause_s

    def _judge_pin(self, job: Job | None, waited_s: float) -> None:
        try:
            pin = give_back(self.controller, self.job_id, job, waited_s, self.pace.patience_s)
        except SlurmError as error:
            self.talk(f"the pin could not be lifted ({error.message}); the next glaunch command tries again")
            return
        if pin == "lifted":
            reason = f" ({job.reason})" if job else ""
            self.talk(f"job {self.job_id} did not start on its nodes{reason}: the pin is lifted, Slurm chooses, glaunch orders")
        if pin != "held":
            self._settle(pin)

    def _settle(self, how: str) -> None:
        if self.pinned:
            self.pinned = False
            self.on_pin(how)

    def _waited(self) -> float:
        return monotonic() - self._began

    def _files_will_tell(self) -> bool:
        """True while a run that Slurm calls over may still be writing its exit.json (NFS shows a new file late)."""
        if all(run.end is not None for run in self._runs):
            return False
        if self._over_since_s is None:
            self._over_since_s = self._waited()
        self._next_look_s = self._waited() + 0.5
        return self._waited() - self._over_since_s < EXIT_LAG_S

    def _ending(self, job: Job | None) -> Ending:
        codes = [run.end.code for run in last_runs(self._runs) if run.end is not None]
        if codes and (job is None or job.state not in {"NODE_FAIL", "BOOT_FAIL"}):
            return Ending(max(codes), "job", job, "")
        if job is None:
            return Ending(1, "glaunch", None, f"Slurm does not know job {self.job_id} any more, and it left no exit code")
        if job.never_ran:
            return Ending(
                1,
                "glaunch",
                job,
                f"job {job.id} never ran: its first node cannot see {self.folder}\n"
                "  use a folder that all nodes share: cd there first, or set rundir.path (glaunch config show rundir.path)",
            )
        code = job.exit_code or (128 + job.exit_signal if job.exit_signal else 0)
        if job.state == "COMPLETED":
            return Ending(code, "job", job, "")
        return Ending(code or 1, "job" if code else "glaunch", job, f"job {job.id} {in_words(job)}")

    def _show(self, *, last: bool = False) -> None:
        if self.out is None:
            return
        for path, prefix in self._shown_files():
            file = self._files.setdefault(path, GrowingFile(path, prefix))
            for line in file.lines(last=last):
                self.out(line)

    def _shown_files(self) -> list[tuple[Path, str]]:
        """The batch logs, and the output of rank 0's host (of each task of an array, with the task's number before it)."""
        files = [(path, "") for path in batch_logs(self.folder, self.job_id)]
        for run in self._runs:
            files += [(run.path / "out" / f"{host}.log", f"[{run.task}] " if self.array else "") for host in run.hosts[:1]]
        return files
