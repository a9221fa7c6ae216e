"""What glaunch says to a person, on stderr; stdout carries the answer."""

import contextlib
import sys


def talk(line: str) -> None:
    """Say one line."""
    tell(f"glaunch: {line}\n")


def tell(page: str) -> None:
    """Show a whole page, such as a report. A terminal that hung up, or a closed pipe, hears nothing and stops nothing."""
    with contextlib.suppress(OSError):
        print(page, end="", file=sys.stderr, flush=True)


def say(line: str) -> None:
    """One line of the answer, or of a job's output, on stdout. A closed pipe is the reader's wish and ends glaunch (BrokenPipeError)."""
    print(line, flush=True)
