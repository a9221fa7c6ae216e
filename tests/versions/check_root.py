"""`glaunch sandbox up --slurm-root` with the roots that run.sh made: from out here, with this checkout's Python. Not collected by itself.

ROOTS, given by run.sh: a line a root, `24.11 /var/cache/glaunch/slurm-24.11-…`.
"""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from glaunch.sandbox.box import Sandbox
from glaunch.sandbox.options import SandboxOptions
from glaunch.sandbox.up import up

ROOTS = [line.split() for line in os.environ["ROOTS"].splitlines()]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder for one sandbox, that none is left in."""
    path = Path(tempfile.mkdtemp(prefix="glaunch-test-", dir="/var/tmp"))
    yield path / "box"
    Sandbox(path / "box").down()
    path.rmdir()


@pytest.mark.slurm
@pytest.mark.parametrize(("version", "root"), ROOTS, ids=[version for version, _ in ROOTS])
def test_a_launch_in_a_root_of_another_slurm(version: str, root: str, folder: Path) -> None:
    before = {path.name for path in Path(root).iterdir()}
    box = up(SandboxOptions(dir=folder, nodes=2, slurm_root=Path(root)))
    told = box.exec(["sinfo", "--version"], "ada")
    assert told.stdout.split()[1].startswith(f"{version}."), told
    done = box.exec(["glaunch", "-N", "2", "--", "sh", "-c", "echo rank $RANK of $WORLD_SIZE"], "ada", timeout_s=240)
    assert done.code == 0, done.stderr
    assert "rank 0 of 16" in done.stdout
    assert "all 16 ranks ran where the plan's order puts them" in done.stderr
    assert {path.name for path in Path(root).iterdir()} == before
