"""A model of topograph's: switches and what is below them, and the capacity blocks on their leaves. (What it writes for Slurm is plain
topology.conf or topology.yaml and read as such.)

**Source:** NVIDIA topograph, tests/models (the YAML that its providers simulate and its API takes).
"""

from collections import defaultdict
from dataclasses import replace

from glaunch.errors import ParseError
from glaunch.fabric import Block, Fabric
from glaunch.parsers.slurm_topology import SwitchLine, join_lines
from glaunch.parsers.strict_yaml import Items, Node
from glaunch.parsers.yaml_shapes import at, hostlist, items, read_yaml, scalar, table

DOMAIN = "accelerator.topology.test/domain"
"""The annotation that names the NVLink domain of a block's nodes."""


def parse_topograph_model(text: str, *, where: str) -> Fabric:
    """The tree of `switches`, the nodes of `blocks` on their leaves, and the domains as blocks. Labels are left out.

    Raises ParseError with FILE:LINE for what is no such YAML and for what makes no tree.
    """
    root = table(read_yaml(text, where=where), where, "a model", ("switches", "blocks"))
    below: dict[str, tuple[str, tuple[str, ...]]] = {}
    switches = table(root["switches"], where, "switches: NAME: …") if "switches" in root else {}
    for name, node in switches.items():
        entry = table(node, where, f"switch {name}", ("labels", "switches", "annotations"))
        children = items(entry["switches"], where, "switches: a list") if "switches" in entry else ()
        below[name] = (at(node, where), tuple(scalar(child, where, "a switch") for child in children))
    nodes: dict[str, list[str]] = defaultdict(list)
    domains: dict[str, list[str]] = defaultdict(list)
    seen: dict[str, str] = {}
    for node in items(root.get("blocks"), where, "blocks: a list"):
        entry = table(node, where, "a block", ("switch", "nodes", "labels", "annotations"))
        leaf = scalar(entry.get("switch"), where, "switch: NAME")
        own = _nodes(entry.get("nodes"), where)
        nodes[leaf].extend(own)
        seen.setdefault(leaf, at(node, where))
        annotations = table(entry["annotations"], where, "annotations") if "annotations" in entry else {}
        if DOMAIN in annotations:
            domain = scalar(annotations[DOMAIN], where, "a domain")
            domains[domain].extend(own)
            seen.setdefault(f"block {domain}", at(node, where))
    return replace(
        join_lines(_lines(below, nodes, seen), where),
        blocks=tuple(Block(name, tuple(own), seen[f"block {name}"]) for name, own in domains.items()),
    )


def _nodes(node: Node | None, where: str) -> tuple[str, ...]:
    if not isinstance(node, Items):
        return hostlist(node, where, "nodes: a list of hostlists")
    return tuple(name for one in node.items for name in hostlist(one, where, "a hostlist"))


def _lines(below: dict[str, tuple[str, tuple[str, ...]]], nodes: dict[str, list[str]], seen: dict[str, str]) -> list[SwitchLine]:
    lines = []
    for name, (here, children) in below.items():
        if children and nodes.get(name):
            raise ParseError(here, name, "either switches or nodes below a switch")
        lines.append(SwitchLine(here, name, tuple(nodes.get(name, ())), children or None))
    # A leaf has no entry of its own: it is named where it hangs, and where its nodes are.
    named = dict.fromkeys([*(child for _, children in below.values() for child in children), *nodes])
    lines += [SwitchLine(seen.get(name, ""), name, tuple(nodes.get(name, ())), None) for name in named if name not in below]
    return lines
