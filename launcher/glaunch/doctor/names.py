"""Names: nodes that Slurm knows and a source does not, the reverse, and nodes that stand in two places."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from glaunch.diagnosis.finding import Finding
from glaunch.doctor.checkup import Checkup, some
from glaunch.fabric import Fabric
from glaunch.network import Network
from glaunch.units import plural


def name_findings(checkup: Checkup) -> Iterator[Finding]:
    """GL401 (missing), GL402 (unknown to Slurm), GL403 (in two places), GL409 (hidden)."""
    for fabric in checkup.written:
        yield from _twice(checkup, fabric)
    cluster = checkup.cluster
    if cluster is None:
        return
    if "nodes" in checkup.parameters("PrivateData") and not len(cluster.nodes):
        seen = f"PrivateData = {checkup.config('PrivateData')}"
        yield checkup.finding(
            "GL409",
            "note",
            "Slurm shows its nodes to operators only: no name could be compared",
            "scontrol show config",
            seen,
            "ask as root or as an operator",
        )
        return
    slurm = {name: state for name, state in zip(cluster.nodes.names, cluster.nodes.states, strict=True) if not state.startswith("FUTURE")}
    known = frozenset(cluster.nodes.names)
    for fabric in checkup.written:
        yield from _missing(checkup, fabric, frozenset(fabric.leaf_of), slurm)
        yield from _unknown(checkup, fabric, known)
    if checkup.network is not None:
        yield from _missing(checkup, checkup.network, frozenset(checkup.network.hosts), slurm)
        yield from _unknown_hosts(checkup, checkup.network, known)


def _missing(checkup: Checkup, source: Fabric | Network, has: frozenset[str], slurm: Mapping[str, str]) -> Iterator[Finding]:
    lacking = [name for name in slurm if name not in has]
    if not lacking:
        return
    measured = isinstance(source, Network)
    yield checkup.finding(
        "GL401",
        "warning",
        f"{plural(len(lacking), 'node')} of Slurm's {'is' if len(lacking) == 1 else 'are'} not in {source.source}: {some(lacking)}",
        source.source,
        f"NodeName={lacking[0]} State={slurm[lacking[0]]} (scontrol show node), and no line with {lacking[0]}",
        "is it up and cabled, or called otherwise? glaunch topo import --names FILE gives devices their nodes' names"
        if measured
        else f"put {'it' if len(lacking) == 1 else 'them'} below a leaf, then: scontrol reconfigure; "
        "until then no topology places jobs there",
    )


def _unknown(checkup: Checkup, fabric: Fabric, known: frozenset[str]) -> Iterator[Finding]:
    blocks = {block.name for block in fabric.blocks}
    for in_blocks in (False, True):
        lines = [
            (switch, node)
            for switch in fabric.switches
            if (switch.name in blocks) is in_blocks
            for node in switch.nodes
            if node not in known
        ]
        if not lines:
            continue
        names = list(dict.fromkeys(node for _, node in lines))
        switch, first = lines[0]
        is_are = "is no node" if len(names) == 1 else "are no nodes"
        if in_blocks:
            code, title = "GL434", f"padding: {plural(len(names), 'name')} in blocks {is_are} of Slurm's: {some(names)}"
            advice = "take them out: a block with fewer nodes, or with none, keeps its place by itself"
        else:
            code, title = "GL402", f"{plural(len(names), 'name')} {is_are} of Slurm's: {some(names)}"
            advice = _meant(names, known) or "take them out; up to Slurm 22.05 powered-down cloud nodes are hidden and may be meant"
        yield checkup.finding(code, "warning", title, switch.where or fabric.source, f"{switch.name}: {first}", advice)


def _meant(names: list[str], known: frozenset[str]) -> str:
    """What to write instead, where a name differs from a node's by letter case or by zeros alone."""
    plain: dict[str, str] = {}
    for name in known:
        plain.setdefault(_plain(name), name)
    meant = [(name, plain[_plain(name)]) for name in names if _plain(name) in plain]
    if meant:
        return f"write {meant[0][1]} for {meant[0][0]}: letter case and zeros count"
    if any(name.upper() == "ALL" for name in names):
        return "ALL means nothing here: write the nodes as a hostlist"
    return ""


def _plain(name: str) -> str:
    digits = name[len(name.rstrip("0123456789")) :]
    return name[: len(name) - len(digits)].lower() + digits.lstrip("0")


def _unknown_hosts(checkup: Checkup, network: Network, known: frozenset[str]) -> Iterator[Finding]:
    others = [host for host in network.hosts if host not in known]
    if others:
        device = network.hosts[others[0]][0]
        yield checkup.finding(
            "GL402",
            "note" if len(others) < len(network.hosts) else "warning",
            f"{plural(len(others), 'host')} with cables {'is no node' if len(others) == 1 else 'are no nodes'} of Slurm's: {some(others)}",
            device.where or network.source,
            f"{device.host} {device.name}".strip(),
            "storage and management hosts are none; for nodes of another name: glaunch topo import --names FILE",
        )


def _twice(checkup: Checkup, fabric: Fabric) -> Iterator[Finding]:
    blocks = {block.name for block in fabric.blocks}
    places: dict[str, list[str]] = defaultdict(list)
    for switch in fabric.switches:
        for node in switch.nodes:
            places[node].append(switch.name)
    shared: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for node, leaves in places.items():
        if len(leaves) > 1:
            shared[tuple(leaves)].append(node)
    for named, twice in shared.items():
        one, many = ("block", "blocks") if named[0] in blocks else ("leaf", "leaves")
        different = tuple(dict.fromkeys(named))
        place = f"{one} {named[0]} twice" if len(different) == 1 else f"{many} {' and '.join(different)}"
        yield checkup.finding(
            "GL403",
            "warning",
            f"{plural(len(twice), 'node')} {'stands' if len(twice) == 1 else 'stand'} in {place}: {some(twice)}",
            fabric.by_name[named[-1]].where or fabric.source,
            f"{named[-1]}: {twice[0]}",
            "leave each node below one leaf: Slurm counts it in all of them, and glaunch in the first",
        )
