"""The whole of glaunch in order; read this first.

request → plan → script → job → bundle → findings → report. Nothing is decided here and nothing is done here: each line hands the
answer of one part to the next.
"""

import json
import os
import secrets
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from glaunch import __version__
from glaunch.caller import caller_of, login_host, split_secrets, state_folder, terminal_width, user_name
from glaunch.cluster import Cluster
from glaunch.config import load, load_rules
from glaunch.decide import Submission as Place
from glaunch.decide import decide
from glaunch.document import plan_document
from glaunch.errors import ControllerSilent, GlaunchError, SlurmError, UsageError
from glaunch.fabric import Fabric, fabric_document, flat_fabric
from glaunch.gateways.capture import replay
from glaunch.gateways.kept import Kept, read_cluster
from glaunch.gateways.process import signals_deferred
from glaunch.gateways.slurm import SlurmCommands
from glaunch.history import History, held_nodes
from glaunch.parsers.slurm_topology import parse_topology
from glaunch.plan import Option, Plan
from glaunch.request import Request
from glaunch.rundir import create, warn_local, write_texts
from glaunch.script import Script, render
from glaunch.settings import Settings
from glaunch.shipped import shipped
from glaunch.talk import talk
from glaunch.tuning import Rule

__all__ = ["Launched", "World", "decide_only", "launch", "open_world", "plan_json", "plan_text", "script_text", "terminal_width"]

ARGUMENT_MAX_BYTES = 96 * 1024
"""A single argument of a program ends at 128 KiB on Linux; a longer list of nodes travels in a file."""


@dataclass(frozen=True)
class World:
    """What a command line may touch: the cluster (or a capture of one), the settings, this user's history."""

    slurm: SlurmCommands
    settings: Settings
    rules: tuple[Rule, ...]
    history: History
    kept: Kept | None
    captured: bool

    def now_s(self) -> float:
        """Seconds since the epoch; for a capture the moment it was taken, so that reservations in it mean what they meant."""
        return time.time()


@dataclass(frozen=True)
class Launched:
    """A submission that Slurm took."""

    plan: Plan
    job_id: str
    folder: Path


def open_world(snapshot: str | None) -> World:
    """Settings, gateway and history of this user, here."""
    settings = load(home=Path.home(), cwd=Path.cwd(), environ=os.environ)
    timeout_s = float(settings.number("slurm.timeout_s"))
    state = state_folder(os.environ)
    return World(
        slurm=SlurmCommands(replay(Path(snapshot)), timeout_s=timeout_s) if snapshot else SlurmCommands(timeout_s=timeout_s),
        settings=settings,
        rules=load_rules(),
        history=History(state, login_host()),
        kept=None if snapshot else Kept(state / "kept", keep_s=settings.number("slurm.keep_s")),
        captured=snapshot is not None,
    )


def see(world: World, *, max_age_s: float) -> tuple[Cluster, Fabric]:
    """The cluster as it is now (`max_age_s` 0) or was a moment ago, and its fabric; no topology: one flat switch, and it says so."""
    cluster, topology = read_cluster(world.slurm, now_s=time.time(), kept=world.kept, nodes_max_age_s=max_age_s)
    fabric = parse_topology(topology, where="scontrol show topology")
    return cluster, fabric or flat_fabric(cluster.nodes.names)


def decide_only(world: World, request: Request) -> Plan:
    """The plan of `glaunch plan`: the same decision as `launch`, one step before the world is touched."""
    cluster, fabric = see(world, max_age_s=0 if world.captured else 60)
    return _decide(world, request, cluster, fabric)[0]


def _decide(world: World, request: Request, cluster: Cluster, fabric: Fabric) -> tuple[Plan, Mapping[str, str]]:
    """(plan, the secrets of --env, which travel by sbatch's environment and are written nowhere)."""
    public, hidden = split_secrets(request.env)
    caller = caller_of(request, world.settings, os.environ, must_exist=not world.captured)
    submission_id = secrets.token_hex(4)
    plan = decide(
        replace(request, env=public),
        world.settings,
        world.rules,
        cluster,
        fabric,
        caller,
        Place(submission_id, _folder(world.settings, request.name or caller.job_name, submission_id)),
        now_s=cluster.taken_at_s,
        held=held_nodes(world.history.submissions(), time.time()),
    )
    return plan, hidden


def _folder(settings: Settings, name: str, submission_id: str) -> str:
    safe = "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in name).strip(".") or "job"
    return str(Path.cwd() / settings.text("rundir.path") / f"{safe[:80]}-{submission_id}")


def launch(world: World, request: Request) -> Launched:
    """Decide, write down what is about to be done, and submit. Raises what the parts raise; nothing is submitted twice."""
    from glaunch.recover import sweep

    sweep(world.slurm, world.history, patience_s=world.settings.number("pin.patience_s"))
    with world.history.lock():
        cluster, fabric = see(world, max_age_s=0)
        plan, hidden = _decide(world, request, cluster, fabric)
        script = _render(world, plan)
        pinned = plan.placement.nodes if plan.mode == "pin" and plan.placement else ()
        world.history.append(
            plan.submission_id,
            time.time(),
            state="intent",
            name=plan.name,
            folder=plan.folder,
            script=f"{plan.folder}/job.sbatch",
            nodes=list(pinned),
            pin="held" if pinned else "none",
        )
    _say_plan(plan)
    folder = _write(world, plan, script, fabric)
    try:
        job_id = _submit(world, plan, folder, hidden)
    except ControllerSilent:
        talk(f"it is not known whether {plan.name} was submitted, and nothing was tried again; `glaunch status` finds out")
        raise
    except SlurmError:
        world.history.append(plan.submission_id, time.time(), state="refused", pin="none")
        raise
    return Launched(plan, job_id, folder)


def _write(world: World, plan: Plan, script: Script, fabric: Fabric) -> Path:
    """The job's folder: all that the job needs, and what was decided."""
    warning = warn_local(
        Path(plan.folder), shared=world.settings.words("rundir.shared"), local=world.settings.words("rundir.local")
    )
    if warning:
        talk(warning)
    folder = create(
        Path(plan.folder),
        {"schema": "glaunch.intent/1", "submission_id": plan.submission_id, "created_s": time.time(), "glaunch": __version__, "user": user_name()},
    )
    write_texts(
        folder,
        {
            **dict(script.texts),
            "plan.json": json.dumps(plan_document(plan), indent=1),
            "fabric.json": json.dumps(fabric_document(fabric)),
        },
    )
    return folder


def _submit(world: World, plan: Plan, folder: Path, hidden: Mapping[str, str]) -> str:
    """One sbatch; a second one, without the pin, only where Slurm said no to the first."""
    script = folder / "job.sbatch"
    # Between the question and the recorded answer no ^C may come through: the job would be there and its id lost.
    with signals_deferred():
        try:
            answer = world.slurm.submit(script, _argv(plan.arguments, folder), (plan.submission_id,), environment=hidden)
        except ControllerSilent:
            raise
        except SlurmError as refusal:
            if not plan.arguments:
                raise
            answer = world.slurm.submit(script, (), (plan.submission_id,), environment=hidden)
            talk(f"Slurm refused these nodes ({refusal.message}): submitted without the pin, Slurm chooses, glaunch orders")
            world.history.append(plan.submission_id, time.time(), pin="none")
        world.history.append(plan.submission_id, time.time(), state="submitted", job_id=answer.job_id)
    if answer.banner:
        talk(answer.banner)
    talk(f"submitted: job {answer.job_id}, folder {folder}")
    _read_back(world, plan, answer.job_id)
    return answer.job_id


def _argv(arguments: tuple[Option, ...], folder: Path) -> tuple[str, ...]:
    words = []
    for option in arguments:
        value = option.value
        if value is not None and len(value) > ARGUMENT_MAX_BYTES:
            write_texts(folder, {f"{option.name}.txt": value.replace(",", "\n") + "\n"})
            value = str(folder / f"{option.name}.txt")
        words.append(f"--{option.name}" if value is None else f"--{option.name}={value}")
    return tuple(words)


def _read_back(world: World, plan: Plan, job_id: str) -> None:
    """A site's job_submit plugin may have changed the job: a difference is told, not fought."""
    try:
        job = world.slurm.job(job_id)
    except SlurmError as error:
        talk(f"the job could not be read back: {error.message}")
        return
    if job is None:
        return
    if job.partition and job.partition not in plan.partition.split(","):
        talk(f"the site changed the partition: {plan.partition} → {job.partition}")
    if plan.time_limit_s is not None and job.time_limit_s is not None and -(-plan.time_limit_s // 60) * 60 != job.time_limit_s:
        talk(f"the site changed the time limit: {plan.time_limit_s // 60} → {job.time_limit_s // 60} minutes")
    if job.node_count and job.node_count != plan.layout.nodes and not plan.request.array:
        talk(f"the site changed the number of nodes: {plan.layout.nodes} → {job.node_count}")


def _render(world: World, plan: Plan) -> Script:
    texts = {str(path.relative_to(shipped("templates"))): path.read_text() for path in shipped("templates").rglob("*") if path.is_file()}
    return render(plan, texts, version=__version__)


def _say_plan(plan: Plan) -> None:
    from glaunch.report.plan import plan_lines

    for line in plan_lines(plan):
        talk(line)


def plan_text(plan: Plan, width: int, *, verbose: bool) -> str:
    """What `glaunch plan` prints."""
    from glaunch.report.plan import plan_text as text

    return text(plan, width, verbose=verbose)


def plan_json(plan: Plan) -> str:
    """The plan as one JSON document."""
    return json.dumps(plan_document(plan), indent=1)


def script_text(plan: Plan) -> str:
    """The script that would be submitted."""
    texts = {str(path.relative_to(shipped("templates"))): path.read_text() for path in shipped("templates").rglob("*") if path.is_file()}
    return dict(render(plan, texts, version=__version__).texts)["job.sbatch"]
