"""From a submitted job to its report: settle the pin, follow, collect what is missing, diagnose, report."""

import json
import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

from glaunch.bundle import LogLimits, has_archive, load_bundle
from glaunch.caller import terminal_width, user_name
from glaunch.collect import collect
from glaunch.errors import SlurmError
from glaunch.evidence import load_plan, report_of
from glaunch.follow import Ending, Follower, Pace
from glaunch.gateways.ssh import ssh_settings
from glaunch.history import Submission
from glaunch.job import Job
from glaunch.launch import Launched
from glaunch.logs import HostLogs, LogBundle
from glaunch.pipeline import World
from glaunch.reasons import ended
from glaunch.report.documents import report_document
from glaunch.report.html import job_html
from glaunch.report.job import JobReport, job_text
from glaunch.rundir import AttemptFolder, attempts, last_runs, write_text
from glaunch.settings import Settings
from glaunch.shipped import shipped
from glaunch.talk import say, talk, tell
from glaunch.units import MIB


class HungUp(KeyboardInterrupt):
    """The terminal went away: as Ctrl-C, glaunch detaches."""


def _hang_up(_number: int, _frame: FrameType | None) -> None:
    raise HungUp


def settings_of(world: World, folder: Path) -> Settings:
    """The settings as they hold on the partition that a job was planned for."""
    plan = load_plan(folder)
    return world.settings.for_partition(plan.partition) if plan is not None else world.settings


def follower(
    world: World, submission_id: str, job_id: str, folder: Path, *, pinned: bool, array: bool, out: Callable[[str], None] | None
) -> Follower:
    """A Follower that writes down in the history what it sees."""
    settings = settings_of(world, folder)

    def on_pin(how: str) -> None:
        world.history.append(submission_id, time.time(), pin=how)

    def on_start(attempt: AttemptFolder) -> None:
        world.history.append(submission_id, time.time(), state="running")
        if not array:
            talk(f"job {job_id} runs again (run {attempt.restart + 1})" if attempt.restart else f"job {job_id} runs")

    return Follower(
        world.slurm,
        folder,
        job_id,
        pinned=pinned,
        array=array,
        pace=Pace(settings.number("pin.patience_s"), settings.number("follow.poll_s"), settings.number("follow.max_poll_s")),
        out=out,
        talk=talk,
        on_pin=on_pin,
        on_start=on_start,
    )


def settle(world: World, launched: Launched) -> None:
    """Stay until the pin is settled (at most its patience), showing nothing: `--detach`, `--parsable`."""
    watch = follower(world, launched.plan.submission_id, launched.job_id, launched.folder, pinned=launched.pinned, array=False, out=None)
    _interruptible(watch, lambda: watch.run(until=lambda: not watch.pinned))


def stay(world: World, launched: Launched, *, show: bool) -> tuple[int, JobReport | None, str]:
    """Follow a launch to its end and report. Returns (exit code, the report or None, told_by: job or glaunch).

    Ctrl-C and a hang-up detach: the job goes on, and one line says how to come back.
    """
    array = bool(launched.plan.request.array)
    return _follow(world, launched.plan.submission_id, launched.job_id, launched.folder, pinned=launched.pinned, array=array, show=show)


def come_back(world: World, submission: Submission) -> int:
    """`glaunch logs -f`: follow again a job that was detached from, from its first line."""
    folder = Path(submission.folder)
    plan = load_plan(folder)
    array = plan is not None and bool(plan.request.array)
    return _follow(world, submission.id, submission.job_id, folder, pinned=submission.pin == "held", array=array, show=True)[0]


def _follow(
    world: World, submission_id: str, job_id: str, folder: Path, *, pinned: bool, array: bool, show: bool
) -> tuple[int, JobReport | None, str]:
    watch = follower(world, submission_id, job_id, folder, pinned=pinned, array=array, out=say if show else None)
    ending = _interruptible(watch, watch.run)
    if ending is None:
        # in one go: the terminal may be gone before a second line
        talk(f"detached: job {job_id} goes on\n  back: glaunch logs -f {job_id}\n  its end: glaunch cancel {job_id}")
        return 130, None, "glaunch"
    world.history.append(submission_id, time.time(), state="over", pin="settled", detail=ended(ending.code, ending.job))
    if ending.message:
        talk(ending.message)
    runs = last_runs(attempts(folder, job_id))
    fetch_missing(world, runs)
    worst = _worst(runs)
    job = ending.job if ending.job is not None and not array else look_up(world, job_id, folder, worst)
    made = report_of(folder, worst, job)
    tell(job_text(made, terminal_width()))
    if array:
        talk(_tasks_in_words(runs))
    talk(f"the same as a page: {save_report(folder, worst, made)}")
    return ending.code, made, ending.told_by


def _worst(runs: Sequence[AttemptFolder]) -> AttemptFolder | None:
    """The run that a report is about: of an array the first task that failed, else the last."""
    return next((run for run in runs if _went_wrong(run)), runs[-1] if runs else None)


def _went_wrong(run: AttemptFolder) -> bool:
    return run.end is None or run.end.code != 0


def _tasks_in_words(runs: Sequence[AttemptFolder]) -> str:
    bad = [run for run in runs if _went_wrong(run)]
    words = f"{len(runs) - len(bad)} of {len(runs)} array tasks ended well"
    return words + (f"; not {', '.join(str(run.task) for run in bad[:8])}{' …' if bad[8:] else ''}" if bad else "")


def fetch_missing(world: World, runs: Sequence[AttemptFolder]) -> None:
    """After the end: over SSH the logs of the hosts that a run's own gather missed."""
    for run in runs:
        if run.start is not None and not all(has_archive(run.path, host) for host in run.hosts):
            fetch(world, run)


def _interruptible(watch: Follower, work: Callable[[], Ending | None]) -> Ending | None:
    """Run it; on Ctrl-C or a hang-up nothing is cancelled, and no pin stays behind."""
    before = signal.signal(signal.SIGHUP, _hang_up)
    try:
        return work()
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        watch.lift_pin()
        return None
    finally:
        signal.signal(signal.SIGHUP, before)


def save_report(folder: Path, attempt: AttemptFolder | None, report: JobReport) -> Path:
    """findings.json and report.html, beside what they speak of; returns the page's path."""
    place = attempt.path if attempt is not None else folder
    write_text(place / "findings.json", json.dumps(report_document(report), indent=1))
    page = place / "report.html"
    write_text(page, job_html(report, (shipped("templates") / "report" / "job.html.j2").read_text()))
    return page


def look_up(world: World, job_id: str, folder: Path, attempt: AttemptFolder | None) -> Job:
    """What Slurm, or its accounting, still knows of a job: of the one whose attempt this is, where there is one (an array's task, a run
    that was started by hand)."""
    if attempt is not None:
        plan = load_plan(folder)
        job_id = f"{attempt.job_id}_{attempt.task}" if plan is not None and plan.request.array else attempt.job_id
    try:
        job = world.slurm.job(job_id) or next(iter(world.slurm.accounted((job_id,)) or ()), None)
    except SlurmError as error:
        talk(error.message)
        job = None
    return job or Job(job_id, "UNKNOWN")


def fetch(world: World, attempt: AttemptFolder, progress: Callable[[HostLogs], None] | None = None) -> LogBundle:
    """Over SSH the logs of every host that the job's own gather has not brought home: all of them, while the job lives."""
    settings = settings_of(world, attempt.path.parent)
    limits = LogLimits(archive_bytes=settings.number("logs.max_host_mib") * MIB)
    if attempt.start is None or not settings.flag("ssh.enabled"):
        return load_bundle(attempt.path, attempt.hosts, limits=limits)
    nodes = world.slurm.nodes()
    return collect(
        attempt.path,
        attempt.hosts,
        {name: nodes.addresses[nodes.row[name]] for name in attempt.hosts if name in nodes.row},
        attempt.start.log_dir,
        settings=ssh_settings(settings, user=user_name(), home=str(Path.home()), agent=os.environ.get("SSH_AUTH_SOCK", "")),
        limits=limits,
        progress=progress,
    )
