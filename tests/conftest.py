"""With CI=true a test on a real Slurm or a real sshd that is skipped is a failure: nothing may go unseen there."""

import os
from collections.abc import Generator

import pytest

REAL = ("slurm", "sshd")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if os.environ.get("CI") == "true" and report.skipped and any(item.get_closest_marker(name) for name in REAL):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid}: CI=true, and a test on the real thing was skipped ({reason})"
    return report
