"""The whole of glaunch in order; read this first.

request → plan → script → job → bundle → findings → report. Nothing is decided here and nothing is done here: each line hands the
answer of one part to the next. `aftermath` goes on where `launch` ends. What only a launch needs is imported by it: `plan` is to be quick.
"""

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from glaunch import __version__
from glaunch.caller import caller_of, login_host, split_secrets, state_folder, user_name
from glaunch.cluster import Cluster
from glaunch.config import Options, load, load_model, load_rules
from glaunch.decide import decide
from glaunch.errors import ControllerSilent, SlurmError
from glaunch.fabric import Fabric, flat_fabric
from glaunch.gateways.kept import Kept, read_cluster
from glaunch.gateways.process import signals_deferred
from glaunch.gateways.slurm import SlurmCommands
from glaunch.history import History, held_nodes
from glaunch.hostlist import expand
from glaunch.network_model import Model
from glaunch.parsers.slurm_topology import parse_topology
from glaunch.plan import Option, Plan
from glaunch.request import Request
from glaunch.rule import Rule
from glaunch.settings import Settings
from glaunch.shipped import shipped
from glaunch.talk import talk
from glaunch.units import format_time

if TYPE_CHECKING:
    from glaunch.script import Script

ARGUMENT_MAX_BYTES = 96 * 1024
"""A single argument of a program ends at 128 KiB on Linux; a longer list of nodes travels in a file."""
PLAN_MAX_AGE_S = 60.0
"""How old the nodes' states may be for `plan`, which says so; a launch always asks anew."""


@dataclass(frozen=True)
class World:
    """What a command line may touch: the cluster (or a capture of one), the settings, this user's history."""

    slurm: SlurmCommands
    settings: Settings
    rules: tuple[Rule, ...]
    history: History
    kept: Kept | None
    captured: bool
    model: Model
    """What predicts bandwidth."""
    captured_at_s: float | None = None
    """When the capture was taken: the "now" of a plan made from it, so that its reservations mean what they meant."""


@dataclass(frozen=True)
class Launched:
    """A submission that Slurm took."""

    plan: Plan
    job_id: str
    folder: Path
    pinned: bool


def open_world(snapshot: str | None = None, options: Options | None = None) -> World:
    """Settings, gateway and history of this user, here; with `snapshot` the answers of that capture instead of a cluster's."""
    settings = load(home=Path.home(), cwd=Path.cwd(), environ=os.environ, options=options or {})
    timeout_s = float(settings.number("slurm.timeout_s"))
    state = state_folder(os.environ)
    if snapshot is None:
        slurm, kept = SlurmCommands(timeout_s=timeout_s), Kept(state / "kept", keep_s=float(settings.number("slurm.keep_s")))
        return World(slurm, settings, load_rules(), History(state, login_host()), kept, captured=False, model=load_model())
    from glaunch.gateways.capture import replay, taken_at_s

    return World(
        SlurmCommands(replay(Path(snapshot)), timeout_s=timeout_s),
        settings,
        load_rules(),
        History(state, login_host()),
        None,
        captured=True,
        model=load_model(),
        captured_at_s=taken_at_s(Path(snapshot)),
    )


def see(world: World, *, max_age_s: float) -> tuple[Cluster, Fabric]:
    """The cluster as it is now (`max_age_s` 0) or was a moment ago, and its fabric; without a topology one flat switch, which says so."""
    now_s = time.time() if world.captured_at_s is None else world.captured_at_s
    cluster, topology = read_cluster(world.slurm, now_s, world.kept, nodes_max_age_s=max_age_s)
    return cluster, parse_topology(topology, where="scontrol show topology") or flat_fabric(cluster.nodes.names)


def plan(world: World, request: Request) -> Plan:
    """The plan of `glaunch plan`: the same decision as `launch`, one step before the world is touched."""
    cluster, fabric = see(world, max_age_s=PLAN_MAX_AGE_S)
    return _decide(world, request, cluster, fabric)[0]


def decide_on(world: World, request: Request, cluster: Cluster, fabric: Fabric) -> tuple[Plan, "Script", Mapping[str, str]]:
    """(plan, its texts, the secrets of --env) for this cluster as it was seen."""
    decided, hidden = _decide(world, request, cluster, fabric)
    return decided, script_of(world, decided), hidden


def _decide(world: World, request: Request, cluster: Cluster, fabric: Fabric) -> tuple[Plan, Mapping[str, str]]:
    """(plan, the secrets of --env, which travel by sbatch's environment and are written nowhere)."""
    public, hidden = split_secrets(request.env)
    caller = caller_of(request, world.settings, os.environ, must_exist=not world.captured)
    submission_id = os.urandom(4).hex()
    decided = decide(
        replace(request, env=public),
        world.settings,
        world.rules,
        cluster,
        fabric,
        caller,
        submission_id=submission_id,
        folder=_folder(caller.work_dir, world.settings, request.name or caller.job_name, submission_id),
        now_s=cluster.taken_at_s,
        model=world.model,
        held=frozenset() if world.captured else held_nodes(world.history.submissions(), time.time()),
    )
    return decided, hidden


def _folder(work_dir: str, settings: Settings, name: str, submission_id: str) -> str:
    safe = "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in name).strip(".") or "job"
    return os.path.normpath(os.path.join(work_dir, settings.text("rundir.path"), f"{safe[:80]}-{submission_id}"))


def script_of(world: World, decided: Plan) -> "Script":
    """The plan as text."""
    from glaunch.script import MIB, Ending, render

    settings = world.settings.for_partition(decided.partition)
    folder = shipped("templates")
    texts = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.suffix in {".j2", ".sh"}}
    return render(
        decided,
        texts,
        version=__version__,
        ending=Ending(
            before_limit_s=settings.number("gather.before_limit_s"),
            gather_s=settings.number("gather.timeout_s"),
            cap_bytes=settings.number("logs.max_host_mib") * MIB,
            log_root=settings.text("logs.node_dir"),
        ),
    )


def launch(world: World, request: Request) -> Launched:
    """Decide, write down what is about to be done, and submit: intent, folder, sbatch, id, in this order. Raises what the parts raise."""
    from glaunch.recover import sweep
    from glaunch.report.summary import summary

    sweep(world.slurm, world.history, patience_s=world.settings.number("pin.patience_s"))
    # One launch at a time looks at free nodes and writes down which it takes, so that ten at once take ten different sets.
    with world.history.lock():
        cluster, fabric = see(world, max_age_s=0)
        decided, script, hidden = decide_on(world, request, cluster, fabric)
        pinned = decided.placement.nodes if decided.mode == "pin" and decided.placement else ()
        world.history.append(
            decided.submission_id,
            time.time(),
            state="intent",
            name=decided.name,
            folder=decided.folder,
            script=f"{decided.folder}/job.sbatch",
            nodes=list(pinned),
            pin="held" if pinned else "none",
        )
    for line in summary(decided):
        talk(line)
    folder = write(world, decided, script, fabric)
    return _submit(world, decided, folder, hidden)


def write(world: World, decided: Plan, script: "Script", fabric: Fabric) -> Path:
    """The job's folder: all that the job needs, and what was decided."""
    from glaunch.report.documents import plan_document
    from glaunch.rundir import create, write_texts

    folder = Path(decided.folder)
    warn_of_local(world.settings, os.path.realpath(folder))
    intent = {
        "schema": "glaunch.intent/1",
        "submission_id": decided.submission_id,
        "created_s": time.time(),
        "glaunch": __version__,
        "user": user_name(),
    }
    create(folder, intent)
    documents = (("plan.json", json.dumps(plan_document(decided), indent=1)), ("fabric.json", json.dumps(fabric.to_json())))
    write_texts(folder, (*documents, *script.texts))
    return folder


def warn_of_local(settings: Settings, path: str) -> None:
    """Say it when other nodes will hardly see this path: such a job never says a word itself."""
    from glaunch.rundir import warn_local

    mounts = Path("/proc/self/mountinfo").read_text(errors="surrogateescape")
    warning = warn_local(path, settings.words("rundir.shared"), settings.words("rundir.local"), mounts)
    if warning:
        talk(f"warning: {warning}")


def _submit(world: World, decided: Plan, folder: Path, hidden: Mapping[str, str]) -> Launched:
    """One sbatch; a second one, without the pin, only where Slurm said no to the first."""
    options = _words(decided.arguments, folder)
    # Between the question and the recorded answer no ^C may come through: the job would be there and its id lost.
    with signals_deferred():
        try:
            answer = _sbatch(world, decided, options, hidden)
            if answer is None:
                options = ()
                world.history.append(decided.submission_id, time.time(), pin="none")
                answer = _sbatch(world, decided, options, hidden)
        except ControllerSilent:
            talk(f"it is not known whether {decided.name} was submitted, and nothing was tried again; to find out: glaunch status")
            raise
        except SlurmError as refusal:
            world.history.append(decided.submission_id, time.time(), state="refused", pin="none", detail=refusal.message)
            raise
        if answer is None:
            raise SlurmError("sbatch gave no id")
        world.history.append(decided.submission_id, time.time(), state="submitted", job_id=answer)
    talk(f"job {answer} submitted; its folder: {folder}")
    _read_back(world, decided, answer)
    return Launched(decided, answer, folder, pinned=bool(options))


def _words(arguments: tuple[Option, ...], folder: Path) -> tuple[str, ...]:
    """sbatch's words beside the script; a list of nodes that is too long for an argument goes through a file.

    The file has a node a line: 22.05 does not understand long lines, and says no to a file that makes a list of more than 64 KiB
    (then the job is asked for without the pin). **Source:** tried on 22.05.8.
    """
    from glaunch.rundir import write_texts

    words = []
    for option in arguments:
        value = option.value
        if value is not None and len(value) > ARGUMENT_MAX_BYTES:
            write_texts(folder, ((f"{option.name}.txt", "".join(f"{node}\n" for node in expand(value))),))
            value = str(folder / f"{option.name}.txt")
        words.append(f"--{option.name}" if value is None else f"--{option.name}={value}")
    return tuple(words)


def _sbatch(world: World, decided: Plan, options: tuple[str, ...], hidden: Mapping[str, str]) -> str | None:
    """The id; None where Slurm refused the pin, so that the job may be asked for without. A refusal of anything else is raised."""
    try:
        answer = world.slurm.submit(
            f"{decided.folder}/job.sbatch", options, (decided.submission_id,), folder=decided.launch.work_dir, environment=hidden
        )
    except ControllerSilent:
        raise
    except SlurmError as refusal:
        if not options:
            raise
        talk(f"Slurm refuses these nodes ({refusal.message}): submitted again without the pin; Slurm chooses, glaunch orders")
        return None
    if answer.banner:
        talk(answer.banner)
    return answer.job_id


def _read_back(world: World, decided: Plan, job_id: str) -> None:
    """A site's job_submit plugin may have changed the job: a difference is told, not fought."""
    try:
        job = world.slurm.job(job_id)
    except SlurmError as error:
        talk(f"the job could not be read back: {error.message}")
        return
    if job is None:
        return
    if job.partition and job.partition != decided.partition:
        talk(f"the site changed the partition: {decided.partition} → {job.partition}")
    limit_s = decided.time_limit_s
    if limit_s is not None and job.time_limit_s is not None and -(-limit_s // 60) * 60 != job.time_limit_s:
        talk(f"the site changed the time limit: {format_time(limit_s)} → {format_time(job.time_limit_s)}")
    if job.node_count and job.node_count != decided.layout.nodes and not decided.request.array:
        talk(f"the site changed the number of nodes: {decided.layout.nodes} → {job.node_count}")
