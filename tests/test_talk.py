"""What is shown while many hosts are asked: a bar on a terminal, nothing anywhere else, and a terminal that is gone stops nothing."""

import os
import pty
import subprocess
import sys
from pathlib import Path

CODE = """
import sys
from glaunch.talk import counted, talk
with counted(3, "hosts") as one_more:
    print("began", flush=True)
    sys.stdin.readline()
    one_more()
    talk("n[001-002]: [red] timeout")
    one_more()
print("rich" in sys.modules)
from glaunch.cli import _last_words
_last_words()
"""


def begun(stderr: int) -> "subprocess.Popen[str]":
    """The program, which has begun to count and goes on when a line comes."""
    env = dict(os.environ, PYTHONPATH=str(Path(__file__).resolve().parents[1] / "launcher"), TERM="xterm", COLUMNS="80")
    process = subprocess.Popen(
        [sys.executable, "-c", CODE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, env=env, encoding="utf-8"
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "began\n"
    return process


def read_all(screen: int) -> str:
    """All that was written until the last other end was closed."""
    found = b""
    try:
        while piece := os.read(screen, 4096):
            found += piece
    except OSError:  # how Linux says that nobody writes any more
        pass
    finally:
        os.close(screen)
    return found.decode()


def test_a_terminal_shows_how_many_are_done_below_what_is_said() -> None:
    screen, inside = pty.openpty()
    process = begun(inside)
    os.close(inside)
    assert process.communicate("go\n", timeout=60)[0] == "True\n"
    shown = read_all(screen)
    assert [shown.count(f"{done}/3") > 0 for done in (0, 1, 2)] == [True, True, True], shown
    assert "glaunch: n[001-002]: [red] timeout\r\n" in shown
    assert (process.returncode, shown.rstrip().endswith("\x1b[2K")) == (0, True), shown


def test_a_pipe_gets_what_is_said_alone() -> None:
    process = begun(subprocess.PIPE)
    assert process.communicate("go\n", timeout=60) == ("False\n", "glaunch: n[001-002]: [red] timeout\n")


def test_a_terminal_that_is_gone_stops_nothing() -> None:
    screen, inside = pty.openpty()
    process = begun(inside)
    os.close(inside)
    os.close(screen)
    assert process.communicate("go\n", timeout=60)[0] == "True\n"
    assert process.returncode == 0
