"""The shape of what was written down, and where sources do not agree about it."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from glaunch.diagnosis.finding import Finding
from glaunch.doctor.checkup import Checkup, some
from glaunch.fabric import Dispute, Fabric
from glaunch.units import plural

_MEANING = {
    "leaf": ("GL414", "warning", "the sources put nodes below different leaves"),
    "parent": ("GL414", "warning", "the sources put a switch below different ones"),
    "block": ("GL415", "warning", "the sources put nodes into different blocks"),
    "link": ("GL416", "warning", "the sources do not agree about a cable"),
    "name": ("GL417", "note", "one device has two names"),
}


def tree_findings(checkup: Checkup) -> Iterator[Finding]:
    """GL410 (islands), GL411 (a root over separate fabrics), GL412 (uneven leaves), GL414 to GL417 (who differs), GL418 (remarks)."""
    cabled = checkup.cabled
    for fabric in (*checkup.written, *(() if cabled is None else (cabled,))):
        if fabric.blocks_alone or not fabric.switches:
            continue
        yield from _islands(checkup, fabric)
        yield from _uneven(checkup, fabric)
    if checkup.merged is not None:
        for dispute in checkup.merged.disputes:
            yield from _dispute(checkup, dispute)
    for fabric in (*checkup.written, *(() if cabled is None else (cabled,))):
        for note in fabric.notes:
            if not fabric.blocks_alone:
                yield checkup.finding("GL418", "note", note, fabric.source, note, "")


def _islands(checkup: Checkup, fabric: Fabric) -> Iterator[Finding]:
    if len(fabric.roots) < 2:
        return
    island_of = {node: fabric.path_of_leaf(leaf)[-1] for node, leaf in fabric.leaf_of.items()}
    across = []
    for partition in checkup.cluster.partitions if checkup.cluster is not None else ():
        touched = Counter(island_of[node] for node in partition.nodes if node in island_of)
        if len(touched) > 1:
            across.append((partition.name, touched))
    roots = some(fabric.roots)
    last = fabric.by_name[fabric.roots[-1]]
    where, line = last.where or fabric.source, f"{last.name}: nothing above it"
    if across and fabric is not checkup.cabled and "topooptional" not in checkup.parameters("TopologyParam"):
        name, touched = across[0]
        largest = max(touched.values())
        yield checkup.finding(
            "GL410",
            "warning",
            f"partition {name} lies on {plural(len(touched), 'island')} that nothing joins, the largest of {plural(largest, 'node')}: "
            f"a job of more waits for ever ({roots})",
            where,
            line,
            "join them by a switch above if they are cabled to each other, else give each island its own partition",
        )
    else:
        yield checkup.finding("GL410", "note", f"{plural(len(fabric.roots), 'island')} that nothing joins: {roots}", where, line, "")


def _uneven(checkup: Checkup, fabric: Fabric) -> Iterator[Finding]:
    sizes: dict[int, list[str]] = defaultdict(list)
    for switch in fabric.switches:
        if switch.tier == 0 and not switch.virtual:
            sizes[len(switch.nodes)].append(switch.name)
    if len(sizes) < 2:
        return
    usual = max(sizes, key=lambda size: (len(sizes[size]), size))
    others = [name for size, names in sorted(sizes.items()) if size != usual for name in names]
    words = ", ".join(
        f"{plural(len(names), 'leaf', 'leaves')} of {size}" for size, names in sorted(sizes.items(), key=lambda one: -len(one[1]))[:6]
    )
    odd = fabric.by_name[others[0]]
    yield checkup.finding(
        "GL412",
        "note",
        f"leaves of uneven size: {words} (not of {usual}: {some(others)})",
        odd.where or fabric.source,
        f"{odd.name}: {plural(len(odd.nodes), 'node')}",
        "is a node missing there, or does a leaf stand for two?",
    )


def _dispute(checkup: Checkup, dispute: Dispute) -> Iterator[Finding]:
    said = "; ".join(f"{what} ({where})" for what, where in dispute.said)
    where = dispute.said[-1][1]
    if dispute.about == "islands":
        apart = next((what for what, _ in dispute.said if what.startswith("nothing joins")), "")
        joined = next((at for what, at in dispute.said if not what.startswith("nothing joins")), where)
        yield checkup.finding(
            "GL411",
            "warning",
            f"{dispute.subject} stands above fabrics that are apart: {apart}",
            joined,
            said,
            "take that root away, or set TopologyParam=TopoOptional: jobs across it have no network between their parts",
        )
    elif dispute.about == "node":
        if checkup.cluster is None:
            yield checkup.finding(
                "GL401", "warning", f"not every source knows {dispute.subject[:120]}", where, said, "which one is out of date?"
            )
    else:
        code, severity, title = _MEANING[dispute.about]
        advice = "which one is out of date? After a change of the file: scontrol reconfigure" if severity == "warning" else ""
        yield Finding(code, severity, f"{title}: {dispute.subject[:120]}", "", None, where, said[:400], advice)
