"""What holds for every test: none on the real thing is skipped in CI, and none asks a Slurm for what it cannot have.

With CI=true a test on a real Slurm or a real sshd that is skipped is a failure: nothing may go unseen there. A test that needs a newer
Slurm than this machine's says so, `@pytest.mark.since_slurm("24.05")`, and is deselected here; it runs where `make test-versions` has one.
The other way round, `@pytest.mark.before_slurm("23.02")`, for what only an older one does. `@pytest.mark.needs_pyslurm`: deselected where
this Python has no pyslurm; `make test-versions` builds it beside Slurm 26.05.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Generator, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

if TYPE_CHECKING:
    from tests.decisions import Site

    from glaunch.sandbox.box import Sandbox
    from glaunch.sandbox.options import SandboxOptions


CI = os.environ.get("CI") == "true"
# A busy machine is no fault of an example, nor of what makes them. In CI a change is judged by the same examples as the one before it.
_SLOW = hypothesis.HealthCheck.too_slow
hypothesis.settings.register_profile("ours", deadline=None, suppress_health_check=[_SLOW], derandomize=CI)
hypothesis.settings.load_profile("ours")
# What a shell starts in the background (`make test &`) ignores ^C, and so would all that the tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
REAL = ("slurm", "sshd", "ibsim", "browser")
SBIN = ":/usr/local/sbin:/usr/sbin"


def slurm_here() -> tuple[int, int]:
    """(22, 5) where Debian's Slurm 22.05 is installed; (0, 0) without any."""
    slurmctld = shutil.which("slurmctld", path=os.environ.get("PATH", os.defpath) + SBIN)
    said = subprocess.run([slurmctld, "-V"], capture_output=True, text=True, timeout=60).stdout if slurmctld else ""
    found = re.search(r"(\d+)\.(\d+)", said)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what is not of the Slurm that is here; without any, all stay (and are skipped with the reason)."""
    here, pyslurm = slurm_here(), find_spec("pyslurm") is not None
    others = [
        item
        for item in items
        if (here > (0, 0) and any(here < _version(mark) for mark in item.iter_markers("since_slurm")))
        or (here > (0, 0) and any(here >= _version(mark) for mark in item.iter_markers("before_slurm")))
        or (not pyslurm and item.get_closest_marker("needs_pyslurm"))
    ]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in others]


def _version(mark: pytest.Mark) -> tuple[int, int]:
    year, month = re.fullmatch(r"(\d\d)\.(\d\d)", mark.args[0]).groups()  # type: ignore[union-attr]
    return int(year), int(month)


@pytest.fixture(scope="session")
def slurm_version() -> tuple[int, int]:
    """(24, 11) where the real-cluster tests run on Slurm 24.11, for those that expect other words from another version."""
    return slurm_here()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if CI and report.skipped and any(item.get_closest_marker(name) for name in REAL):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid}: CI=true, and a test on the real thing was skipped ({reason})"
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the names of the failed tests to the file FAILED_TESTS, if there is one: `make test` ends with them."""
    reporter, path = session.config.pluginmanager.get_plugin("terminalreporter"), os.environ.get("FAILED_TESTS")
    if reporter and path:
        failed = [report.nodeid for kind in ("failed", "error") for report in reporter.stats.get(kind, ())]
        slurm = ".".join(f"{part:02}" for part in slurm_here())
        with open(path, "a", encoding="utf-8") as file:
            file.writelines(f"failed on Slurm {slurm}: {name}\n" for name in failed)


def free_port() -> int:
    """A TCP port on loopback that nobody holds now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def site(tmp_path: Path) -> "Site":
    """A site without a file yet; `site.says(...)` gives it one, `site.decide(...)` decides under it on a small cluster."""
    from tests.decisions import Site

    return Site(tmp_path)


def stand(options: "SandboxOptions") -> "Sandbox":
    """A sandbox for tests; where this machine cannot have one the test is skipped with the reason (with CI=true: failed)."""
    from glaunch.errors import GlaunchError
    from glaunch.sandbox.up import check_machine, up

    try:
        check_machine(accounting=options.accounting)
    except GlaunchError as reason:
        pytest.skip(str(reason))
    return up(options)


@pytest.fixture(scope="session")
def sandboxes() -> Iterator[Callable[..., "Sandbox"]]:
    """Makes sandboxes, each once for the whole run: `sandboxes("plain")`, `sandboxes("no-python", no_python=True)`; all go at the end."""
    from glaunch.sandbox.options import SandboxOptions

    root = Path(tempfile.mkdtemp(prefix="glaunch-test-", dir="/var/tmp"))
    made: dict[str, Sandbox] = {}

    def sandbox(name: str, **options: object) -> "Sandbox":
        wanted = f"{name} {sorted(options.items())}"  # the same name with other options is another sandbox
        if wanted not in made:
            made[wanted] = stand(SandboxOptions(dir=root / f"{name}-{len(made)}", **options))  # type: ignore[arg-type]
        return made[wanted]

    try:
        yield sandbox
    finally:
        for one in made.values():
            one.down()
        root.rmdir()


@pytest.fixture(scope="session")
def cluster(sandboxes: Callable[..., "Sandbox"]) -> "Sandbox":
    """16 nodes of 8 GPUs on three tiers of switches, shared by all tests of a run."""
    return sandboxes("cluster", nodes=16)
