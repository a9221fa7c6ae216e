"""Which launch is meant, and what is said when there is nothing left of it."""

from pathlib import Path

import pytest

from glaunch.commands.looking import chosen_attempt, the_one
from glaunch.errors import UsageError
from glaunch.history import Submission


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
