"""What topology/block takes: when a job asks for segments, and when a list of nodes beside them or without them is not refused."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from glaunch.block_rule import granted
from glaunch.errors import NeverFits
from glaunch.fabric import Fabric
from glaunch.placement.objective import Groups
from glaunch.placement.placement import Placement
from glaunch.request import Request
from glaunch.slurm_versions import LARGE_SEGMENTS, LISTS_SEGMENTS, SEGMENTS, version_text
from glaunch.units import plural


@dataclass(frozen=True, slots=True)
class Segment:
    """So many nodes a segment (0: none is asked for), and why."""

    size: int = 0
    why: str = ""


NO_SEGMENT = Segment()


def in_blocks(slurm: Fabric) -> bool:
    """Whether Slurm places by topology/block there. With a topology.yaml TopologyPlugin says nothing about it (tried on 26.05.5)."""
    return slurm.blocks_alone


def takes_segments(slurm: Fabric, version: Sequence[int]) -> bool:
    """Whether --segment means something: elsewhere sbatch takes it, and nothing comes of it."""
    return in_blocks(slurm) and SEGMENTS.there(version)


def largest_segment(slurm: Fabric, version: Sequence[int]) -> int:
    """The nodes of the largest segment that Slurm takes: before LARGE_SEGMENTS those of a base block, also where a block has more."""
    if LARGE_SEGMENTS.there(version):
        return len(slurm.nodes)
    return min(slurm.block_sizes, default=max((len(block.nodes) for block in slurm.blocks), default=0))


def segment_too_large(request: Request, slurm: Fabric, version: Sequence[int]) -> NeverFits | None:
    """The error for a segment that no block can hold: Slurm refuses such a job."""
    most = largest_segment(slurm, version)
    if request.segment is None or request.segment <= most or not takes_segments(slurm, version):
        return None
    fitting = next((size for size in range(most, 0, -1) if request.segment % size == 0), 1)
    return NeverFits(
        f"--segment {request.segment}: a segment lies in one base block, which has {plural(most, 'node')}; "
        f"from {LARGE_SEGMENTS.span} on it may be larger (here {version_text(version)})",
        hint=f"--segment {fitting}, or leave it out; to let Slurm say no itself: --force",
    )


def segment_of(request: Request, groups: Groups, seen: Placement | None, slurm: Fabric, version: Sequence[int]) -> Segment:
    """The segment to ask for: the user's own; else that of the groups that should stay in a block, where the set `seen` has them whole."""
    if not takes_segments(slurm, version):
        return NO_SEGMENT
    if request.segment is not None:
        return Segment(request.segment)
    if 1 < groups.leaf <= largest_segment(slurm, version) and seen is not None and not seen.cost.leaf_splits:
        return Segment(groups.leaf, "groups of so many nodes stay in one block each")
    return NO_SEGMENT


def list_refused(slurm: Fabric, nodes: Sequence[str], more: Sequence[str], segment: int, version: Sequence[int]) -> str:
    """Why topology/block refuses a list of these nodes (and `more`, as spares); "" where it takes it, and under other topologies.

    **Source:** tried on 24.11.5 and 26.05.5: without segments the nodes must be a set that Slurm itself would give (`block_rule`); of a
    list with spares it must be able to choose one. With segments, 24.11 refuses a list of exactly the job's nodes unless they are one
    segment ("Requested topology configuration is not available"); 26.05 takes it where each block gives whole segments.
    """
    if not in_blocks(slurm):
        return ""
    in_block = Counter(slurm.block_of.get(node, "") for node in nodes)
    if len(in_block) == 1 and "" not in in_block and segment in {0, len(nodes)}:
        return ""
    if "" in in_block:
        return "some of the best free nodes are in no block, and topology/block takes no list with them"
    if not segment:
        known = bool(slurm.block_sizes) and granted(slurm, nodes)
        return "" if known else "topology/block takes no list of nodes across these blocks"
    if any(count % segment for count in in_block.values()):
        return f"the best free set has no whole segments of {segment} nodes"
    if more or LISTS_SEGMENTS.there(version):
        return ""
    return f"beside --segment this Slurm takes no list of nodes (25.11 and later do; here {version_text(version)})"


def segment_that_fits(slurm: Fabric, free: Sequence[str], n: int, version: Sequence[int]) -> int:
    """The largest segment in which n of the free nodes start at once; 0 where none does."""
    counts = Counter(slurm.block_of[node] for node in free if node in slurm.block_of)
    most = min(max(counts.values(), default=0), largest_segment(slurm, version))
    fitting = (size for size in range(min(n, most), 0, -1) if n % size == 0 and sum(count // size for count in counts.values()) * size >= n)
    return next(fitting, 0)
