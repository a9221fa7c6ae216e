"""The fabric as one picture: every switch a box around what hangs on it, every leaf a tile with a square a node.

Boxes instead of lines, so that 1,000 leaves stay readable and a tree of any depth has its place. No font is measured: a letter is taken as
0.6 of its size.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from glaunch.fabric import Fabric
from glaunch.report.occupancy import KINDS
from glaunch.report.text import clean, cut

WIDTH = 1180.0
SQUARE, GAP, PAD, LABEL = 9.0, 3.0, 8.0, 11.0
MOST_SQUARES = 20_000
"""With more nodes a leaf is a bar of its kinds instead of a square a node: a browser stays quick."""
MOST_TILES = 4_000
"""With more leaves the lowest switches that are fewer are the tiles."""

STYLE = """
svg.map { --free: #4caf7d; --busy: #5b7fd1; --down: #d9534f; --unknown: #9e9e9e; --box: #8884; --fill: #8881; --ink: #333;
  font: 11px system-ui, sans-serif; }
@media (prefers-color-scheme: dark) { svg.map { --free: #58b889; --busy: #7d9ce6; --down: #ef7a76; --unknown: #777; --ink: #ddd; } }
svg.map text { fill: var(--ink); }
svg.map .box { fill: var(--fill); stroke: var(--box); }
svg.map .tile { fill: none; stroke: var(--box); }
svg.map .free { fill: var(--free); } svg.map .busy { fill: var(--busy); }
svg.map .down { fill: var(--down); } svg.map .unknown { fill: var(--unknown); }
"""


@dataclass(frozen=True, slots=True)
class _Box:
    """A switch, laid out: its size, and where the boxes in it stand (their upper left corners, from its own)."""

    name: str
    width: float
    height: float
    inside: tuple[tuple[float, float, "_Box"], ...] = ()


def map_svg(fabric: Fabric, kinds: Mapping[str, str]) -> str:
    """The whole picture. `kinds` has a node's kind (see `occupancy.KINDS`); {} draws all nodes alike."""
    drawing = _Drawing(fabric, kinds)
    boxes = [drawing.box(root, WIDTH) for root in fabric.roots]
    placed, height = _flow(boxes, WIDTH, 2 * PAD)
    body = "\n".join(line for x, y, box in placed for line in drawing.lines(box, x, y))
    size = f'viewBox="0 0 {WIDTH:g} {max(height, 1):g}" width="{WIDTH:g}" height="{max(height, 1):g}"'
    title = escape(clean(f"{fabric.source}: {len(fabric.leaf_of)} nodes on {len(fabric.leaves)} leaves"))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="map" role="img" {size}>'
    return f"{head}\n<title>{title}</title>\n<style>{STYLE}</style>\n{body}\n</svg>\n"


class _Drawing:
    """What all boxes share: the tier whose switches are tiles, and the size of a tile."""

    def __init__(self, fabric: Fabric, kinds: Mapping[str, str]) -> None:
        self._fabric, self._kinds = fabric, kinds
        counts = [sum(switch.tier == tier for switch in fabric.switches) for tier in range(fabric.tiers)]
        self._lowest = next((tier for tier, number in enumerate(counts) if number <= MOST_TILES), max(fabric.tiers - 1, 0))
        self._nodes = {
            switch.name: _below(fabric, switch.name) for switch in fabric.switches if switch.tier == self._lowest or not switch.tier
        }
        self._squares = self._lowest == 0 and len(fabric.leaf_of) <= MOST_SQUARES
        largest = max((len(nodes) for nodes in self._nodes.values()), default=1)
        self._columns = min(max(largest, 1), 8 if largest <= 64 else 16) if self._squares else 8
        labels = max((len(clean(name)) for name in self._nodes), default=4)
        self._tile = max(self._columns * (SQUARE + GAP) - GAP, min(labels, 16) * LABEL * 0.6) + 2 * PAD
        self._row = {leaf: row for row, leaf in enumerate(fabric.leaves)}

    def box(self, name: str, room: float) -> _Box:
        """A switch and what is below it, in at most `room`, and wider only where one tile is."""
        below = self._fabric.children[name]
        if name in self._nodes or not below:
            nodes = self._nodes.get(name, ())
            rows = max(1, -(-len(nodes) // self._columns)) if self._squares else 1
            return _Box(name, self._tile, LABEL + 3 * PAD / 2 + rows * (SQUARE + GAP) - GAP + PAD / 2)
        boxes = [self.box(child, room - 2 * PAD) for child in below]
        placed, height = _flow(boxes, room - 2 * PAD, PAD)
        width = max([x + box.width for x, _, box in placed] + [len(clean(name)) * LABEL * 0.6])
        top = LABEL + PAD
        return _Box(name, width + 2 * PAD, top + height + 2 * PAD, tuple((x + PAD, y + top + PAD, box) for x, y, box in placed))

    def lines(self, box: _Box, x: float, y: float) -> Iterator[str]:
        """The box with its upper left corner there."""
        leaf = self._row.get(box.name)
        kind = "box" if box.inside else "tile"
        yield f'<g transform="translate({x:.6g} {y:.6g})"' + (f' class="leaf" data-leaf="{leaf}">' if leaf is not None else ">")
        yield f'<rect class="{kind}" width="{box.width:.6g}" height="{box.height:.6g}" rx="4"/>'
        label = cut(clean(box.name), max(4, int((box.width - 2 * PAD) / (LABEL * 0.6))))
        yield f'<text x="{PAD:g}" y="{PAD + LABEL - 2:g}">{escape(label)}<title>{escape(clean(box.name))}</title></text>'
        for left, top, inner in box.inside:
            yield from self.lines(inner, left, top)
        if not box.inside:
            yield from self._content(self._nodes.get(box.name, ()), box.width)
        yield "</g>"

    def _content(self, nodes: Sequence[str], width: float) -> Iterator[str]:
        top = LABEL + 3 * PAD / 2
        if self._squares:
            for number, node in enumerate(nodes):
                row, column = divmod(number, self._columns)
                kind = self._kinds.get(node, "unknown")
                yield _rect(kind, PAD + column * (SQUARE + GAP), top + row * (SQUARE + GAP), SQUARE, f"{node} {kind}", ' rx="2"')
            return
        start, room = PAD, width - 2 * PAD
        for kind in KINDS:
            number = sum(self._kinds.get(node, "unknown") == kind for node in nodes)
            if number:
                part = room * number / len(nodes)
                yield _rect(kind, start, top, part, f"{number} {kind}")
                start += part


def _rect(kind: str, x: float, y: float, width: float, title: str, more: str = "") -> str:
    at = f'x="{x:.6g}" y="{y:.6g}" width="{width:.5g}" height="{SQUARE:g}"'
    return f'<rect class="{kind}" {at}{more}><title>{escape(clean(title))}</title></rect>'


def _below(fabric: Fabric, name: str) -> tuple[str, ...]:
    """The nodes that count below a switch."""
    found: list[str] = []
    waiting = [name]
    while waiting:
        one = waiting.pop()
        found += [node for node in dict.fromkeys(fabric.by_name[one].nodes) if fabric.leaf_of[node] == one]
        waiting.extend(reversed(fabric.children[one]))
    return tuple(found)


def _flow(boxes: Sequence[_Box], room: float, gap: float) -> tuple[list[tuple[float, float, _Box]], float]:
    """(the boxes side by side in rows, their height). Rows are as even as can be: 9 boxes where 8 fit are 5 and 4."""
    if not boxes:
        return [], 0.0
    widest = max(box.width for box in boxes)
    fit = max(1, int((room + gap) // (widest + gap)))
    rows = -(-len(boxes) // fit)
    each = -(-len(boxes) // rows)
    placed: list[tuple[float, float, _Box]] = []
    y = 0.0
    for first in range(0, len(boxes), each):
        row = boxes[first : first + each]
        x = 0.0
        for box in row:
            placed.append((x, y, box))
            x += box.width + gap
        y += max(box.height for box in row) + gap
    return placed, y - gap
