"""The fabric as a tree in a terminal, with what its nodes do."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from glaunch.hostlist import fold
from glaunch.report.occupancy import KINDS, Occupancy, counted
from glaunch.report.text import clean, columns, cut, pad, wrapped
from glaunch.units import plural

MOST_LINES = 60
"""A tree of more lines is folded from below, unless all of it is asked for."""
MARKS: Mapping[str, str] = {"free": "·", "busy": "█", "down": "×", "unknown": "?"}
NAME_MAX, BAR_MAX, NODES_MIN = 30, 24, 14


@dataclass(frozen=True, slots=True)
class _Line:
    name: str
    bar: str
    counts: Counter[str]
    nodes: str


def tree_text(occupancy: Occupancy, width: int = 80, *, below: str = "", everything: bool = False) -> str:
    """The tree from its roots (or from the switch `below`) down; one mark a node where a leaf has no more than fit."""
    fabric = occupancy.fabric
    roots = (below,) if below else fabric.roots
    lowest = 0 if everything else _lowest_tier(occupancy, roots)
    lines = [line for number, root in enumerate(roots) for line in _branch(occupancy, root, lowest, "", "", width)]
    out = [*wrapped(_head(occupancy), width, rest="  "), _legend(occupancy), ""]
    out += _side_by_side(lines, width)
    if lowest:
        hidden = sum(1 for leaf in fabric.leaves if any(name in roots for name in fabric.path_of_leaf(leaf)))
        first = next(switch.name for switch in fabric.switches if switch.tier == lowest)
        out += ["", *wrapped(f"{hidden:,} leaves folded: glaunch topo show {first}, or --all", width, rest="  ")]
    if occupancy.unplaced:
        names = cut(clean(fold(occupancy.unplaced)), width // 2)
        out += ["", *wrapped(f"{plural(len(occupancy.unplaced), 'node')} below no leaf: {names}", width, rest="  ")]
    return "\n".join(line.rstrip() for line in out) + "\n"


def _legend(occupancy: Occupancy) -> str:
    return "  ".join(f"{MARKS[kind]} {kind}" for kind in KINDS if kind != "unknown" or occupancy.total[kind])


def _head(occupancy: Occupancy) -> str:
    fabric = occupancy.fabric
    shape = f"{plural(len(fabric.leaves), 'leaf', 'leaves')}, {plural(fabric.tiers, 'tier')}"
    if len(fabric.roots) > 1:
        shape += f", {plural(len(fabric.roots), 'island')}"
    return f"{clean(fabric.source)}: {plural(len(fabric.leaf_of), 'node')} on {shape}: {counted(occupancy.total)}"


def _lowest_tier(occupancy: Occupancy, roots: tuple[str, ...]) -> int:
    """The lowest tier down to which the tree has at most MOST_LINES lines; that of the roots where none has."""
    fabric = occupancy.fabric
    tiers: Counter[int] = Counter()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        tiers[fabric.by_name[name].tier] += 1
        waiting.extend(fabric.children[name])
    highest = max(tiers, default=0)
    return next((tier for tier in range(highest + 1) if sum(number for at, number in tiers.items() if at >= tier) <= MOST_LINES), highest)


def _branch(occupancy: Occupancy, name: str, lowest: int, prefix: str, rest: str, width: int) -> Iterator[_Line]:
    """The line of a switch and those below it; `prefix` stands before its name, `rest` before the lines below."""
    fabric = occupancy.fabric
    switch, counts = fabric.by_name[name], occupancy.counts[name]
    children = [child for child in fabric.children[name] if fabric.by_name[child].tier >= lowest]
    room = min(BAR_MAX, width * 3 // 10)
    if switch.tier == 0:
        nodes = occupancy.nodes_of(name)
        bar = "".join(MARKS[occupancy.kinds[node]] for node in nodes) if len(nodes) <= room else _scaled(counts, room)
        yield _Line(prefix + clean(name), bar, counts, clean(fold(nodes)))
        return
    yield _Line(prefix + clean(name), "" if children else _scaled(counts, room), counts, "")
    for child in children:
        last = child == children[-1]
        yield from _branch(occupancy, child, lowest, f"{rest}{'└─' if last else '├─'} ", f"{rest}{'  ' if last else '│ '} ", width)


def _scaled(counts: Counter[str], room: int) -> str:
    """A bar of `room` marks; a kind that is there has one at least."""
    total = counts.total()
    if not total:
        return ""
    order = ("busy", "down", "unknown", "free")
    marks = {kind: max(1, counts[kind] * room // total) for kind in order if counts[kind]}
    while sum(marks.values()) > room:
        marks[max(marks, key=lambda kind: marks[kind])] -= 1
    while sum(marks.values()) < room:
        marks[max(marks, key=lambda kind: counts[kind] * room / total - marks[kind])] += 1
    return "".join(MARKS[kind] * marks[kind] for kind in order if kind in marks)


def _side_by_side(lines: list[_Line], width: int) -> list[str]:
    kinds = [kind for kind in KINDS if kind != "unknown" or any(line.counts[kind] for line in lines)]
    heads = {kind: max([len(kind), *(len(f"{line.counts[kind]:,}") for line in lines)]) for kind in kinds}
    figures = sum(2 + length for length in heads.values())
    bar = max((columns(line.bar) for line in lines), default=0)
    name = min(NAME_MAX, max((columns(line.name) for line in lines), default=0), max(8, width - figures - bar - 2))
    left = width - name - 2 - bar - figures - 2
    out = [pad("", name + 2 + bar) + "".join(f"  {kind:>{heads[kind]}}" for kind in kinds)]
    for line in lines:
        numbers = "".join(f"  {format(line.counts[kind], ',') if line.counts[kind] else '-':>{heads[kind]}}" for kind in kinds)
        nodes = f"  {cut(line.nodes, left)}" if left >= NODES_MIN and line.nodes else ""
        out.append(f"{pad(cut(line.name, name), name)}  {pad(line.bar, bar)}{numbers}{nodes}")
    return out
