"""Several sources about one fabric → one fabric; where they do not agree, that is data too."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from glaunch.errors import UsageError
from glaunch.fabric import Block, Dispute, Fabric, Switch, build_fabric
from glaunch.hierarchy import fabric_of
from glaunch.hostlist import fold, natural_key
from glaunch.network import HCA, SWITCH, Device, Link, Network, NetworkBuilder

FEW = 4
"""A leaf of one source of which less than one node in FEW stands elsewhere by another source is the same leaf with strays."""


def merge(sources: Sequence[Network | Fabric]) -> Fabric:
    """One fabric of all sources; the order of the sources is their rank, but what was measured (networks) comes before what was written.

    The first tree counts. A later one adds the nodes that no earlier one has a place for: beside the nodes of their leaf where those are
    known, else as a leaf of its own below what stands above its neighbours. Blocks are put together by their nodes. Topologies of blocks
    alone (whose leaves are the blocks) and flat ones are no trees where there is another. What differs becomes `disputes`.
    Raises UsageError for no source at all.
    """
    if not sources:
        raise UsageError("no source of a fabric", hint="glaunch topo import FILE…")
    networks = [one for one in sources if isinstance(one, Network)]
    written = [one for one in sources if isinstance(one, Fabric)]
    saved = [one.network for one in written if one.network is not None]
    network, disputes = join_networks([*networks, *saved]) if networks or saved else (None, [])
    # A saved fabric's tree was read out of its network already, and may hold nodes that only other sources knew.
    trees = [fabric_of(network)] if network is not None and (networks or len(saved) > 1) else []
    trees += sorted(written, key=_rank)
    result = trees[0]
    for other in trees[1:]:
        result, found = _add(result, other)
        disputes += found
    kept = [dispute for one in written for dispute in one.disputes]
    return replace(result, network=network, disputes=tuple(dict.fromkeys([*kept, *disputes])))


def _rank(fabric: Fabric) -> int:
    """0: a tree; 1: blocks alone; 2: one made-up switch; 3: no switch at all."""
    if fabric.flat or not fabric.switches:
        return 2 if fabric.switches else 3
    return 1 if fabric.blocks_alone else 0


def beside_slurm(saved: Fabric, slurm: Fabric) -> Fabric:
    """The saved fabric together with what Slurm says now. Notes are Slurm's, and one that names what the two do not agree on.

    The saved one counts, except where Slurm keeps islands apart: no job of Slurm's crosses them, whatever is cabled.
    """
    first = slurm if len(slurm.roots) > 1 and _rank(slurm) == 0 else saved
    both = merge((first, slurm if first is saved else saved))
    differ = Counter(dispute.about for dispute in both.disputes if dispute not in saved.disputes and dispute.about != "node")
    note = f"{saved.source} and Slurm do not agree about {', '.join(f'{count} x {about}' for about, count in sorted(differ.items()))}"
    return replace(both, notes=(*(() if slurm.flat else slurm.notes), *((note,) if differ else ())))


# Networks


def join_networks(networks: Sequence[Network]) -> tuple[Network, list[Dispute]]:
    """(all devices and links, what the networks do not agree on). One dump a rail, one text a host: devices are joined by their ids.

    A host that another source knows as a switch (its own `lldpctl`) is that switch.
    """
    if len(networks) == 1:
        return networks[0], []
    switches = {device.name: device.id for network in networks for device in network.switches}
    builder = NetworkBuilder(", ".join(dict.fromkeys(network.source for network in networks)), both_sides=False)
    disputes: list[Dispute] = []
    links: dict[tuple[str, str, str, str], Link] = {}
    at_port: dict[tuple[str, str], Link] = {}
    for network in networks:
        own = _as_switches(network, switches)
        for device in own.devices:
            disputes += _other_name(builder.known(device.id), device)
            builder.device(device)
        for link in own.links:
            key = (link.one, link.one_port, link.two, link.two_port)
            disputes += _other_link(links.get(key), link, at_port)
            links.setdefault(key, link)
            for end in ((link.one, link.one_port), (link.two, link.two_port)):
                at_port.setdefault(end, link)
        builder.open_ports += own.open_ports
        builder.notes += own.notes
    disputes += _lost_links(networks, links)
    joined = builder.network()
    return replace(joined, links=tuple(links.values())), disputes


def _as_switches(network: Network, switches: Mapping[str, str]) -> Network:
    """The network with its hosts that are switches elsewhere turned into them."""
    ids = {device.id: switches[device.host] for device in network.devices if device.kind == HCA and device.host in switches}
    if not ids:
        return network
    devices = [
        device if device.id not in ids else Device(ids[device.id], SWITCH, device.host, where=device.where) for device in network.devices
    ]
    ends = [((ids.get(k.one, k.one), k.one_port), (ids.get(k.two, k.two), k.two_port), k) for k in network.links]
    links = [
        replace(k, one=low[0], one_port=low[1], two=high[0], two_port=high[1]) for one, two, k in ends for low, high in [sorted((one, two))]
    ]
    return replace(network, devices=tuple(dict.fromkeys(devices)), links=tuple(links))


def _other_name(known: Device | None, device: Device) -> Iterable[Dispute]:
    if known is None:
        return
    old, new = (f"{one.host} {one.name}".strip() for one in (known, device))
    if known.kind != device.kind or (old and new and old != new):
        yield Dispute("name", device.id, ((f"{known.kind} {old}", known.where), (f"{device.kind} {new}", device.where)))


def _other_link(known: Link | None, link: Link, at_port: Mapping[tuple[str, str], Link]) -> Iterable[Dispute]:
    if known is None:
        for device, port in ((link.one, link.one_port), (link.two, link.two_port)):
            other = at_port.get((device, port))
            if other is not None:
                said = tuple((f"leads to {one.other(device)}", one.where) for one in (other, link))
                yield Dispute("link", f"{device} port {port}", said)
    elif (known.rate_gbps and link.rate_gbps and known.rate_gbps != link.rate_gbps) or known.state != link.state:
        said = tuple((f"{one.rate_gbps:g} Gbit/s {one.state}", one.where) for one in (known, link))
        yield Dispute("link", f"{link.one} port {link.one_port}", said)


def _lost_links(networks: Sequence[Network], links: Mapping[tuple[str, str, str, str], Link]) -> Iterable[Dispute]:
    """Cables that one network has and another, which knows both ends, has not."""
    for network in networks:
        own = {(link.one, link.one_port, link.two, link.two_port) for link in network.links}
        for key, link in links.items():
            if key not in own and link.one in network.by_id and link.two in network.by_id and network.links_of[link.one]:
                yield Dispute("link", f"{link.one} port {link.one_port}", (("is there", link.where), ("is not there", network.source)))


# Trees


def _add(base: Fabric, other: Fabric) -> tuple[Fabric, list[Dispute]]:
    """(the base and what the other adds to it, where they differ)."""
    blocks, disputes = _join_blocks(base.blocks, other.blocks)
    sizes = base.block_sizes or other.block_sizes
    if base.block_sizes and other.block_sizes and base.block_sizes != other.block_sizes:
        said = tuple((",".join(map(str, one.block_sizes)), one.source) for one in (base, other))
        disputes.append(Dispute("block", "block sizes", said))
    grown = base
    if other.switches and _rank(other) == 0:
        disputes += [*_leaf_disputes(base, other), *_island_disputes(base, other)]
        grown = _grown(base, other)
    disputes += _node_disputes(base, other)
    sources = ", ".join(dict.fromkeys([*base.source.split(", "), *other.source.split(", ")]))
    notes = tuple(dict.fromkeys([*grown.notes, *(other.notes if _rank(other) == 0 else ())]))
    return replace(grown, source=sources, notes=notes, blocks=blocks, block_sizes=sizes), disputes


def _leaf_disputes(base: Fabric, other: Fabric) -> Iterable[Dispute]:
    """Leaves whose nodes stand apart by the other source: strays one by one (as one hostlist), else the leaf as a whole."""
    main: dict[str, list[str]] = defaultdict(list)
    for leaf in (switch for switch in other.switches if switch.nodes):
        stands: dict[str, list[str]] = defaultdict(list)
        for node in leaf.nodes:
            if node in base.leaf_of and other.leaf_of[node] == leaf.name:
                stands[base.leaf_of[node]].append(node)
        if not stands:
            continue
        most = max(stands, key=lambda name: len(stands[name]))
        main[most].append(leaf.name)
        strays = {name: nodes for name, nodes in stands.items() if name != most}
        if FEW * sum(map(len, strays.values())) <= len(leaf.nodes):
            for name, nodes in strays.items():
                said = ((f"under {name}", _seen(base, name)), (f"under {leaf.name}, with {stands[most][0]}", _seen(other, leaf.name)))
                yield Dispute("leaf", fold(nodes), said)
        else:
            said = (
                (f"its nodes stand under {', '.join(sorted(stands, key=natural_key))}", base.source),
                ("one leaf", _seen(other, leaf.name)),
            )
            yield Dispute("leaf", leaf.name, said)
    for name, leaves in main.items():
        if len(leaves) > 1:
            said = (("one leaf", _seen(base, name)), (f"its nodes stand under {', '.join(sorted(leaves, key=natural_key))}", other.source))
            yield Dispute("leaf", name, said)


def _seen(fabric: Fabric, switch: str) -> str:
    return fabric.by_name[switch].where or fabric.source


def _island_disputes(base: Fabric, other: Fabric) -> Iterable[Dispute]:
    """Islands of one source that the other joins."""
    for apart, joined in ((base, other), (other, base)):
        roots: dict[str, set[str]] = defaultdict(set)
        for node in apart.leaf_of:
            if node in joined.leaf_of:
                roots[joined.path_up(node)[-1]].add(apart.path_up(node)[-1])
        for root, islands in roots.items():
            if len(islands) > 1:
                split = (f"nothing joins {', '.join(sorted(islands, key=natural_key))}", apart.source)
                whole = (f"{root} joins them", joined.source)
                yield Dispute("islands", root, (split, whole) if apart is base else (whole, split))


def _node_disputes(base: Fabric, other: Fabric) -> Iterable[Dispute]:
    """Nodes that one of two trees does not know."""
    if _rank(base) or _rank(other):
        return
    for knows, lacks in ((base, other), (other, base)):
        missing = [node for node in knows.leaf_of if node not in lacks.leaf_of]
        if missing:
            said = ((f"stands under {knows.leaf_of[missing[0]]}", knows.source), ("does not name it", lacks.source))
            yield Dispute("node", fold(sorted(missing, key=natural_key)), said if knows is base else said[::-1])


def _grown(base: Fabric, other: Fabric) -> Fabric:
    """The base with the nodes that only the other has."""
    parents = {switch.name: switch.parent for switch in base.switches}
    rows = {switch.name: switch for switch in base.switches}
    hooks: dict[str, str | None] = {}
    for leaf in other.switches:
        new = tuple(dict.fromkeys(node for node in leaf.nodes if node not in base.leaf_of and other.leaf_of[node] == leaf.name))
        if not new:
            continue
        known = Counter(base.leaf_of[node] for node in leaf.nodes if node in base.leaf_of)
        home = max(known, key=known.__getitem__) if known else leaf.name
        if home in rows and rows[home].tier == 0:
            rows[home] = replace(rows[home], nodes=rows[home].nodes + new)
            continue
        name = home if home not in rows else f"{home}.{other.source.rpartition('/')[2].split(':')[0]}"
        rows[name] = replace(leaf, name=name, nodes=new)
        parents[name] = next((hook for above in other.path_of_leaf(leaf.name)[1:] if (hook := _hook(base, other, above, hooks))), None)
        if parents[name] is None:
            _copy_above(rows, parents, name, other, leaf.name)
    tree = build_fabric(parents, {name: row.nodes for name, row in rows.items()}, base.source)
    switches = tuple(replace(rows[one.name], tier=one.tier, parent=one.parent) for one in tree.switches)
    return replace(base, switches=switches)


def _hook(base: Fabric, other: Fabric, above: str, hooks: dict[str, str | None]) -> str | None:
    """The lowest switch of the base above all nodes that the other has below `above`; None where the base knows none of them."""
    if above not in hooks:
        leaves = dict.fromkeys(base.leaf_of[node] for node in _nodes_below(other, above) if node in base.leaf_of)
        paths = [base.path_of_leaf(leaf)[1:] for leaf in leaves]
        hooks[above] = next((name for name in paths[0] if all(name in path for path in paths)), None) if paths else None
    return hooks[above]


def _nodes_below(fabric: Fabric, switch: str) -> Iterable[str]:
    waiting = [switch]
    while waiting:
        name = waiting.pop()
        yield from fabric.by_name[name].nodes
        waiting.extend(fabric.children[name])


def _copy_above(rows: dict[str, Switch], parents: dict[str, str | None], name: str, other: Fabric, leaf: str) -> None:
    """Hang a new island's leaf below the switches that the other source has above it."""
    for above in other.path_of_leaf(leaf)[1:]:
        if above in rows and rows[above].nodes:  # a leaf of that name stands in the base: another switch
            return
        parents[name] = above
        if above in rows:
            return
        rows[above], parents[above], name = other.by_name[above], None, above


# Blocks


def _join_blocks(base: tuple[Block, ...], other: tuple[Block, ...]) -> tuple[tuple[Block, ...], list[Dispute]]:
    rows = {block.name: block for block in base}
    block_of = {node: block.name for block in reversed(base) for node in block.nodes}
    disputes: list[Dispute] = []
    for block in other:
        met = Counter(block_of[node] for node in block.nodes if node in block_of)
        if not met and block.name not in rows:
            rows[block.name] = block
            continue
        name = max(met, key=met.__getitem__) if met else block.name
        old = rows[name]
        if set(old.nodes) != set(block.nodes):
            said = ((f"{name}: {fold(old.nodes)}", old.where), (f"{block.name}: {fold(block.nodes)}", block.where))
            disputes.append(Dispute("block", name, said))
            new = tuple(node for node in block.nodes if node not in block_of and node not in old.nodes)
            rows[name] = replace(old, nodes=old.nodes + new)
    return tuple(rows.values()), disputes
