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
from glaunch.gateways.process import run
from glaunch.sandbox import packages
from glaunch.sandbox.box import MARK, Sandbox, alive, remove
from glaunch.sandbox.layout import HERE, Design, design, mark, write
from glaunch.sandbox.options import SandboxOptions

WAIT_S = 0.01


def up(options: SandboxOptions) -> Sandbox:
    """Make a sandbox and return when every node is idle.

    Killed at any moment it leaves nothing that runs; interrupted or failed it takes its folder along too. Raises GlaunchError with the
    ends of the logs when the cluster does not come up or cannot on this machine, UsageError when the options cannot be meant.
    """
    plan = design(options)
    check_machine(plan.root, accounting=options.accounting)
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
            _await(folder, "kept", time.monotonic() + 60)
    finally:
        os.umask(old_mask)
    return Sandbox(folder)


def check_machine(root: Path = Path("/"), *, accounting: bool = False) -> None:
    """Raise GlaunchError, saying why in one line, where no sandbox can be made: not Linux, not root, packages missing, no namespaces."""
    if sys.platform != "linux":
        raise GlaunchError("a sandbox needs Linux: it is made of namespaces")
    if os.geteuid() != 0:
        raise GlaunchError("a sandbox needs root: it makes namespaces, mounts and users of its own", hint="sudo glaunch sandbox up")
    lacking = packages.missing(root, accounting=accounting)
    if lacking:
        raise GlaunchError(f"{packages.place(root)} lacks {', '.join(lacking)}", hint=packages.hint(root))
    mount = ["mount", "-t", "tmpfs", "probe", "/tmp"]  # noqa: S108  (in a mount namespace of its own)
    probe = run(["unshare", "--net", "--uts", "--ipc", "--mount", "--pid", "--fork", *mount], timeout_s=20)
    if probe.code != 0:
        hint = "in a container, start that with --privileged"
        raise GlaunchError(f"root may make no namespaces or mounts on this machine: {probe.stderr.strip()}", hint=hint)


@contextmanager
def _guarded(folder: Path, plan: Design) -> Iterator[IO[bytes]]:
    """A guard that removes the folder at the end of the pipe, unless the sandbox was kept; it stands before anything else is written."""
    _make(folder)
    kept, tails = False, ""
    pipe: IO[bytes] | None = None
    try:
        (folder / MARK).write_text(mark(plan), encoding="utf-8")
        (folder / "srv" / "log").mkdir(parents=True)
        pipe = _start_guard(folder, plan.root)
        yield pipe
        kept = True
    except _NotUp as fault:
        tails = _log_tails(folder)
        raise GlaunchError(f"the sandbox did not come up: {fault}\n{tails}".rstrip(), hint=_why(tails)) from None
    finally:
        if pipe is not None:
            pipe.close()
        if not kept:
            while alive(folder / "guard") is not None:
                time.sleep(WAIT_S)
            remove(folder)


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


def _start_guard(folder: Path, root: Path) -> IO[bytes]:
    """The pipe that it listens to. All that it and its children say goes to the log: nobody's terminal or pipe is held open."""
    text = (HERE / "guard.sh").read_text(encoding="utf-8")
    reader, writer = os.pipe()
    pipe = os.fdopen(writer, "wb", buffering=0)
    with os.fdopen(reader, "rb") as end, open(folder / "srv" / "log" / "up", "wb") as log:
        subprocess.run(
            ["setsid", "-f", "bash", "-c", text, "glaunch-sandbox", str(folder), str(root)],
            stdin=end,
            stdout=log,
            stderr=log,
            cwd="/",
            env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"},
            check=True,
        )
    deadline = time.monotonic() + 20
    while alive(folder / "guard") is None:
        if time.monotonic() > deadline:
            pipe.close()
            raise _NotUp("its guard did not start")
        time.sleep(WAIT_S / 5)
    return pipe


def _say(pipe: IO[bytes], word: str) -> None:
    try:
        pipe.write(word.encode() + b"\n")
    except BrokenPipeError:
        raise _NotUp("its first process ended") from None


def _await(folder: Path, sign: str, deadline: float) -> None:
    """Wait for the file that says so."""
    while not (folder / "srv" / sign).exists():
        if (folder / "srv" / "failed").exists() or alive(folder / "guard") is None:  # the guard stays until it was read
            raise _NotUp("the cluster inside ended")
        if time.monotonic() > deadline:
            raise _NotUp("not in time (--timeout)")
        time.sleep(WAIT_S)


def _log_tails(folder: Path) -> str:
    tails = []
    for name in ("up", "accounting", "slurmctld", "slurmdbd"):
        try:
            lines = (folder / "srv" / "log" / name).read_text(encoding="utf-8", errors="replace").splitlines()[-4:]
        except OSError:
            continue
        tails += [f"  {name}: {line}" for line in lines]
    return "\n".join(tails)


def _why(tails: str) -> str:
    if "overlay" in tails:
        return "the kernel refused an overlay file system; in a container, its own file system may be the second layer already"
    return ""
