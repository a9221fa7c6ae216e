"""Output of many ranks in one file, as `srun --label` writes it.

slurmstepd writes pieces of at most 1,024 bytes, each as a line of its own with its rank's label, so a long line comes in several pieces;
they are joined here again. A break in a line that was cut elsewhere (under load, one in a thousand) cannot be told from a real one.
**Source:** seen on Slurm 22.05.8; srun(1), --label.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

PIECE = 1024
_LABEL = re.compile(r" *(\d+): ")


@dataclass(frozen=True, slots=True)
class RankLine:
    """What one rank wrote in one line; `line` is the number of its first piece in the file. `rank` is None for a line without a label."""

    rank: int | None
    text: str
    line: int


def labelled(text: str) -> Iterator[RankLine]:
    """The lines of a labelled file, in the order in which they began."""
    open_lines: dict[int, tuple[int, list[str]]] = {}
    ready: dict[int, RankLine] = {}
    order: list[int] = []
    for number, line in enumerate(text.split("\n"), 1):
        label = _LABEL.match(line)
        if label is None:
            if line:
                order.append(number)
                ready[number] = RankLine(None, line, number)
            continue
        rank, piece = int(label[1]), line[label.end() :]
        start, pieces = open_lines.pop(rank, (number, []))
        if not pieces:
            order.append(start)
        pieces.append(piece)
        if len(piece.encode(errors="surrogateescape")) == PIECE:
            open_lines[rank] = (start, pieces)
        else:
            ready[start] = RankLine(rank, "".join(pieces), start)
    for rank, (start, pieces) in open_lines.items():
        ready[start] = RankLine(rank, "".join(pieces), start)
    yield from (ready[start] for start in order)


def tail_of(text: str, rank: int, count: int) -> tuple[RankLine, ...]:
    """The last `count` lines of one rank."""
    return tuple(line for line in labelled(text) if line.rank == rank)[-count:]
