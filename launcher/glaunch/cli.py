"""The command line: which words are glaunch's, which verb they mean, and how every error ends.

Each module of `commands/` holds one click command named `command`; it is imported when it is asked for: `glaunch --help` stays quick.
"""

import contextlib
import errno
import os
import re
import shutil
import signal
import sys
from importlib import import_module
from io import TextIOWrapper
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn

import click

from glaunch import __version__
from glaunch.errors import GlaunchError, UsageError
from glaunch.talk import shown_plain

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

SECTIONS: dict[str, dict[str, str]] = {
    "Launch": {
        "run": "Place, submit and follow a job; what is meant when no verb is given.",
        "plan": "Show all that `run` would submit, and submit nothing.",
    },
    "Follow": {
        "status": "What became of your launches; finds again what a killed glaunch had submitted.",
        "logs": "A job's output; -f follows it again after you detached.",
        "cancel": "Cancel jobs that glaunch submitted.",
        "collect": "Bring every node's logs home over SSH.",
        "report": "What was wrong or slow, on which node and rank, shown by its line.",
        "clean": "Remove old job folders.",
    },
    "Cluster and site": {
        "check": "Does Slurm answer here, through what, how quickly, and what does it show.",
        "topo": "The network: its sources put together, what is wrong with it, what its nodes do.",
        "snapshot": "Record what the cluster answers, for planning without it and for bug reports.",
        "config": "Show every setting and where it was set.",
        "sandbox": "A real Slurm on this machine, to try things on.",
        "demo": "The whole of glaunch once, on a sandbox of 16 nodes.",
    },
}
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
"""What a disk, or the device behind stdout, says when it takes no more: no fault of glaunch."""
VERBS = {name: text for section in SECTIONS.values() for name, text in section.items()}
EXAMPLES = """\
Examples:
  glaunch train.py -n 64                     64 ranks on the 64 GPUs that the network serves best
  glaunch -N 8 -t 2:00:00 train.py --lr 1e-3 options before the script: all after it are the script's
  glaunch plan train.py -n 64                what would be submitted, and why
  glaunch logs -f                            follow the last job again
"""


class Verbs(click.Group):
    """A group whose commands are loaded on demand and whose default verb is `run`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        found = import_module(f"glaunch.commands.{cmd_name}").command
        if not isinstance(found, click.Command):
            raise TypeError(f"glaunch.commands.{cmd_name}.command is no click command")
        return found

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if ctx.resilient_parsing:  # completion looks at half a line: nothing is refused
            return super().parse_args(ctx, with_verb(args) if args else args)
        _refuse_mistyped(args)
        return super().parse_args(ctx, with_verb(as_help(args)) if args else ["--help"])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Verbs, and files, since a script is as good as a verb; no command is loaded for it, and the cluster is not asked."""
        from click.shell_completion import CompletionItem

        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        verbs = [CompletionItem(name, help=text) for name, text in VERBS.items() if name.startswith(incomplete)]
        return verbs or [CompletionItem(incomplete, type="file")]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, verbs in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(list(verbs.items()))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_paragraph()
        formatter.write(EXAMPLES)


def as_help(args: list[str]) -> list[str]:
    """`help`, `help VERB` as everybody types them, unless a program of that name is meant (./help)."""
    if args[:1] != ["help"]:
        return args
    return [*(word for word in args[1:2] if word in VERBS), "--help"]


def with_verb(args: list[str]) -> list[str]:
    """Put `run` in front of the first word that is neither a verb nor an option of the group itself."""
    at = 0
    while at < len(args):
        word = args[at]
        if word in {"--help", "-h", "--version"}:
            return args
        if word == "--snapshot":
            at += 2
        elif word.startswith("--snapshot="):
            at += 1
        else:
            break
    if at < len(args) and args[at] in VERBS:
        return args
    return [*args[:at], "run", *args[at:]]


def _refuse_mistyped(args: list[str]) -> None:
    """A first word that is nearly a verb, and no program and no file here, is a verb with a slip in it."""
    word = args[0] if args else ""
    if word in VERBS or not re.fullmatch(r"[a-z]+", word):
        return
    from difflib import get_close_matches

    near = get_close_matches(word, VERBS, 1, 0.7)
    if near and not os.path.exists(word) and not shutil.which(word):
        raise UsageError(f"{word!r} is no verb of glaunch, and no program on PATH or here", hint=f"did you mean: glaunch {near[0]}")


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message="glaunch %(version)s")
@click.option("--snapshot", metavar="DIR", help="Read a capture (`glaunch snapshot DIR`) instead of a cluster.")
@click.pass_context
def glaunch(ctx: click.Context, snapshot: str | None) -> None:
    """Launch multi-node jobs on Slurm, placed by the network they will use.

    `glaunch train.py -n 64` picks the nodes that cross the fewest switches, orders the ranks along
    the fabric, submits, follows, and says what went wrong and where.
    """
    ctx.obj = {"snapshot": snapshot}


def main(args: list[str] | None = None) -> NoReturn:
    """Run the command line and end the process with its exit code: the only place that catches."""
    sys.excepthook = _bug
    if isinstance(sys.stdout, TextIOWrapper) and isinstance(sys.stderr, TextIOWrapper):
        # Bytes that are no UTF-8 (a job's output, a file name) pass through, and a terminal of another encoding is no fault of anybody.
        sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")
        sys.stderr.reconfigure(encoding="utf-8", errors="surrogateescape")
    try:
        code = glaunch.main(args, prog_name="glaunch", standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):  # click makes the one of the other, and ends the terminal's line with "^C"
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one must not cut the line short
        click.echo("glaunch: interrupted", err=True)
        code = 130
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except GlaunchError as error:
        click.echo(shown_plain(f"glaunch: {error}"), err=True)
        code = error.exit_code
    except BrokenPipeError:
        # The reader of stdout went away (`| head`): nothing is left to say, and the interpreter must not try to.
        code = 128 + signal.SIGPIPE
    except OSError as error:
        if error.errno not in FULL:
            raise
        with contextlib.suppress(OSError):
            click.echo(f"glaunch: nothing more can be written: {error.strerror}", err=True)
        code = 1
    _last_words()
    sys.exit(code if isinstance(code, int) else 0)


def _last_words() -> None:
    """Write out what is still held back; where that cannot be, the interpreter must not try once more and end with a code of its own."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # closed from the start (`>&-`) there is none
            _flush(stream)


def _flush(stream: TextIOWrapper) -> None:
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _bug(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Say that glaunch, not its user, is at fault, and where; exit code 3 (a hook may end the process its own way)."""
    if issubclass(kind, KeyboardInterrupt):  # a second one, right behind the first
        click.echo("glaunch: interrupted", err=True)
        raise SystemExit(130)
    if os.environ.get("GLAUNCH_DEBUG") or trace is None:
        sys.__excepthook__(kind, error, trace)
    else:
        while trace.tb_next:
            trace = trace.tb_next
        place = f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}"
        click.echo(
            f"glaunch: a fault in glaunch itself: {kind.__name__}: {error}\n  at {place}; the whole trace: GLAUNCH_DEBUG=1 glaunch …",
            err=True,
        )
    raise SystemExit(3)
