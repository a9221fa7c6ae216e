"""Times, sizes and counts as Slurm and people write them, and as numbers with the unit in the name."""

import re

from glaunch.errors import UsageError

UNLIMITED = "UNLIMITED"
MIB = 1 << 20
"""Bytes."""


def parse_time_s(text: str, what: str = "") -> int | None:
    """Seconds of a Slurm time, `what` says whose (`-t`); None for no limit (`UNLIMITED`, `INFINITE`, `NONE`, `-1`).

    Forms: `minutes`, `minutes:seconds`, `hours:minutes:seconds`, `days-hours`, `days-hours:minutes`, `days-hours:minutes:seconds`.
    Raises UsageError on anything else.
    **Source:** sbatch(1), `--time`.
    """
    word = text.strip()
    if word.upper() in {UNLIMITED, "INFINITE", "NONE", "-1"}:
        return None
    match = re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", word)
    if not match:
        raise UsageError(
            f"{what} {text!r} is no time".lstrip(), hint="write it as Slurm does: 90 (minutes), 1:30:00, 2-12 (days-hours), 2-12:30:00"
        )
    days, first, second, third = (None if group is None else int(group) for group in match.groups())
    if days is not None:
        return days * 86400 + (first or 0) * 3600 + (second or 0) * 60 + (third or 0)
    if third is not None:
        return (first or 0) * 3600 + (second or 0) * 60 + third
    return (first or 0) * 60 + (second or 0)


def format_time(time_s: int | None) -> str:
    """Slurm's own spelling, `[D-]HH:MM:SS`; `UNLIMITED` for None."""
    if time_s is None:
        return UNLIMITED
    days, rest = divmod(time_s, 86400)
    hours, rest = divmod(rest, 3600)
    minutes, seconds = divmod(rest, 60)
    clock = f"{hours:02d}:{minutes:02d}:{seconds:02d}"
    return f"{days}-{clock}" if days else clock


def format_span(time_s: float) -> str:
    """A span for people: `8 s`, `4 min`, `2 h 5 min`, `3 d 4 h`."""
    seconds = round(time_s)
    if seconds < 60:
        return f"{seconds} s"
    minutes, _ = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def parse_memory_mib(text: str, what: str = "") -> int:
    """MiB of a Slurm memory size, `what` says whose (`--mem`).

    A bare number is MiB, suffixes K, M, G, T (with or without B, i) are powers of 1024.

    Raises UsageError on anything else. **Source:** sbatch(1), `--mem`.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGTP]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if not match:
        raise UsageError(f"{what} {text!r} is no memory size".lstrip(), hint="write it as Slurm does: 4000 (MiB), 64G, 1T")
    power = {"K": -1, "": 0, "M": 0, "G": 1, "T": 2, "P": 3}[match[2].upper()]
    return int(float(match[1]) * 1024.0**power)


def format_size(size_bytes: int) -> str:
    """A size for people: `512 B`, `1.5 KiB`, `20 MiB`."""
    size = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 10 else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def plural(count: int, word: str, words: str = "") -> str:
    """`1 leaf`, `2 leaves`."""
    return f"{count} {word if count == 1 else words or word + 's'}"
