"""What Slurm granted is judged inside the job: told, refused, or tried once more."""

import json
from collections.abc import Iterator

import pytest
from tests.cluster.conftest import User, job_id_of, until

pytestmark = pytest.mark.slurm

SCATTERED = ("./prog.sh", "-N", "4", "--ntasks-per-node", "1", "--place", "order")


@pytest.fixture
def scattered(ada: User) -> Iterator[User]:
    """One node is free on each of the four leaves of two pods."""
    ada.box.exec(["sbatch", "-w", "n[001-003,005-007,009-011,013-015]", "-N12", "--exclusive", "-o", "/dev/null", "--wrap", "sleep 900"])
    until(lambda: "R" in ada.box.exec(["squeue", "-h", "-o", "%t"]).stdout, 60, "the busy nodes are busy")
    yield ada
    ada.box.exec(["scancel", "--user=root"])


def placement(user: User, job_id: str) -> list[dict[str, object]]:
    """placement.json of each run of a job."""
    return [json.loads((run.path / "placement.json").read_text()) for run in user.attempts(job_id)]


def test_a_bad_set_is_told_and_the_job_goes_on(scattered: User) -> None:
    done = scattered.glaunch(*SCATTERED)
    assert done.code == 0, done.stderr
    assert "placement: 4 nodes on 4 leaves in 2 pods; so many fit in 1 pod" in done.stdout + done.stderr
    assert "GL105" in done.stderr
    found = placement(scattered, job_id_of(done))
    assert found == [
        {"schema": "glaunch.placement/1", "pods": 2, "leaves": 4, "hops": 26, "unknown": 0, "fewest_pods": 1, "bad": 1, "did": ""}
    ]


def test_a_bad_set_ends_the_job_before_any_rank_where_that_was_asked_for(scattered: User) -> None:
    done = scattered.glaunch(*SCATTERED, "--on-bad-placement", "fail")
    assert done.code == 1
    assert "--on-bad-placement fail: no rank was started" in done.stderr
    job_id = job_id_of(done)
    assert placement(scattered, job_id)[0]["did"] == "failed"
    assert not (scattered.attempts(job_id)[0].path / "audit.json").exists()
    assert "rank 0 of" not in done.stdout


def test_a_bad_set_sends_the_job_back_to_the_queue_once(scattered: User) -> None:
    launch = (*SCATTERED, "--on-bad-placement", "requeue", "--detach")
    job_id = scattered.glaunch(*launch).stdout.strip()
    scattered.run_again(job_id, 1)
    job = scattered.wait_for(job_id, "COMPLETED")
    assert job["Restarts"] == "1"
    assert [one["did"] for one in placement(scattered, job_id)] == ["requeued", ""]
    assert "it has run before: it goes on" in (scattered.folder(job_id) / f"batch-{job_id}.log").read_text()
    assert "GL105" in scattered.glaunch("report", job_id).stdout


def test_a_job_that_slurm_does_not_requeue_goes_on(scattered: User) -> None:
    done = scattered.glaunch(*SCATTERED, "--on-bad-placement", "requeue", "--sbatch", "no-requeue")
    assert done.code == 0, done.stderr
    assert "Slurm does not take the job back (" in done.stdout + done.stderr


def test_a_pinned_job_is_not_requeued_and_the_plan_says_so(ada: User) -> None:
    plan = ada.glaunch("plan", "./prog.sh", "-N", "4", "--on-bad-placement", "requeue")
    assert "never requeued; it warns" in " ".join(plan.stdout.split())
