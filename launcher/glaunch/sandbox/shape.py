"""The switches of a sandbox: from one line (`core:1 spine:2 leaf:4 node:2`), from a topology.conf, or by default three tiers."""

import math
import re
from collections.abc import Iterable

from glaunch.errors import UsageError
from glaunch.fabric import Fabric, Switch
from glaunch.hostlist import expand, fold

_TIER = re.compile(r"([A-Za-z][A-Za-z0-9_-]*):(\d{1,5})")


def parse_shape(text: str) -> tuple[tuple[str, int], ...]:
    """(tier, how many under each of the tier above), top first; the last one is the nodes.

    Raises UsageError when it is not at least one tier of switches and `node:N`.
    """
    hint = "write it from the top down, each number per switch above: 'core:1 spine:2 leaf:4 node:2'"
    tiers: list[tuple[str, int]] = []
    for word in re.split(r"[\s,]+", text.strip()):
        match = _TIER.fullmatch(word)
        if match is None or match[2].strip("0") == "":
            raise UsageError(f"shape {text!r}: {word!r} is no TIER:COUNT", hint=hint)
        tiers.append((match[1], int(match[2])))
    if len(tiers) < 2 or tiers[-1][0] not in {"node", "nodes"}:
        raise UsageError(f"shape {text!r} does not end in leaf switches and node:N", hint=hint)
    if len({name for name, _ in tiers}) < len(tiers):
        raise UsageError(f"shape {text!r} names a tier twice", hint=hint)
    return tuple(tiers)


def default_shape(nodes: int) -> tuple[tuple[str, int], ...]:
    """Three tiers that fit `nodes`: leaves of 4 (8 above 64 nodes, 16 above 512), about as many spines as leaves under each."""
    per_leaf = 4 if nodes <= 64 else 8 if nodes <= 512 else 16
    leaves = math.ceil(nodes / per_leaf)
    per_spine = math.ceil(math.sqrt(leaves))
    return (("core", 1), ("spine", math.ceil(leaves / per_spine)), ("leaf", per_spine), ("node", per_leaf))


def grow(tiers: tuple[tuple[str, int], ...], limit: int | None = None) -> Fabric:
    """The forest of that shape: switches numbered per tier (`leaf1`, `leaf2`, …), nodes n001, n002, …

    With `limit` only the first `limit` nodes stand, and no switch without a node below it. Switches come leaf tier first.
    """
    counts: list[int] = []
    for _, each in tiers:
        counts.append(each * (counts[-1] if counts else 1))
    total = counts[-1] if limit is None else min(limit, counts[-1])
    width = max(3, len(str(total)))
    names = tuple(f"n{number:0{width}d}" for number in range(1, total + 1))
    switches: list[Switch] = []
    standing = total
    for level in range(len(tiers) - 2, -1, -1):
        each_below, tier = tiers[level + 1][1], len(tiers) - 2 - level
        standing = math.ceil(standing / each_below)
        for index in range(standing):
            parent = None if level == 0 else f"{tiers[level - 1][0]}{index // tiers[level][1] + 1}"
            nodes = names[index * each_below : (index + 1) * each_below] if tier == 0 else ()
            switches.append(Switch(f"{tiers[level][0]}{index + 1}", tier, parent, nodes))
    return Fabric(tuple(switches), source="shape")


def read_topology(text: str, where: str) -> Fabric:
    """The switches (or blocks) of a topology.conf, with the nodes under each; a switch of any tier may have nodes.

    Raises UsageError, naming the line, when it is none. **Source:** topology.conf(5).
    """
    lines = [line for raw in text.replace("\\\n", " ").splitlines() if (line := raw.split("#")[0].strip())]

    def names(value: str) -> tuple[str, ...]:
        try:
            return expand(value)
        except UsageError as wrong:
            raise UsageError(f"{where}: {wrong.message}", hint=wrong.hint) from wrong

    entries: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = []
    for line in lines:
        keys = {key.lower(): value for key, value in re.findall(r"(\w+)\s*=\s*(\S+)", line)}
        name = keys.get("switchname") or keys.get("blockname")
        if name:
            entries += [(each, names(keys.get("nodes", "")), names(keys.get("switches", ""))) for each in names(name)]
        elif "blocksizes" not in keys:
            raise UsageError(f"{where}: {line!r} is no line of a topology.conf", hint="a line is SwitchName=leaf1 Nodes=n[001-004]")
    if not any(nodes for _, nodes, _ in entries):
        raise UsageError(f"{where} names no nodes", hint="a line is SwitchName=leaf1 Nodes=n[001-004]")
    parent_of = {child: name for name, _, children in entries for child in children}
    unknown = sorted(set(parent_of) - {name for name, _, _ in entries})
    if unknown:
        raise UsageError(f"{where}: Switches= names {unknown[0]}, which no line describes")
    children_of = {name: children for name, _, children in entries}

    def tier(name: str, seen: tuple[str, ...] = ()) -> int:
        if name in seen:
            raise UsageError(f"{where}: switch {name} is below itself")
        return 1 + max((tier(child, (*seen, name)) for child in children_of[name]), default=-1)

    return Fabric(tuple(Switch(name, tier(name), parent_of.get(name), nodes) for name, nodes, _ in entries), source=where)


def node_names(fabric: Fabric) -> tuple[str, ...]:
    """All nodes, each once, in the order of the switches."""
    return tuple(dict.fromkeys(node for switch in fabric.switches for node in switch.nodes))


def topology_conf(fabric: Fabric) -> str:
    """The fabric as topology.conf."""
    return "".join(f"SwitchName={switch.name} {_below(switch, fabric.switches)}\n" for switch in fabric.switches)


def _below(switch: Switch, switches: Iterable[Switch]) -> str:
    if switch.nodes:
        return f"Nodes={fold(switch.nodes)}"
    return f"Switches={fold(child.name for child in switches if child.parent == switch.name)}"
