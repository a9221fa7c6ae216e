"""`glaunch sandbox up`: from options to a cluster that answers."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from glaunch.errors import GlaunchError, UsageError
from glaunch.sandbox import packages
from glaunch.sandbox.box import MARK, Sandbox, identity, remove
from glaunch.sandbox.layout import HERE, Design, design, mark, write
from glaunch.sandbox.options import SandboxOptions

WAIT_S = 0.01


def up(options: SandboxOptions) -> Sandbox:
    """Make a sandbox and return when every node is idle.

    Killed at any moment it leaves nothing that runs; interrupted or failed it takes its folder along too. Raises GlaunchError with the
    ends of the logs when the cluster does not come up, UsageError when the options cannot be meant.
    """
    plan = design(options)
    if os.geteuid() != 0 or sys.platform != "linux":
        raise GlaunchError(
            "a sandbox needs root on Linux: it makes namespaces, mounts and users of its own", hint="sudo glaunch sandbox up"
        )
    missing = packages.missing(plan.root, accounting=options.accounting)
    if missing:
        raise GlaunchError(f"{packages.place(plan.root)} lacks {', '.join(missing)}", hint=packages.hint(plan.root, missing))
    folder = Path(os.path.abspath(options.dir))
    if "\n" in str(folder):
        raise UsageError("the sandbox's folder cannot have a line break in its name")
    old_mask = os.umask(0o022)
    try:
        with _guarded(folder, plan) as pipe:
            write(plan, folder)
            _say(pipe, "go")
            _await(folder, "up", time.monotonic() + options.timeout_s)
            _say(pipe, "keep")
            _await(folder, "kept", time.monotonic() + 10)
    finally:
        os.umask(old_mask)
    return Sandbox(folder)


@contextmanager
def _guarded(folder: Path, plan: Design) -> Iterator[IO[bytes]]:
    """A guard that removes the folder at the end of the pipe, unless the sandbox was kept; it stands before anything else is written."""
    _make(folder)
    try:
        (folder / MARK).write_text(mark(plan), encoding="utf-8")
        (folder / "srv" / "log").mkdir(parents=True)
        guard = _start_guard(folder, plan.root)
    except BaseException:
        remove(folder)
        raise
    pipe = guard.stdin
    if pipe is None:
        raise RuntimeError("the guard has no standard input")
    try:
        (folder / "guard").write_text(identity(guard.pid), encoding="ascii")
        yield pipe
    except BaseException as fault:
        tails = _log_tails(folder)
        pipe.close()
        guard.wait()
        if isinstance(fault, _NotUp):
            raise GlaunchError(f"the sandbox did not come up: {fault}\n{tails}", hint=_why(tails)) from None
        raise
    pipe.close()


class _NotUp(Exception):
    """The cluster inside ended or was too slow."""


def _make(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        if Sandbox(folder).up:
            raise UsageError(f"a sandbox stands in {folder}", hint="glaunch sandbox down, or --dir for one beside it") from None
        if folder.is_symlink() or not folder.is_dir() or folder.stat().st_uid != os.geteuid() or any(folder.iterdir()):
            hint = f"glaunch sandbox down --dir {folder}" if (folder / MARK).exists() else "name another folder with --dir"
            raise UsageError(f"{folder} is there already and is not an empty folder of yours", hint=hint) from None
        folder.chmod(0o700)


def _start_guard(folder: Path, root: Path) -> "subprocess.Popen[bytes]":
    """All that it and its children say goes to the log: nobody's terminal or pipe is held open."""
    text = (HERE / "guard.sh").read_text(encoding="utf-8")
    with open(folder / "srv" / "log" / "up", "wb") as log:
        return subprocess.Popen(
            ["glaunch-sandbox", "-c", text, "glaunch-sandbox", str(folder), str(root)],
            executable="/bin/bash",
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            cwd="/",
            env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"},
            start_new_session=True,
        )


def _say(pipe: IO[bytes], word: str) -> None:
    try:
        pipe.write(word.encode() + b"\n")
        pipe.flush()
    except BrokenPipeError:
        raise _NotUp("its first process ended") from None


def _await(folder: Path, sign: str, deadline: float) -> None:
    """Wait for the file that says so. The guard is asked by its file alone, since whoever ends it takes that along."""
    while not (folder / "srv" / sign).exists():
        if (folder / "srv" / "failed").exists() or identity(_guard_pid(folder)) == "":
            raise _NotUp("see its logs")
        if time.monotonic() > deadline:
            raise _NotUp("not in time; see its logs, and --timeout")
        time.sleep(WAIT_S)


def _guard_pid(folder: Path) -> int:
    try:
        return int((folder / "guard").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return 0


def _log_tails(folder: Path) -> str:
    tails = []
    for name in ("up", "slurmctld", "slurmdbd"):
        try:
            lines = (folder / "srv" / "log" / name).read_text(encoding="utf-8", errors="replace").splitlines()[-4:]
        except OSError:
            continue
        tails += [f"  {name}: {line}" for line in lines]
    return "\n".join(tails)


def _why(tails: str) -> str:
    if "unshare" in tails and "not permitted" in tails:
        return "this machine lets root make no namespaces; in a container, start that with --privileged"
    if "overlay" in tails:
        return "the kernel refused an overlay file system; in a container, its own file system may be the second layer already"
    return ""
