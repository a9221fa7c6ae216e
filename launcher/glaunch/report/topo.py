"""A fabric, its disputes and a way through it, in words."""

from collections.abc import Iterator, Mapping

from glaunch.fabric import Dispute, Fabric

MOST = 20
"""Disputes that are written out; the others are counted."""


def fabric_lines(fabric: Fabric) -> Iterator[str]:
    """What is known of a fabric, a few lines."""
    counts = [f"{len(fabric.leaf_of):,} nodes", f"{len(fabric.leaves):,} leaves", f"{fabric.tiers} tiers", f"{len(fabric.roots)} islands"]
    if fabric.blocks:
        counts.append(f"{len(fabric.blocks):,} blocks")
    yield f"{fabric.source}: {', '.join(counts)}"
    if fabric.network is not None:
        down = sum(not link.up for link in fabric.network.links)
        yield f"{len(fabric.network.switches):,} switches, {len(fabric.network.links):,} links" + (f", {down} of them down" if down else "")
    yield from (f"note: {note}" for note in fabric.notes)


def dispute_lines(disputes: tuple[Dispute, ...]) -> Iterator[str]:
    """What the sources do not agree on, the first line of each what counts."""
    for dispute in disputes[:MOST]:
        yield f"the sources differ about {dispute.about} {_short(dispute.subject)}:"
        yield from (f"  {_short(value)}   ({where})" for value, where in dispute.said)
    if len(disputes) > MOST:
        yield f"and {len(disputes) - MOST} more: glaunch topo export --format json"


def _short(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:197]}…"


def way_document(fabric: Fabric, one: str, two: str, routes: Mapping[int, tuple[str, ...] | None]) -> dict[str, object]:
    """The way between two nodes as JSON values, schema `glaunch.way/1`: by the links where they are known, else by the tree.

    `routes` has, rail by rail, the switches that a subnet manager's tables lead through.
    """
    network = fabric.network
    path: tuple[str, ...] | None
    if network is not None and one in network.hosts and two in network.hosts:
        crossed = network.path(one, two)
        path, by = None if crossed is None else tuple(network.label[switch] for switch in crossed), "links"
    else:
        path, by = fabric.path(one, two), "tree"
    found: dict[str, object] = {"schema": "glaunch.way/1", "from": one, "to": two, "by": by}
    found |= {"hops": None if path is None else len(path), "switches": None if path is None else list(path)}
    if routes:
        found["routes"] = [{"rail": rail, "switches": None if way is None else list(way)} for rail, way in routes.items()]
    return found


def way_lines(document: Mapping[str, object]) -> Iterator[str]:
    """The same in words."""
    one, two, hops, switches = (document[key] for key in ("from", "to", "hops", "switches"))
    if hops is None:
        yield f"nothing joins {one} and {two}"
    elif isinstance(switches, list):
        yield f"{' - '.join([str(one), *switches, str(two)])}   {hops} {'hop' if hops == 1 else 'hops'}"
    routes = document.get("routes")
    for row in routes if isinstance(routes, list) else ():
        way = row["switches"]
        yield f"rail {row['rail']}: " + ("the tables lead nowhere" if way is None else " - ".join([str(one), *way, str(two)]))
