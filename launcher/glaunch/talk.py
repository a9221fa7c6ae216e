"""What glaunch says to a person, on stderr; stdout carries the answer."""

import contextlib
import sys


def talk(line: str) -> None:
    """Say one line; on a terminal it is broken between words where the terminal ends (a path or a command stays whole)."""
    text = f"glaunch: {line}"
    if sys.stderr.isatty():
        import shutil
        import textwrap

        width = max(40, shutil.get_terminal_size().columns)
        parts = [
            textwrap.wrap(part, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False) for part in text.split("\n")
        ]
        text = "\n".join("\n".join(part) for part in parts)
    tell(f"{text}\n")


def tell(page: str) -> None:
    """Show a whole page, such as a report. A terminal that hung up, or a closed pipe, hears nothing and stops nothing."""
    with contextlib.suppress(OSError):
        print(page, end="", file=sys.stderr, flush=True)


def say(line: str) -> None:
    """One line of the answer, or of a job's output, on stdout. A closed pipe is the reader's wish and ends glaunch (BrokenPipeError)."""
    print(line, flush=True)
