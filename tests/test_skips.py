"""The rule of conftest.py: with CI=true the tests on the real thing cannot be skipped; others can, and without CI all can."""

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


@pytest.mark.parametrize(("ci", "told"), [("true", "1 failed, 1 skipped, 1 error"), ("", "3 skipped")])
def test_a_skip_on_the_real_thing_is_a_failure_in_ci(tmp_path: Path, ci: str, told: str) -> None:
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    (tmp_path / "test_cases.py").write_text(CASES)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    slurm: real\n    sshd: real\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True,
        text=True,
        env=dict(os.environ, CI=ci),
        timeout=60,
        cwd=tmp_path,
    )
    assert told in done.stdout.splitlines()[-1], done.stdout
    assert done.returncode == (1 if ci else 0)
    assert ("was skipped (" in done.stdout) == bool(ci)
