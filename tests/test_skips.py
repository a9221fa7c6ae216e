"""The rules of conftest.py: with CI=true the tests on the real thing cannot be skipped; what needs a newer Slurm is not selected."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CASES = """
import pytest

@pytest.mark.slurm
def test_real():
    pytest.skip("no root")

@pytest.mark.slurm
@pytest.mark.skipif(True, reason="no root")
def test_real_by_mark():
    raise RuntimeError

def test_other():
    pytest.skip("no torch")
"""

NEWER = """
import pytest

@pytest.mark.slurm
@pytest.mark.since_slurm("24.05")
def test_segments():
    pass

@pytest.mark.since_slurm("26.05")
@pytest.mark.parametrize("case", [1, pytest.param(2, marks=pytest.mark.since_slurm("23.11"))])
def test_newest(case):
    pass

@pytest.mark.before_slurm("24.05")
def test_old():
    pass

def test_always():
    pass
"""
MARKERS = ("slurm: real", "sshd: real", "since_slurm(version): newer", "before_slurm(version): older")
INI = "[pytest]\naddopts = --strict-markers\nmarkers =\n" + "".join(f"    {marker}\n" for marker in MARKERS)


@pytest.mark.parametrize(("ci", "told"), [("true", "1 failed, 1 skipped, 1 error"), ("", "3 skipped")])
def test_a_skip_on_the_real_thing_is_a_failure_in_ci(tmp_path: Path, ci: str, told: str) -> None:
    (tmp_path / "test_cases.py").write_text(CASES)
    done = run_cases(tmp_path, CI=ci)
    assert told in done.stdout.splitlines()[-1], done.stdout
    assert done.returncode == (1 if ci else 0)
    assert ("was skipped (" in done.stdout) == bool(ci)


@pytest.mark.parametrize(
    ("version", "told"),
    [
        ("slurm-wlm 22.05.8", "2 passed, 3 deselected"),
        ("slurm 24.05.0", "2 passed, 3 deselected"),
        ("slurm 26.05.5", "4 passed, 1 deselected"),
    ],
)
def test_what_needs_a_newer_slurm_is_not_selected(tmp_path: Path, version: str, told: str) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "slurmctld").write_text(f"#!/bin/sh\necho {version}\n")
    (tmp_path / "bin" / "slurmctld").chmod(0o755)
    (tmp_path / "test_cases.py").write_text(NEWER)
    done = run_cases(tmp_path, CI="true", PATH=f"{tmp_path}/bin:{os.environ['PATH']}")
    assert done.stdout.splitlines()[-1].startswith(told), done.stdout
    assert done.returncode == 0


def run_cases(folder: Path, **env: str) -> "subprocess.CompletedProcess[str]":
    """pytest on test_cases.py of that folder, under this folder's conftest.py."""
    shutil.copy(Path(__file__).with_name("conftest.py"), folder)
    (folder / "pytest.ini").write_text(INI)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
    return subprocess.run(words, capture_output=True, text=True, env={**os.environ, "FAILED_TESTS": "", **env}, timeout=120, cwd=folder)
