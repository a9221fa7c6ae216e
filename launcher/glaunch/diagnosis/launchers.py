"""What torchrun and mpirun say of the rank that failed first: srun knows their own processes only, not the ranks that they started."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from glaunch.diagnosis.facts import JobFacts, TextFile

AGENTS = frozenset({"torchrun", "accelerate"})
"""Forms in which a task of srun is a node's agent."""

_TORCH = re.compile(r"^ *rank *: (?P<rank>\d+) \(local_rank: \d+\)$")
_TORCH_CODE = re.compile(r"^ *exitcode *: (?P<code>-?\d+) \(pid: \d+\)")
_MPI = re.compile(r"^ *Process name: \[(?:\[\d+,\d+\]|[^\s@]+@\d+),(?P<rank>\d+)\]$")
_MPI_CODE = re.compile(r"^ *Exit code: +(?P<code>\d+)$")
_MPI_SIGNAL = re.compile(r"^(?:mpirun|prterun) noticed that process rank (?P<rank>\d+) .*exited on\s+signal (?P<signal>\d+)")


@dataclass(frozen=True, slots=True)
class RankFailure:
    """A rank that failed by itself; `code` as a shell says it: 128 + signal."""

    rank: int
    code: int
    where: str
    line: str


def failed_rank(facts: JobFacts) -> RankFailure | None:
    """The first failure that the starter of the ranks names in the outputs at hand.

    **Source:** torch.distributed.elastic.multiprocessing.errors (ChildFailedError.format_msg), seen on 1.13, 2.14; Open MPI's help texts,
    seen on 4.1.4 and 6.0.0rc2.
    """
    if facts.form in AGENTS:
        return next((found for output in facts.outputs for found in _pairs(_after(output, "Root Cause"), _TORCH, _TORCH_CODE)), None)
    if facts.form != "mpi":
        return None
    for output in facts.outputs:
        for where, line in output.lines():
            if match := _MPI_SIGNAL.match(line):
                return RankFailure(int(match["rank"]), 128 + int(match["signal"]), where, line)
        for found in _pairs(output.lines(), _MPI, _MPI_CODE):
            return found
    return None


def _after(output: TextFile, words: str) -> Iterator[tuple[str, str]]:
    seen = False
    for where, line in output.lines():
        seen = seen or line.startswith(words)
        if seen:
            yield where, line


def _pairs(lines: Iterator[tuple[str, str]], rank: re.Pattern[str], code: re.Pattern[str]) -> Iterator[RankFailure]:
    """Each line with a rank, with the exit code that is named after it."""
    who: int | None = None
    for where, line in lines:
        if match := rank.match(line):
            who = int(match["rank"])
        elif who is not None and (match := code.match(line)):
            number = int(match["code"])
            yield RankFailure(who, number if number >= 0 else 128 - number, where, line)
            who = None
