"""The one door to other programs: an argv in, what it printed out."""

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from types import FrameType
from typing import Any


@dataclass(frozen=True, slots=True)
class Completed:
    """How a program ended. `code` is None when it was still running at the deadline and was stopped."""

    argv: tuple[str, ...]
    code: int | None
    stdout: str
    stderr: str


Run = Callable[[Sequence[str], str, float], Completed]
"""run(argv, input, timeout_s): the only thing that a test or a capture replaces."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a program is run in. `environment` is all of it, not an addition; None: glaunch's own."""

    environment: Mapping[str, str] | None = None
    folder: str | None = None
    own_session: bool = False
    """True: a process session of its own, which ^C and a hang-up of the terminal do not reach."""


Surround = Callable[[Surroundings], Run]
"""Gives the `run` for some surroundings: `within` for the real one."""


def run(argv: Sequence[str], stdin: str = "", timeout_s: float = 20.0, *, env: Mapping[str, str] | None = None) -> Completed:
    """Run a program to its end or to the deadline; bytes that are no UTF-8 come back as surrogates.

    `env` is added to glaunch's own environment. Raises FileNotFoundError when there is no such program.
    """
    environment = None if env is None else {**os.environ, **env}
    return within(Surroundings(environment))(argv, stdin, timeout_s)


def within(surroundings: Surroundings) -> Run:
    """The real `run` in some surroundings. It raises FileNotFoundError (no such program) and PermissionError (it may not be run)."""

    def run_there(argv: Sequence[str], stdin: str, timeout_s: float) -> Completed:
        with subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=surroundings.environment,
            cwd=surroundings.folder,
            start_new_session=surroundings.own_session,
        ) as program:
            try:
                code, out, err = _to_its_end(program, stdin.encode(errors="surrogateescape"), timeout_s)
                if code is None:
                    _stop(program, surroundings.own_session)
                    _, out, err = _communicated(program, b"", LINGER_S)
            except BaseException:
                _stop(program, surroundings.own_session)
                raise
        return Completed(tuple(argv), code, _text(out), _text(err))

    return run_there


LINGER_S = 1.0
"""So long after its end a program's output is still read: a site's wrapper can leave a helper behind that holds it open for hours."""
_LOOK_S = 0.25


def _to_its_end(program: "subprocess.Popen[bytes]", stdin: bytes, timeout_s: float) -> tuple[int | None, bytes | None, bytes | None]:
    """(exit code, output, errors) once it has ended and its output is closed, or was left open for LINGER_S; no code at the deadline."""
    code, until_s = None, monotonic() + timeout_s
    while True:
        closed, out, err = _communicated(program, stdin, min(_LOOK_S, max(0.01, until_s - monotonic())))
        stdin = b""
        if code is None and (code := program.poll()) is not None:
            until_s = monotonic() + LINGER_S
        if closed or monotonic() >= until_s:
            return code, out, err


def _communicated(program: "subprocess.Popen[bytes]", stdin: bytes, wait_s: float) -> tuple[bool, bytes | None, bytes | None]:
    """(whether it has ended and closed its output, all output until now, all errors until now). Only the first call may give stdin."""
    try:
        return True, *program.communicate(stdin or None, timeout=wait_s)
    except subprocess.TimeoutExpired as late:
        return False, late.stdout, late.stderr


def _stop(program: "subprocess.Popen[bytes]", own_session: bool) -> None:
    """Kill it, and whatever a wrapper script of the site has started with it when they have a session of their own."""
    if not own_session:
        program.kill()
        return
    try:
        os.killpg(program.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _text(raw: bytes | None) -> str:
    return (raw or b"").decode(errors="surrogateescape")


STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, and what ends a terminal, a session or an outer job."""


class SignalsDeferred:
    """^C, TERM and a hang-up wait until the block is left, and are then given on in the order they came.

    For the moment between asking sbatch and knowing the id. `came` lists them: what somebody takes out of it is his own to answer. It
    nests: the inner block gives on to the outer one. What is ignored (nohup) stays so. Outside the main thread, where Python takes no
    signals, it does nothing.
    """

    def __init__(self) -> None:
        self.came: list[int] = []
        self._before: dict[signal.Signals, Callable[[int, FrameType | None], Any] | int | signal.Handlers | None] = {}

    def __enter__(self) -> "SignalsDeferred":
        if threading.current_thread() is threading.main_thread():
            wanted = [name for name in STOPS if signal.getsignal(name) is not signal.SIG_IGN]
            self._before = {name: signal.signal(name, self._note) for name in wanted}
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """As it was before the block; then what came and was not taken out of `came`. A second time it does nothing."""
        for name, handler in self._before.items():
            signal.signal(name, handler)
        self._before = {}
        while self.came:
            signal.raise_signal(self.came.pop(0))

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.came.append(number)
