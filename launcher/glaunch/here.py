"""`--here`: inside an allocation glaunch orders, tunes and runs on its nodes, and submits nothing."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import FrameType
from typing import IO

from glaunch.aftermath import look_up, save_report
from glaunch.attempt import attempts
from glaunch.caller import terminal_width
from glaunch.errors import UsageError
from glaunch.evidence import report_of
from glaunch.follow import TICK_S
from glaunch.inherited import around_steps, with_functions
from glaunch.job_output import JobOutput
from glaunch.launch import write
from glaunch.pipeline import World, decide_on, see
from glaunch.placement.layout import as_asked
from glaunch.report.job import job_text
from glaunch.request import Request
from glaunch.talk import say, talk, tell


def run_here(world: World, request: Request) -> int:
    """Run on the nodes of the allocation that this shell is in; returns the program's exit code.

    The nodes are given, so nothing is placed: what is decided are the order of the ranks and their environment.
    """
    job_id, nodes, partition = (os.environ.get(name, "") for name in ("SLURM_JOB_ID", "SLURM_JOB_NODELIST", "SLURM_JOB_PARTITION"))
    if not job_id or not nodes:
        raise UsageError(
            "--here: this shell is in no allocation", hint="without --here glaunch submits; or first: salloc -N 2 --gres=gpu:8"
        )
    if request.components:
        raise UsageError(
            "--here: this allocation is one set of nodes, and a job with ':' has one for each component",
            hint="without --here glaunch submits it; for one component alone leave the rest out",
        )
    asked = [
        name
        for name in ("clusters", "nodelist", "exclude", "array", "dependency", "reservation", "constraint", "export", "wait_for_leaves")
        if getattr(request, name)
    ]
    if asked:
        raise UsageError(
            f"--here: the allocation is there already, and --{asked[0].replace('_', '-')} cannot change it", hint="leave it out"
        )
    inside = replace(request, partition=partition or request.partition, force=True, sbatch=())
    cluster, fabric = see(world, inside, max_age_s=0)
    if inside.tasks is None and inside.nodes is None:
        inside = replace(inside, nodes=int(os.environ.get("SLURM_JOB_NUM_NODES", "1")))
    decided, script, hidden = decide_on(world, inside, cluster, fabric)
    have = int(os.environ.get("SLURM_JOB_NUM_NODES", "1"))
    if decided.layout.nodes > have:
        raise UsageError(
            f"--here: {decided.layout.tasks} ranks need {decided.layout.nodes} nodes, and this allocation has {have}",
            hint=f"{as_asked(inside, decided.layout, have)}, or a larger allocation",
        )
    # What would have been asked for has no meaning here
    decided = replace(decided, mode="order", mode_why=f"job {job_id} has its nodes already", placement=None, arguments=())
    folder = write(world, decided, script, fabric)
    talk(f"runs here, in job {job_id} on {nodes}; its folder: {folder}")
    began_s = time.time()
    own_id = os.environ.get("SLURM_ARRAY_JOB_ID", job_id)  # what the script calls its attempt by
    output = JobOutput(folder, own_id)

    def show(*, last: bool = False) -> None:
        for line in output.lines(attempts(folder), last=last):
            say(line)

    environment = {**with_functions(around_steps(os.environ)), **hidden}
    with (folder / f"batch-{own_id}.log").open("ab") as log:
        code = _run(["sh", str(folder / "job.sbatch"), "here"], decided.launch.work_dir, environment, log, show)
    runs = attempts(folder)
    found = [attempt for attempt in runs if attempt.end is not None]
    if runs and runs[-1].left_in:
        talk(f"ended in a line of setup, no rank was started: {runs[-1].left_in}")
        return code or 1
    if found:
        made = report_of(folder, found[-1], look_up(world, job_id, folder, found[-1]))
        tell(job_text(made, terminal_width()))
        talk(f"the same as a page: {save_report(folder, found[-1], made)}")
    talk(f"ended with exit code {code} after {time.time() - began_s:.0f} s")
    return code


def _over(script: "subprocess.Popen[bytes]") -> bool:
    """Whether it is over, a moment from now at the latest."""
    try:
        script.wait(TICK_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def _run(argv: Sequence[str], folder: str, environment: Mapping[str, str], log: IO[bytes], show: Callable[..., None]) -> int:
    """The script's exit code (128 + n for a signal), whatever the terminal does meanwhile.

    What it says goes to `log`, as a batch job's does; `show` is called while it runs, and with `last` at its end.

    ^C and a hang-up reach the script by themselves, since it is of glaunch's process group: it ends its ranks, and their logs come home.
    A TERM for glaunch alone is handed on to it.
    """
    script: subprocess.Popen[bytes] | None = None

    def hand_on(number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGTERM and script is not None:
            script.terminate()

    before = {name: signal.signal(name, hand_on) for name in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)}
    try:
        script = subprocess.Popen(argv, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT)
        with suppress(BrokenPipeError):  # the reader of the output went away; the ranks go on
            while not _over(script):
                show()
            show(last=True)
        code = script.wait()
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
    return code if code >= 0 else 128 - code
