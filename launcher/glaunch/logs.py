"""What came home from the nodes of a job."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file inside a host's archive; `name` is relative to the log folder on the node."""

    name: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class HostLogs:
    """What one host gave, or why it gave nothing: a missing host is data, not an exception."""

    host: str
    how: str
    """gathered (by the job's own step), ssh, or none."""
    archive: str
    """The archive's path below the attempt folder, `logs/HOST.tar.gz`; "" when there is none."""
    files: tuple[LogFile, ...]
    reason: str
    """"" when all is well; else one word: refused, auth, unknown-host-key, changed-host-key, unreachable, timeout, too-large, broken,
    no-logs, not-attempted."""
    detail: str
    """What was seen, for people."""
    where: str = ""
    """The manifest's line that says it, `manifest.jsonl:3`."""


@dataclass(frozen=True, slots=True)
class LogBundle:
    """All hosts of one attempt, in rank order."""

    attempt: str
    """The attempt folder's path."""
    hosts: tuple[HostLogs, ...]

    @property
    def missing(self) -> tuple[HostLogs, ...]:
        """The hosts without an archive."""
        return tuple(host for host in self.hosts if not host.archive)


@dataclass(frozen=True, slots=True)
class RankRow:
    """One line of ranks.tsv: where a rank really ran."""

    rank: int
    host: str
    local_rank: int
