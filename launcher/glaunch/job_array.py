"""An array of jobs as it was asked for (`1,5,9-2000:3%10`), and its parts where it is larger than one job of this Slurm may be."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from glaunch.cluster import parameters
from glaunch.errors import UsageError

MAX_PARTS = 100
"""Each part is a submission: an array that would be more of them is most likely a slip."""
_RUN = re.compile(r"(\d{1,10})(?:-(\d{1,10})(?::(\d{1,10}))?)?")
_HINT = "indexes as sbatch takes them: -a 0-9, -a 1,5,9-20:3, at most four at once: -a 0-99%4"


@dataclass(frozen=True, slots=True)
class JobArray:
    """The indexes that a user asked for, and how many of them may run at once (None: all)."""

    runs: tuple[range, ...]
    """As they were written: `9-2000:3` is one."""
    cap: int | None = None

    @property
    def lowest(self) -> int:
        """The lowest index."""
        return min(run[0] for run in self.runs)

    @property
    def highest(self) -> int:
        """The highest index."""
        return max(run[-1] for run in self.runs)

    @property
    def count(self) -> int:
        """How many tasks; an index that is named twice is one."""
        ordered = sorted(self.runs, key=lambda run: run[0])
        if all(one[-1] < other[0] for one, other in pairwise(ordered)):
            return sum(map(len, ordered))
        return len({index for run in self.runs for index in run})

    @property
    def step(self) -> int:
        """What Slurm calls the array's step: the last that was written, else 1. **Source:** tried on 22.05 (`1,5,8-10:2` has 2)."""
        return next((run.step for run in reversed(self.runs) if run.step > 1), 1)


@dataclass(frozen=True, slots=True)
class ArrayPart:
    """One submission of an array that is several."""

    indexes: str
    """As sbatch takes them, below MaxArraySize: `0-999%50`."""
    offset: int
    """What is to be added to Slurm's index for the one that was asked for."""
    tasks: str
    """The indexes that were asked for: `1000-1999`."""


def parse_array(text: str) -> JobArray:
    """The value of --array. Raises UsageError. **Source:** sbatch(1), --array."""
    words, percent, cap = text.partition("%")
    if percent and not (cap.isascii() and cap.isdigit() and int(cap)):
        raise UsageError(f"--array {text!r}: no number of tasks that may run at once stands behind the %", hint=_HINT)
    runs = tuple(_run(word, text) for word in words.split(","))
    return JobArray(runs, int(cap) if percent else None)


def _run(word: str, text: str) -> range:
    match = _RUN.fullmatch(word)
    if match is None:
        raise UsageError(f"--array {text!r}: {word!r} is no index and no range of indexes", hint=_HINT)
    first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
    if last < first or step < 1:
        raise UsageError(f"--array {text!r}: {word!r} holds no index", hint=_HINT)
    return range(first, last + 1, step)


def limits_of(config: Mapping[str, str]) -> tuple[int | None, int | None]:
    """(MaxArraySize, max_array_tasks) of `scontrol show config`; None where it is not said. **Source:** slurm.conf(5)."""
    size, tasks = config.get("MaxArraySize", ""), parameters(config, "SchedulerParameters").get("max_array_tasks", "")
    return _number(size), _number(tasks)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None


def split(array: JobArray, max_size: int | None, max_tasks: int | None = None) -> tuple[ArrayPart, ...]:
    """The parts of an array, in order; () where it is one job as it stands.

    No index of Slurm's may reach `max_size` (MaxArraySize), and no part may hold more than `max_tasks`. Parts begin at round indexes: with
    Slurm's usual 1001, task 2345 is index 345 of the third part. Raises UsageError for what would be too many submissions.
    """
    if max_size is None or (array.highest < max_size and (max_tasks is None or array.count <= max_tasks)):
        return ()
    span = max_size - 1 if max_tasks is None else min(max_size - 1, max_tasks)
    if span < 1:
        raise UsageError(f"this Slurm takes no job arrays (MaxArraySize={max_size})", hint="leave --array out")
    base = min(array.lowest, 1)
    numbers: set[int] = set()
    for run in array.runs:
        numbers.update(_numbers(run, base, span) if len(numbers) <= MAX_PARTS else ())
    if len(numbers) > MAX_PARTS:
        raise UsageError(
            f"--array {_words(array.runs, 0)} would be more than {MAX_PARTS} submissions of at most {span} tasks (MaxArraySize={max_size})",
            hint="give each task more to do, or launch it in pieces",
        )
    cap = "" if array.cap is None else f"%{array.cap}"
    return tuple(
        ArrayPart(_words(runs, -number * span) + cap, number * span, _words(runs, 0))
        for number in sorted(numbers)
        if (runs := _within(array, base + number * span, base + (number + 1) * span))
    )


def _numbers(run: range, base: int, span: int) -> Iterable[int]:
    """The numbers of the parts that a run of indexes lies in; of very many, some more than there may be."""
    if run.step > span:
        return [(index - base) // span for index in run[: MAX_PARTS + 1]]
    first, last = (run[0] - base) // span, (run[-1] - base) // span
    return range(first, min(last, first + MAX_PARTS) + 1)


def _within(array: JobArray, low: int, high: int) -> tuple[range, ...]:
    """The array's indexes from `low` up to, and without, `high`."""
    cut = []
    for run in array.runs:
        skipped = max(0, -(-(low - run[0]) // run.step))
        piece = range(run[0] + skipped * run.step, min(run[-1] + 1, high), run.step)
        if piece:
            cut.append(piece)
    return tuple(cut)


def _words(runs: tuple[range, ...], shift: int) -> str:
    def word(run: range) -> str:
        first, last = run[0] + shift, run[-1] + shift
        if first == last:
            return str(first)
        return f"{first}-{last}" + (f":{run.step}" if run.step > 1 else "")

    return ",".join(map(word, runs))
