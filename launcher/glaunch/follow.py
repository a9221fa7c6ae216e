"""Staying with a job: its pin, its output, its end. Files tell most of it; the controller is asked rarely.

The job's own folder shows that it runs (an attempt folder appears) and that it ended (exit.json), without a single RPC.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import Protocol

from glaunch.errors import SlurmError
from glaunch.job import Job
from glaunch.reasons import in_words
from glaunch.rundir import AttemptFolder, attempts

LOOKS_S = (3.0, 8.0, 20.0, 30.0)
"""When a pinned job that still waits is looked at; `Priority` often clears by itself within one backfill pass (30 s)."""
FINAL_REASONS = ("Resources", "ReqNodeNotAvail")
"""Reasons that waiting does not cure: another job holds a pinned node, or the node is gone."""
TICK_S = 0.2
LAST_TRIES = 5
"""How often a pin is tried to be lifted when glaunch leaves: Slurm may ask to try again a moment after a job came in."""
EXIT_LAG_S = 3.0
"""How long exit.json may stay unseen after Slurm called the job over; a job that was killed hard writes none."""
JOB_LAUNCH_FAILURE = 53
"""The signal number that Slurm gives a batch script whose output file could not be opened. Seen on 22.05.8."""


class Controller(Protocol):
    """The part of the gateway that following needs."""

    def job(self, job_id: str) -> Job | None:
        """One look at one job; None when Slurm does not know it (any more)."""

    def jobs(self, ids: Iterable[str]) -> tuple[Job, ...]:
        """Of an array all tasks, one row each; without those that Slurm has forgotten."""

    def unpin(self, job_id: str) -> str:
        """Ask for no particular nodes any more."""


def pin_verdict(job: Job | None, waited_s: float, patience_s: float) -> str:
    """What to do about a pinned job: `settled` (it started, ended, or is free), `lift`, or `wait`."""
    if job is None or job.over or job.state != "PENDING" or not job.required_nodes:
        return "settled"
    if job.reason.startswith(FINAL_REASONS) or waited_s >= patience_s:
        return "lift"
    return "wait"


@dataclass(frozen=True, slots=True)
class Ending:
    """How following ended; `told_by` says whether the code is the job's own."""

    code: int
    told_by: str
    job: Job | None
    message: str
    tasks: Mapping[int, int] = field(default_factory=dict)
    """Of an array: task → its exit code."""


class Tail:
    """Follows one growing file; gives whole lines, and the rest at the end."""

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
    """Follows one submission to its end. Call `step` until it returns an Ending."""

    def __init__(
        self,
        controller: Controller,
        folder: Path,
        job_id: str,
        *,
        pinned: bool,
        array: bool,
        patience_s: float,
        poll_s: float,
        max_poll_s: float,
        out: Callable[[str], None] | None,
        talk: Callable[[str], None],
        on_pin: Callable[[str], None],
        on_start: Callable[[AttemptFolder], None],
    ) -> None:
        self.controller = controller
        self.folder = folder
        self.job_id = job_id
        self.pinned = pinned
        self.array = array
        self.patience_s = patience_s
        self.poll_s = poll_s
        self.max_poll_s = max_poll_s
        self.out = out
        self.talk = talk
        self.on_pin = on_pin
        self.on_start = on_start
        self._began = monotonic()
        self._looks = [look for look in LOOKS_S if look < patience_s] + [patience_s]
        self._next_look = self._looks[0]
        self._said = ""
        self._silent = False
        self._over_at = 0.0
        self._asked_at = 0.0
        self._rows: tuple[Job, ...] = ()
        self._tails: dict[Path, Tail] = {}
        self._started: set[Path] = set()
        self._ended: set[Path] = set()

    def run(self, until: Callable[[], bool] = lambda: False) -> Ending | None:
        """Follow to the end, or until `until` says so (None)."""
        while not until():
            ending = self.step()
            if ending is not None:
                self._show(last=True)
                return ending
            sleep(TICK_S)
        return None

    def step(self) -> Ending | None:
        """One round: new output, what the folder shows, and now and then one look at Slurm."""
        found = self._attempts()
        for attempt in found:
            if attempt.path not in self._started:
                self._started.add(attempt.path)
                self._settle("settled")
                self.on_start(attempt)
                # It runs: nothing is to be expected from Slurm for a while.
                self._next_look = max(self._next_look, self._waited() + self.poll_s)
        self._show()
        for attempt in found:
            if attempt.end is not None and attempt.path not in self._ended:
                self._ended.add(attempt.path)
                ending = self._at_exit(attempt)
                if ending is not None:
                    return ending
        if self._waited() >= self._next_look:
            return self.look()
        return None

    def look(self) -> Ending | None:
        """One look at Slurm: its words, the pin, and an end that left no file."""
        job = self._ask()
        self._plan_next_look()
        if self._silent:
            return None
        if job is None:
            return self._ending(None)
        words = in_words(job)
        if words != self._said and not (job.state == "RUNNING" and self._started):
            self._said = words
            self.talk(f"job {self.job_id} {words}")
        if self.pinned:
            self._judge_pin(job)
        if job.over and not self._files_will_tell():
            return self._ending(job)
        return None

    def lift_pin(self) -> None:
        """On leaving early: a pin must not stay behind on a job that still waits."""
        if not self.pinned:
            return
        for _ in range(LAST_TRIES):
            job = self._ask()
            if not self._silent:
                self._judge_pin(job, waited_s=self.patience_s)
            if self._silent or not self.pinned:
                return
            sleep(TICK_S)

    def _judge_pin(self, job: Job | None, waited_s: float | None = None) -> None:
        verdict = pin_verdict(job, self._waited() if waited_s is None else waited_s, self.patience_s)
        if verdict == "lift":
            try:
                answer = self.controller.unpin(self.job_id)
            except SlurmError as error:
                self.talk(f"the pin could not be lifted ({error.message}); the next glaunch command tries again")
                return
            if answer == "lifted":
                reason = f" ({job.reason})" if job else ""
                self.talk(f"job {self.job_id} did not start on its nodes{reason}: the pin is lifted, Slurm chooses, glaunch orders")
                self._settle("lifted")
            elif answer != "later":
                self._settle("settled")
        elif verdict == "settled":
            self._settle("settled")

    def _settle(self, how: str) -> None:
        if self.pinned:
            self.pinned = False
            self.on_pin(how)

    def _ask(self) -> Job | None:
        """The job; of an array the first task that is not over, or the first of all. Sets `_silent` where Slurm does not tell."""
        try:
            if self.array:
                self._rows = self.controller.jobs((self.job_id,))
                job = next((row for row in self._rows if not row.over), self._rows[0] if self._rows else None)
            else:
                job = self.controller.job(self.job_id)
        except SlurmError as error:
            if not self._silent:
                self.talk(f"{error.message}; still following the job's files")
            self._silent = True
            return None
        finally:
            self._asked_at = self._waited()
        self._silent = False
        return job

    def _plan_next_look(self) -> None:
        waited = self._waited()
        ahead = [look for look in self._looks if look > waited + 0.5]
        if ahead and not self._started:
            self._next_look = ahead[0]
        else:
            self.poll_s = min(self.max_poll_s, self.poll_s * 1.5)
            self._next_look = waited + self.poll_s

    def _attempts(self) -> tuple[AttemptFolder, ...]:
        """Of this job: a run by hand of the same script keeps its own in the same folder."""
        return tuple(attempt for attempt in attempts(self.folder) if attempt.job_id == self.job_id)

    def _waited(self) -> float:
        return monotonic() - self._began

    def _at_exit(self, attempt: AttemptFolder) -> Ending | None:
        """exit.json is there: the end, or one attempt of a job that Slurm runs again."""
        if self.array:
            # Tasks may end by the hundred: the looks, not the ends, are what Slurm is asked by
            self._next_look = min(self._next_look, max(self._waited(), self._asked_at + LOOKS_S[0]))
            return None
        job = self._ask()
        if job is not None and (job.restarts > attempt.restart or job.state in {"PENDING", "REQUEUED"}):
            self._said = in_words(job)
            self.talk(f"job {self.job_id} is back in the queue" + (f": {self._said}" if job.state == "PENDING" else ""))
            self._next_look = self._waited() + self.poll_s
            return None
        return self._ending(job)

    def _files_will_tell(self) -> bool:
        """True while an attempt that Slurm calls over may still be writing its exit.json (NFS shows a new file late)."""
        if all(attempt.end is not None for attempt in self._attempts()):
            return False
        self._over_at = self._over_at or self._waited()
        self._next_look = self._waited() + 0.5
        return self._waited() - self._over_at < EXIT_LAG_S

    def _ending(self, job: Job | None) -> Ending:
        if self.array:
            return self._array_ending(job)
        codes = [attempt.end.code for attempt in last_attempts(self._attempts()) if attempt.end is not None]
        if codes and (job is None or job.state not in {"NODE_FAIL", "BOOT_FAIL"}):
            return Ending(max(codes), "job", job, "")
        if job is None:
            return Ending(1, "glaunch", None, f"Slurm does not know job {self.job_id} any more, and it left no exit code")
        if job.exit_signal == JOB_LAUNCH_FAILURE:
            return Ending(
                1,
                "glaunch",
                job,
                f"job {job.id} never ran: its first node cannot see {self.folder}\n"
                "  use a folder that all nodes share: cd there first, or set rundir.path (glaunch config show rundir.path)",
            )
        code = code_of(job)
        if job.state == "COMPLETED":
            return Ending(code, "job", job, "")
        words = in_words(job)
        return Ending(code or 1, "job" if code else "glaunch", job, "" if words == self._said else f"job {job.id} {words}")

    def _array_ending(self, job: Job | None) -> Ending:
        """The highest code of all tasks, and the first task that has not ended well (else the last) as the job that is spoken of."""
        tasks = task_codes(self._attempts(), self._rows)
        if not tasks:
            words = f"job {self.job_id} {in_words(job)}" if job else f"Slurm does not know job {self.job_id} any more"
            return Ending(1, "glaunch", job, words)
        told = min((task for task in tasks if tasks[task]), default=max(tasks))
        row = next((row for row in self._rows if row.id == f"{self.job_id}_{told}"), Job(f"{self.job_id}_{told}", "UNKNOWN"))
        return Ending(max(tasks.values()), "job", row, "", tasks)

    def _show(self, *, last: bool = False) -> None:
        if self.out is None:
            return
        for path, prefix in self._shown_files():
            tail = self._tails.setdefault(path, Tail(path, prefix))
            for line in tail.lines(last=last):
                self.out(line)

    def _shown_files(self) -> list[tuple[Path, str]]:
        """The batch log, and the output of rank 0's host (of each task of an array, with the task's number before it)."""
        files = [(path, "") for path in sorted(self.folder.glob("batch-*.log"))]
        for attempt in self._attempts():
            if attempt.hosts:
                prefix = f"[{attempt.task}] " if self.array else ""
                files.append((attempt.path / "out" / f"{attempt.hosts[0]}.log", prefix))
        return files


def code_of(job: Job) -> int:
    """The exit code that Slurm gives a job, as a shell would tell it."""
    return job.exit_code or (128 + job.exit_signal if job.exit_signal else 0)


def task_codes(found: tuple[AttemptFolder, ...], rows: Sequence[Job]) -> dict[int, int]:
    """Of an array: task → exit code; from what the tasks left, else (killed, or never begun) from Slurm's rows."""
    codes = {}
    for row in rows:
        task = row.id.partition("_")[2]
        if task.isdigit() and row.over:
            codes[int(task)] = code_of(row) or int(row.state != "COMPLETED")
    return codes | {attempt.task: attempt.end.code for attempt in last_attempts(found) if attempt.end is not None}


def last_attempts(found: tuple[AttemptFolder, ...]) -> tuple[AttemptFolder, ...]:
    """Of each array task the attempt with the highest restart count."""
    last: dict[tuple[str, int], AttemptFolder] = {}
    for attempt in found:
        key = (attempt.job_id, attempt.task)
        if key not in last or last[key].restart < attempt.restart:
            last[key] = attempt
    return tuple(last.values())
