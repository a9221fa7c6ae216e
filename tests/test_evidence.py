"""A job's folder as a report."""

import json
from pathlib import Path

from glaunch.attempt import attempts
from glaunch.evidence import report_of
from glaunch.job import Job


def test_logs_of_a_job_that_was_killed_hard_are_in_its_report(tmp_path: Path) -> None:
    attempt = tmp_path / "7.0.0"
    (attempt / "logs").mkdir(parents=True)
    (attempt / "ordered").write_text("n001\nn002\n")
    (before,) = attempts(tmp_path)
    nothing = report_of(tmp_path, before, Job("7", "NODE_FAIL")).logs
    assert nothing is not None
    assert nothing.hosts == ()  # no rank was started
    audit = {"order": "planned", "first": "n001", "master": "n001", "port": 29500, "try": 1, "tasks": 2, "nodes": 2, "how": ""}
    (attempt / "audit.json").write_text(json.dumps({"schema": "glaunch.audit/1", **audit, "log_dir": "/tmp/x", "began_s": 5}))
    (found,) = attempts(tmp_path)
    lost = report_of(tmp_path, found, Job("7", "NODE_FAIL")).logs
    assert lost is not None
    assert [host.host for host in lost.hosts] == ["n001", "n002"]
    assert report_of(tmp_path, found, Job("7", "RUNNING")).logs is None


def test_an_exit_code_that_a_full_disk_cut_short_is_as_if_it_had_not_been_said(tmp_path: Path) -> None:
    (tmp_path / "7.0.0").mkdir()
    (tmp_path / "7.0.0" / "exit.json").write_text('{"code": ')
    assert attempts(tmp_path)[0].end is None
