"""Which launch is meant, and what is said when there is nothing left of it."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from glaunch import config
from glaunch.commands.looking import chosen_attempt, job_lines, the_one
from glaunch.errors import UsageError
from glaunch.gateways.process import Completed
from glaunch.gateways.slurm import SlurmCommands
from glaunch.history import History, Submission
from glaunch.pipeline import World


def submission(folder: Path, job_id: str = "12", name: str = "train") -> Submission:
    return Submission("5f2c91d0", name, str(folder), f"{folder}/job.sbatch", 0.0, (), job_id, "over", "settled", "done")


def test_a_folder_that_was_cleaned_away_is_told_as_that(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"job 12: its folder .* is gone") as told:
        chosen_attempt(submission(tmp_path / "train-5f2c91d0"), None)
    assert "sacct -j 12" in told.value.hint


def test_a_word_means_an_id_or_the_last_of_a_name(tmp_path: Path) -> None:
    launches = [submission(tmp_path, "12"), submission(tmp_path, "13"), submission(tmp_path, "14", "other")]
    assert the_one(launches, "12").job_id == "12"
    assert the_one(launches, "13_2").job_id == "13"
    assert the_one(launches, "train").job_id == "13"
    assert the_one(launches, None).job_id == "14"
    with pytest.raises(UsageError, match="'99'"):
        the_one(launches, "99")


def test_a_job_that_was_told_to_end_is_not_done_once_slurm_has_forgotten_it(tmp_path: Path) -> None:
    """A program that heeds TERM may end with 0."""

    def run(argv: Sequence[str], _stdin: str, _timeout_s: float) -> Completed:
        known = argv[0] == "sacct"
        return Completed(tuple(argv), 0 if known else 1, "", "" if known else "slurm_load_jobs error: Invalid job id specified")

    settings = config.load(home=tmp_path, cwd=tmp_path, environ={}, etc=tmp_path)
    world = World(SlurmCommands(run, environ={}), settings, (), {}, History(tmp_path, "h"), None)
    for told, state in (("TERM", "was ended early (cancelled, or its time was over)"), ("", "done")):
        folder = tmp_path / f"told-{told}"
        (folder / "12.0.0").mkdir(parents=True)
        end = {"schema": "glaunch.exit/1", "job_id": "12", "code": 0, "signal": 0, "told": told, "began_s": 1, "ended_s": 2}
        (folder / "12.0.0" / "exit.json").write_text(json.dumps(end))
        (line,) = job_lines(world, [replace(submission(folder), state="running", detail="")])
        assert line.state == state


def test_an_array_of_which_tasks_run_and_wait_says_both(tmp_path: Path) -> None:
    tasks = [("12_4", "PENDING", "", "JobArrayTaskLimit"), ("12_5", "PENDING", "", "JobArrayTaskLimit")]
    tasks += [("12_3", "RUNNING", "n003", "None"), ("12_2", "RUNNING", "n001", "None"), ("12_1", "COMPLETED", "n002", "None")]

    def run(argv: Sequence[str], _stdin: str, _timeout_s: float) -> Completed:
        mark = argv[argv.index("-O") + 1].split(",")[0].partition(":")[2]
        rows = [
            (id_, state, "0", "0", "N/A", "UNLIMITED", "1", nodes, "", reason, "gpu", "nap", "/x/job.sbatch")
            for id_, state, nodes, reason in tasks
            if state in shown
        ]
        return Completed(tuple(argv), 0, "".join("".join(f"{cell}{mark}" for cell in row) + "\n" for row in rows), "")

    settings = config.load(home=tmp_path, cwd=tmp_path, environ={}, etc=tmp_path)
    world = World(SlurmCommands(run, environ={}), settings, (), {}, History(tmp_path, "h"), None)
    launch = replace(submission(tmp_path, name="nap"), state="submitted", detail="")
    why = "the array runs as many tasks at once as it may (JobArrayTaskLimit)"
    shown: tuple[str, ...] = ("PENDING", "RUNNING", "COMPLETED")
    (line,) = job_lines(world, [launch])
    assert (line.state, line.where) == (f"2 tasks run, the rest waits: {why}", "n[001,003]")
    shown = ("PENDING",)
    assert job_lines(world, [launch])[0].state == f"waits: {why}"
    shown = ("RUNNING", "COMPLETED")
    assert job_lines(world, [launch])[0].state == "runs"
