"""When a pin is lifted, and how a file is followed."""

from pathlib import Path

import pytest

from glaunch.follow import Tail, pin_verdict, task_codes
from glaunch.job import Job


def pending(reason: str, required: str = "n[1-2]") -> Job:
    return Job("7", "PENDING", reason, required_nodes=required)


@pytest.mark.parametrize(
    ("job", "waited_s", "verdict"),
    [
        (None, 0, "settled"),
        (Job("7", "RUNNING", required_nodes="n1"), 3, "settled"),
        (Job("7", "CANCELLED", required_nodes="n1"), 3, "settled"),
        (pending("Priority", required=""), 3, "settled"),
        (pending("None"), 3, "wait"),
        (pending("Priority"), 20, "wait"),
        (pending("Priority"), 30, "lift"),
        (pending("Resources"), 3, "lift"),
        (pending("ReqNodeNotAvail,_UnavailableNodes:n006"), 3, "lift"),
        (pending("ReqNodeNotAvail,_May_be_reserved_for_other_job"), 3, "lift"),
    ],
)
def test_final_reasons_lift_at_once_and_others_at_the_end_of_patience(job: Job | None, waited_s: float, verdict: str) -> None:
    assert pin_verdict(job, waited_s, 30) == verdict


def test_a_tail_gives_whole_lines_and_the_rest_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "out.log"
    tail = Tail(path, "[3] ")
    assert tail.lines() == []
    path.write_bytes(b"one\ntw")
    assert tail.lines() == ["[3] one"]
    with path.open("ab") as file:
        file.write(b"o\n\xff\xfe no newline")
    assert tail.lines() == ["[3] two"]
    assert tail.lines(last=True) == ["[3] \udcff\udcfe no newline"]


def test_a_task_that_left_no_exit_code_has_slurms() -> None:
    lost, failed, killed = Job("7_2", "NODE_FAIL"), Job("7_3", "FAILED", exit_code=5), Job("7_4", "CANCELLED", exit_signal=9)
    assert task_codes((), (Job("7_1", "COMPLETED"), lost, failed, killed, Job("7_5", "RUNNING"))) == {1: 0, 2: 1, 3: 5, 4: 137}
