"""An attempt's archives on disk: which host's logs are home, whole, and how they came; the manifest that says so."""

import gzip
import json
import os
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from glaunch.logs import HostLogs, LogBundle, LogFile
from glaunch.parsers.tar import BrokenTar, Contents, TarTooLarge, contents

ARCHIVES = "logs"
MANIFEST = "manifest.jsonl"
_PADDING_MAX = 1 << 20  # zeros after the end mark of a tar

Row = tuple[int, Mapping[str, Any]]
"""A line number of the manifest and what that line says."""


@dataclass(frozen=True, slots=True)
class LogLimits:
    """How much one host may send: bytes of its archive, and bytes and files in it when unpacked."""

    archive_bytes: int = 1 << 30
    content_bytes: int = 16 << 30
    files: int = 100_000


def archive_path(attempt: Path, host: str) -> Path | None:
    """Where a host's archive lies; None for a name that cannot be a file's."""
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", host):
        return None
    return attempt / ARCHIVES / f"{host}.tar.gz"


def has_archive(attempt: Path, host: str) -> bool:
    """True when a file with the archive's name is there."""
    path = archive_path(attempt, host)
    return path is not None and path.is_file()


def load_bundle(attempt: Path, hosts: Sequence[str], *, limits: LogLimits | None = None) -> LogBundle:
    """What is home of `hosts`, read from disk: every archive is walked to its end, and one that is not whole does not count."""
    limits = limits or LogLimits()
    rows: dict[str, list[Row]] = {}
    for row in read_rows(attempt):
        rows.setdefault(row[1]["host"], []).append(row)
    return LogBundle(str(attempt), tuple(_from_disk(attempt, host, rows.get(host, []), limits) for host in hosts))


def _from_disk(attempt: Path, host: str, mine: Sequence[Row], limits: LogLimits) -> HostLogs:
    gathered = [one for one in mine if _is_gathered(one[1])]
    line, row = (gathered or mine or [(0, {})])[-1]
    where = f"{MANIFEST}:{line}" if line else ""
    if has_archive(attempt, host):
        found = validated(attempt, host, "gathered" if gathered else "ssh", limits, note=_remark(row))
        return replace(found, where=where)
    reason, detail = str(row.get("reason", "")), str(row.get("detail", ""))
    if reason:
        return HostLogs(host, "none", "", (), reason, detail, where)
    return HostLogs(host, "none", "", (), "no-logs", "its archive is gone" if mine else "nothing was gathered or fetched", where)


def _remark(row: Mapping[str, Any]) -> str:
    """What a row says besides that all is well."""
    return str(row.get("detail", "")) if row.get("archive") else ""


def validated(attempt: Path, host: str, how: str, limits: LogLimits, *, path: Path | None = None, note: str = "") -> HostLogs:
    """Walk one archive (at `path` when it has not got its name yet): its files, or why it does not count."""
    final = archive_path(attempt, host)
    if final is None:
        return HostLogs(host, "none", "", (), "broken", f"{host!r} cannot be a file's name")
    try:
        with (path or final).open("rb") as raw:
            if os.fstat(raw.fileno()).st_size > limits.archive_bytes:
                raise TarTooLarge(f"more than {limits.archive_bytes} bytes")
            found = _walk(raw, limits)
    except TarTooLarge as error:
        return HostLogs(host, "none", "", (), "too-large", f"{final.name}: {error}")
    except (BrokenTar, OSError, EOFError, zlib.error) as error:
        return HostLogs(host, "none", "", (), "broken", f"{final.name}: {error}")
    files = tuple(LogFile(member.name, member.size_bytes, member.sha256) for member in found.files)
    return HostLogs(host, how, f"{ARCHIVES}/{final.name}", files, "", note)


def _walk(raw: IO[bytes], limits: LogLimits) -> Contents:
    with gzip.GzipFile(fileobj=raw, mode="rb") as stream:
        found = contents(stream.read, max_files=limits.files, max_bytes=limits.content_bytes)
        padding = stream.read(_PADDING_MAX)  # to the end, where gzip keeps its checksum
        if padding.strip(b"\0") or stream.read(1):
            raise BrokenTar("something follows the end of the archive")
        return found


def read_rows(attempt: Path) -> tuple[Row, ...]:
    """The manifest's rows with their line numbers, oldest first; a line that was cut off by a crash is passed over."""
    try:
        text = (attempt / MANIFEST).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ()
    rows = ((number, _row(line)) for number, line in enumerate(text.split("\n"), 1))
    return tuple((number, row) for number, row in rows if row is not None)


def _row(line: str) -> Mapping[str, Any] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) and isinstance(row.get("host"), str) else None


def _is_gathered(row: Mapping[str, Any]) -> bool:
    """Home by the job's own step; with a reason as well where it had to leave something out."""
    return row.get("how") == "gathered" and bool(row.get("archive"))


def gathered_hosts(attempt: Path) -> frozenset[str]:
    """Hosts that the job's own step has brought home."""
    hosts = (row["host"] for _, row in read_rows(attempt) if _is_gathered(row))
    return frozenset(host for host in hosts if has_archive(attempt, host))


def last_lines(attempt: Path) -> Mapping[str, str]:
    """Host → the manifest's last line about it, as FILE:LINE."""
    return {row["host"]: f"{MANIFEST}:{line}" for line, row in read_rows(attempt)}


def host_row(logs: HostLogs) -> dict[str, Any]:
    """One manifest row."""
    files = [{"name": file.name, "size_bytes": file.size_bytes, "sha256": file.sha256} for file in logs.files]
    return {"host": logs.host, "how": logs.how, "archive": logs.archive, "files": files, "reason": logs.reason, "detail": logs.detail}


def append_rows(attempt: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Add rows in one write each, so that a crash cuts at most the last line."""
    lines = [json.dumps(row) + "\n" for row in rows]
    if not lines:
        return
    descriptor = os.open(attempt / MANIFEST, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    try:
        for line in lines:
            os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)
