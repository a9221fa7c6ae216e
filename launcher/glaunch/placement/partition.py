"""Which partition a job goes to when nobody said it."""

from collections import Counter
from collections.abc import Collection, Sequence

from glaunch.cluster import Cluster, Partition
from glaunch.errors import UsageError
from glaunch.request import Request


def member_rows(cluster: Cluster, partition: Partition) -> list[int]:
    """Rows of the partition's nodes, in Slurm's order: what the nodes say of themselves, else what the partition says."""
    nodes = cluster.nodes
    if any(nodes.partitions):
        return [row for row, names in enumerate(nodes.partitions) if partition.name in names]
    listed = frozenset(partition.nodes)
    return [row for row, name in enumerate(nodes.names) if name in listed]


def choose_partition(request: Request, cluster: Cluster, *, user: str = "", groups: Collection[str] = ()) -> Partition:
    """The partition of `-p`; else the default one if it has GPUs (or nothing has); else the only one with GPUs that the user may use.

    `groups`: the user's groups (empty: not known, then no partition is ruled out by them).
    Raises UsageError: an unknown partition (with a suggestion), or none or several to choose from (with their list).
    """
    if not cluster.partitions:
        raise UsageError("Slurm shows no partition", hint="what do you see yourself: sinfo -s")
    if request.partition is not None:
        return named_partition(request.partition, cluster.partitions)
    gpus = {partition.name: _gpus(cluster, partition) for partition in cluster.partitions}
    default = next((partition for partition in cluster.partitions if partition.default), None)
    if default and (gpus[default.name] or not any(gpus.values())):
        return default
    usable = [
        partition
        for partition in cluster.partitions
        if (gpus[partition.name] or not any(gpus.values())) and _may_use(partition, request, user, groups)
    ]
    if len(usable) == 1:
        return usable[0]
    shown = (
        usable
        or [partition for partition in cluster.partitions if gpus[partition.name] and not partition.hidden]
        or list(cluster.partitions)
    )
    what = "several partitions have GPUs that you may use" if usable else "no partition with GPUs is open to you"
    listing = "; ".join(
        f"{partition.name} ({gpus[partition.name] or f'{len(member_rows(cluster, partition))} nodes'})" for partition in shown
    )
    raise UsageError(f"which partition? {what}: {listing}", hint=f"name one: -p {shown[0].name}")


def named_partition(name: str, partitions: Sequence[Partition]) -> Partition:
    """The one of this name. Raises UsageError, with a suggestion, where there is none, and for a list of several."""
    names = [partition.name for partition in partitions]
    if "," in name:
        raise UsageError(f"-p {name} names several partitions; a plan is for one", hint=f"name one: -p {name.split(',')[0]}")
    found = next((partition for partition in partitions if partition.name == name), None)
    if found is None:
        from difflib import get_close_matches

        close = get_close_matches(name, names, n=1)
        hint = f"did you mean -p {close[0]}? " if close else ""
        shown = ", ".join(partition.name for partition in partitions if not partition.hidden) or "none"
        raise UsageError(f"no partition {name!r}", hint=f"{hint}there are: {shown}")
    return found


def _gpus(cluster: Cluster, partition: Partition) -> str:
    """`16 nodes × 8 h100`, joined by `, `; "" without GPUs."""
    kinds = Counter(
        (int(cluster.nodes.gpus_total[row]), cluster.nodes.gpu_types[row])
        for row in member_rows(cluster, partition)
        if cluster.nodes.gpus_total[row]
    )
    return ", ".join(
        f"{count} nodes × {gpus} {kind or 'GPUs'}" for (gpus, kind), count in sorted(kinds.items(), key=lambda item: (-item[1], item[0]))
    )


def _may_use(partition: Partition, request: Request, user: str, groups: Collection[str]) -> bool:
    """Whether Slurm would take the job there, as far as the partition says so itself; a hidden one is not chosen for anybody."""
    if not partition.up or partition.hidden or (partition.root_only and user != "root"):
        return False
    if partition.needs_reservation and not request.reservation:
        return False
    if partition.allow_groups and groups and not set(groups) & set(partition.allow_groups):
        return False
    return _let_in(request.account, partition.allow_accounts, partition.deny_accounts) and _let_in(
        request.qos, partition.allow_qos, partition.deny_qos
    )


def _let_in(name: str | None, allowed: Sequence[str], denied: Sequence[str]) -> bool:
    """Whether an account or a QOS is let in; Slurm does not mind their case."""
    own = (name or "").casefold()
    return not own or ((not allowed or own in map(str.casefold, allowed)) and own not in map(str.casefold, denied))
