"""Asks Slurm for the job of a plan: one sbatch, its id written down before anything else happens, what the site made of it told.

A second sbatch, without the pin, comes only where Slurm said no to the first; where Slurm said nothing, nothing is tried again.
"""

import time
from collections.abc import Mapping
from pathlib import Path

from glaunch.errors import ControllerSilent, SlurmError
from glaunch.gateways.process import signals_deferred
from glaunch.gateways.slurm import SlurmCommands
from glaunch.history import History
from glaunch.plan import Option, Plan
from glaunch.rundir import write_texts
from glaunch.talk import talk
from glaunch.units import format_time

ARGUMENT_MAX_BYTES = 96 * 1024
"""A single argument of a program ends at 128 KiB on Linux; a longer list of nodes travels in a file."""


def submit(slurm: SlurmCommands, history: History, plan: Plan, folder: Path, hidden: Mapping[str, str]) -> tuple[str, bool]:
    """(the job's id, whether it is pinned). `hidden`: variables for the job that are written nowhere.

    Raises ControllerSilent when it is not known whether the job is there, SlurmError when it was refused.
    """
    options = _words(plan.arguments, folder)
    # Between the question and the recorded answer no ^C may come through: the job would be there and its id lost.
    with signals_deferred():
        try:
            job_id = _sbatch(slurm, plan, options, hidden)
            if not job_id:
                options = ()
                history.append(plan.submission_id, time.time(), pin="none")
                job_id = _sbatch(slurm, plan, options, hidden)
        except ControllerSilent:
            talk(f"it is not known whether {plan.name} was submitted, and nothing was tried again; to find out: glaunch status")
            raise
        except SlurmError as refusal:
            history.append(plan.submission_id, time.time(), state="refused", pin="none", detail=refusal.message)
            raise
        history.append(plan.submission_id, time.time(), state="submitted", job_id=job_id)
    talk(f"job {job_id} submitted; its folder: {folder}")
    _read_back(slurm, plan, job_id)
    return job_id, bool(options)


def _words(arguments: tuple[Option, ...], folder: Path) -> tuple[str, ...]:
    """sbatch's words beside the script; a list of nodes that is too long for an argument goes through a file."""
    words = []
    for option in arguments:
        value = option.value
        if value is not None and len(value) > ARGUMENT_MAX_BYTES:
            write_texts(folder, ((f"{option.name}.txt", value + "\n"),))
            value = str(folder / f"{option.name}.txt")
        words.append(f"--{option.name}" if value is None else f"--{option.name}={value}")
    return tuple(words)


def _sbatch(slurm: SlurmCommands, plan: Plan, options: tuple[str, ...], hidden: Mapping[str, str]) -> str:
    """The id; "" where Slurm refused the pin, so that the job may be asked for without. A refusal of anything else is raised."""
    script = f"{plan.folder}/job.sbatch"
    try:
        answer = slurm.submit(script, options, (plan.submission_id,), folder=plan.launch.work_dir, environment=hidden)
    except ControllerSilent:
        raise
    except SlurmError as refusal:
        if not options:
            raise
        talk(f"Slurm refuses these nodes ({refusal.message}): submitted again without the pin; Slurm chooses, glaunch orders")
        return ""
    if answer.banner:
        talk(answer.banner)
    return answer.job_id


def _read_back(slurm: SlurmCommands, plan: Plan, job_id: str) -> None:
    """A site's job_submit plugin may have changed the job: a difference is told, not fought."""
    try:
        job = slurm.job(job_id)
    except SlurmError as error:
        talk(f"the job could not be read back: {error.message}")
        return
    if job is None:
        return
    if job.partition and job.partition != plan.partition:
        talk(f"the site changed the partition: {plan.partition} → {job.partition}")
    limit_s = plan.time_limit_s
    if limit_s is not None and job.time_limit_s is not None and -(-limit_s // 60) * 60 != job.time_limit_s:
        talk(f"the site changed the time limit: {format_time(limit_s)} → {format_time(job.time_limit_s)}")
    if job.node_count and job.node_count != plan.layout.nodes and not plan.request.array:
        talk(f"the site changed the number of nodes: {plan.layout.nodes} → {job.node_count}")
