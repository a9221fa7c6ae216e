"""A program that answers line by line, asked with a deadline: what hangs is killed, what it prints on stderr is kept."""

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from typing import IO

STDERR_BYTES = 16384
"""So much of the end of what it printed is kept."""


class Ended(Exception):
    """It gave no answer. `code`: what it ended with (negative: the signal), None where it was killed at the deadline."""

    def __init__(self, code: int | None, stderr: str) -> None:
        super().__init__(code)
        self.code = code
        self.stderr = stderr


class Answering:
    """One such program, started at the first question, in a process session of its own; it goes when this process goes.

    Questions from several threads are asked one after the other. `argv` and `environment` as for a program of `process.within`.
    """

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str]) -> None:
        self._argv, self._environment = tuple(argv), dict(environment)
        self._lock = threading.Lock()
        self._program: subprocess.Popen[bytes] | None = None
        self._end: weakref.finalize[..., Answering] | None = None
        self._buffer, self._stderr = b"", b""

    def ask(self, line: str, timeout_s: float) -> tuple[str, str]:
        """(its next line, what it printed on stderr meanwhile). Raises Ended; the next question then starts it anew.

        Raises FileNotFoundError where there is no such program.
        """
        with self._lock:
            program = self._program or self._start()
            deadline = time.monotonic() + timeout_s
            return self._exchange(program, line.encode() + b"\n", deadline), self._take_stderr()

    def _start(self) -> "subprocess.Popen[bytes]":
        pipe = subprocess.PIPE
        self._buffer = self._stderr = b""
        self._program = subprocess.Popen(
            self._argv, stdin=pipe, stdout=pipe, stderr=pipe, env=self._environment, start_new_session=True, bufsize=0
        )
        os.set_blocking(_fd(self._program.stdin), False)
        self._end = weakref.finalize(self, _stop, self._program)
        return self._program

    def _exchange(self, program: "subprocess.Popen[bytes]", question: bytes, deadline: float) -> str:
        """Its next line. All three pipes are looked after at once, so that no full one stops it or us."""
        into, out, err = map(_fd, (program.stdin, program.stdout, program.stderr))
        parts = [self._buffer]
        with selectors.DefaultSelector() as waiting:
            waiting.register(into, selectors.EVENT_WRITE)
            for pipe in (out, err):
                waiting.register(pipe, selectors.EVENT_READ)
            while b"\n" not in parts[-1]:
                ready = [key.fd for key, _ in waiting.select(max(0.0, deadline - time.monotonic()))]
                if not ready:
                    self.close()
                    raise Ended(None, self._take_stderr())
                if into in ready:
                    question = _write(into, question)
                    if not question:
                        waiting.unregister(into)
                for pipe in {out, err}.intersection(ready):
                    chunk = os.read(pipe, 1 << 20)
                    if pipe == err:
                        self._stderr = (self._stderr + chunk)[-STDERR_BYTES:]
                    elif chunk:
                        parts.append(chunk)
                    if not chunk:
                        waiting.unregister(pipe)
                if not {out, err} & set(waiting.get_map()):
                    code = program.wait()
                    self.close()
                    raise Ended(code, self._take_stderr())
        line, _, self._buffer = b"".join(parts).partition(b"\n")
        return line.decode(errors="surrogateescape")

    def _take_stderr(self) -> str:
        text, self._stderr = self._stderr.decode(errors="replace"), b""
        return text

    def close(self) -> None:
        """End it; so does whoever forgets this object, and the end of this process."""
        self._program = None
        if self._end is not None:
            self._end()


def _stop(program: "subprocess.Popen[bytes]") -> None:
    """Kill it, and what it may have started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGKILL)
    program.wait()
    for pipe in (program.stdin, program.stdout, program.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


def _write(pipe: int, what: bytes) -> bytes:
    """What is still to be written; nothing more to a program that has ended (what it said is still to be read)."""
    try:
        return what[os.write(pipe, what) :]
    except BrokenPipeError:
        return b""


def _fd(pipe: IO[bytes] | None) -> int:
    if pipe is None:
        raise ValueError("a program without pipes")
    return pipe.fileno()
