"""From a plan to a job: the intent on disk, the job's folder, one sbatch, its id written down, what the site made of it told.

The second part of the way; `pipeline` is before it, `aftermath` after it.
"""

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from glaunch import __version__
from glaunch.array_parts import after_part, part_of
from glaunch.caller import user_name
from glaunch.errors import ControllerSilent, DiskError, SlurmError, UsageError
from glaunch.fabric import Fabric
from glaunch.fabric_json import fabric_document
from glaunch.gateways.process import SignalsDeferred
from glaunch.gateways.slurm import SlurmCommands
from glaunch.gateways.slurm_refusals import about_nodes
from glaunch.history import History
from glaunch.hostlist import expand
from glaunch.job import Job
from glaunch.pipeline import World, decide_on, script_of, see
from glaunch.plan import Option, Plan
from glaunch.recover import IN_FLIGHT_S, catch_up, id_in, runs_script
from glaunch.report.documents import plan_document
from glaunch.report.summary import summary
from glaunch.request import Request
from glaunch.rundir import create, folder_of_program, warn_local, write_texts
from glaunch.script import Script
from glaunch.settings import Settings
from glaunch.talk import talk
from glaunch.units import format_time

ARGUMENT_MAX_BYTES = 96 * 1024
"""A single argument of a program ends at 128 KiB on Linux; a longer list of nodes travels in a file."""


@dataclass(frozen=True)
class Launched:
    """A submission that Slurm took."""

    plan: Plan
    job_id: str
    folder: Path
    pinned: bool
    signals: SignalsDeferred
    """Still deferred when this is handed on: `aftermath` takes over, so that there is no moment in which a hang-up leaves a pin behind."""
    rest: tuple["Part", ...] = ()
    """Of an array that is several submissions: those after the first."""

    @property
    def parts(self) -> tuple["Part", ...]:
        """All submissions of the launch, mostly one."""
        return (Part(self.plan, self.job_id), *self.rest)

    @property
    def job_ids(self) -> str:
        """All ids in one word, as `--dependency=afterok:` takes them: `12`, `12:15`; on a cluster by name as sbatch says it: `12;red`."""
        cluster = self.plan.request.clusters
        return ":".join(part.job_id for part in self.parts) + (f";{cluster}" if cluster else "")


@dataclass(frozen=True)
class Part:
    """One submission of a launch; of an array that is larger than Slurm takes there are several."""

    plan: Plan
    job_id: str

    @property
    def folder(self) -> Path:
        """Its folder."""
        return Path(self.plan.folder)


def launch(world: World, request: Request) -> Launched:
    """Decide, write down what is about to be done, and submit: intent, folder, sbatch, id, in this order. Raises what the parts raise."""
    catch_up(world.slurm, world.history, patience_s=world.settings.number("pin.patience_s"), older_than_s=IN_FLIGHT_S)
    # One launch at a time looks at free nodes and writes down which it takes, so that ten at once take ten different sets.
    with world.history.lock():
        cluster, fabric = see(world, request, max_age_s=0)
        decided, script, hidden = decide_on(world, request, cluster, fabric)
        _intend(world, decided, decided.submission_id)
    with _withdrawn_on_failure(world, decided):
        for line in summary(decided):
            talk(line)
        folder = write(world, decided, script, fabric)
    # Between the question and the recorded answer no ^C may come through: the job would be there and its id lost, or a pin be left.
    with ExitStack() as stack:
        signals = stack.enter_context(SignalsDeferred())
        job_id, pinned = _submit(world, decided, folder, hidden)
        rest = _submit_rest(world, decided, job_id, fabric, hidden, signals)
        stack.pop_all()
    return Launched(decided, job_id, folder, pinned=pinned, signals=signals, rest=rest)


def _intend(world: World, decided: Plan, launch: str) -> None:
    """What is about to be asked, on disk. `launch`: the id of the launch's first submission."""
    pinned = decided.listed
    world.history.append(
        decided.submission_id,
        time.time(),
        state="intent",
        name=decided.name,
        folder=decided.folder,
        script=f"{decided.folder}/job.sbatch",
        nodes=list(pinned),
        pin="held" if pinned else "none",
        cluster=world.slurm.cluster,
        **({"launch": launch, "tasks": decided.tasks_of_part, "offset": decided.offset} if decided.parts else {}),
    )


def _submit_rest(
    world: World, decided: Plan, job_id: str, fabric: Fabric, hidden: Mapping[str, str], signals: SignalsDeferred
) -> tuple[Part, ...]:
    """The further parts of an array that is several submissions, each in a folder of its own; a ^C stops between two of them."""
    rest: list[Part] = []
    for number in range(1, len(decided.parts)):
        part = part_of(decided, number)
        if signals.came:
            talk(f"interrupted: {_so_far(decided, (job_id, *(one.job_id for one in rest)))}")
            return tuple(rest)
        part = replace(part, arguments=after_part(decided, rest[-1].job_id if rest else job_id))
        try:
            _intend(world, part, decided.submission_id)
            with _withdrawn_on_failure(world, part):
                folder = write(world, part, script_of(world, part), fabric)
            rest.append(Part(part, _submit(world, part, folder, hidden)[0]))
        except (SlurmError, DiskError, UsageError):
            talk(_so_far(decided, (job_id, *(one.job_id for one in rest))))
            raise
    return tuple(rest)


def _so_far(decided: Plan, ids: Sequence[str]) -> str:
    """`submitted: job 12; not submitted: -a 10-19,20-24%2`, which can be typed later."""
    missing = ",".join(part.tasks for part in decided.parts[len(ids) :])
    cap = (decided.request.array or "").partition("%")[2]
    return f"submitted: job {', '.join(ids)}; not submitted: -a {missing}{f'%{cap}' if cap else ''}"


@contextmanager
def _withdrawn_on_failure(world: World, decided: Plan) -> Iterator[None]:
    """What fails, or is interrupted, before sbatch is asked was never submitted, and its nodes are free for the next launch."""
    done = False
    try:
        yield
        done = True
    finally:
        if not done:
            world.history.note(decided.submission_id, time.time(), state="refused", pin="none", detail="it ended before Slurm was asked")


def write(world: World, decided: Plan, script: Script, fabric: Fabric) -> Path:
    """The job's folder: all that the job needs, and what was decided."""
    folder = Path(decided.folder)
    programs = [folder_of_program(one.launch.argv[0], one.launch.work_dir) for one in decided.all_components]
    image = os.path.dirname(decided.launch.container.file) if decided.launch.container else ""
    for place in dict.fromkeys(path for path in (decided.folder, *programs, image) if path):
        warn_of_local(world.settings, os.path.realpath(place))
    intent = {
        "schema": "glaunch.intent/1",
        "submission_id": decided.submission_id,
        "created_s": time.time(),
        "glaunch": __version__,
        "user": user_name(),
    }
    create(folder, intent)
    seen = fabric_document(replace(fabric, network=None))  # a job needs the tree, not every cable
    documents = (("plan.json", json.dumps(plan_document(decided), indent=1)), ("fabric.json", json.dumps(seen)))
    write_texts(folder, (*documents, *script.texts))
    return folder


def warn_of_local(settings: Settings, path: str) -> None:
    """Say it when other nodes will hardly see this path: such a job never says a word itself."""
    mounts = Path("/proc/self/mountinfo").read_text(errors="surrogateescape")
    warning = warn_local(path, settings.words("rundir.shared"), settings.words("rundir.local"), mounts)
    if warning:
        talk(f"warning: {warning}")


def _submit(world: World, plan: Plan, folder: Path, hidden: Mapping[str, str]) -> tuple[str, bool]:
    """One sbatch, its id written down before anything else happens; a second one, asking for no nodes, only where Slurm refused the first.

    `hidden`: variables for the job that are written nowhere. Returns (id, whether it asks for its planned nodes).
    """
    slurm, history = world.slurm, world.history
    options = _words(plan.arguments, folder)
    try:
        job_id = _sbatch(slurm, plan, options, hidden)
        if not job_id:
            options = ()
            history.note(plan.submission_id, time.time(), pin="none")
            job_id = _sbatch(slurm, plan, options, hidden)
    except ControllerSilent:
        talk(f"it is not known whether {plan.name} was submitted, and nothing was tried again; to find out: glaunch status")
        raise
    except (SlurmError, UsageError) as refusal:
        history.note(plan.submission_id, time.time(), state="refused", pin="none", detail=refusal.message)
        raise
    history.note(plan.submission_id, time.time(), state="submitted", job_id=job_id)
    # What the site makes of the first part it makes of all
    job_id, job = (job_id, None) if plan.part else _read_back(slurm, history, plan, job_id)
    tasks = f" (tasks {plan.tasks_of_part})" if plan.parts else ""
    on = f" on {world.slurm.cluster}" if world.slurm.cluster else ""
    talk(f"job {job_id} submitted{tasks}{on}; its folder: {folder}")
    if job is not None:
        _tell_changes(plan, job)
    return job_id, bool(options and plan.listed)


def _read_back(slurm: SlurmCommands, history: History, plan: Plan, printed: str) -> tuple[str, Job | None]:
    """(the id of the job that runs this plan's script, that job where it was seen). A site's banner may have numbers of its own.

    Raises ControllerSilent where the id is another job's and Slurm shows no right one: the next command looks for it again.
    """
    script = f"{plan.folder}/job.sbatch"
    try:
        job = slurm.job(printed)
        if job is not None and runs_script(job, script):
            return printed, job
        job_id = id_in(slurm.own_jobs(), script)
    except SlurmError as error:
        talk(f"the job could not be read back: {error.message}")
        return printed, None
    if not job_id and not (job and job.script):
        return printed, job
    history.note(plan.submission_id, time.time(), state="submitted" if job_id else "intent", job_id=job_id)
    another = f"sbatch's answer names job {printed}, which is another one"
    if not job_id:
        raise ControllerSilent(f"{another}, and Slurm shows none that runs {script}", hint="to find out: glaunch status")
    talk(f"{another}; this is {job_id}")
    return job_id, None


def _words(arguments: tuple[Option, ...], folder: Path) -> tuple[str, ...]:
    """sbatch's words beside the script; a list of nodes that is too long for an argument goes through a file.

    The file has a node a line: 22.05 does not understand long lines, and says no to a file that makes a list of more than 64 KiB
    (then the job is asked for without the pin). **Source:** tried on 22.05.8.
    """
    words = []
    for option in arguments:
        value = option.value
        if value is not None and len(value) > ARGUMENT_MAX_BYTES:
            write_texts(folder, ((f"{option.name}.txt", "".join(f"{node}\n" for node in expand(value))),))
            value = str(folder / f"{option.name}.txt")
        words.append(f"--{option.name}" if value is None else f"--{option.name}={value}")
    return tuple(words)


def _sbatch(slurm: SlurmCommands, plan: Plan, options: tuple[str, ...], hidden: Mapping[str, str]) -> str:
    """The id; "" where Slurm refused what is asked of its nodes, so that the job may go without. A refusal of anything else is raised."""
    script = f"{plan.folder}/job.sbatch"
    try:
        answer = slurm.submit(script, options, (plan.submission_id,), folder=plan.launch.work_dir, environment=hidden)
    except ControllerSilent:
        raise
    except SlurmError as refusal:
        if not options or plan.part or not about_nodes(refusal):
            raise  # a part without its place behind the others would break the cap on running tasks
        asked = " ".join(f"--{option.name}" for option in plan.arguments)
        talk(f"{refusal.message}; asked once more without {asked}: Slurm chooses, glaunch orders")
        return ""
    if answer.banner:
        talk(answer.banner)
    return answer.job_id


def _tell_changes(plan: Plan, job: Job) -> None:
    """A site's job_submit plugin may have changed the job: a difference is told, not fought."""
    if job.partition and job.partition != plan.partition:
        talk(f"the site changed the partition: {plan.partition} → {job.partition}")
    limit_s = plan.time_limit_s
    if limit_s is not None and job.time_limit_s is not None and -(-limit_s // 60) * 60 != job.time_limit_s:
        talk(f"the site changed the time limit: {format_time(limit_s)} → {format_time(job.time_limit_s)}")
    if job.node_count and job.node_count != plan.nodes and not plan.request.array:
        talk(f"the site changed the number of nodes: {plan.nodes} → {job.node_count}")
