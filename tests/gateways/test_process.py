"""The door to other programs: deadlines, sessions, bytes, deferred signals."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from glaunch.gateways.process import SignalsDeferred, Surroundings, run, within


def test_what_a_program_said() -> None:
    done = run(["sh", "-c", 'cat; printf "\\377" >&2; exit 3'], "in \udcff", 60)
    assert (done.code, done.stdout, done.stderr) == (3, "in \udcff", "\udcff")
    assert done.argv[0] == "sh"


def test_surroundings(tmp_path: object) -> None:
    done = within(Surroundings({"ONLY": "this", "PATH": os.environ["PATH"]}, str(tmp_path), own_session=True))(
        ["sh", "-c", "pwd; echo $ONLY-$HOME; ps -o sid= -p $$"], "", 60
    )
    folder, names, session = done.stdout.split()
    assert (folder, names) == (str(tmp_path), "this-")
    assert int(session) != os.getsid(0)
    assert run(["sh", "-c", "echo $ADDED"], "", 60, env={"ADDED": "x"}).stdout == "x\n"


def test_a_deadline_ends_the_program_and_what_it_started() -> None:
    started = time.monotonic()
    done = within(Surroundings(own_session=True))(["sh", "-c", "echo begun; sleep 600 & echo $!; wait"], "", 3)
    assert done.code is None
    assert time.monotonic() - started < 60
    word, child = done.stdout.split()
    assert word == "begun"
    while _running(int(child)):
        assert time.monotonic() - started < 120
        time.sleep(0.05)


@pytest.mark.parametrize("own_session", [False, True])
def test_what_a_wrapper_leaves_behind_is_not_waited_for(own_session: bool) -> None:
    """A site's wrapper ends and something that it started holds the output open; or it hangs, and only the wrapper can be ended."""
    there = within(Surroundings(own_session=own_session))
    started = time.monotonic()
    helper = there(["sh", "-c", "sleep 60 & cat; echo $!; echo no >&2; exit 3"], "all of it\n" * 30000, 40)
    assert (helper.code, helper.stderr) == (3, "no\n")
    assert helper.stdout.startswith("all of it\n" * 30000)
    hung = there(["sh", "-c", "trap '' TERM INT; echo begun; sleep 60; echo never"], "", 1)
    assert (hung.code, hung.stdout) == (None, "begun\n")
    assert time.monotonic() - started < 40
    os.kill(int(helper.stdout.split()[-1]), signal.SIGKILL)


def _running(pid: int) -> bool:
    """Alive and no zombie (whoever adopts it may reap it late)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_missing_program() -> None:
    with pytest.raises(FileNotFoundError):
        run(["/nonexistent/program"], "", 1)


def test_signals_wait_until_the_answer_is_written_down() -> None:
    program = (
        "import os, signal\n"
        "from glaunch.gateways.process import Surroundings, SignalsDeferred, within\n"
        "try:\n"
        "    with SignalsDeferred():\n"
        "        with SignalsDeferred():\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "            done = within(Surroundings(own_session=True))(['sh', '-c', 'sleep 0.2; echo 12'], '', 60)\n"
        "        print('id', done.stdout.strip())\n"
        "    print('not reached')\n"
        "except KeyboardInterrupt:\n"
        "    print('then interrupted')\n"
    )
    assert (
        run([sys.executable, "-c", program], "", 120, env={"PYTHONPATH": os.pathsep.join(sys.path)}).stdout == "id 12\nthen interrupted\n"
    )


def test_handlers_are_as_before() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with SignalsDeferred():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before
