"""Blocks: sizes that Slurm will refuse."""

from collections.abc import Iterator

from glaunch.diagnosis.finding import Finding
from glaunch.doctor.checkup import Checkup
from glaunch.fabric import Block, Fabric
from glaunch.slurm_versions import UNFILLED_BLOCKS
from glaunch.units import plural

MAX_DOUBLINGS = 15
"""**Source:** topology.conf(5), BlockSizes: every size is the base one times a power of two; topology/block takes 2^15 at most."""


def block_findings(checkup: Checkup) -> Iterator[Finding]:
    """GL433 (refused)."""
    known = None if checkup.cluster is None else frozenset(checkup.cluster.nodes.names)
    version = () if checkup.cluster is None else checkup.cluster.slurm_version
    for fabric in checkup.written:
        if fabric.block_sizes:
            yield from _sizes(checkup, fabric)
            if version and not UNFILLED_BLOCKS.there(version):  # of an unknown one nothing is said
                yield from _small(checkup, fabric, known)


def _sizes(checkup: Checkup, fabric: Fabric) -> Iterator[Finding]:
    base, *others = fabric.block_sizes
    allowed = {base << doublings for doublings in range(MAX_DOUBLINGS + 1)}
    bad = [size for size in others if size not in allowed]
    falling = any(low >= high for low, high in zip(fabric.block_sizes, fabric.block_sizes[1:], strict=False))
    if bad or falling:
        sizes = ",".join(map(str, fabric.block_sizes))
        what = f"{bad[0]} is not {base} times a power of two" if bad else "they do not rise"
        where = _sizes_line(checkup, fabric)
        good = ",".join(str(base << doublings) for doublings in range(len(fabric.block_sizes)))
        yield checkup.finding(
            "GL433", "error", f"Slurm refuses these block sizes: {what}", where, f"BlockSizes={sizes}", f"such as BlockSizes={good}"
        )


def _sizes_line(checkup: Checkup, fabric: Fabric) -> str:
    lines = checkup.texts.get(fabric.source, ())
    number = next((number for number, line in enumerate(lines, 1) if line.lstrip().lower().startswith(("blocksizes", "block_sizes"))), 0)
    return f"{fabric.source}:{number}" if number else fabric.source


def _small(checkup: Checkup, fabric: Fabric, known: frozenset[str] | None) -> Iterator[Finding]:
    base = fabric.block_sizes[0]
    for block in fabric.blocks:
        there = _there(block, known)
        if there < base:
            yield checkup.finding(
                "GL433",
                "error",
                f"block {block.name} has {plural(there, 'node')}, fewer than the base block of {base}: "
                "before Slurm 25.05 slurmctld does not start",
                block.where or fabric.source,
                f"{block.name}: {there}",
                f"BlockSizes={there or 1}, or take the block out",
            )


def _there(block: Block, known: frozenset[str] | None) -> int:
    return sum(known is None or node in known for node in block.nodes)
