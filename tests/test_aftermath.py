"""What is done after a job began, where Slurm does not answer."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from glaunch import config
from glaunch.aftermath import addresses_of, look_up
from glaunch.gateways.process import Completed
from glaunch.gateways.slurm import SlurmCommands
from glaunch.history import History
from glaunch.job import FORGOTTEN, UNTOLD
from glaunch.pipeline import World


def world(folder: Path, *, silent: bool) -> World:
    """One whose Slurm has forgotten all jobs, or does not answer."""

    def run(argv: Sequence[str], _stdin: str, _timeout_s: float) -> Completed:
        if silent:
            return Completed(tuple(argv), None, "", "")
        known = argv[0] == "sacct"
        return Completed(tuple(argv), 0 if known else 1, "", "" if known else "slurm_load_jobs error: Invalid job id specified")

    settings = config.load(home=folder, cwd=folder, environ={}, etc=folder)
    return World(SlurmCommands(run, environ={}), settings, (), {}, History(folder, "h"), None)


def test_a_job_of_which_slurm_tells_nothing_is_not_a_forgotten_one(tmp_path: Path) -> None:
    assert look_up(world(tmp_path, silent=False), "12", tmp_path, None).state == FORGOTTEN
    assert look_up(world(tmp_path, silent=True), "12", tmp_path, None).state == UNTOLD


def test_without_slurm_hosts_are_reached_by_their_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert addresses_of(world(tmp_path, silent=True), ("n1", "n2")) == {}
    assert "hosts are reached by their names" in capsys.readouterr().err
