"""What ranks wrote on their nodes comes home: one tar stream a host over SSH, kept as it came, believed only when it is whole.

On the node nothing of glaunch is needed: one fixed line of POSIX sh with tar and gzip. At home an archive is written to a `.part` file,
walked member by member (`parsers.tar`), and only then takes its name, so that an archive that has its name is a whole one.
"""

import contextlib
import os
import re
import secrets
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

from glaunch.bundle import (
    ARCHIVES,
    LogLimits,
    append_rows,
    archive_path,
    gathered_hosts,
    has_archive,
    host_row,
    last_lines,
    load_bundle,
    validated,
)
from glaunch.errors import GlaunchError, UsageError
from glaunch.gateways.fan_out import Watchdog, fan_out
from glaunch.gateways.ssh import Ssh, SshSettings, open_ssh, targets
from glaunch.gateways.ssh_socket import SshFailure, Target
from glaunch.logs import HostLogs, LogBundle

_NOISE_MAX = 1 << 16  # what a login shell may print before our mark
_TRAILER_MAX = 1 << 13
_STALE_S = 3600.0

_SCRIPT = (
    "unset TAR_OPTIONS GZIP; exec 4>&1; d=$1 m=$2; "
    'if [ ! -d "$d" ] || [ -h "$d" ] || ! cd -- "$d"; then printf "%s none\\n" "$m"; exit 0; fi 2>/dev/null; '
    'printf "%s begin\\n" "$m"; '
    'r=$({ { LC_ALL=C nice -n 19 tar -cf - . 2>&3; printf "rc=%s:" "$?" >&3; } | '
    '{ gzip -1 -c >&4 2>/dev/null; printf "gz=%s" "$?" >&3; }; } 3>&1); '
    'printf "\\n%s end %s\\n%.2000s\\n%s over\\n" "$m" "${r##*rc=}" "${r%rc=*}" "$m"'
)


class LocalFailure(GlaunchError):
    """Our own disk said no: not the host's fault, and the next host would fare no better."""


def remote_command(log_dir: str, mark: str) -> str:
    """The one command that runs on a node: `log_dir` as gzipped tar between a begin line and a trailer, both with `mark`.

    Safe in any login shell: two single-quoted words. Raises UsageError for a folder that is not absolute or has control characters.
    """
    if not log_dir.startswith("/") or re.search(r"[\x00-\x1f\x7f]", log_dir):
        raise UsageError(f"{log_dir!r} is no folder that can be fetched from", hint="logs.node_dir must be an absolute path")
    return f"exec /bin/sh -c {shlex.quote(_SCRIPT)} glaunch {shlex.quote(log_dir)} {mark}"


def collect(
    attempt: Path,
    hosts: Sequence[str],
    addresses: Mapping[str, str],
    log_dir: str,
    *,
    settings: SshSettings,
    limits: LogLimits | None = None,
    progress: Callable[[HostLogs], None] | None = None,
) -> LogBundle:
    """Fetch `log_dir` from every host that the job's own gather has not brought home, and tell what stands on disk afterwards.

    `attempt` is the attempt's folder (0700, ours); `addresses` maps a host to where ssh reaches it (its NodeAddr; its name where it has
    none). Each host ends as one HostLogs, passed to `progress` when it is done; a host that failed is data. The archive of a host that was
    fetched before is replaced by a newer one, and kept where the newer fetch fails. Raises LocalFailure when this side's disk is full or
    refuses; KeyboardInterrupt passes through: what is whole then stays, the rest is written down as not attempted.
    """
    limits = limits or LogLimits()
    command_mark = f"glaunch-{secrets.token_hex(16)}"
    command = remote_command(log_dir, command_mark)
    _prepare(attempt)
    gathered = gathered_hosts(attempt)
    wanted = [target for target in targets(hosts, addresses) if target.host not in gathered]
    done: dict[str, HostLogs] = {}
    with Watchdog() as watchdog:
        ssh = open_ssh(settings, watchdog)
        fetch = _Fetch(attempt, ssh, command, command_mark, log_dir, limits)
        results = fan_out(wanted, fetch, width=settings.fan_out, watchdog=watchdog)
        try:
            with contextlib.closing(results):
                for target, result in results:
                    _write_down(attempt, [result])
                    done[target.host] = result
                    if progress is not None:
                        progress(result)
        finally:
            _note_the_rest(attempt, [target.host for target in wanted if target.host not in done])
    # what was walked just now is not walked again; and the job's gather replaces the manifest at its end, our lines with it
    others = load_bundle(attempt, [host for host in hosts if host not in done], limits=limits) if len(done) < len(hosts) else None
    found = {**done, **({host.host: host for host in others.hosts} if others else {})}
    lines = last_lines(attempt)
    return LogBundle(str(attempt), tuple(replace(found[host], where=found[host].where or lines.get(host, "")) for host in hosts))


def _note_the_rest(attempt: Path, hosts: Sequence[str]) -> None:
    rest = [HostLogs(host, "none", "", (), "not-attempted", "interrupted before this host was done") for host in hosts]
    _write_down(attempt, [one for one in rest if not has_archive(attempt, one.host)])


def _write_down(attempt: Path, hosts: Sequence[HostLogs]) -> None:
    try:
        append_rows(attempt, [host_row(host) for host in hosts])
    except OSError as error:
        raise LocalFailure(f"{attempt}: {error.strerror}") from error


def _prepare(attempt: Path) -> None:
    """The archives' folder; leftovers of a collect that was killed are removed once they are old."""
    folder = attempt / ARCHIVES
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        for part in folder.glob(".*.part"):
            if time.time() - part.stat().st_mtime > _STALE_S:
                part.unlink(missing_ok=True)
    except OSError as error:
        raise LocalFailure(f"{folder}: {error.strerror}") from error


class _Fetch:
    """The work for one host; called by many threads at once."""

    def __init__(self, attempt: Path, ssh: Ssh, command: str, mark: str, log_dir: str, limits: LogLimits) -> None:
        self.attempt, self.ssh, self.command, self.mark, self.log_dir, self.limits = attempt, ssh, command, mark, log_dir, limits

    def __call__(self, target: Target) -> HostLogs:
        try:
            return self._fetch(target)
        except SshFailure as failure:
            if has_archive(self.attempt, target.host):
                earlier = validated(self.attempt, target.host, "ssh", self.limits)
                if earlier.archive:
                    return HostLogs(target.host, "ssh", earlier.archive, earlier.files, "", f"fetched earlier; just now: {failure.message}")
            return HostLogs(target.host, "none", "", (), failure.reason, failure.message)

    def _fetch(self, target: Target) -> HostLogs:
        final = archive_path(self.attempt, target.host)
        if final is None:
            raise SshFailure("broken", f"{target.host!r} cannot be a file's name")
        before = _seen(final)
        with _part(final) as (path, file):
            stream = _Stream(self.mark.encode(), file, self.limits.archive_bytes, target.address)
            status = self.ssh.stream(target, self.command, stream.feed)
            words = stream.end(status, self.log_dir)
            file.flush()
            logs = validated(self.attempt, target.host, "ssh", self.limits, path=path)
            if not logs.archive:
                raise SshFailure(logs.reason, logs.detail)
            if _seen(final) != before:  # the job's own gather has put its archive there meanwhile; it is newer than what was read: it wins
                how = "gathered" if target.host in gathered_hosts(self.attempt) else "ssh"
                return validated(self.attempt, target.host, how, self.limits)
            path.rename(final)
        return HostLogs(target.host, "ssh", logs.archive, logs.files, "", words)


def _seen(path: Path) -> tuple[int, int] | None:
    """Which file stands there now, None for none: archives are renamed into place, so another one is another inode or time."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


@contextlib.contextmanager
def _part(final: Path) -> Iterator[tuple[Path, IO[bytes]]]:
    """A fresh 0600 file beside `final`; removed at the end unless it was renamed."""
    path = final.with_name(f".{final.name}.{secrets.token_hex(4)}.part")
    try:
        file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb")
    except OSError as error:
        raise LocalFailure(f"{path}: {error.strerror}") from error
    try:
        with file:
            yield path, file
    finally:
        path.unlink(missing_ok=True)


class _Stream:
    """What a host prints: noise of its shell, begin line, gzip bytes, trailer."""

    def __init__(self, mark: bytes, file: IO[bytes], max_bytes: int, address: str) -> None:
        self.mark, self.file, self.left, self.address = mark, file, max_bytes, address
        self.max_bytes = max_bytes
        self.begun = self.none = False
        self.held = b""  # not yet known to be content

    def feed(self, data: bytes) -> None:
        """Take the next bytes. Raises SshFailure when there is no begin line or too much content, LocalFailure when the disk refuses."""
        self.held += data
        if not self.begun and not self._find_begin():
            return
        content, self.held = self.held[:-_TRAILER_MAX], self.held[-_TRAILER_MAX:]
        self._write(content)

    def _find_begin(self) -> bool:
        for word in (b" begin\n", b" none\n"):
            _, found, rest = self.held.partition(self.mark + word)
            if found:
                self.begun, self.none, self.held = True, word == b" none\n", rest
                return True
        if len(self.held) > _NOISE_MAX:
            raise SshFailure(
                "broken", f"{self.address}: its login shell printed {len(self.held)} bytes and no begin line: {self.held[:80]!r}"
            )
        return False

    def _write(self, content: bytes) -> None:
        self.left -= len(content)
        if self.left < 0:
            raise SshFailure("too-large", f"{self.address}: more than {self.max_bytes} bytes; logs.max_host_mib is the limit")
        try:
            self.file.write(content)
        except OSError as error:
            raise LocalFailure(f"{self.file.name}: {error.strerror}") from error

    def end(self, status: int, log_dir: str) -> str:
        """The end was reached: check the trailer. Returns what tar said on the way ("" when it said nothing)."""
        if not self.begun:
            seen = f"; it printed {self.held[:200]!r}" if self.held else ""
            raise SshFailure("broken", f"{self.address}: the command did not start (exit {status}){seen}")
        if self.none:
            raise SshFailure("no-logs", f"{self.address}: there is no folder {log_dir}")
        mark = re.escape(self.mark)
        found = re.search(rb"\n" + mark + rb" end (\d+):gz=(\d+)\n(.*)\n" + mark + rb" over\n\Z", self.held, re.DOTALL)
        if found is None or status != 0:
            raise SshFailure("broken", f"{self.address}: the stream ended before its trailer (exit {status})")
        tar_code, gzip_code = int(found[1]), int(found[2])
        words = found[3].decode(errors="replace").strip()
        if tar_code > 1 or gzip_code:  # tar 1: a file changed while it was read
            raise SshFailure("broken", f"{self.address}: tar ended with {tar_code}, gzip with {gzip_code}: {words}")
        self._write(self.held[: found.start()])
        return words
