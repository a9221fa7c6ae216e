"""From a submitted job to its report: settle the pin, follow, collect what is missing, diagnose, report."""

import json
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

from glaunch.attempt import AttemptFolder, attempts, last_runs
from glaunch.bundle import LogLimits, has_archive, load_bundle
from glaunch.caller import home_folder, terminal_width, user_name
from glaunch.collect import collect
from glaunch.diagnosis.faulty import faulty_nodes
from glaunch.errors import DiskError, ParseError, SlurmError
from glaunch.evidence import load_plan, report_of
from glaunch.follow import Ending, Follower, Pace
from glaunch.gateways.process import STOPS, SignalsDeferred
from glaunch.gateways.ssh import ssh_settings
from glaunch.history import Submission
from glaunch.job import FORGOTTEN, UNTOLD, Job, whole
from glaunch.launch import Launched
from glaunch.logs import HostLogs, LogBundle
from glaunch.pipeline import World
from glaunch.reasons import ended
from glaunch.report.documents import report_document
from glaunch.report.html import job_html
from glaunch.report.job import JobReport, job_text
from glaunch.rundir import write_text
from glaunch.settings import Settings
from glaunch.shipped import shipped
from glaunch.talk import say, talk, tell
from glaunch.units import MIB


class Left(KeyboardInterrupt):
    """One of STOPS came while a job was followed."""


def _leave(_number: int, _frame: FrameType | None) -> None:
    raise Left


def settings_of(world: World, folder: Path) -> Settings:
    """The settings as they hold on the partition that a job was planned for."""
    plan = load_plan(folder)
    return world.settings.for_partition(plan.partition) if plan is not None else world.settings


@dataclass(frozen=True)
class Followed:
    """How following ended: the exit code, the report (of the first part that failed, else the last), told_by: job or glaunch."""

    code: int
    report: JobReport | None
    told_by: str
    tasks: Mapping[int, int]
    """Of an array: index that was asked for → exit code."""


def _follower(
    world: World,
    submission_id: str,
    job_id: str,
    folder: Path,
    *,
    pinned: bool,
    array: bool,
    offset: int = 0,
    out: Callable[[str], None] | None,
    host: str = "",
) -> Follower:
    """A Follower that writes down in the history what it sees."""
    settings = settings_of(world, folder)

    def on_pin(how: str) -> None:
        world.history.note(submission_id, time.time(), pin=how)

    def on_start(_: AttemptFolder) -> None:
        world.history.note(submission_id, time.time(), state="running")

    return Follower(
        world.slurm,
        folder,
        job_id,
        pinned=pinned,
        array=array,
        offset=offset,
        host=host,
        pace=Pace(settings.number("pin.patience_s"), settings.number("follow.poll_s"), settings.number("follow.max_poll_s")),
        out=out,
        talk=talk,
        on_pin=on_pin,
        on_start=on_start,
    )


def settle(world: World, launched: Launched) -> None:
    """Stay until the pin is settled (at most its patience), showing nothing: `--detach`, `--parsable`."""
    watch = _follower(world, launched.plan.submission_id, launched.job_id, launched.folder, pinned=launched.pinned, array=False, out=None)
    _interruptible(watch, lambda: watch.run(until=lambda: not watch.pinned), launched.signals)


def stay(world: World, launched: Launched, *, show: bool) -> Followed:
    """Follow a launch to its end and report; an array that is several submissions part after part, from each one's first line.

    Ctrl-C and a hang-up detach: the job goes on, and one line says how to come back.
    """
    parts = launched.parts
    watches = [
        _follower(
            world,
            part.plan.submission_id,
            part.job_id,
            part.folder,
            pinned=launched.pinned,
            array=bool(part.plan.request.array),
            offset=part.plan.offset,
            out=say if show else None,
        )
        for part in parts
    ]
    return _follow_all(world, watches, [part.plan.submission_id for part in parts], launched.signals)


def come_back(world: World, submissions: Sequence[Submission], *, host: str = "") -> int:
    """`glaunch logs -f`: follow again a job that was detached from, from its first line; `host`: whose ranks are shown ("": rank 0's)."""
    watches = []
    for submission in submissions:
        folder = Path(submission.folder)
        plan = load_plan(folder)
        array, offset = plan is not None and bool(plan.request.array), plan.offset if plan is not None else 0
        held = submission.pin == "held"
        watches.append(
            _follower(world, submission.id, submission.job_id, folder, pinned=held, array=array, offset=offset, out=say, host=host)
        )
    return _follow_all(world, watches, [submission.id for submission in submissions]).code


def _follow_all(world: World, watches: Sequence[Follower], ids: Sequence[str], signals: SignalsDeferred | None = None) -> Followed:
    """One after the other; the highest exit code, and the report of the first that did not end well, else of the last."""
    ends: list[Followed] = []
    for number, (watch, submission_id) in enumerate(zip(watches, ids, strict=True)):
        if number:
            talk(f"the next part of the array: job {watch.job_id}")
        all_ids = ":".join(one.job_id for one in watches)
        ended_so = _follow(world, watch, submission_id, all_ids, signals if number == 0 else None)
        ends.append(ended_so)
        if ended_so.code == 130 and ended_so.told_by == "glaunch":
            return ended_so
    told = next((one for one in ends if one.code), ends[-1])
    tasks = {task: code for one in ends for task, code in one.tasks.items()}
    if len(ends) > 1:
        talk(tasks_in_words(tasks))
    return replace(told, code=max(one.code for one in ends), tasks=tasks)


def _follow(world: World, watch: Follower, submission_id: str, all_ids: str, signals: SignalsDeferred | None) -> Followed:
    """To the job's end and its report. `all_ids`: how to come back to it, and to the other parts of its array."""
    job_id = watch.job_id
    ending = _interruptible(watch, watch.run, signals)
    if ending is None:
        # in one go: the terminal may be gone before a second line
        talk(f"detached: job {all_ids} goes on\n  back: glaunch logs -f {all_ids}\n  its end: glaunch cancel {all_ids}")
        return Followed(130, None, "glaunch", {})
    world.history.note(submission_id, time.time(), state="over", pin="settled", detail=ended(ending.code, ending.job))
    if ending.message:
        talk(ending.message)
    made = _report_at_the_end(world, watch, ending)
    if made is not None and (faulty := faulty_nodes(made.findings, made.granted)):
        world.history.note(submission_id, time.time(), faulty=list(faulty))
    tasks = {task + watch.offset: code for task, code in ending.tasks.items()}
    if watch.array:
        talk(f"job {job_id}: {tasks_in_words(tasks)}" if all_ids != job_id else tasks_in_words(tasks))
    return Followed(ending.code, made, ending.told_by, tasks)


def _report_at_the_end(world: World, watch: Follower, ending: Ending) -> JobReport | None:
    """Shown and saved. What goes wrong here is told: the job's exit code is not to be lost for it."""
    made, runs = None, last_runs(attempts(watch.folder, watch.job_id))
    try:
        fetch_missing(world, runs)
    except (SlurmError, ParseError, DiskError) as error:
        talk(f"the logs that are missing could not be fetched: {error}")
    try:
        worst = _worst(runs)
        job = ending.job if ending.job is not None and not watch.array else look_up(world, watch.job_id, watch.folder, worst)
        made = report_of(watch.folder, worst, job)
        tell(job_text(made, terminal_width()))
        talk(f"the same as a page: {save_report(watch.folder, worst, made)}")
    except (ParseError, DiskError) as error:
        talk(f"{error}")
    return made


def _worst(runs: Sequence[AttemptFolder]) -> AttemptFolder | None:
    """The run that a report is about: of an array the first task that failed, else the last."""
    return next((run for run in runs if run.end is None or run.end.code), runs[-1] if runs else None)


def tasks_in_words(codes: Mapping[int, int]) -> str:
    """`3 of 4 array tasks ended well; not 2`, from each task's exit code."""
    bad = [str(task) for task, code in sorted(codes.items()) if code]
    words = f"{len(codes) - len(bad)} of {len(codes)} array tasks ended well"
    return words + (f"; not {', '.join(bad[:8])}{' …' if bad[8:] else ''}" if bad else "")


def fetch_missing(world: World, runs: Sequence[AttemptFolder]) -> None:
    """After the end: over SSH the logs of the hosts that a run's own gather missed."""
    for run in runs:
        if run.start is not None and not all(has_archive(run.path, host) for host in run.log_hosts):
            fetch(world, run)


def _interruptible(watch: Follower, work: Callable[[], Ending | None], signals: SignalsDeferred | None = None) -> Ending | None:
    """Run it; on Ctrl-C, a hang-up or TERM (or when one came before, see `signals`) nothing is cancelled, and no pin stays behind."""
    before = {name: handler for name in STOPS if (handler := signal.getsignal(name)) is not signal.SIG_IGN}  # nohup stays nohup
    ending = None
    try:
        for name in before:
            signal.signal(name, _leave)
        leave = bool(signals and signals.came)
        if not leave:
            ending = work()
    except Left:
        leave = True
    except BrokenPipeError:
        # The reader of the job's output went away (`| head`), and glaunch with it.
        watch.lift_pin()
        raise
    if leave:
        for name in STOPS:  # a second one, while the pin is being lifted, changes nothing
            signal.signal(name, signal.SIG_IGN)
        watch.lift_pin()
        if signals:
            signals.came.clear()
        return None
    for name, handler in before.items():
        signal.signal(name, handler)
    if signals:
        signals.release()
    return ending


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
        job = world.slurm.job(job_id) or next(iter(whole(world.slurm.accounted((job_id,)) or ())), None)
    except SlurmError as error:
        talk(error.message)
        return Job(job_id, UNTOLD)
    return job or Job(job_id, FORGOTTEN)


def fetch(world: World, attempt: AttemptFolder, progress: Callable[[HostLogs], None] | None = None) -> LogBundle:
    """Over SSH the logs of every host that the job's own gather has not brought home: all of them, while the job lives."""
    settings = settings_of(world, attempt.path.parent)
    limits = LogLimits(archive_bytes=settings.number("logs.max_host_mib") * MIB)
    if attempt.start is None or not settings.flag("ssh.enabled"):
        return load_bundle(attempt.path, attempt.log_hosts, limits=limits)
    return collect(
        attempt.path,
        attempt.log_hosts,
        addresses_of(world, attempt.log_hosts),
        attempt.start.log_dir,
        settings=ssh_settings(settings, user=user_name(), home=str(home_folder()), agent=os.environ.get("SSH_AUTH_SOCK", "")),
        limits=limits,
        progress=progress,
    )


def addresses_of(world: World, hosts: Sequence[str]) -> Mapping[str, str]:
    """Host → where ssh reaches it; without Slurm's word (a silent controller keeps no log from coming home) by its name."""
    try:
        nodes = world.slurm.nodes()
    except SlurmError as error:
        talk(f"{error.message}; hosts are reached by their names")
        return {}
    return {name: nodes.addresses[nodes.row[name]] for name in hosts if name in nodes.row}
