"""What the commands that look at past launches share: which one is meant, and what it does now."""

import time
from collections.abc import Sequence
from pathlib import Path

from glaunch.attempt import AttemptFolder, attempts, last_runs
from glaunch.errors import UsageError
from glaunch.follow import task_codes
from glaunch.gateways.slurm import SlurmCommands
from glaunch.history import Submission
from glaunch.hostlist import expand, fold
from glaunch.job import Job, whole
from glaunch.meant import find, find_all, slurms_word
from glaunch.pipeline import World
from glaunch.reasons import ended, estimate, in_words
from glaunch.recover import catch_up
from glaunch.report.jobs import JobLine
from glaunch.talk import talk
from glaunch.units import plural

ENDED = frozenset({"over", "refused", "lost"})


def launches(world: World) -> tuple[Submission, ...]:
    """All of this user's launches, oldest first, after what a killed glaunch left was put right."""
    return catch_up(world.slurm, world.history, patience_s=world.settings.number("pin.patience_s"))


def the_one(submissions: Sequence[Submission], word: str | None) -> Submission:
    """The launch that a word means (the last one without a word). Raises UsageError where there is none."""
    found = find(submissions, word)
    if found is None and word is None:
        raise UsageError("nothing was launched yet from this account", hint="glaunch train.py -n 64")
    if found is None:
        raise UsageError(f"no launch of yours has the id or name {word!r}", hint="see them: glaunch status")
    return found


def the_job(submissions: Sequence[Submission], word: str | None) -> Submission:
    """As `the_one`, of those that became a job. Raises UsageError, saying what became of it, for one that did not."""
    found = the_one(submissions, slurms_word(submissions, word))
    if not found.job_id:
        raise UsageError(f"{found.name} is no job ({found.detail or found.state})", hint="glaunch status")
    return found


def the_jobs(submissions: Sequence[Submission], word: str | None) -> tuple[Submission, ...]:
    """As `the_job`; of an array that is several submissions all of them, unless the word is a job's id."""
    return find_all(submissions, slurms_word(submissions, word)) or (the_job(submissions, word),)


def rest_of_arrays(submissions: Sequence[Submission], ids: Sequence[str]) -> tuple[Submission, ...]:
    """Of the arrays that whole jobs of `ids` are parts of: the parts that are not named and not over, so that nobody forgets them."""
    launches = {one.launch for one in submissions if one.launch and one.job_id in ids}
    return tuple(one for one in submissions if one.launch in launches and one.job_id and one.job_id not in ids and one.state not in ENDED)


def name_others(verb: str, parts: Sequence[Submission], shown: Submission) -> None:
    """Of an array that is several submissions one is shown: say so, and what shows the others."""
    others = [f"glaunch {verb} {part.job_id}" for part in parts if part.id != shown.id]
    if others:
        talk(f"this is job {shown.job_id}, tasks {shown.tasks}; the other parts of the array: {', '.join(others)}")


def chosen_attempt(submission: Submission, word: str | None) -> AttemptFolder | None:
    """The run that a word such as `12_3` means: that array task's last one; without a task the last of all.

    Where job 12 is another part of the array than this submission, 3 is the index that was asked for.
    """
    if not Path(submission.folder).is_dir():
        raise UsageError(
            f"job {submission.job_id}: its folder {submission.folder} is gone, and all that was known of it",
            hint=f"glaunch clean removes old ones; Slurm may still know: sacct -j {submission.job_id}",
        )
    found = last_runs(attempts(Path(submission.folder), submission.job_id))
    job_id, _, task = (word or "").partition(";")[0].partition("_")
    if task.isdigit():
        index = int(task) - (0 if job_id == submission.job_id else submission.offset)
        found = tuple(attempt for attempt in found if attempt.task == index)
        if not found:
            raise UsageError(f"array task {word} has not run", hint=f"see what has: ls {submission.folder}")
    return found[-1] if found else None


def the_run(world: World, word: str | None, verb: str) -> tuple[World, Submission, AttemptFolder | None]:
    """(this world on the launch's own cluster, the launch that a word means, its run). Raises what `the_job` and `chosen_attempt` do.

    Where it is a part of an array, the others are named, and what shows them by this verb.
    """
    submissions = launches(world)
    submission = the_job(submissions, word)
    name_others(verb, the_jobs(submissions, word), submission)
    return world.on(submission.cluster), submission, chosen_attempt(submission, word)


def job_lines(world: World, submissions: Sequence[Submission]) -> tuple[JobLine, ...]:
    """One row a launch; Slurm is asked once, about those that are not over, and accounting once about those it has forgotten.

    How a job ended is written into the history, so that nobody is asked about it again.
    """
    asked = [submission for submission in submissions if submission.job_id and submission.state not in ENDED]
    jobs = {cluster: _jobs_on(world.slurm.on(cluster), asked) for cluster in dict.fromkeys(one.cluster for one in asked)}
    now_s = time.time()
    lines = []
    for submission in submissions:
        line = _line(submission, jobs.get(submission.cluster, {}).get(submission.job_id, []), now_s)
        if submission in asked and (line.job is None or line.job.over):
            world.history.note(submission.id, now_s, state="over", pin="settled", detail=line.state)
        lines.append(line)
    return tuple(lines)


def _jobs_on(slurm: SlurmCommands, submissions: Sequence[Submission]) -> dict[str, list[Job]]:
    """The jobs of those submissions that went to this cluster."""
    live = [submission.job_id for submission in submissions if submission.cluster == slurm.cluster]
    jobs = _by_id(slurm.jobs(live))
    forgotten = [job_id for job_id in live if job_id not in jobs]
    return jobs | _by_id((slurm.accounted(forgotten) or ()) if forgotten else ())


def _by_id(jobs: Sequence[Job]) -> dict[str, list[Job]]:
    """The rows of each job, of an array one a task."""
    found: dict[str, list[Job]] = {}
    for job in jobs:
        found.setdefault(job.whole_id, []).append(job)
    return {job_id: list(whole(rows)) for job_id, rows in found.items()}


def _line(submission: Submission, jobs: Sequence[Job], now_s: float) -> JobLine:
    running = [one for one in jobs if one.state == "RUNNING"]
    job = next((one for one in (*running, *jobs) if not one.over), jobs[0] if jobs else None)
    runs = last_runs(attempts(Path(submission.folder), submission.job_id))
    where = fold(sorted({node for one in running for node in expand(one.nodes)}))
    if not where and job is not None:
        where = job.nodes or estimate(job, now_s)
    where = where or (fold(runs[-1].hosts) if runs else "")
    state, age_s = _state(submission, job, jobs, runs), now_s - submission.created_s
    job_id = f"{submission.job_id};{submission.cluster}" if submission.cluster and submission.job_id else submission.job_id
    return JobLine(submission.id, job_id, submission.name, job, state, where, age_s, submission.folder, submission.tasks)


def _of_an_array(jobs: Sequence[Job]) -> str:
    """`4 tasks run, the rest waits: …`; "" where not both are true."""
    running = sum(one.state == "RUNNING" for one in jobs)
    waiting = next((one for one in jobs if one.state == "PENDING"), None)
    if not running or waiting is None:
        return ""
    return f"{plural(running, 'task')} run{'s' if running == 1 else ''}, the rest {in_words(waiting)}"


def _state(submission: Submission, job: Job | None, jobs: Sequence[Job], runs: Sequence[AttemptFolder]) -> str:
    if job is not None and not job.over:
        return _of_an_array(jobs) or in_words(job)
    if submission.state == "intent":
        return "Slurm has not said yet"
    if submission.state in {"refused", "lost"}:
        return f"never ran: {submission.detail}" if submission.detail else "never ran"
    if submission.state == "over" and submission.detail:
        return submission.detail
    if job is None and any(run.end is not None and run.end.told for run in runs):  # it may have ended with 0, and is not done
        return "was ended early (cancelled, or its time was over)"
    return ended(max(task_codes(runs, jobs).values(), default=None), job)
