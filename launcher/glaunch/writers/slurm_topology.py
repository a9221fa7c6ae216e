"""A fabric as Slurm's topology.conf (tree or block) and topology.yaml, and what each of them cannot say.

**Source:** topology.conf(5), topology.yaml(5).
"""

import json
import re
from collections.abc import Iterator

from glaunch.errors import UsageError
from glaunch.fabric import Fabric
from glaunch.hostlist import fold

MAX_NAME = 63
"""Letters of a switch's name; Slurm 25.11 and later refuse more."""

_UNWRITABLE = re.compile(r"[\"#\\\x00-\x1f]")


def write_tree(fabric: Fabric) -> str:
    """The fabric as topology.conf for TopologyPlugin=topology/tree: a line a switch, in the fabric's own order.

    Read back by `parsers.slurm_topology.parse_topology_conf` it is the same fabric but for what `unsaid` names.
    A leaf without nodes is written without `Nodes=`, which Slurm takes from 25.05 on.
    Raises UsageError for a switch name that the format cannot carry (quotes, `#`, backslash, control characters, one that Slurm would
    read as several).
    """
    below: dict[str, list[str]] = {}
    for switch in fabric.switches:
        if switch.parent is not None:
            below.setdefault(switch.parent, []).append(switch.name)
    lines = []
    for switch in fabric.switches:
        words = [f"SwitchName={_quoted(switch.name)}"]
        if switch.name in below:
            words.append(f"Switches={fold(_as_child(name) for name in below[switch.name])}")
        elif switch.nodes:
            words.append(f"Nodes={fold(switch.nodes)}")
        lines.append(" ".join(words))
    return "".join(f"{line}\n" for line in lines)


def write_blocks(fabric: Fabric) -> str:
    """The blocks as topology.conf for TopologyPlugin=topology/block; `BlockSizes` where they are known.

    Raises UsageError where no block is known, and for a name that the format cannot carry.
    """
    if not fabric.blocks:
        raise UsageError("no blocks are known of this fabric", hint="nvidia-smi -q of each node says them: glaunch topo import --help")
    lines = [" ".join([f"BlockName={_quoted(one.name)}", *([f"Nodes={fold(one.nodes)}"] if one.nodes else [])]) for one in fabric.blocks]
    if fabric.block_sizes:
        lines.append(f"BlockSizes={','.join(map(str, fabric.block_sizes))}")
    return "".join(f"{line}\n" for line in lines)


def write_yaml(fabric: Fabric) -> str:
    """The fabric as topology.yaml (Slurm 25.05 and later): the tree as `fabric`, the blocks as `blocks`; the first is the default.

    Raises UsageError for a fabric without either, and for a child's name that a hostlist cannot carry.
    """
    topologies = [] if fabric.blocks_alone or not fabric.switches else [("fabric", _yaml_tree(fabric))]
    if fabric.blocks:
        topologies.append(("blocks", _yaml_blocks(fabric)))
    if not topologies:
        raise UsageError("no switch and no block is known: there is nothing to write")
    lines: list[str] = []
    for name, body in topologies:
        lines += [f"- topology: {name}", f"  cluster_default: {'false' if lines else 'true'}", *body]
    return "".join(f"{line}\n" for line in lines)


def _yaml_tree(fabric: Fabric) -> Iterator[str]:
    below: dict[str, list[str]] = {}
    for switch in fabric.switches:
        if switch.parent is not None:
            below.setdefault(switch.parent, []).append(switch.name)
    yield from ("  tree:", "    switches:")
    for switch in fabric.switches:
        yield f"      - switch: {json.dumps(switch.name, ensure_ascii=False)}"
        if switch.name in below:
            yield f"        children: {json.dumps(fold(map(_as_child, below[switch.name])), ensure_ascii=False)}"
        elif switch.nodes:
            yield f"        nodes: {json.dumps(fold(switch.nodes), ensure_ascii=False)}"


def _yaml_blocks(fabric: Fabric) -> Iterator[str]:
    yield "  block:"
    if fabric.block_sizes:
        yield "    block_sizes:"
        yield from (f"      - {size}" for size in fabric.block_sizes)
    yield "    blocks:"
    for block in fabric.blocks:
        yield f"      - block: {json.dumps(block.name, ensure_ascii=False)}"
        if block.nodes:
            yield f"        nodes: {json.dumps(fold(block.nodes), ensure_ascii=False)}"


def unsaid(fabric: Fabric, form: str) -> tuple[str, ...]:
    """What the form (`slurm-tree`, `slurm-block`, `slurm-yaml`) leaves out of this fabric, one line a kind of fact."""
    return tuple(_unsaid(fabric, form))


def _unsaid(fabric: Fabric, form: str) -> Iterator[str]:
    if form == "slurm-block" and not fabric.blocks_alone and fabric.switches:
        yield f"{_count(len(fabric.switches), 'switch', 'switches')} and how they join the blocks"
    if form == "slurm-tree" and fabric.blocks:
        yield f"{_count(len(fabric.blocks), 'block', 'blocks')} of nodes (NVLink domains): --format slurm-block or slurm-yaml says them"
    if form != "slurm-block":
        several = [switch for switch in fabric.switches if switch.members]
        if several:
            stands = f"{several[0].name} stands for {len(several[0].members)}"
            yield f"which switches {_count(len(several), 'name stands', 'names stand')} for, rails among them ({stands})"
        virtual = [switch.name for switch in fabric.switches if switch.virtual]
        if virtual:
            yield f"that no switch stands at {', '.join(virtual[:3])}{' …' if len(virtual) > 3 else ''}: what is below is cabled directly"
        if fabric.flat:
            yield "that the one switch is made up, since no topology is known"
        long = [switch.name for switch in fabric.switches if len(switch.name) > MAX_NAME]
        if long:
            yield f"(it is said, but) Slurm 25.11 and later refuse names of more than {MAX_NAME} letters: {long[0]}"
    if fabric.network is not None and fabric.network.links:
        yield f"{_count(len(fabric.network.links), 'link', 'links')}: ports, widths, rates, GUIDs and rails"
    if fabric.disputes:
        yield f"{_count(len(fabric.disputes), 'fact', 'facts')} that the sources do not agree on"


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def _quoted(name: str) -> str:
    if _UNWRITABLE.search(name) or not name:
        raise UsageError(f"topology.conf cannot carry a switch called {name!r}")
    return f'"{name}"' if re.search(r"\s", name) else name


def _as_child(name: str) -> str:
    # A child stands in a hostlist, where these letters mean something.
    if re.search(r"[\s,\[{]", name):
        raise UsageError(f"topology.conf cannot name {name!r} as a child: Slurm reads it as a hostlist")
    return name
