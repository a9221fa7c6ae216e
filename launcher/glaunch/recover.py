"""What a killed glaunch left behind: a submission whose id nobody wrote down, a pin that nobody lifted.

Nothing is ever submitted here. A submission is found again by what only it has: its attempt folder, its batch log, the path of its
script in Slurm's queue, or that path in the accounting database.
"""

import re
import time
from collections.abc import Sequence
from pathlib import Path

from glaunch.errors import SlurmError
from glaunch.follow import pin_verdict
from glaunch.gateways.slurm import SlurmCommands
from glaunch.history import History, Submission
from glaunch.job import Job
from glaunch.rundir import attempts
from glaunch.talk import talk

IN_FLIGHT_S = 180.0
"""sbatch itself tries for two minutes when the controller does not answer: younger than this, a submission may still come."""
MARGIN_S = 10.0
"""A live glaunch lifts its own pin at the end of its patience; only after this margin somebody else does."""


def sweep(slurm: SlurmCommands, history: History, *, patience_s: float) -> None:
    """Lift the pins that a killed glaunch left. Costs nothing where there are none; a silent controller is not this command's business."""
    now_s = time.time()
    for submission in history.submissions():
        if submission.pin != "held" or not submission.job_id or now_s - submission.created_s < patience_s + MARGIN_S:
            continue
        if attempts(Path(submission.folder)):
            history.note(submission.id, now_s, pin="settled")
            continue
        try:
            verdict = pin_verdict(slurm.job(submission.job_id), now_s - submission.created_s, patience_s)
            if verdict == "lift" and slurm.unpin(submission.job_id) == "lifted":
                talk(f"job {submission.job_id} still waited for its nodes: the pin is lifted")
                history.note(submission.id, now_s, pin="lifted")
            else:
                history.note(submission.id, now_s, pin="settled")
        except SlurmError as error:
            talk(f"the pin of job {submission.job_id} could not be looked at: {error.message}")
            return


def reconcile(slurm: SlurmCommands, history: History) -> tuple[Submission, ...]:
    """All submissions, oldest first, each with its id where it can be found. Raises what the gateway raises."""
    submissions = history.submissions()
    unknown = [submission for submission in submissions if submission.state == "intent"]
    if not unknown:
        return submissions
    queue: tuple[Job, ...] | None = None
    now_s = time.time()
    for submission in unknown:
        job_id = _id_on_disk(Path(submission.folder))
        if not job_id:
            queue = slurm.own_jobs() if queue is None else queue
            job_id = _id_in(queue, submission.script) or _id_accounted(slurm, submission, now_s)
        if job_id:
            history.note(submission.id, now_s, state="submitted", job_id=job_id)
            talk(f"{submission.name} was submitted as job {job_id}")
        elif now_s - submission.created_s > IN_FLIGHT_S:
            history.note(submission.id, now_s, state="lost", pin="none", detail="it never reached Slurm: launch it again")
    return history.submissions()


def _id_on_disk(folder: Path) -> str:
    """The id in the names that the job itself made: its attempt folder, its batch log."""
    found = attempts(folder)
    if found:
        return found[0].job_id
    logs = [re.fullmatch(r"batch-(\d+)(?:_\d+)?\.log", path.name) for path in folder.glob("batch-*.log")]
    return next((match[1] for match in logs if match), "")


def _id_in(jobs: Sequence[Job], script: str) -> str:
    """The id of the job whose script (path, then arguments) begins with this path; of an array the array's own."""
    found = next((job for job in jobs if job.script == script or job.script.startswith(script + " ")), None)
    return re.split(r"[_+]", found.id)[0] if found else ""


def _id_accounted(slurm: SlurmCommands, submission: Submission, now_s: float) -> str:
    rows = slurm.accounted_within(int(now_s - submission.created_s) + 60) or ()
    found = next((row for row in rows if submission.script in row.script), None)
    return re.split(r"[_+]", found.id)[0] if found else ""


def find(submissions: Sequence[Submission], word: str | None) -> Submission | None:
    """The submission that a word on the command line means: a job id (also of an array task), a submission id, or a name; without a
    word the last one that Slurm took. Of several with one name the newest."""
    usable = [submission for submission in submissions if submission.job_id]
    if word is None:
        return usable[-1] if usable else None
    number = re.split(r"[_+.]", word)[0]
    for matches in (
        [one for one in usable if one.job_id == number],
        [one for one in submissions if one.id == word],
        [one for one in usable if one.name == word],
    ):
        if matches:
            return matches[-1]
    return None
