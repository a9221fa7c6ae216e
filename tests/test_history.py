"""The lines that remember what was launched."""

import multiprocessing
from pathlib import Path

import pytest

from glaunch.errors import GlaunchError
from glaunch.history import FAULTS_S, HELD_S, History, failed_jobs, held_nodes


def test_a_submission_is_folded_from_its_lines(tmp_path: Path) -> None:
    history = History(tmp_path, "login1")
    history.append("ab12", 100.0, name="train", folder="/f", script="/f/job.sbatch", nodes=["n1", "n2"], pin="held", state="intent")
    history.append("ab12", 101.0, job_id="7", state="submitted")
    (submission,) = history.submissions()
    assert (submission.name, submission.job_id, submission.nodes, submission.created_s) == ("train", "7", ("n1", "n2"), 100.0)


def test_lines_of_all_login_hosts_count(tmp_path: Path) -> None:
    History(tmp_path, "login1").append("a", 2.0, state="intent")
    History(tmp_path, "login2").append("b", 1.0, state="intent")
    assert [submission.id for submission in History(tmp_path, "login3").submissions()] == ["b", "a"]


def test_a_torn_line_and_foreign_lines_are_passed_over(tmp_path: Path) -> None:
    history = History(tmp_path, "login1")
    history.append("a", 1.0, state="intent")
    with history.path.open("ab") as file:
        file.write(b'[1]\n{"id": 5}\n\xff\xfe\n{"id": "b", "at_s')
    assert [submission.id for submission in history.submissions()] == ["a"]


def test_a_line_after_a_torn_one_is_not_lost(tmp_path: Path) -> None:
    history = History(tmp_path, "login1")
    history.append("a", 1.0, state="intent")
    with history.path.open("ab") as file:
        file.write(b'{"id": "b", "at_s')
    history.append("c", 2.0, state="intent")
    assert [submission.id for submission in history.submissions()] == ["a", "c"]


def test_nodes_are_held_until_they_were_seen_running_or_time_is_up(tmp_path: Path) -> None:
    history = History(tmp_path, "login1")
    for name, state, pin in (
        ("a", "submitted", "held"),
        ("b", "running", "settled"),
        ("c", "submitted", "lifted"),
        ("d", "intent", "held"),
    ):
        history.append(name, 10.0, nodes=[f"n-{name}"], state=state, pin=pin)
    assert held_nodes(history.submissions(), 11.0) == {"n-a", "n-d"}
    assert held_nodes(history.submissions(), 10.0 + HELD_S) == frozenset()


def test_a_node_that_failed_jobs_is_doubtful_for_a_week(tmp_path: Path) -> None:
    history = History(tmp_path, "login1")
    for name, moment_s, faulty in (("a", 0.0, ["n1"]), ("b", 5.0, ["n1", "n1", "n2"]), ("c", 9.0, [])):
        history.append(name, moment_s, state="submitted")
        history.append(name, moment_s + 3 * FAULTS_S, state="over")
        history.append(name, moment_s + 3 * FAULTS_S, faulty=faulty)
    assert failed_jobs(history.submissions(), 10.0) == {"n1": 2, "n2": 1}
    assert failed_jobs(history.submissions(), FAULTS_S + 1) == {"n1": 1, "n2": 1}
    assert failed_jobs(history.submissions(), FAULTS_S + 5) == {}


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    history = History(tmp_path / "file" / "state", "login1")
    with pytest.raises(GlaunchError, match="cannot remember"):
        history.append("a", 1.0)
    with pytest.raises(GlaunchError, match="cannot remember"), history.lock():
        pytest.fail("there is nothing to lock")


def test_lines_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    history = History(tmp_path, "login1")
    history.path.mkdir()
    with pytest.raises(GlaunchError, match="cannot remember"):
        history.submissions()


def test_an_error_inside_the_lock_is_its_own(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="mine"), History(tmp_path, "login1").lock():
        raise FileNotFoundError("mine")


def _count(folder: str) -> None:
    history = History(Path(folder), "login1")
    for _ in range(20):
        with history.lock():
            seen = len(history.submissions())
            history.append(f"{seen}", float(seen), state="intent")


def test_the_lock_lets_one_look_and_write_at_a_time(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_count, args=(str(tmp_path),)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(200)
        assert worker.exitcode == 0
    assert len(History(tmp_path, "login1").submissions()) == 80


def test_a_full_disk_stops_no_job_that_is_there_already(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    History(tmp_path / "file" / "state", "login1").note("a", 1.0)
    assert "cannot remember what is launched" in capsys.readouterr().err
