"""What a killed glaunch left behind: a submission whose id nobody wrote down, a pin that nobody lifted.

Nothing is ever submitted here. A submission is found again by what only it has: its attempt folder, its batch log, the path of its
script in Slurm's queue, or that path in the accounting database.
"""

import re
import time
from collections.abc import Sequence
from pathlib import Path

from glaunch.attempt import attempts
from glaunch.errors import SlurmError, UsageError
from glaunch.gateways.slurm import SlurmCommands
from glaunch.history import History, Submission
from glaunch.job import Job
from glaunch.job_array import parse_array
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
            job_id = _id_in(queue, submission.script) or _id_accounted(theirs, submission, now_s)
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


def _id_in(jobs: Sequence[Job], script: str) -> str:
    """The id of the job whose script (path, then arguments) begins with this path; of an array the array's own."""
    found = next((job for job in jobs if job.script == script or job.script.startswith(script + " ")), None)
    return re.split(r"[_+]", found.id)[0] if found else ""


def _id_accounted(slurm: SlurmCommands, submission: Submission, now_s: float) -> str:
    rows = slurm.accounted_within(int(now_s - submission.created_s) + 60) or ()
    found = next((row for row in rows if submission.script in row.script), None)
    return re.split(r"[_+]", found.id)[0] if found else ""


def find_all(submissions: Sequence[Submission], word: str | None) -> tuple[Submission, ...]:
    """All submissions that a word means, oldest first: job ids mean themselves (`12`, `12_3`, `12:15`), a name, a launch's id or no word
    all parts of a launch."""
    submissions, word = _on_cluster(submissions, word)
    usable = [submission for submission in submissions if submission.job_id]
    ids = [re.split(r"[_+.]", part)[0] for part in (word or "").split(":")]
    by_id = {submission.job_id: submission for submission in usable}
    if all(part in by_id for part in ids):
        return tuple(by_id[part] for part in dict.fromkeys(ids))
    found = find(submissions, word)
    if found is None or not found.job_id:
        return ()
    if not found.launch or (found.id == word != found.launch):
        return (found,)
    return tuple(one for one in usable if one.launch == found.launch)


def _on_cluster(submissions: Sequence[Submission], word: str | None) -> tuple[Sequence[Submission], str | None]:
    """`12;red` is job 12 of those on cluster red."""
    word, semicolon, cluster = (word or "").partition(";")
    return ([one for one in submissions if one.cluster == cluster] if semicolon else submissions), word or None


def slurms_word(submissions: Sequence[Submission], word: str | None) -> str | None:
    """`12_1345` as Slurm knows it, `15_345`, where job 12 is the first part of an array and 1345 an index that was asked for; every
    other word stays as it is. Raises UsageError for an index that the array does not have: Slurm would say nothing."""
    match = re.fullmatch(r"(\d+)_(\d+)", word or "")
    first = next((one for one in submissions if match and one.job_id == match[1]), None)
    if match is None or first is None or first.launch != first.id:
        return word
    index = int(match[2])
    for part in (one for one in submissions if one.launch == first.id and one.job_id):
        if any(index in run for run in parse_array(part.tasks).runs):
            return f"{part.job_id}_{index - part.offset}"
    whole = ",".join(part.tasks for part in submissions if part.launch == first.id)
    raise UsageError(f"there is no array task {word}: the array has {whole}", hint="glaunch status")


def find(submissions: Sequence[Submission], word: str | None) -> Submission | None:
    """The submission that a word on the command line means: a job id (also of an array task), a submission id, or a name; without a
    word the last one that Slurm took. Of several with one name the newest."""
    submissions, word = _on_cluster(submissions, word)
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
