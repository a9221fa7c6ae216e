"""What a job left in its folder, read back whatever is missing of it."""

import json
from pathlib import Path

import pytest

from glaunch.attempt import AttemptEnd, AttemptStart, attempts, batch_logs, last_runs, load_json
from glaunch.errors import ParseError
from glaunch.logs import RankRow


def leave_run(folder: Path, name: str, *, over: bool = True) -> Path:
    """A run's folder as a job leaves it."""
    path = folder / name
    (path / "out").mkdir(parents=True)
    (path / "ordered").write_text("n002\nn001\n")
    audit = {"order": "planned", "first": "n002", "master": "n002", "port": 20123, "try": 1, "tasks": 4, "nodes": 2}
    (path / "audit.json").write_text(json.dumps({"schema": "glaunch.audit/1", **audit, "log_dir": "/tmp/x", "began_s": 5}))
    if over:
        end = {"job_id": "14", "code": 143, "signal": 15, "told": "TERM", "began_s": 5, "ended_s": 9}
        (path / "exit.json").write_text(json.dumps({"schema": "glaunch.exit/1", **end}))
    return path


def test_load_json(tmp_path: Path) -> None:
    assert load_json(tmp_path / "none") is None
    (tmp_path / "half").write_text('{"a":\n 1, ')
    with pytest.raises(ParseError, match="half:2"):
        load_json(tmp_path / "half")
    (tmp_path / "list").write_text("[]")
    with pytest.raises(ParseError, match="a JSON object"):
        load_json(tmp_path / "list")


def test_attempts_in_order(tmp_path: Path) -> None:
    for name in ("12.10.0", "12.2.1", "12.2.0", "9.0.0", "12.2.0-2"):
        leave_run(tmp_path, name)
    for other in ("node", "12.2", "x12.2.0", "12.2.0.part"):
        (tmp_path / other).mkdir()
    (tmp_path / "13.0.0").write_text("a file")
    runs = attempts(tmp_path)
    assert [run.path.name for run in runs] == ["9.0.0", "12.2.0", "12.2.0-2", "12.2.1", "12.10.0"]
    assert [(run.job_id, run.task, run.restart, run.run) for run in runs[1:3]] == [("12", 2, 0, 1), ("12", 2, 0, 2)]
    assert attempts(tmp_path / "none") == ()


def test_an_attempt_says_what_it_knows(tmp_path: Path) -> None:
    path = leave_run(tmp_path, "12.0.0")
    (path / "ranks.tsv").write_text("0\tn002\t0\t10\n1\tn002\t1\t11\n2\tn001\t0\t12\n")
    (run,) = attempts(tmp_path)
    assert run.hosts == ("n002", "n001")
    assert run.ranks[2] == RankRow(2, "n001", 0)
    assert run.start == AttemptStart("planned", "n002", "n002", 20123, 1, 4, 2, "/tmp/x", 5)
    assert run.end == AttemptEnd("14", 143, 15, "TERM", 5, 9)


def test_an_attempt_that_was_killed_early(tmp_path: Path) -> None:
    (tmp_path / "12.0.0" / "ranks.d").mkdir(parents=True)
    (run,) = attempts(tmp_path)
    assert (run.start, run.end, run.hosts, run.ranks) == (None, None, (), ())
    (tmp_path / "12.0.0" / "ranks.d" / "n002").write_text("1\tn002\t1\t11\n0\tn002\t0\t10\n3\tn0")
    (run,) = attempts(tmp_path)
    assert [place.rank for place in run.ranks] == [0, 1], "a line that is being written is not taken"


def test_of_one_job_and_of_each_task_the_last(tmp_path: Path) -> None:
    for name in ("12.1.0", "12.1.1", "12.2.0", "12.2.0-2", "15.0.0"):
        leave_run(tmp_path, name)
    assert [run.path.name for run in attempts(tmp_path, "12")] == ["12.1.0", "12.1.1", "12.2.0", "12.2.0-2"]
    assert [run.path.name for run in last_runs(attempts(tmp_path))] == ["12.1.1", "12.2.0-2", "15.0.0"]


def test_batch_logs_of_a_job_and_of_a_task(tmp_path: Path) -> None:
    for name in ("batch-12.log", "batch-123.log", "batch-14_1.log", "batch-14_2.log"):
        (tmp_path / name).write_text("")
    found = {ask: [path.name for path in batch_logs(tmp_path, *ask)] for ask in (("12",), ("12", 0), ("14",), ("14", 2), ("",))}
    assert found == {
        ("12",): ["batch-12.log"],
        ("12", 0): ["batch-12.log"],
        ("14",): ["batch-14_1.log", "batch-14_2.log"],
        ("14", 2): ["batch-14_2.log"],
        ("",): [],
    }


def test_where_logs_are_looked_for(tmp_path: Path) -> None:
    path = leave_run(tmp_path, "12.0.0")
    (path / "ordered").write_text("n2\nn1\nn3\n")
    (run,) = attempts(tmp_path)
    assert list(run.log_hosts) == list(run.hosts) == ["n2", "n1", "n3"]
    (path / "hostfile").write_text("n2 slots=8\nn1 slots=8\nn3 slots=8\n")
    assert list(run.log_hosts) == ["n2"], "the program ran there alone"
    (path / "logs").mkdir(exist_ok=True)
    (path / "logs" / "n3.tar.gz").write_bytes(b"x")
    assert list(run.log_hosts) == ["n2", "n3"], "what it started elsewhere has logs"
