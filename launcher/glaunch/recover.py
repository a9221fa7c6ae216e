"""What a killed glaunch left behind: a submission whose id nobody wrote down, a pin that nobody lifted.

Nothing is ever submitted here. A submission is found again by what only it has: its attempt folder, its batch log, the path of its
script in Slurm's queue, or that path in the accounting database.
"""

import re
import time
from collections.abc import Sequence
from pathlib import Path

from glaunch.attempt import attempts
from glaunch.errors import SlurmError
from glaunch.gateways.slurm import SlurmCommands
from glaunch.history import History, Submission
from glaunch.job import Job
from glaunch.pin import give_back
from glaunch.talk import talk

IN_FLIGHT_S = 180.0
"""sbatch itself tries for two minutes when the controller does not answer: younger than this, a submission may still come."""
MARGIN_S = 10.0
"""A live glaunch lifts its own pin at the end of its patience; only after this margin somebody else does."""


def catch_up(slurm: SlurmCommands, history: History, *, patience_s: float, older_than_s: float = 0.0) -> tuple[Submission, ...]:
    """Put right what killed launches left, and return all submissions, oldest first; Slurm is asked only where there is something.

    `older_than_s`: submissions without an id that are younger are left alone, since their glaunch may be at work. Raises what the gateway
    raises where an id must be looked for; a pin that cannot be looked at is told and left to the next command.
    """
    now_s = time.time()
    _find_ids(slurm, history, now_s, older_than_s)
    _give_back_pins(slurm, history, now_s, patience_s)
    return history.submissions()


def _find_ids(slurm: SlurmCommands, history: History, now_s: float, older_than_s: float) -> None:
    queues: dict[str, tuple[Job, ...]] = {}
    for submission in history.submissions():
        age_s = now_s - submission.created_s
        if submission.state != "intent" or age_s < older_than_s:
            continue
        job_id = _id_on_disk(Path(submission.folder))
        if not job_id:
            theirs = slurm.on(submission.cluster)
            queue = queues[submission.cluster] = queues.get(submission.cluster) or theirs.own_jobs()
            job_id = id_in(queue, submission.script) or _id_accounted(theirs, submission, now_s)
        if job_id:
            history.note(submission.id, now_s, state="submitted", job_id=job_id)
            talk(f"{submission.name} was submitted as job {job_id}")
        elif age_s > IN_FLIGHT_S:
            history.note(submission.id, now_s, state="lost", pin="none", detail="it never reached Slurm: launch it again")


def _give_back_pins(slurm: SlurmCommands, history: History, now_s: float, patience_s: float) -> None:
    for submission in history.submissions():
        waited_s = now_s - submission.created_s
        if submission.pin != "held" or not submission.job_id or waited_s < patience_s + MARGIN_S:
            continue
        if attempts(Path(submission.folder), submission.job_id):
            history.note(submission.id, now_s, pin="settled")
            continue
        try:
            theirs = slurm.on(submission.cluster)
            pin = give_back(theirs, submission.job_id, theirs.job(submission.job_id), waited_s, patience_s)
        except SlurmError as error:
            talk(f"the pin of job {submission.job_id} could not be looked at: {error.message}")
            return
        if pin == "lifted":
            talk(f"job {submission.job_id} still waited for its nodes: the pin is lifted")
        if pin != "held":
            history.note(submission.id, now_s, pin=pin)


def _id_on_disk(folder: Path) -> str:
    """The id in the names that the job itself made: its attempt folder, its batch log."""
    found = attempts(folder)
    if found:
        return found[0].job_id
    logs = [re.fullmatch(r"batch-(\d+)(?:_\d+)?\.log", path.name) for path in folder.glob("batch-*.log")]
    return next((match[1] for match in logs if match), "")


def id_in(jobs: Sequence[Job], script: str) -> str:
    """The id of the job whose script (path, then arguments) begins with this path; of an array the array's own."""
    found = next((job for job in jobs if runs_script(job, script)), None)
    return found.whole_id if found else ""


def runs_script(job: Job, script: str) -> bool:
    """Whether it is the job of this script (path, then arguments)."""
    return job.script == script or job.script.startswith(script + " ")


def _id_accounted(slurm: SlurmCommands, submission: Submission, now_s: float) -> str:
    rows = slurm.accounted_within(int(now_s - submission.created_s) + 60) or ()
    found = next((row for row in rows if submission.script in row.script), None)
    return found.whole_id if found else ""
