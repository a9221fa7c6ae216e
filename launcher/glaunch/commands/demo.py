"""`glaunch demo`: the main job once, for real, on a Slurm that is started for it on this machine; or, where none can be, its plan."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from glaunch.errors import GlaunchError

if TYPE_CHECKING:
    from glaunch.sandbox.box import Sandbox

HELP = """Run the main job once, for real, on a 16-node Slurm that is started for it on this machine.

Installs what is missing (and starts no service), starts a sandbox, runs 64 ranks of examples/train.py on 8
of its nodes, fetches their logs over SSH while they run, shows the report, and takes all of it down. Where
this machine cannot run a Slurm, the plan and the script of the same job are shown from a recorded cluster.
"""
SCRIPT = "examples/train.py"
LAUNCH = ["glaunch", SCRIPT, "-n", "64"]
LIVE_S = 8
"""The ranks keep on training for so long: time enough to fetch their logs while they run."""
CAPTURE = "captures/demo16"


@click.command(help=HELP)
@click.option("--yes", is_flag=True, help="Go on although a Slurm of its own lives on this machine (it is not touched).")
@click.option("--keep", is_flag=True, help="Leave the sandbox up afterwards.")
@click.option("--nodes", type=click.IntRange(8, 512), default=16, show_default=True, metavar="N", help="Nodes of the sandbox.")
@click.pass_context
def command(ctx: click.Context, yes: bool, keep: bool, nodes: int) -> int:
    reason = why_not()
    if reason:
        click.echo(f"no Slurm can be started here ({reason}): the same job's plan and script, from a recorded cluster", err=True)
        return show_recorded(ctx)
    from glaunch.sandbox import packages

    seen = packages.slurm_of_its_own()
    if seen and not yes:
        raise GlaunchError(
            f"a Slurm lives on this machine ({seen}): nothing was done", hint="glaunch demo --yes runs beside it and leaves it alone"
        )
    examples = examples_folder()
    lacking = packages.missing(Path("/"), accounting=False)
    if not has_numpy():
        lacking = (*lacking, "python3-numpy")
    if lacking:
        say(f"installing {' '.join(lacking)} (no service starts)")
        packages.install(lacking, yes=yes)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    return run_for_real(examples, nodes, keep)


def why_not() -> str:
    """Why no sandbox can be started on this machine; "" where one can."""
    if sys.platform != "linux":
        return "this is not Linux"
    if os.geteuid() != 0:
        return "not root"
    from glaunch.sandbox import packages

    if packages.missing(Path("/"), accounting=False) and shutil.which("apt-get") is None:
        return "not Debian, and Slurm's programs are not installed"
    try:
        made = subprocess.run(["unshare", "--net", "--uts", "--ipc", "--mount", "--pid", "--fork", "true"], capture_output=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"unshare: {error}"
    return "" if made.returncode == 0 else f"no namespaces: {made.stderr.decode(errors='replace').strip()}"


def show_recorded(ctx: click.Context) -> int:
    """The plan and the script of the demo's job on the cluster whose answers ship with glaunch."""
    from glaunch.commands import plan
    from glaunch.shipped import shipped

    ctx.obj = {"snapshot": str(shipped("site") / CAPTURE)}
    with plan.command.make_context("plan", ["-v", *LAUNCH[2:], SCRIPT], parent=ctx) as context:
        plan.command.invoke(context)
    return 0


def examples_folder() -> Path:
    """The examples of the checkout that glaunch runs from; an installed glaunch has none."""
    from glaunch.shipped import shipped

    folder = shipped("site").parent / "examples"
    if not (folder / "train.py").is_file():
        raise GlaunchError(
            "the demo's job, examples/train.py, is in glaunch's source and not in an installation of it", hint="in a clone: make demo"
        )
    return folder


def has_numpy() -> bool:
    """Whether the Python that jobs of the sandbox find has what the example needs."""
    return (
        Path("/usr/bin/python3").exists()
        and subprocess.run(["/usr/bin/python3", "-c", "import numpy"], capture_output=True).returncode == 0
    )


def run_for_real(examples: Path, nodes: int, keep: bool) -> int:
    """Sandbox up, job, report, sandbox down; the job's exit code."""
    from glaunch.sandbox.options import SandboxOptions
    from glaunch.sandbox.up import up

    folder = Path(tempfile.mkdtemp(prefix="glaunch-demo-", dir="/var/tmp"))
    begin = time.monotonic()
    box = up(SandboxOptions(dir=folder, nodes=nodes))
    try:
        say(f"a Slurm of {len(box.nodes)} nodes stands after {time.monotonic() - begin:.1f} s, each a host of its own")
        home = box.home("ada")
        shutil.copytree(examples, home / "examples", ignore=shutil.ignore_patterns("__pycache__"))
        owner = home.stat()
        for path in (home / "examples", *(home / "examples").iterdir()):
            os.chown(path, owner.st_uid, owner.st_gid)
        code, page = _launch_and_report(box, home)
    finally:
        if keep:
            say(f"the sandbox stays: glaunch sandbox exec --dir {folder} --user ada bash -l; its end: glaunch sandbox down --dir {folder}")
        else:
            box.down()
            say("the sandbox is gone, and with it all its processes, links and mounts")
    say("the report above as one HTML file:")
    click.echo(page)
    return code


def _launch_and_report(box: "Sandbox", home: Path) -> tuple[int, str]:
    """The main job as the plain user ada, its logs fetched while it runs: (its exit code, the report's path out here)."""
    words = [*LAUNCH, "--seconds", str(LIVE_S)]
    say(f"ada$ {' '.join(words)}")
    with box.popen(words, "ada", stdout=None, stderr=None) as job:
        try:
            if _ranks_speak(home, job):
                say("ada$ glaunch collect     (from another terminal, over SSH, while the ranks run)")
                box.popen(["glaunch", "collect"], "ada", stdout=None, stderr=None).wait(timeout=120)
            code = job.wait(timeout=300)
        finally:
            job.terminate()
    pages = sorted(home.glob("glaunch-jobs/*/*/report.html"))
    if not pages:
        raise GlaunchError(f"the job ended with {code} and left no report", hint="glaunch demo --keep leaves the sandbox up to look into")
    handle, name = tempfile.mkstemp(prefix="glaunch-demo-", suffix=".html")
    os.write(handle, pages[-1].read_bytes())
    os.close(handle)
    return code, name


def _ranks_speak(home: Path, job: "subprocess.Popen[bytes]") -> bool:
    """Wait until rank 0 has told its first step; False when the job's launcher ended before."""
    deadline_s = time.monotonic() + 120
    while job.poll() is None and time.monotonic() < deadline_s:
        if any(b"step " in path.read_bytes() for path in home.glob("glaunch-jobs/*/*/out/*.log")):
            return True
        time.sleep(0.2)
    return False


def say(text: str) -> None:
    """A line about the demo itself, apart from what glaunch and the job say."""
    click.echo(f"demo: {text}", err=True)


def _leave(number: int, _frame: FrameType | None) -> None:
    """A signal that would end the demo ends it in order: the sandbox goes too."""
    raise SystemExit(128 + number)
