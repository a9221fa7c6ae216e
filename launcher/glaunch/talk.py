"""What glaunch says to a person, on stderr; stdout carries the answer."""

import sys


def talk(line: str) -> None:
    """Say one line. A terminal that hung up, or a closed pipe, hears nothing and stops nothing."""
    try:
        print(f"glaunch: {line}", file=sys.stderr, flush=True)
    except OSError:
        pass


def say(line: str) -> None:
    """One line of the answer, or of a job's output, on stdout. A closed pipe is the reader's wish and ends glaunch (BrokenPipeError)."""
    print(line, flush=True)
