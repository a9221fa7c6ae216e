"""Staying with a job: its pin, its output, its end. Files tell most of it; the controller is asked rarely.

The job's own folder shows that it runs (an attempt folder appears) and that it ended (exit.json), without a single RPC.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from time import monotonic, sleep, time
from typing import Protocol

from glaunch.attempt import AttemptFolder, attempts, last_runs
from glaunch.errors import SlurmError
from glaunch.job import Job
from glaunch.job_output import JobOutput
from glaunch.parsers.srun_words import bad_end
from glaunch.pin import LOOKS_S, Unpins, give_back
from glaunch.reasons import estimate, in_words

TICK_S = 0.2
RUNS_A_TICK = 10
"""Each look at the folder opens some files of every run: an array of hundreds of tasks is looked at more seldom."""
LAST_TRIES = 5
"""How often a pin is tried to be lifted when glaunch leaves: Slurm may ask to try again a moment after a job came in."""
SURVIVORS_S = 15.0
"""How long after a rank's failure the others may go on before that is said: most programs' ranks then wait for it in vain."""
EXIT_LAG_S = 3.0
"""How long exit.json may stay unseen after Slurm called the job over; a job that was killed hard writes none."""
STATE_LAG_S = 10.0
"""How long Slurm is asked what it calls the end of a job that somebody ended: at first it only says that the job is ending."""


class Controller(Unpins, Protocol):
    """The part of the gateway that following needs."""

    def job(self, job_id: str) -> Job | None:
        """One look at one job; None when Slurm does not know it (any more)."""

    def jobs(self, ids: Iterable[str]) -> tuple[Job, ...]:
        """Of an array all tasks, one row each; without those that Slurm has forgotten."""


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
    tasks: Mapping[int, int] = field(default_factory=dict)
    """Of an array: task → its exit code."""


class Follower:
    """Follows one submission to its end: `run`. `pinned` says whether it still asks for its planned nodes; `host` whose ranks are shown
    ("": rank 0's); `offset` what an array's tasks are numbered from, where it is a part of a larger one.
    """

    def __init__(
        self,
        controller: Controller,
        folder: Path,
        job_id: str,
        *,
        pinned: bool,
        array: bool,
        offset: int = 0,
        host: str = "",
        pace: Pace,
        out: Callable[[str], None] | None,
        talk: Callable[[str], None],
        on_pin: Callable[[str], None],
        on_start: Callable[[AttemptFolder], None],
    ) -> None:
        self.controller, self.folder, self.job_id = controller, folder, job_id
        self.pinned, self.array, self.offset, self.pace = pinned, array, offset, pace
        self._output = JobOutput(folder, job_id, array=array, offset=offset, host=host)
        self.out, self.talk, self.on_pin, self.on_start = out, talk, on_pin, on_start
        self._began = monotonic()
        self._early = [look for look in LOOKS_S if look < pace.patience_s] + [pace.patience_s]
        self._last_look_s, self._next_look_s = -pace.poll_s, self._early[0]
        self._pause_s = pace.poll_s
        self._runs: tuple[AttemptFolder, ...] = ()
        """As the folder showed them last."""
        self._said = ""
        self._silent = False
        self._rows: tuple[Job, ...] = ()
        """Of an array: its tasks, as Slurm said last."""
        self._over_since_s: float | None = None
        self._failed: tuple[float, str] | None = None
        """When a first rank of this run failed (for ever from now, once that is said), and how, in srun's words."""
        self._cut: tuple[AttemptFolder, float] | None = None
        """The run that somebody ended, and since when Slurm is asked what it calls that."""

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
        for _ in range(LAST_TRIES if self.pinned else 0):
            job = self._ask()
            if not self._silent:
                self._judge_pin(job, waited_s=self.pace.patience_s)
            if self._silent or not self.pinned:
                return
            sleep(TICK_S)

    def _step(self) -> Ending | None:
        """One round: what the folder shows, new output, and now and then one look at Slurm."""
        before = {run.path: run for run in self._runs}
        self._runs = attempts(self.folder, self.job_id)
        for run in self._runs:
            if run.path not in before:
                self._settle("settled")
                self._failed = None
                self.on_start(run)
                self._say_start(run)
                # It runs: nothing is to be expected from Slurm for a while.
                self._next_look_s = max(self._next_look_s, self._waited() + self.pace.poll_s)
        self._show()
        for run in self._runs:
            if run.end is not None and (run.path not in before or before[run.path].end is None):
                ending = self._at_exit(run)
                if ending is not None:
                    return ending
        self._say_survivors()
        return self._look() if self._waited() >= self._next_look_s else None

    def _say_survivors(self) -> None:
        """Once: a rank has failed, and the job goes on without it. Its others may well wait for it until the time limit."""
        if self._failed is not None and self._waited() - self._failed[0] >= SURVIVORS_S:
            self.talk(f"job {self.job_id} goes on without what failed ({self._failed[1]}); glaunch cancel {self.job_id} ends it")
            self._failed = inf, ""

    def _say_start(self, run: AttemptFolder) -> None:
        """That it runs, unless a look at Slurm has said so already."""
        words = f"runs again (run {run.restart + 1})" if run.restart else "runs"
        if not self.array and words != self._said:
            self._said = words
            self.talk(f"job {self.job_id} {words}")

    def _at_exit(self, run: AttemptFolder) -> Ending | None:
        """exit.json is there: the end, or one run of a job that Slurm runs again; of an array one task of many."""
        if self.array:
            if all(other.end is not None for other in self._runs):
                self._next_look_s = max(self._waited(), self._last_look_s + self.pace.poll_s)
            return None
        self._cut = (run, self._waited()) if run.end is not None and run.end.told else None
        return self._after(run, self._ask())

    def _after(self, run: AttemptFolder, job: Job | None) -> Ending | None:
        """A run is over, and Slurm says this of its job: the end, or not yet."""
        if job is not None and (job.restarts > run.restart or job.state in {"PENDING", "REQUEUED"}):
            self._cut = None
            self._said = in_words(job)
            self.talk(f"job {self.job_id} is back in the queue" + (f": {self._said}" if job.state == "PENDING" else ""))
            self._next_look_s = self._waited() + self.pace.poll_s
            return None
        if self._cut is not None and job is not None and not job.over and self._waited() - self._cut[1] < STATE_LAG_S:
            self._next_look_s = self._waited() + max(1.0, self._waited() - self._cut[1])
            return None
        return self._ending(job)

    def _look(self) -> Ending | None:
        """One look at Slurm: its words, the pin, and an end that left no file."""
        job = self._ask()
        self._plan_next_look()
        if self._cut is not None:
            return self._after(self._cut[0], job)
        if self._silent:
            return None
        if job is None:
            return self._ending(None)
        words = in_words(job)
        if words != self._said and not (job.state == "RUNNING" and self._runs) and not (job.over and self._left_in):
            self._said = words
            self.talk("; ".join(part for part in (f"job {self.job_id} {words}", estimate(job, time())) if part))
        if self.pinned:
            self._judge_pin(job, self._waited())
        return self._ending(job) if job.over and not self._files_will_tell() else None

    def _ask(self) -> Job | None:
        """The job; of an array the first task that is not over, or the first of all. Sets `_silent` where Slurm does not tell."""
        self._last_look_s = self._waited()
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
        self._silent = False
        return job

    @property
    def _left_in(self) -> str:
        """The line of setup that the job, as far as its folder tells, is in or was left in."""
        return next((run.left_in for run in last_runs(self._runs) if run.left_in), "")

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
        if self.array:
            return self._array_ending(job)
        ends = [run.end for run in last_runs(self._runs) if run.end is not None]
        if ends and (job is None or job.state not in {"NODE_FAIL", "BOOT_FAIL"}):
            own, code = max(end.code for end in ends), max(end.code_as(job.state if job else "") for end in ends)
            words = in_words(job) if job is not None and job.over else "was ended early"
            said = "" if code == own else f"job {self.job_id} {words}, and its program said {own}: exit code {code}"
            return Ending(code, "job", job, said)
        if job is None:
            return Ending(1, "glaunch", None, f"Slurm does not know job {self.job_id} any more, and it left no exit code")
        if job.never_ran and not self._runs:
            return Ending(
                1,
                "glaunch",
                job,
                f"job {job.id} never ran: its first node cannot see {self.folder}\n"
                "  use a folder that all nodes share: cd there first, or set rundir.path (glaunch config show rundir.path)",
            )
        if self._left_in and job.state in {"COMPLETED", "FAILED"}:  # whatever its code: no rank ran
            words = f"job {job.id} ended in a line of setup, no rank was started: {self._left_in}"
            return Ending(job.code or 1, "job" if job.code else "glaunch", job, words)
        if job.state == "COMPLETED":
            return Ending(job.code, "job", job, "")
        words = in_words(job)
        return Ending(job.code or 1, "job" if job.code else "glaunch", job, "" if words == self._said else f"job {job.id} {words}")

    def _array_ending(self, job: Job | None) -> Ending:
        """The highest code of all tasks, and the first task that has not ended well (else the last) as the job that is spoken of."""
        tasks = task_codes(self._runs, self._rows)
        if not tasks:
            words = f"job {self.job_id} {in_words(job)}" if job else f"Slurm does not know job {self.job_id} any more"
            return Ending(1, "glaunch", job, words)
        told = min((task for task in tasks if tasks[task]), default=max(tasks))
        row = next((row for row in self._rows if row.id == f"{self.job_id}_{told}"), Job(f"{self.job_id}_{told}", "UNKNOWN"))
        return Ending(max(tasks.values()), "job", row, "", tasks)

    def _show(self, *, last: bool = False) -> None:
        if self.out is None:
            return
        for line in self._output.lines(self._runs, last=last):
            self.out(line)
            self._see_failure(line)

    def _see_failure(self, line: str) -> None:
        end = None if self.array or self._failed is not None else bad_end(line)
        if end is not None:
            self._failed = self._waited(), f"{end.hosts}: task{'s' if not end.tasks.isdigit() else ''} {end.tasks}: {end.what}"


def task_codes(found: Sequence[AttemptFolder], rows: Sequence[Job]) -> dict[int, int]:
    """Of an array: task → exit code; from what the tasks left, else (killed, or never begun) from Slurm's rows.

    Of a job or task that ended in a line of setup the code is never 0.
    """
    over = {row.id.partition("_")[2] or "0": row for row in rows if row.over}  # a job that is no array has one task, 0
    codes = {int(task): row.code or int(row.state != "COMPLETED") for task, row in over.items() if task.isdigit() and "_" in row.id}
    for run in last_runs(found):
        row = over.get(str(run.task))
        if run.end is not None:
            codes[run.task] = run.end.code_as(row.state if row else "")
        elif run.left_in and row is not None:
            codes[run.task] = row.code or 1
    return codes
