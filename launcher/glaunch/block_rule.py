"""Which sets of nodes topology/block grants: those in one aggregated block of the size that the job needs, on few enough parts of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from glaunch.block_tree import runs
from glaunch.fabric import Fabric


@dataclass(frozen=True, slots=True)
class BlockRule:
    """What a job of some size must keep to: one run of `within` base blocks, and at most `most` runs of `part` base blocks in it."""

    within: int
    part: int
    most: int


def block_rule(fabric: Fabric, n: int) -> BlockRule | None:
    """The rule for n nodes; None where the fabric is no topology of blocks, or its block sizes are not known.

    **Source:** Slurm, eval_nodes_block and _get_block_level; sets that 24.11.5 took and refused, tried one by one.
    """
    if not fabric.blocks_alone or not fabric.block_sizes:
        return None
    base = min(fabric.block_sizes)
    lengths = [1, *runs(fabric.block_sizes, len(fabric.blocks))]
    needed = -(-n // base)
    part = max((length for length in lengths if 2 * length <= _power(needed)), default=1)
    within = next((length for length in lengths if length >= needed), len(fabric.blocks))
    return BlockRule(within, part, -(-n // (part * base)))


def _power(number: int) -> int:
    """The least power of two that is not below."""
    return 1 << (number - 1).bit_length()


def tops(fabric: Fabric, n: int | None) -> Mapping[str, str]:
    """Leaf → the highest switch below which a job of n nodes may lie together with nodes of that leaf: its island's root, as a rule.

    None: a job that no rule of blocks keeps together.
    """
    rule = None if n is None else block_rule(fabric, n)
    if rule is None:
        return {leaf: fabric.path_of_leaf(leaf)[-1] for leaf in fabric.leaves}
    found: dict[str, str] = {}
    names = [block.name for block in fabric.blocks]
    for start in range(0, len(names), rule.within):
        run = names[start : start + rule.within]
        last = fabric.path_of_leaf(run[-1])
        found.update(dict.fromkeys(run, next(name for name in fabric.path_of_leaf(run[0]) if name in last)))
    return found


def granted(fabric: Fabric, nodes: Iterable[str]) -> bool:
    """Whether Slurm gives a job these nodes together, were they all free; True wherever no rule of blocks is known."""
    chosen = tuple(dict.fromkeys(nodes))
    rule = block_rule(fabric, len(chosen))
    if rule is None:
        return True
    place = {block.name: number for number, block in enumerate(fabric.blocks)}
    used = {place[fabric.leaf_of[node]] for node in chosen if node in fabric.leaf_of}
    return len({number // rule.within for number in used}) <= 1 and len({number // rule.part for number in used}) <= rule.most
