"""Dependencies by name: one job is meant, or it is said why not."""

import pytest

from glaunch.dependency import Known, names_in, with_ids
from glaunch.errors import UsageError
from glaunch.job import Job


def known(*jobs: Job) -> Known:
    return Known(jobs, {"20": ("20", "21"), "21": ("20", "21")}, {"old": "3 (done)"})


PREP = Job("12", "RUNNING", name="prep")
SWEEP = (Job("20_0", "COMPLETED", name="sweep"), Job("20_1", "PENDING", name="sweep"), Job("21_0", "PENDING", name="sweep"))


@pytest.mark.parametrize(
    ("text", "names", "said"),
    [
        ("afterok:prep", ("prep",), "afterok:12"),
        ("afterok:7:prep,singleton", ("prep",), "afterok:7:12,singleton"),
        ("afterok:prep?afternotok:prep", ("prep",), "afterok:12?afternotok:12"),
        ("after:prep+10", ("prep",), "after:12+10"),
        ("afterany:sweep:prep", ("sweep", "prep"), "afterany:20:21:12"),
        ("afterok:7_3:8_*:9", (), "afterok:7_3:8_*:9"),
        ("after:7+5", (), "after:7+5"),
        ("afterwards:7", (), "afterwards:7"),
        ("singleton", (), "singleton"),
    ],
)
def test_names_become_ids_and_all_else_stays(text: str, names: tuple[str, ...], said: str) -> None:
    assert names_in(text) == names
    assert with_ids(text, known(PREP, *SWEEP)) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("prep", "says not when"),
        ("afterok:", "no job stands behind afterok"),
        ("afterwards:prep", "no kind of dependency"),
        ("afterok:nobody", "'nobody' is no job of yours"),
        ("afterok:old", r"job 3 \(done\), which Slurm has forgotten"),
        ("aftercorr:sweep", "an array of 2 jobs"),
    ],
)
def test_what_means_no_job_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        with_ids(text, known(PREP, *SWEEP))


def test_a_misspelt_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError) as refusal:
        with_ids("afterok:perp", known(PREP, *SWEEP))
    assert refusal.value.hint.startswith("did you mean afterok:prep? ")


def test_of_several_jobs_of_one_name_the_one_that_lives_is_meant_else_the_last() -> None:
    done, failed = Job("11", "COMPLETED", name="prep"), Job("10", "FAILED", name="prep")
    assert with_ids("afterok:prep", known(done, failed, PREP)) == "afterok:12"
    assert with_ids("afterok:prep", known(done, failed)) == "afterok:11"
    with pytest.raises(UsageError, match=r"2 jobs of yours have this name: 12 \(runs\), 13 \(waits") as refusal:
        with_ids("afterok:prep", known(PREP, Job("13", "PENDING", name="prep")))
    assert refusal.value.hint == "say which: -d afterok:13"
    with pytest.raises(UsageError, match="2 jobs of yours"):
        with_ids("afterok:prep", known(PREP, Job("13", "COMPLETED", name="prep")))


def test_a_condition_that_can_never_hold_is_told_before() -> None:
    failed = Job("12", "FAILED", name="prep")
    with pytest.raises(UsageError, match="job 12 failed, so this one would never start"):
        with_ids("afterok:prep", known(failed))
    assert with_ids("afterok:prep", known(failed), force=True) == "afterok:12"
    assert with_ids("afterany:prep", known(failed)) == "afterany:12"
