"""The scripts of `make test-versions`, without making a root: what they refuse, and that nothing outlives them, even by kill -9."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SCRIPTS = sorted(HERE.glob("*.sh"))
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
def test_the_scripts_are_sound() -> None:
    assert len(SCRIPTS) == 3
    done = subprocess.run(["shellcheck", *map(str, SCRIPTS)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout


def test_a_version_that_has_no_recipe_is_refused() -> None:
    done = subprocess.run([str(HERE / "root.sh"), "21.08", "/nowhere"], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (2, "root.sh: no recipe for Slurm 21.08\n")


def test_without_root_it_says_so() -> None:
    words = [*(NOBODY if os.geteuid() == 0 else []), "bash", "-s"]
    text = (HERE / "run.sh").read_text(encoding="utf-8")
    done = subprocess.run(words, input=text, capture_output=True, text=True, timeout=120, cwd="/")
    assert (done.returncode, done.stderr) == (1, "run.sh: needs root: it makes root file systems, namespaces and mounts\n")


@pytest.fixture
def root(tmp_path: Path) -> list[str]:
    """The words that run what follows in a root file system that is quickly made: this machine's, read-only as they come."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    lines = ['mount --make-rprivate / && mount -t tmpfs own "$0" && cd "$0" && mkdir upper work root']
    lines += ["mount -t overlay overlay -o lowerdir=/,upperdir=upper,workdir=work root && mkdir -p root/src"]
    lines += ['inside=$1 && shift && exec "$inside" "$0/root" "$@"']
    return ["unshare", "--mount", "sh", "-euc", "\n".join(lines), str(tmp_path), str(HERE / "inside.sh")]


def test_what_runs_inside_sees_a_checkout_and_changes_nothing_outside(root: list[str]) -> None:
    program = (
        "pwd; ls setup.cfg launcher/glaunch/cli.py; ls -d .venv .git; touch here /tmp/x /var/tmp/x && echo written; touch /etc/x; exit 7"
    )
    done = subprocess.run([*root, "sh", "-c", program], capture_output=True, text=True, timeout=120, env={**os.environ, "CI": "true"})
    assert done.stdout.split() == ["/src/glaunch", "launcher/glaunch/cli.py", "setup.cfg", "written"], done
    assert "Read-only" in done.stderr
    assert done.returncode == 7
    assert not (HERE.parents[1] / "here").exists()


def test_killed_it_leaves_no_process_and_no_mount(root: list[str], tmp_path: Path) -> None:
    mark = f"sleep 471{os.getpid()}"
    process = subprocess.Popen([*root, "sh", "-c", f"(setsid {mark} &) ; exec {mark}"])
    try:
        await_count(mark, 2)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=120)
    await_count(mark, 0)
    assert str(tmp_path) not in Path("/proc/self/mountinfo").read_text(encoding="utf-8")
    assert list(tmp_path.iterdir()) == []


def await_count(words: str, count: int) -> None:
    """Until so many processes have these words as their command line."""
    wanted = words.replace(" ", "\0") + "\0"
    deadline = time.monotonic() + 60
    while (seen := sum(_command(path) == wanted for path in Path("/proc").glob("[0-9]*/cmdline"))) != count:
        assert time.monotonic() < deadline, f"{seen} processes, not {count}: {words}"
        time.sleep(0.05)


def _command(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:  # it ended
        return ""
