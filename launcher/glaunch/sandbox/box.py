"""A sandbox that stands: run things in it, ask it, end it."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from glaunch.errors import GlaunchError, UsageError
from glaunch.gateways.process import Completed, run
from glaunch.sandbox.options import DEFAULT_DIR, USERS

MARK = "sandbox.json"
"""The first file that `up` writes and the last that `down` removes: without it a folder is no sandbox of ours."""
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"


class NoSandbox(UsageError):
    """A folder that is no sandbox, or not any more."""


class NotUp(GlaunchError):
    """A sandbox in which nothing runs, or nothing any more."""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """The sandbox whose folder is `dir`."""

    dir: Path

    @property
    def facts(self) -> Mapping[str, Any]:
        """What `up` wrote down about it."""
        try:
            facts: Mapping[str, Any] = json.loads((self.dir / MARK).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise NoSandbox(f"there is no sandbox in {self.dir}", hint=f"glaunch sandbox up --dir {self.dir}") from None
        except (OSError, ValueError) as fault:
            raise NoSandbox(f"{self.dir} is no sandbox ({fault})", hint=f"glaunch sandbox up --dir {self.dir}") from None
        return facts

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes' names, in the fabric's order."""
        return tuple(line.split()[0] for line in (self.dir / "srv" / "nodes").read_text(encoding="utf-8").splitlines())

    def home(self, user: str) -> Path:
        """Out here, the folder that is /home/USER inside."""
        return self.dir / "home" / user

    @property
    def init(self) -> int | None:
        """The process whose end is the sandbox's end; None when it is over."""
        return alive(self.dir / "init")

    @property
    def up(self) -> bool:
        """Whether the cluster was built and still stands."""
        return (self.dir / "srv" / "kept").exists() and self.init is not None

    def argv(
        self, command: Sequence[str], user: str = "root", node: str = "", env: Mapping[str, str] | None = None, *, term: str = "dumb"
    ) -> list[str]:
        """The whole command line that runs `command` inside; its exit code, standard input and output pass through.

        On the login host `ctl`, or on `node`, in the user's home, with a clean environment and `env` on top. Whoever kills it ends
        the command too (TERM).
        """
        if user not in ("root", *USERS):
            raise UsageError(f"{user!r} is nobody in the sandbox", hint=f"its people are root, {', '.join(USERS)}")
        init = self.init
        if init is None:
            raise NotUp(f"the sandbox in {self.dir} is not up", hint=f"glaunch sandbox up --dir {self.dir}")
        inner = [*_as_user(user, {"TERM": term, **(env or {})}), *command]
        if node:
            self._must_run(node)
            # A node's init is known by its id inside, so this takes a second nsenter.
            enter = 'exec nsenter -t "$(cat "/srv/node/$0")" -n -u -i -m -p -- "$@"'
            inner = ["setpriv", "--pdeathsig", "TERM", "sh", "-c", enter, node, *inner]
        return ["nsenter", "-t", str(init), "-n", "-u", "-i", "-m", "-p", "--", *inner]

    def exec(
        self,
        command: Sequence[str],
        user: str = "root",
        node: str = "",
        *,
        timeout_s: float = 60.0,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
    ) -> Completed:
        """Run a command inside to its end or the deadline (then `code` is None)."""
        return run(self.argv(command, user, node, env), stdin, timeout_s)

    def popen(
        self,
        command: Sequence[str],
        user: str = "root",
        node: str = "",
        *,
        env: Mapping[str, str] | None = None,
        stdin: int | IO[bytes] | None = subprocess.DEVNULL,
        stdout: int | IO[bytes] | None = subprocess.PIPE,
        stderr: int | IO[bytes] | None = subprocess.PIPE,
    ) -> "subprocess.Popen[bytes]":
        """Start a command inside; signals sent to it reach the command as TERM only."""
        return subprocess.Popen(self.argv(command, user, node, env), stdin=stdin, stdout=stdout, stderr=stderr)

    def down(self) -> None:
        """End everything inside and remove the folder. Does what is left of it after a crash, at any moment of `up`."""
        if self.dir.is_symlink() or not self.dir.is_dir():
            return
        if any(self.dir.iterdir()):
            self._must_be_ours()
        guard, init = self.dir / "guard", self.dir / "init"
        if (leader := alive(guard)) is not None:
            with suppress(ProcessLookupError):  # with it what it has just started, even if that has not said who it is yet
                os.killpg(leader, signal.SIGKILL)
        if (first := alive(init)) is not None:
            with suppress(ProcessLookupError):  # it ends with the guard, maybe right now
                os.kill(first, signal.SIGKILL)
        while alive(guard) is not None or alive(init) is not None:  # an init's entry goes after the last process inside
            time.sleep(0.005)
        remove(self.dir)

    def _must_be_ours(self) -> None:
        ours = (self.dir / MARK).is_file() or (self.dir / "guard").is_file()
        if not ours or self.dir.stat().st_uid != os.geteuid():
            raise UsageError(f"{self.dir} is no sandbox of yours: nothing was removed", hint="name its folder with --dir")

    def _must_run(self, node: str) -> None:
        if not (self.dir / "srv" / "node" / node).exists():
            if node not in self.nodes:
                raise UsageError(f"{node!r} is no node of this sandbox", hint=f"its nodes are {self.nodes[0]} to {self.nodes[-1]}")
            raise GlaunchError(f"{node} has no power", hint=f"glaunch sandbox fault power-off {node} --undo --dir {self.dir}")


def _as_user(user: str, env: Mapping[str, str]) -> list[str]:
    home = f"/home/{user}"
    values = {"HOME": home, "USER": user, "LOGNAME": user, "SHELL": "/bin/bash", "LANG": "C.UTF-8", "PATH": PATH}
    values |= {"SLURM_CONF": "/etc/slurm/slurm.conf", **env}
    become = ["setpriv", "--reuid", user, "--regid", user, "--init-groups", "--pdeathsig", "TERM"]
    return [*become, "env", "-i", f"--chdir={home}", "--default-signal=INT,QUIT", *(f"{key}={value}" for key, value in values.items())]


def remove(folder: Path) -> None:
    """Remove a folder and all in it, but nothing that is mounted there."""
    done = run(["rm", "-rf", "--one-file-system", "--", str(folder)], timeout_s=120)
    if done.code != 0:
        raise GlaunchError(f"{folder} could not be removed: {done.stderr.strip()}")


def identity(pid: int) -> str:
    """`PID START`: the process and since when it runs, so that a later process of the same id is not taken for it."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    rest = text.rpartition(")")[2].split()
    return "" if rest[0] in "ZX" else f"{pid} {rest[19]}"


def alive(file: Path) -> int | None:
    """The process that wrote `file`, if it still runs. A file of somebody else's says nothing: the folder may be under /var/tmp."""
    try:
        if file.stat().st_uid != os.geteuid():
            return None
        written = file.read_text(encoding="ascii").strip()
    except OSError:
        return None
    pid = written.partition(" ")[0]
    return int(pid) if pid.isdigit() and identity(int(pid)) == written else None


def standing() -> tuple[Sandbox, ...]:
    """All sandboxes on this machine: the default one if it is there, and every one whose init runs."""
    found = {DEFAULT_DIR: None} if (DEFAULT_DIR / MARK).exists() else {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[3:4] == [b"glaunch-sandbox"] and len(words) > 4:
            found[Path(os.fsdecode(words[4]))] = None
    return tuple(Sandbox(path) for path in found if (path / MARK).exists())


def tool_missing() -> str:
    """The first of the programs that entering a sandbox takes and that this machine lacks; "" when all are there."""
    return next((name for name in ("nsenter", "setpriv") if shutil.which(name) is None), "")
