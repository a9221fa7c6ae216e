"""What the texts of scontrol, squeue and sacct have in common: `KEY=VALUE` fields, lists, numbers, moments, exit codes."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone

from glaunch.errors import ParseError
from glaunch.units import UNLIMITED, parse_time_s

NOTHING = frozenset({"", "(null)", "N/A", "None", "NONE", "n/a", "Unknown"})
"""What Slurm prints for "not set"."""


_FACTOR = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}


def fields(line: str, keys: Iterable[str]) -> Mapping[str, str]:
    """The wanted `KEY=VALUE` fields of a line whose values have no blanks; the first of each key counts, others are not looked at.

    A free text (a reason, a comment, a name) must be cut off first: it can hold anything, `State=IDLE` too. (Ten thousand lines of
    `show node` are read at each launch: `find` for a dozen keys takes a quarter of what one regular expression for all takes.)
    """
    found: dict[str, str] = {}
    line = f" {line} "
    for key in keys:
        start = line.find(f" {key}=")
        if start >= 0:
            start += len(key) + 2
            found[key] = line[start : line.find(" ", start)]
    return found


def text_of(value: str) -> str:
    """The value, or "" where Slurm prints one of its words for "not set"."""
    return "" if value in NOTHING else value


def listed(value: str) -> tuple[str, ...]:
    """The words of `a,b`; empty for `ALL` and for "not set"."""
    return () if value in NOTHING or value == "ALL" else tuple(word for word in value.split(",") if word)


def count_or_none(value: str, where: str) -> int | None:
    """A whole number; None for UNLIMITED and for "not set". `2-4` (a range of nodes) gives its low end, `12K` counts by 1024."""
    if value in NOTHING or value == UNLIMITED:
        return None
    match = re.fullmatch(r"(\d+)(?:-\d+)?([KMG]?)", value)
    if not match:
        raise ParseError(where, value, "a number")
    return int(match[1]) * _FACTOR[match[2]]


def moment_s(value: str, where: str) -> int | None:
    """Seconds since the epoch; None for "not set". A moment in words (`2026-11-30T09:02:38`) is read as UTC.

    The gateway asks with SLURM_TIME_FORMAT=%s, which scontrol, squeue and sacct obey (tried on 22.05), so words are met only in texts
    that somebody recorded without it, where the zone is not known.
    """
    if value in NOTHING:
        return None
    if value.isascii() and value.isdigit():
        return int(value)
    try:
        return int(datetime.strptime(value, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc).timestamp())
    except ValueError as wrong:
        raise ParseError(where, value, "a moment (seconds since the epoch)") from wrong


def limit_s(value: str, where: str) -> int | None:
    """Seconds of a time limit; None for no limit and for "not set" (`Partition_Limit` too)."""
    if value in NOTHING or value in {UNLIMITED, "INFINITE", "Partition_Limit", "NOT_SET", "INVALID"}:
        return None
    if not re.fullmatch(r"[\d:-]+", value):
        raise ParseError(where, value, "a time limit")
    return parse_time_s(value)


def exit_of(value: str, where: str) -> tuple[int, int]:
    """(exit code, signal) of `7:0`; (0, 0) for "not set"."""
    if value in NOTHING:
        return 0, 0
    match = re.fullmatch(r"(\d+):(\d+)", value)
    if not match:
        raise ParseError(where, value, "an exit code such as 7:0")
    return int(match[1]), int(match[2])
