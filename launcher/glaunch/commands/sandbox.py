"""`glaunch sandbox`: a real Slurm of several hosts on this machine."""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from glaunch.commands.words import OneOf
from glaunch.errors import GlaunchError, UsageError
from glaunch.sandbox.options import DEFAULT_DIR, DEFAULT_NODES, Gpus, SandboxOptions, parse_gpus

if TYPE_CHECKING:
    from glaunch.sandbox.box import Sandbox

# Everything else is imported where it is used: `exec` is called in loops, and starts in tens of milliseconds.

F = TypeVar("F", bound=Callable[..., Any])


def _dir_option(function: F) -> F:
    help_text = "The sandbox's folder: all that it is lies there and inside its namespaces."
    return click.option("--dir", "folder", type=click.Path(path_type=Path), default=DEFAULT_DIR, show_default=True, help=help_text)(
        function
    )


class _HelpAlone(click.Group):
    """Without a verb it shows its help, and that is no error."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args or ["--help"])


@click.group("sandbox", cls=_HelpAlone, short_help="A real Slurm of several hosts on this machine.")
def command() -> None:
    """A real Slurm of several hosts on this machine, for trying things out.

    It lives in namespaces of its own: nothing listens, mounts or is left outside, and this machine's own Slurm, hosts file and munge are
    not touched. Any number stand side by side (--dir). It needs root; what runs inside runs as the plain users ada and bob.

    \b
      glaunch sandbox up                                    16 nodes of 8 GPUs, three tiers of switches
      glaunch sandbox exec --user ada -- glaunch run -n 64 train.py
      glaunch sandbox exec --user ada                       a shell on the login host
      glaunch sandbox fault power-off n005
      glaunch sandbox down
    """


@command.command(short_help="Make one.")
@_dir_option
@click.option("--nodes", type=click.IntRange(1), help=f"How many; {DEFAULT_NODES} unless the shape or the topology says.")
@click.option("--shape", default="", metavar="TIERS", help="The switches, each number per switch above: 'core:1 spine:2 leaf:4 node:2'.")
@click.option("--topology", type=click.Path(path_type=Path), help="This topology.conf or topology.yaml; its nodes are the nodes.")
@click.option(
    "--gpus", multiple=True, default=("h100:8",), show_default=True, metavar="[NODES=][KIND:]N", help="GPUs of each node; 0 for none."
)
@click.option(
    "--slurm-conf", "conf", multiple=True, metavar="KEY=VALUE", help="A line of slurm.conf; in place of the sandbox's own, if it has one."
)
@click.option(
    "--accounting",
    is_flag=True,
    help="slurmdbd and MariaDB: accounts red (ada) and blue (bob), QOS normal, small (4 nodes), spare (gives way).",
)
@click.option("--no-python", is_flag=True, help="Nodes without any Python.")
@click.option("--slurm-root", type=click.Path(path_type=Path), help="Run all of it in this root file system.")
@click.option("--rate", default="", metavar="RATE", help="What a node's link carries (400mbit); no limit if not given.")
@click.option("--uplink", default="", metavar="RATE", help="The same for links between switches.")
@click.option(
    "--bind",
    "binds",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Show this folder inside, read-only.",
)
@click.option(
    "--site",
    "sites",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A site file to try, in /etc/glaunch.",
)
@click.option(
    "--slurm-file",
    "slurm_files",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Beside slurm.conf, for plugins that you switch on with --slurm-conf: job_submit.lua, cli_filter.lua.",
)
@click.option("--ssh-users", default="root,ada,bob", show_default=True, help="Who may ssh to nodes.")
@click.option(
    "--disk",
    "disk_mib",
    type=click.IntRange(8),
    default=1024,
    show_default=True,
    help="MiB that a node's own disk (/, /tmp, /var/tmp) holds.",
)
@click.option("--timeout", "timeout_s", type=float, default=180.0, show_default=True, help="Seconds to wait for the cluster.")
@click.option("--install", "install_packages", is_flag=True, help="Install what is missing (apt-get); starts no service.")
@click.option("--yes", is_flag=True, help="With --install, also on a machine where a Slurm already lives.")
def up(
    folder: Path,
    gpus: tuple[str, ...],
    conf: tuple[str, ...],
    sites: tuple[Path, ...],
    ssh_users: str,
    install_packages: bool,
    yes: bool,
    **rest: Any,  # noqa: ANN401
) -> None:
    """Make a sandbox and wait until every node is idle."""
    from glaunch.sandbox import inner_python, packages
    from glaunch.sandbox.up import up as make

    options = SandboxOptions(
        dir=folder,
        gpus=tuple(map(parse_gpus, gpus)),
        slurm_conf=conf,
        site_files=sites,
        ssh_users=tuple(ssh_users.split(",")),
        **rest,
    )
    root = (options.slurm_root or Path("/")).resolve()
    if install_packages:
        lacking = (*packages.missing(root, accounting=options.accounting), *packages.for_glaunch(root))
        if lacking:
            if root == Path("/") and not yes:
                packages.check_no_slurm_lives_here()
            click.echo(f"installing {' '.join(lacking)}" + (f" in {root}" if options.slurm_root else ""), err=True)
            packages.install(lacking, yes=yes, root=root)
    began = time.monotonic()
    box = make(options)
    click.echo(f"up after {time.monotonic() - began:.1f} s: {len(box.nodes)} nodes, {_gpu_words(options.gpus)}, in {box.dir}", err=True)
    if options.slurm_root is None and (path := inner_python.unreadable(inner_python.outer())):
        click.echo(f"  glaunch will not start inside as ada or bob: others may not read {path}    (chmod -R o+rX)", err=True)
    here = "" if folder == DEFAULT_DIR else f"--dir {folder} "
    click.echo(
        f"  glaunch sandbox exec {here}--user ada -- sinfo      (in a loop, with less start-up: {box.dir}/exec -u ada sinfo)", err=True
    )
    click.echo(f"  glaunch sandbox down {here}".rstrip(), err=True)


def _gpu_words(gpus: tuple[Gpus, ...]) -> str:
    return (
        ", ".join(f"{each.count} {each.kind}" + (f" on {each.nodes}" if each.nodes else " each") for each in gpus if each.count)
        or "no GPUs"
    )


@command.command(short_help="End one and remove its folder.")
@_dir_option
def down(folder: Path) -> None:
    """End all that runs inside and remove the folder; also what a crash left of it."""
    from glaunch.sandbox.box import Sandbox

    there = folder.exists()
    Sandbox(folder).down()
    click.echo(f"{folder} is down" if there else f"nothing in {folder}", err=True)


@command.command(short_help="Which stand, and how they are.")
@click.option("--dir", "folder", type=click.Path(path_type=Path), help="This one only; else all on this machine.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def status(folder: Path | None, as_json: bool) -> int:
    """Which sandboxes stand on this machine, and the state of their nodes. Exit code 1 when none is up."""
    from glaunch.sandbox.box import Sandbox, standing

    reports = [_report(Sandbox(folder))] if folder else [report for box in standing() if (report := _report_if_there(box))]
    if as_json:
        import json

        click.echo(json.dumps({"schema": "glaunch.sandboxes/1", "sandboxes": reports}, indent=1))
    for report in reports if not as_json else ():
        words = f"up, init {report['init_pid']}" if report["up"] else "not up: its logs are in srv/log; glaunch sandbox down removes it"
        click.echo(f"{report['dir']}: {words}")
        if report["up"]:
            click.echo(
                f"  {report['nodes']} nodes, {report['switches']} switches in {report['tiers']} tiers, Slurm {report['slurm_version']}"
            )
            click.echo("  " + (", ".join(f"{count} {state}" for state, count in report["states"].items()) or "slurmctld does not answer"))
    if not reports and not as_json:
        click.echo("no sandbox on this machine", err=True)
    return 0 if any(report["up"] for report in reports) else 1


def _report_if_there(box: "Sandbox") -> dict[str, Any]:
    """Nothing of one that went away while all were asked, or is going."""
    from glaunch.sandbox.box import NoSandbox, NotUp

    try:
        return _report(box)
    except (NoSandbox, NotUp):
        return {}


def _report(box: "Sandbox") -> dict[str, Any]:
    from glaunch.sandbox.box import NotUp

    report: dict[str, Any] = {"dir": str(box.dir), "up": box.up, "init_pid": box.init, **box.facts}
    del report["schema"]
    if report["up"]:
        report["homes"] = {user: str(box.home(user)) for user in report["users"]}
        states = box.exec(["sinfo", "-h", "-o", "%T %D"], timeout_s=15)
        report["states"] = {state: int(count) for state, count in (line.split() for line in states.stdout.splitlines())}
        version = box.exec(["sinfo", "--version"], timeout_s=15)
        if version.code != 0:
            raise NotUp(f"the sandbox in {box.dir} ended while it was asked: {version.stderr.strip()}")
        report["slurm_version"] = version.stdout.split()[-1]
    return report


@command.command(
    "exec", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}, short_help="Run a command inside."
)
@_dir_option
@click.option("--user", default="root", show_default=True, help="As whom: root, ada or bob.")
@click.option("--node", default="", help="On this node; else on the login host, which is also the controller.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def exec_(folder: Path, user: str, node: str, words: tuple[str, ...]) -> None:
    """Run a command inside, in the user's home; no command: a login shell.

    Standard input and output and the exit code pass through; the environment is clean (exec -- env NAME=VALUE CMD sets some of it).
    DIR/exec [-u USER] [-n NODE] CMD does the same without the start of a Python.
    """
    _become(folder, words or ("bash", "-l"), user, node)


@command.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}, short_help="ssh to a node.")
@_dir_option
@click.option("--user", default="ada", show_default=True, help="As whom.")
@click.argument("node")
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def ssh(folder: Path, user: str, node: str, words: tuple[str, ...]) -> None:
    """ssh from the login host to NODE, as users do; keys and strict host keys are set up."""
    terminal = ("-t",) if sys.stdin.isatty() else ()
    _become(folder, ("ssh", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", *terminal, node, *words), user, "")


def _become(folder: Path, words: tuple[str, ...], user: str, node: str) -> None:
    from glaunch.sandbox.box import Sandbox, tool_missing

    if lacking := tool_missing():
        raise GlaunchError(f"this machine has no {lacking}", hint="apt-get install util-linux")
    argv = Sandbox(folder).argv(words, user, node, term=os.environ.get("TERM", "dumb"))
    for each in (signal.SIGINT, signal.SIGQUIT):  # ^C is for the command, which has it back; nsenter's own end would add a TERM
        signal.signal(each, signal.SIG_IGN)
    sys.stdout.flush()
    os.execvp(argv[0], argv)  # noqa: S606


_KINDS = ("cut-link", "slow-link", "stop-slurmd", "power-off", "drain", "fill-disk", "stop-slurmctld", "hang-slurmctld")


@command.command(short_help="Break something inside, and mend it.")
@_dir_option
@click.argument("kind", type=OneOf(_KINDS))
@click.argument("nodes", nargs=-1)
@click.option("--undo", is_flag=True, help="Mend it.")
@click.option("--rate", default="10mbit", show_default=True, help="slow-link: what it carries.")
@click.option("--delay", default="", help="slow-link: how long it takes, each way (20ms).")
@click.option("--loss", default="", help="slow-link: what it loses (1%).")
def fault(folder: Path, kind: str, nodes: tuple[str, ...], undo: bool, rate: str, delay: str, loss: str) -> None:
    """Break something inside; --undo mends it. NODES may be hostlists.

    \b
      cut-link NODES        no traffic to or from the node
      slow-link NODES       --rate, --delay, --loss
      stop-slurmd NODES     slurmd ends; the host and its jobs' programs stay
      power-off NODES       everything on the node ends at once; --undo boots it
      drain NODES           as an administrator would
      fill-disk NODES       /, /tmp and /var/tmp of the node hold not a byte more
      stop-slurmctld        the controller ends; jobs go on
      hang-slurmctld        the controller accepts connections and says nothing
    """
    from glaunch.hostlist import expand
    from glaunch.sandbox.box import Sandbox
    from glaunch.sandbox.fault import Slowness
    from glaunch.sandbox.fault import fault as do

    box = Sandbox(folder)
    if not box.up:
        raise UsageError(f"the sandbox in {folder} is not up", hint="glaunch sandbox up")
    for line in do(box, kind, expand(",".join(nodes)), undo=undo, slowness=Slowness(rate, delay, loss)):
        click.echo(line, err=True)
