"""What in Slurm's configuration makes a right topology of no use."""

from collections import defaultdict
from collections.abc import Iterator

from glaunch.cluster import Cluster
from glaunch.diagnosis.finding import Finding
from glaunch.doctor.checkup import Checkup, some
from glaunch.fabric import Fabric
from glaunch.slurm_versions import RANKS_FOLLOW_SWITCHES, SWITCH_AS_NODE_RANK, TOPOLOGY_YAML, version_text
from glaunch.units import plural

NO_TOPOLOGY = frozenset({"", "none", "default", "flat"})
"""Plugins that place by no topology: `none` up to 23.02, `default` up to 24.11, then `flat`. **Source:** slurm.conf(5), TopologyPlugin."""
CONFIG = "scontrol show config"


def scheduling_findings(checkup: Checkup) -> Iterator[Finding]:
    """GL430 (weights), GL431 (node order), GL432 (shadowed file), GL435 (ignored topology)."""
    cluster = checkup.cluster
    if cluster is None:
        return
    yield from _shadowed(checkup, cluster)
    plugin = checkup.config("TopologyPlugin").lower().removeprefix("topology/")
    by_yaml = "topology.yaml" in checkup.beside and TOPOLOGY_YAML.there(cluster.slurm_version)
    if cluster.config and plugin in NO_TOPOLOGY and not by_yaml:
        yield from _ignored(checkup)
    elif checkup.slurm is not None and not checkup.slurm.flat:
        yield from _weights(checkup, cluster, checkup.slurm)
        if plugin == "tree" or by_yaml:
            yield from _order(checkup, cluster, checkup.slurm)


def _shadowed(checkup: Checkup, cluster: Cluster) -> Iterator[Finding]:
    conf, yaml = (checkup.beside.get(name) for name in ("topology.conf", "topology.yaml"))
    if conf is None or yaml is None:
        return
    version = version_text(cluster.slurm_version[:2])
    unread, read = (conf, yaml) if TOPOLOGY_YAML.there(cluster.slurm_version) else (yaml, conf)
    yield checkup.finding(
        "GL432",
        "warning",
        f"Slurm {version} does not read {unread}: {read} counts",
        unread,
        f"{conf} and {yaml} are both there",
        f"rm {unread}, or keep it under another name",
    )


def _ignored(checkup: Checkup) -> Iterator[Finding]:
    shown = checkup.slurm is not None and not checkup.slurm.flat
    conf = checkup.beside.get("topology.conf")
    if shown or conf is not None:
        what = "scontrol shows a topology" if shown else f"{conf} describes a topology"
        yield checkup.finding(
            "GL435",
            "warning",
            f"{what}, and the scheduler ignores it",
            CONFIG,
            f"TopologyPlugin = {checkup.config('TopologyPlugin') or '(null)'}",
            "in slurm.conf: TopologyPlugin=topology/tree (topology/block for blocks), then restart slurmctld",
        )


def _weights(checkup: Checkup, cluster: Cluster, fabric: Fabric) -> Iterator[Finding]:
    table = cluster.nodes
    for partition in cluster.partitions:
        rows = [table.row[name] for name in partition.nodes if name in table.row and name in fabric.leaf_of]
        groups: dict[int, list[str]] = defaultdict(list)
        for row in rows:
            groups[int(table.weights[row])].append(table.names[row])
        if len(groups) < 2 or len({fabric.leaf_of[table.names[row]] for row in rows}) < 2:
            continue
        low, *rest = sorted(groups)
        yield checkup.finding(
            "GL430",
            "warning",
            f"partition {partition.name}: Slurm takes the {plural(len(groups[low]), 'node')} of Weight {low} before those of "
            f"{', '.join(map(str, rest))}, on whatever leaves they are",
            "scontrol show node",
            f"{some(groups[low], 60)} Weight={low}; {some(groups[rest[0]], 60)} Weight={rest[0]}",
            "give all nodes of a partition one Weight, or put the dearer ones into a partition of their own",
        )


def _order(checkup: Checkup, cluster: Cluster, fabric: Fabric) -> Iterator[Finding]:
    """Slurm numbers a job's nodes as slurm.conf lists them; ranks that follow are neighbours only where that follows the leaves."""
    version = cluster.slurm_version
    can = SWITCH_AS_NODE_RANK.there(version) and not RANKS_FOLLOW_SWITCHES.there(version)
    if not can or "switchasnoderank" in checkup.parameters("TopologyParam"):
        return
    left: dict[str, tuple[str, str]] = {}
    before = leaf_before = ""
    for node in cluster.nodes.names:
        leaf = fabric.leaf_of.get(node)
        if leaf is None:
            continue
        if leaf != leaf_before:
            if leaf in left:
                last, follower = left[leaf]
                seen = f"{last} ({leaf}), {follower} ({fabric.leaf_of[follower]}), {node} ({leaf})"
                yield checkup.finding(
                    "GL431",
                    "warning",
                    f"Slurm's order of nodes leaves {leaf} and comes back: plain sbatch jobs change leaf more often than they must",
                    CONFIG,
                    f"TopologyParam = {checkup.config('TopologyParam') or '(null)'}; {seen}",
                    "in slurm.conf: TopologyParam=SwitchAsNodeRank, then restart slurmctld (glaunch orders its own jobs itself)",
                )
                return
            if leaf_before:
                left[leaf_before] = (before, node)
        before, leaf_before = node, leaf
