"""What the commands that look at past launches share: which one is meant, and what it does now."""

import time
from collections.abc import Sequence
from pathlib import Path

from glaunch.errors import UsageError
from glaunch.follow import last_attempts
from glaunch.history import Submission
from glaunch.hostlist import fold
from glaunch.job import Job
from glaunch.pipeline import World
from glaunch.reasons import ended, in_words
from glaunch.recover import find
from glaunch.report.jobs import JobLine
from glaunch.rundir import AttemptFolder, attempts

ENDED = frozenset({"over", "refused", "lost"})


def the_one(submissions: Sequence[Submission], word: str | None) -> Submission:
    """The launch that a word means (the last one without a word). Raises UsageError where there is none."""
    found = find(submissions, word)
    if found is None and word is None:
        raise UsageError("nothing was launched yet from this account", hint="glaunch train.py -n 64")
    if found is None:
        raise UsageError(f"no launch of yours has the id or name {word!r}", hint="see them: glaunch status")
    return found


def chosen_attempt(submission: Submission, word: str | None) -> AttemptFolder | None:
    """The attempt that a word such as `12_3` means: that array task's last one; without a task the last of all."""
    if not Path(submission.folder).is_dir():
        raise UsageError(
            f"job {submission.job_id or submission.name}: its folder {submission.folder} is gone, and all that was known of it",
            hint="glaunch clean removes old ones; Slurm may still know: sacct -j " + (submission.job_id or "JOB"),
        )
    found = last_attempts(attempts(Path(submission.folder)))
    task = (word or "").partition("_")[2]
    if task.isdigit():
        found = tuple(attempt for attempt in found if attempt.task == int(task))
        if not found:
            raise UsageError(f"array task {word} has not run", hint=f"see what has: ls {submission.folder}")
    return found[-1] if found else None


def job_lines(world: World, submissions: Sequence[Submission]) -> tuple[JobLine, ...]:
    """One row a launch; Slurm is asked once, about those that are not over, and accounting once about those it has forgotten."""
    live = [submission.job_id for submission in submissions if submission.job_id and submission.state not in ENDED]
    jobs: dict[str, list[Job]] = {}
    for job in world.slurm.jobs(live) if live else ():
        jobs.setdefault(job.id.split("_")[0].split("+")[0], []).append(job)
    forgotten = [job_id for job_id in live if job_id not in jobs]
    for job in (world.slurm.accounted(forgotten) or ()) if forgotten else ():
        jobs.setdefault(job.id.split("_")[0].split("+")[0], []).append(job)
    return tuple(_line(world, submission, jobs.get(submission.job_id, [])) for submission in submissions)


def _line(world: World, submission: Submission, jobs: list[Job]) -> JobLine:
    now_s = time.time()
    found = last_attempts(attempts(Path(submission.folder)))
    codes = [attempt.end.code for attempt in found if attempt.end is not None]
    job = next((one for one in jobs if not one.over), jobs[0] if jobs else None)
    if job is not None and not job.over:
        state = in_words(job)
    elif submission.state == "intent":
        state = "Slurm has not said yet"
    elif submission.state in {"refused", "lost"}:
        state = f"never ran: {submission.detail}" if submission.detail else "never ran"
    elif submission.state == "over" and submission.detail:
        state = submission.detail
    else:
        state = ended(max(codes, default=None), job)
    if submission.job_id and submission.state not in ENDED and (job is None or job.over):
        world.history.append(submission.id, now_s, state="over", pin="settled", detail=state)
    where = job.nodes if job is not None and job.nodes else fold(found[-1].hosts) if found else ""
    return JobLine(submission.id, submission.job_id, submission.name, job, state, where, now_s - submission.created_s, submission.folder)
