"""`glaunch demo`: the whole once for real; its plan where no Slurm can be; and hands off a machine with a Slurm of its own."""

import os
import re
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
DEMO = [sys.executable, "-m", "glaunch", "demo"]


def run(argv: list[str], folder: Path, timeout_s: float) -> subprocess.CompletedProcess[str]:
    """Run in `folder`, with glaunch of this checkout."""
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8", "PYTHONPATH": str(ROOT / "launcher"), "TERM": "dumb"}
    return subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=timeout_s, stdin=subprocess.DEVNULL)


def traces(var_tmp: Path) -> set[str]:
    """What is left of a demo to which that folder was /var/tmp: files there, and processes, all of which have it among their mounts."""
    left = {path.name for path in var_tmp.iterdir()}
    for path in Path("/proc").glob("[0-9]*/mountinfo"):
        with suppress(OSError):  # it ended
            if var_tmp.name in path.read_text(encoding="utf-8", errors="replace"):
                left.add(f"process {path.parent.name}")
    return left


@pytest.mark.slurm
@pytest.mark.sshd
def test_the_whole_once_for_real(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("a sandbox needs root")
    var_tmp, links = Path(tempfile.mkdtemp(dir=tmp_path)), {path.name for path in Path("/sys/class/net").iterdir()}
    var_tmp.chmod(0o755)
    # A /var/tmp of its own, since others may run a demo too; what of this checkout lies in the real one is in that as well
    kept = {path.relative_to("/var/tmp").parts[0] for path in (ROOT, Path(sys.prefix)) if path.is_relative_to("/var/tmp")}
    for name in kept:
        (var_tmp / name).mkdir()
    keep = 'while [ "$1" != -- ]; do mount --bind "/var/tmp/$1" "$0/$1" && shift || exit; done; shift'
    inside = f'{keep}; mount --rbind "$0" /var/tmp && exec "$@"'
    done = run(["unshare", "--mount", "sh", "-c", inside, str(var_tmp), *kept, "--", *DEMO, "--yes"], tmp_path, 280)
    for name in kept:
        (var_tmp / name).rmdir()
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "trained " in done.stdout
    assert " on 64 ranks: loss " in done.stdout
    assert "same weights on all" in done.stdout
    assert re.search(r"8 nodes × 8 GPUs \(h100\) = 64 ranks", done.stdout + done.stderr)
    page = Path(done.stdout.splitlines()[-1])
    assert page.read_text(encoding="utf-8").lstrip().lower().startswith("<!doctype html>")
    page.unlink()
    deadline = time.monotonic() + 60  # the kernel takes a moment to end what was killed
    while (left := traces(var_tmp)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == set()
    assert {path.name for path in Path("/sys/class/net").iterdir()} - links == set()


def test_without_root_it_shows_the_same_plan_from_the_capture(tmp_path: Path) -> None:
    before = NOBODY if os.geteuid() == 0 else []
    place = tmp_path
    if before:
        place = Path("/")
        if run([*before, sys.executable, "-c", "import glaunch.cli, numpy"], place, 120).returncode != 0:
            pytest.skip(f"another user cannot read {ROOT} or run {sys.executable}")
    done = run([*before, *DEMO], place, 120)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("no Slurm can be started here (not root)")
    assert re.search(r"8 nodes × 8 GPUs \(h100\) = 64 ranks", done.stdout)
    assert "#SBATCH" in done.stdout


@pytest.mark.slurm
def test_a_machine_with_a_slurm_of_its_own_is_left_alone(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    inside = 'mount -t tmpfs none /etc/slurm && echo ClusterName=real >/etc/slurm/slurm.conf && exec "$@"'
    done = run(["unshare", "--mount", "sh", "-c", inside, "sh", *DEMO], tmp_path, 120)
    assert (done.returncode, done.stdout) == (1, "")
    assert "a Slurm lives on this machine (/etc/slurm/slurm.conf): nothing was done" in done.stderr
    assert "glaunch demo --yes" in done.stderr
