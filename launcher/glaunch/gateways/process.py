"""The one door to other programs: an argv in, what it printed out."""

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Completed:
    """How a program ended. `code` is None when it was still running at the deadline and was stopped."""

    argv: tuple[str, ...]
    code: int | None
    stdout: str
    stderr: str


Run = Callable[[Sequence[str], str, float], Completed]
"""run(argv, input, timeout_s): the only thing that a test or a capture replaces."""


def run(argv: Sequence[str], stdin: str = "", timeout_s: float = 20.0, *, env: Mapping[str, str] | None = None) -> Completed:
    """Run a program to its end or to the deadline; bytes that are no UTF-8 come back as surrogates.

    Raises FileNotFoundError when there is no such program.
    """
    environment = None if env is None else {**os.environ, **env}
    try:
        done = subprocess.run(
            argv, input=stdin.encode(errors="surrogateescape"), capture_output=True, timeout=timeout_s, env=environment, check=False
        )
    except subprocess.TimeoutExpired as late:
        return Completed(tuple(argv), None, _text(late.stdout), _text(late.stderr))
    return Completed(tuple(argv), done.returncode, _text(done.stdout), _text(done.stderr))


def _text(raw: bytes | None) -> str:
    return (raw or b"").decode(errors="surrogateescape")
