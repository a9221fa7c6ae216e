"""Logs fetched from a real sshd: what is home is whole, what is not says why."""

import dataclasses
import gzip
import io
import json
import os
import signal
import stat
import tarfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.ssh.conftest import PATIENCE_S

from glaunch.bundle import LogLimits, archive_path, load_bundle, read_rows
from glaunch.collect import LocalFailure, collect
from glaunch.errors import UsageError
from glaunch.gateways.ssh import SshSettings
from glaunch.logs import HostLogs

if TYPE_CHECKING:
    from tests.ssh.conftest import Proxy, Sshd

pytestmark = pytest.mark.sshd

NAMES = ("comm.0.log", "sub/comm.1.log", "with blank", "-rf", "new\nline", "grüße 日本", "x" * 200, "quote'\"$(id)`id`", "latin-\udce9")
HOSTS = ("n003", "n001", "n002")
ADDRESSES = {"n001": "127.0.0.1", "n002": "127.0.0.2", "n003": "127.0.0.3"}


@pytest.fixture
def attempt(tmp_path: Path) -> Path:
    folder = tmp_path / "12.0.0"
    folder.mkdir(mode=0o700)
    (folder / "ordered").write_text("".join(f"{host}\n" for host in HOSTS))
    return folder


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """What ranks left on a node: names of all sorts, and things that are no files."""
    folder = tmp_path / "node's own (tmp)" / "glaunch-ada-12.0.0"
    for index, name in enumerate(NAMES):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(f"rank {index}\n".encode() * 1000)
    (folder / "link").symlink_to("/etc/passwd")
    os.mkfifo(folder / "pipe")
    return folder


def content(path: Path) -> dict[str, bytes]:
    """What Python's own reader sees in an archive."""
    with tarfile.open(path, errors="surrogateescape", encoding="utf-8") as archive:
        return {os.path.normpath(one.name): archive.extractfile(one).read() for one in archive if one.isreg()}  # type: ignore[union-attr]


def no_part(attempt: Path) -> bool:
    return not list((attempt / "logs").glob(".*"))


def test_every_host_comes_home_whole(sshd: "Sshd", attempt: Path, log_dir: Path) -> None:
    seen: list[HostLogs] = []
    bundle = collect(attempt, HOSTS, ADDRESSES, str(log_dir), settings=sshd.settings(), progress=seen.append)
    assert [host.host for host in bundle.hosts] == list(HOSTS)
    assert sorted(host.host for host in seen) == sorted(HOSTS)
    assert bundle.missing == ()
    for host in bundle.hosts:
        path = attempt / host.archive
        assert (host.how, stat.S_IMODE(path.stat().st_mode)) == ("ssh", 0o600)
        inside = content(path)
        assert inside == {name: (log_dir / name).read_bytes() for name in NAMES}
        assert {(file.name, file.size_bytes) for file in host.files} == {(name, len(data)) for name, data in inside.items()}
    assert no_part(attempt)
    assert load_bundle(attempt, HOSTS) == bundle
    rows = [json.loads(line) for line in (attempt / "manifest.jsonl").read_text().splitlines()]
    assert {(row["host"], row["how"], len(row["files"])) for row in rows} == {(host, "ssh", len(NAMES)) for host in HOSTS}


def test_a_shell_that_greets_is_no_harm(sshd: "Sshd", attempt: Path, log_dir: Path) -> None:
    settings = sshd.settings(keys=(str(sshd.folder / "id_noisy"),))
    bundle = collect(attempt, HOSTS[:1], ADDRESSES, str(log_dir), settings=settings)
    assert content(attempt / bundle.hosts[0].archive).keys() == set(NAMES)


def test_a_folder_that_is_not_there_or_a_link_or_empty(sshd: "Sshd", attempt: Path, log_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(log_dir)
    for path in (tmp_path / "nothing", tmp_path / "link"):
        bundle = collect(attempt, HOSTS[:1], ADDRESSES, str(path), settings=sshd.settings())
        assert [(host.archive, host.reason, str(path) in host.detail) for host in bundle.hosts] == [("", "no-logs", True)]
        assert bundle.hosts[0].where.startswith("manifest.jsonl:")
    (tmp_path / "empty").mkdir()
    bundle = collect(attempt, HOSTS[:1], ADDRESSES, str(tmp_path / "empty"), settings=sshd.settings())
    assert [(host.archive, host.files) for host in bundle.hosts] == [("logs/n003.tar.gz", ())]


@pytest.mark.parametrize("path", ["relative", "", "/tmp/a\nb", "/tmp/\x1b[m"])
def test_a_folder_that_cannot_be_meant(sshd: "Sshd", attempt: Path, path: str) -> None:
    with pytest.raises(UsageError):
        collect(attempt, HOSTS, ADDRESSES, path, settings=sshd.settings())


def test_too_much_is_refused_and_leaves_nothing(sshd: "Sshd", attempt: Path, log_dir: Path) -> None:
    (log_dir / "noise").write_bytes(os.urandom(400_000))
    (log_dir / "zeros").write_bytes(bytes(2_000_000))
    for limits in (LogLimits(archive_bytes=200_000), LogLimits(content_bytes=1_000_000), LogLimits(files=3)):
        bundle = collect(attempt, HOSTS[:1], ADDRESSES, str(log_dir), settings=sshd.settings(), limits=limits)
        assert [(host.archive, host.reason) for host in bundle.hosts] == [("", "too-large")], limits
        assert no_part(attempt)


def test_a_stream_that_is_cut_leaves_nothing(proxy: Callable[..., tuple["Proxy", SshSettings]], attempt: Path, log_dir: Path) -> None:
    (log_dir / "noise").write_bytes(os.urandom(400_000))
    for after in (4_000, 100_000, 399_000):
        _, settings = proxy(lambda seen, after=after: "cut" if seen >= after else "pass")
        bundle = collect(attempt, HOSTS[:1], {"n003": "127.0.0.1"}, str(log_dir), settings=settings)
        assert [(host.archive, host.reason) for host in bundle.hosts] == [("", "broken")]
        assert no_part(attempt)


def test_what_came_earlier_stays_when_a_later_fetch_fails(sshd: "Sshd", attempt: Path, log_dir: Path) -> None:
    first = collect(attempt, HOSTS[:1], ADDRESSES, str(log_dir), settings=sshd.settings())
    again = collect(attempt, HOSTS[:1], ADDRESSES, str(log_dir), settings=sshd.settings(port=1))
    assert again.missing == ()
    assert again.hosts[0].files == first.hosts[0].files
    assert "connection refused" in again.hosts[0].detail
    (log_dir / "later").write_text("more")
    newer = collect(attempt, HOSTS[:1], ADDRESSES, str(log_dir), settings=sshd.settings())
    assert len(newer.hosts[0].files) == len(first.hosts[0].files) + 1


def gather(attempt: Path, host: str, text: bytes) -> None:
    """What the job's own step leaves: the archive, and its line."""
    path = archive_path(attempt, host)
    assert path is not None
    path.parent.mkdir(exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo("./comm.0.log")
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text))
    row = {"host": host, "how": "gathered", "archive": f"logs/{host}.tar.gz", "size_bytes": 1}
    with (attempt / "manifest.jsonl").open("a") as manifest:
        manifest.write(
            json.dumps({**row, "reason": "too-large", "detail": "9 bytes, at most 8 are gathered; cut to head and tail: ./a"}) + "\n"
        )


def test_what_the_job_gathered_is_not_fetched_again(sshd: "Sshd", attempt: Path, log_dir: Path) -> None:
    gather(attempt, "n001", b"gathered")
    bundle = collect(attempt, HOSTS, ADDRESSES, str(log_dir), settings=sshd.settings())
    assert {host.host: host.how for host in bundle.hosts} == {"n003": "ssh", "n001": "gathered", "n002": "ssh"}
    found = next(host for host in bundle.hosts if host.host == "n001")
    assert (found.reason, content(attempt / found.archive)) == ("", {"comm.0.log": b"gathered"})
    assert "cut to head and tail" in found.detail, "what was left out is told"
    # with all of them home nobody is asked
    for host in HOSTS:
        gather(attempt, host, b"gathered")
    before = len(read_rows(attempt))
    assert collect(attempt, HOSTS, ADDRESSES, str(log_dir), settings=sshd.settings(port=1)).missing == ()
    assert len(read_rows(attempt)) == before


def test_what_the_job_gathers_meanwhile_wins(proxy: Callable[..., tuple["Proxy", SshSettings]], attempt: Path, log_dir: Path) -> None:
    (log_dir / "noise").write_bytes(os.urandom(100_000))
    done: list[int] = []

    def meanwhile(seen: int) -> str:
        if seen > 4_000 and not done:
            done.append(seen)
            gather(attempt, "n003", b"gathered, and newer")
        return "pass"

    _, settings = proxy(meanwhile)
    bundle = collect(attempt, HOSTS[:1], {"n003": "127.0.0.1"}, str(log_dir), settings=settings)
    assert done
    assert bundle.hosts[0].how == "gathered"
    assert content(attempt / bundle.hosts[0].archive) == {"comm.0.log": b"gathered, and newer"}
    assert no_part(attempt)


def test_an_archive_that_is_not_whole_does_not_count(sshd: "Sshd", attempt: Path, log_dir: Path) -> None:
    collect(attempt, HOSTS, ADDRESSES, str(log_dir), settings=sshd.settings())
    path = attempt / "logs" / "n001.tar.gz"
    whole = path.read_bytes()
    raw = gzip.decompress(whole)
    damaged = (whole[:-1], whole[: len(whole) // 2], whole + b"x", b"", gzip.compress(raw[:512]), gzip.compress(raw + b"x"))
    for data in damaged:
        path.write_bytes(data)
        bundle = load_bundle(attempt, HOSTS)
        assert [(host.host, host.reason) for host in bundle.missing] == [("n001", "broken")], data[-20:]


def test_ctrl_c_keeps_what_is_whole(proxy: Callable[..., tuple["Proxy", SshSettings]], attempt: Path, log_dir: Path) -> None:
    hosts = [f"n{number:03d}" for number in range(1, 9)]
    addresses = dict.fromkeys(hosts, "127.0.0.1")
    between: Proxy  # the third is on its way at that moment
    between, settings = proxy(lambda _: "pass" if between.connections < 3 else "freeze")
    home: list[str] = []

    def progress(host: HostLogs) -> None:
        home.append(host.host)
        if len(home) == 2:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        collect(attempt, hosts, addresses, str(log_dir), settings=dataclasses.replace(settings, fan_out=1), progress=progress)
    bundle = load_bundle(attempt, hosts)
    assert [host.host for host in bundle.hosts if host.archive] == home == hosts[:2]
    assert between.connections <= 3
    assert {host.reason for host in bundle.missing} == {"not-attempted"}
    assert no_part(attempt)


def test_ctrl_c_does_not_wait_for_a_host_that_hangs(
    proxy: Callable[..., tuple["Proxy", SshSettings]], attempt: Path, log_dir: Path
) -> None:
    here, hung = threading.get_ident(), threading.Event()

    def fault(seen: int) -> str:
        if seen > 3_000 and not hung.is_set():
            hung.set()
            signal.pthread_kill(here, signal.SIGINT)
        return "freeze" if hung.is_set() else "pass"

    _, settings = proxy(fault)
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        collect(attempt, HOSTS[:1], {"n003": "127.0.0.1"}, str(log_dir), settings=settings)
    assert hung.is_set()
    assert time.monotonic() - start < PATIENCE_S < settings.total_s
    assert [host.reason for host in load_bundle(attempt, HOSTS[:1]).hosts] == ["not-attempted"]


def test_a_disk_that_refuses_is_ours_and_not_the_hosts(sshd: "Sshd", attempt: Path, log_dir: Path) -> None:
    (attempt / "logs").write_text("in the way")
    with pytest.raises(LocalFailure, match="logs"):
        collect(attempt, HOSTS, ADDRESSES, str(log_dir), settings=sshd.settings())


def test_a_name_that_is_no_file_name_goes_nowhere(sshd: "Sshd", attempt: Path, log_dir: Path) -> None:
    for host in ("../n001", ".n001", "n001/x", ""):
        bundle = collect(attempt, [host], {host: "127.0.0.1"}, str(log_dir), settings=sshd.settings())
        assert [(one.archive, one.reason) for one in bundle.hosts] == [("", "broken")]
