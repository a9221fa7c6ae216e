"""The switches of a sandbox: a shape, or a file as Slurm reads it; the file that Slurm gets, and the plugin that reads it."""

from dataclasses import dataclass, replace
from pathlib import Path

from glaunch.errors import UsageError
from glaunch.fabric import Block, Fabric, synthetic
from glaunch.parsers.slurm_topology import parse_topology_conf
from glaunch.parsers.topology_source import recognise
from glaunch.parsers.topology_yaml import parse_topology_yaml
from glaunch.sandbox.options import SandboxOptions
from glaunch.writers.slurm_topology import write_blocks, write_tree

BLOCK = "block"
"""The last switches of a shape, so called, are the blocks of topology/block."""


@dataclass(frozen=True, slots=True)
class Switches:
    """What joins the nodes, and how Slurm is told."""

    fabric: Fabric
    """What the network is made like."""
    file: str
    """topology.conf or topology.yaml."""
    text: str
    plugin: str


def switches_of(options: SandboxOptions, default_shape: str) -> Switches:
    """What the options ask for; raises UsageError for what is no shape, and what parsing the file raises."""
    if options.topology is None:
        shape = options.shape or default_shape
        fabric = synthetic(shape, options.nodes)
        if shape.split()[-2].partition(":")[0] == BLOCK:
            return _blocks(fabric, int(shape.split()[-1].partition(":")[2]))
        return Switches(fabric, "topology.conf", write_tree(fabric), "topology/tree")
    where = str(options.topology)
    text = read(options.topology, "--topology")
    if recognise(text) == "topology.yaml":
        topologies = sorted(parse_topology_yaml(text, where=where), key=lambda one: (-len(one.fabric.nodes), not one.default))
        return Switches(topologies[0].fabric, "topology.yaml", text, "topology/flat")
    plugin = "topology/block" if "blockname" in text.lower() else "topology/tree"
    return Switches(parse_topology_conf(text, where=where), "topology.conf", text, plugin)


def _blocks(fabric: Fabric, base: int) -> Switches:
    """The leaves as blocks, and as aggregated blocks two of them, four of them …, as long as there are so many."""
    leaves = [fabric.by_name[leaf] for leaf in fabric.leaves]
    blocks = tuple(Block(leaf.name, leaf.nodes) for leaf in leaves)
    sizes = tuple(base << power for power in range(16) if (1 << power) <= max(1, len(leaves) // 2))
    return Switches(fabric, "topology.conf", write_blocks(replace(fabric, blocks=blocks, block_sizes=sizes)), "topology/block")


def read(path: Path, option: str) -> str:
    """The text of a file that an option names; raises UsageError where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise UsageError(f"{option} {path}: {fault}") from None
