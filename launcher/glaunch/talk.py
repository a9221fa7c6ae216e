"""What glaunch says to a person, on stderr; stdout carries the answer."""

import contextlib
import re
import sys
from collections.abc import Callable, Iterator

_CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f]")
"""What a terminal obeys instead of showing it, but for the end of a line."""


def shown_plain(text: str) -> str:
    r"""`text` with each control character written out: ESC becomes `\x1b`. A site's banner or another's words must not drive a terminal."""
    return _CONTROLS.sub(lambda found: " " if found[0] == "\t" else "" if found[0] == "\r" else f"\\x{ord(found[0]):02x}", text)


def talk(line: str) -> None:
    """Say one line; on a terminal it is broken between words where the terminal ends (a path or a command stays whole)."""
    text = shown_plain(f"glaunch: {line}")
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


@contextlib.contextmanager
def counted(total: int, what: str) -> Iterator[Callable[[], None]]:
    """Within it a terminal shows a bar, with what is said meanwhile above it; what it yields counts one more of `total`.

    Where stderr is no terminal, nothing is shown.
    """
    if not total or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    screen = Console(stderr=True, soft_wrap=True)
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn())
    bar = Progress(*columns, console=screen, auto_refresh=False, transient=True, redirect_stdout=False)
    task = bar.add_task(what, total=total)

    def one_more() -> None:
        with contextlib.suppress(OSError):
            bar.update(task, advance=1, refresh=True)

    with contextlib.suppress(OSError):
        bar.start()
    try:
        yield one_more
    finally:
        with contextlib.suppress(OSError):
            bar.stop()
