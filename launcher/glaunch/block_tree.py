"""The tree that a topology of blocks amounts to: Slurm counts all blocks as one network, nearer within an aggregated block."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from glaunch.hostlist import fold

ROOT = "blocks"
"""What stands above all blocks where no aggregated one holds them all."""


def parents_of_blocks(names: Sequence[str], sizes: Sequence[int]) -> Mapping[str, str | None]:
    """Block → the smallest aggregated block that holds it, that one → the next, up to one root; in this order, blocks first.

    `names` in Slurm's order (an aggregated block is a run of them that begins at a multiple of its length), `sizes` the nodes of the base
    block and of the aggregated ones; a size that is no base times a power of two counts for nothing. One block alone has nothing above it.
    **Source:** Slurm, topology/block, block_record_validate (which runs become aggregated blocks) and eval_nodes_block (a job larger than
    every aggregated block takes all blocks as one); answers of 24.11 and 26.05.
    """
    parents: dict[str, str | None] = dict.fromkeys(names)
    if len(names) < 2:
        return MappingProxyType(parents)
    tops = list(names)
    shorter = 1
    for length in runs(sizes, len(names)):
        for start in range(0, len(names), length):
            run = names[start : start + length]
            if len(run) <= shorter:
                continue  # the last ones: an aggregated block of the size before holds them already
            above = _fresh(fold(run), parents)
            parents[above] = None
            for place in range(start, start + len(run)):
                parents[tops[place]] = above
                tops[place] = above
        shorter = length
    loose = dict.fromkeys(tops)
    if len(loose) > 1:
        root = _fresh(ROOT, parents)
        parents.update(dict.fromkeys(loose, root))
        parents[root] = None
    return MappingProxyType(parents)


def runs(sizes: Sequence[int], count: int) -> list[int]:
    """How many base blocks make an aggregated one, the shortest first; the last is the first that holds all of `count` blocks."""
    base = min(sizes, default=0)
    lengths = sorted({size // base for size in sizes if size % base == 0 and (size // base).bit_count() == 1} - {1})
    last = next((place for place, length in enumerate(lengths) if length >= count), len(lengths))
    return lengths[: last + 1]


def _fresh(name: str, taken: Mapping[str, object]) -> str:
    return next(one for one in (name, *(f"{name}.{number}" for number in range(2, len(taken) + 3))) if one not in taken)
