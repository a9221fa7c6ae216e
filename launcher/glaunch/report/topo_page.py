"""The fabric as one HTML page: what its nodes do, a map, a tree to unfold, a search. Nothing is loaded from anywhere.

The only script is glaunch's own, allowed by its hash; all names reach the page as text, never as script.
"""

import base64
import hashlib
from datetime import datetime, timezone
from typing import Any

from glaunch.hostlist import fold
from glaunch.report.occupancy import KINDS, Occupancy, by_kind
from glaunch.report.text import clean
from glaunch.report.topo_svg import map_svg
from glaunch.units import plural

OPEN_MOST = 40
"""A tree of at most so many leaves is shown unfolded."""


def page_html(occupancy: Occupancy, template: str, script: str) -> str:
    """`template` and `script` are the texts of templates/report/topo.html.j2 and topo.js."""
    import jinja2
    from markupsafe import Markup

    fabric = occupancy.fabric
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(template).render(
        title=f"{len(fabric.leaf_of):,} nodes on {plural(len(fabric.leaves), 'leaf', 'leaves')}",
        source=clean(fabric.source),
        taken=f"{datetime.fromtimestamp(occupancy.taken_at_s, tz=timezone.utc):%Y-%m-%d %H:%M} UTC",
        kinds=KINDS,
        total=occupancy.total,
        shape=_shape(occupancy),
        notes=[clean(note) for note in fabric.notes],
        unplaced=clean(fold(occupancy.unplaced)),
        map=Markup(map_svg(fabric, occupancy.kinds)),  # noqa: S704 - map_svg escapes every name itself
        trees=[_branch(occupancy, root, {leaf: row for row, leaf in enumerate(fabric.leaves)}) for root in fabric.roots],
        unfolded=len(fabric.leaves) <= OPEN_MOST,
        script=Markup(script),  # noqa: S704 - our own file
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _shape(occupancy: Occupancy) -> list[tuple[str, str]]:
    fabric = occupancy.fabric
    pods = len({fabric.pod_of_leaf(leaf) for leaf in fabric.leaves})
    return [("leaves", f"{len(fabric.leaves):,}"), ("pods", f"{pods:,}"), ("tiers", str(fabric.tiers)), ("islands", str(len(fabric.roots)))]


def _branch(occupancy: Occupancy, name: str, rows: dict[str, int]) -> dict[str, Any]:
    """A switch for the template: its counts, what is below it, or its nodes by kind."""
    fabric = occupancy.fabric
    counts = occupancy.counts[name]
    total = counts.total()
    nodes = occupancy.nodes_of(name) if name in rows else ()
    return {
        "name": clean(name),
        "leaf": rows.get(name),
        "root": fabric.by_name[name].parent is None,
        "total": total,
        "counts": {kind: counts[kind] for kind in KINDS if counts[kind]},
        "shares": [(kind, round(100 * counts[kind] / total, 2)) for kind in KINDS if counts[kind]],
        "members": clean(fold(fabric.by_name[name].members)),
        "names": clean(" ".join(nodes)),
        "nodes": [(kind, clean(fold(own))) for kind, own in by_kind(occupancy, nodes).items()],
        "below": [_branch(occupancy, child, rows) for child in fabric.children[name]],
    }
