"""What accounting allows one job: the limits of its QOS and its association that it can never keep, however long it waits."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches

from glaunch.accounting import Limits
from glaunch.cluster import Cluster, Partition, parameters
from glaunch.errors import NeverFits
from glaunch.placement.eligible import Eligible
from glaunch.placement.layout import as_asked
from glaunch.request import Request
from glaunch.units import format_time


@dataclass(frozen=True, slots=True)
class Bounds:
    """Whose limits a job meets, those first that go before the others; and the flags of its QOS."""

    tiers: tuple[tuple[tuple[str, Limits], ...], ...] = ()
    """Each a few (`QOS small`, its limits) that hold side by side; what one tier limits no later one does."""
    flags: frozenset[str] = frozenset()

    @property
    def max_wall(self) -> tuple[int, str] | None:
        """(the longest time limit, who says so); None for none. The first owner that has one counts."""
        owners = (one for tier in self.tiers for one in tier)
        return next(((limits.max_wall_s, owner) for owner, limits in owners if limits.max_wall_s is not None), None)


def bounds_of(request: Request, cluster: Cluster, partition: Partition) -> Bounds:
    """The limits of a request: the partition's own QOS goes before the job's (after it, where that has OverPartQOS), then the association
    together with what the accounts above it allow all of theirs.

    No tier where accounting is not known or does not enforce limits.
    **Source:** slurm.conf(5), AccountingStorageEnforce; the "Resource Limits" page of Slurm, "Hierarchy"; sacctmgr(1), QOS flags.
    """
    known = cluster.accounting
    if known is None or not _enforced(cluster) & {"limits", "safe", "all"}:
        return Bounds()
    own = known.qos_of(request.qos, request.account, partition.name)
    its = known.qos.get(partition.qos)
    tiers: list[tuple[tuple[str, Limits], ...]] = (
        [] if its is None else [((f"QOS {its.name} (of partition {partition.name})", its.limits),)]
    )
    if own is not None and (its is None or own.name != its.name):
        tiers.insert(0 if "OverPartQOS" in own.flags else len(tiers), ((f"QOS {own.name}", own.limits),))
    row = known.association(request.account, partition.name)
    if row is not None:
        above = ((f"account {one.name}", one.limits) for one in known.line_of(row.account))
        tiers.append(((f"your part of account {row.account}", row.limits), *above))
    return Bounds(tuple(tiers), own.flags if own is not None else frozenset())


def _enforced(cluster: Cluster) -> frozenset[str]:
    return frozenset(parameters(cluster.config, "AccountingStorageEnforce"))


def spelled(request: Request, cluster: Cluster) -> Request:
    """The request with account and QOS as accounting writes them: Slurm does not mind their case.

    **Source:** 22.05.8 takes --qos=NORMAL and -A RED for normal and red; a partition's name it takes as it stands only.
    """
    known = cluster.accounting
    if known is None:
        return request
    accounts = (*known.accounts, *(row.account for row in known.associations))
    return replace(request, account=_as_written(request.account, accounts), qos=_as_written(request.qos, known.qos))


def _as_written(name: str | None, names: Iterable[str]) -> str | None:
    return next((one for one in names if name and one.casefold() == name.casefold()), name)


def closed_account(request: Request, cluster: Cluster, partition: Partition) -> NeverFits | None:
    """The error for an account that is not this user's (in this partition); None where nothing says so, or nobody enforces it.

    **Source:** slurm.conf(5), AccountingStorageEnforce: limits, qos, safe and wckeys set associations; 22.05.8 refuses such a job.
    """
    known = cluster.accounting
    if known is None or not request.account or not _enforced(cluster) & _ASSOCIATIONS:
        return None
    own = tuple(dict.fromkeys(row.account for row in known.associations))
    if not own or known.association(request.account, partition.name) is not None:
        return None
    if request.account in own:
        where = ", ".join(row.partition for row in known.associations if row.account == request.account)
        message = f"account {request.account} is yours in other partitions only: {where}; the job is for {partition.name}"
        return NeverFits(message, hint=f"another --partition or --account{_FORCE}")
    what = "is not yours" if request.account in known.accounts else "is not known here"
    return NeverFits(f"account {request.account} {what}; you have: {', '.join(own)}", hint=f"-A {_nearest(request.account, own)}{_FORCE}")


_ASSOCIATIONS = frozenset({"associations", "limits", "qos", "safe", "wckeys", "all"})


def _nearest(name: str, names: tuple[str, ...]) -> str:
    return next(iter(get_close_matches(name, names, 1)), names[0])


def closed_qos(request: Request, cluster: Cluster, partition: Partition) -> NeverFits | None:
    """The error for a QOS that is not there, not this user's, or not let into the partition; None where nothing says so."""
    known = cluster.accounting
    row = None if known is None else known.association(request.account, partition.name)
    if (
        known is not None
        and row is not None
        and row.qos
        and request.qos
        and request.qos not in row.qos
        and _enforced(cluster) & {"qos", "all"}
    ):
        what = f"is none of yours in account {row.account}" if request.qos in known.qos else "is not known here"
        return NeverFits(
            f"QOS {request.qos} {what}; you have: {', '.join(row.qos)}", hint=f"--qos {_nearest(request.qos, row.qos)}{_FORCE}"
        )
    own = known.qos_of(request.qos, request.account, partition.name) if known is not None else None
    name = own.name if own is not None else request.qos
    if not name or not ((partition.allow_qos and name not in partition.allow_qos) or name in partition.deny_qos):
        return None
    let_in = f"AllowQos={','.join(partition.allow_qos)}" if partition.allow_qos else f"DenyQos={','.join(partition.deny_qos)}"
    return NeverFits(f"partition {partition.name} lets no job of QOS {name} in: {let_in}", hint=f"another --qos or partition{_FORCE}")


_FORCE = "; to let Slurm say no itself: --force"


def over_bounds(request: Request, bounds: Bounds, fit: Eligible, time_limit_s: int | None, cpus_per_task: int = 1) -> NeverFits | None:
    """The error for a limit that this one job exceeds alone, so that it would wait for ever; None where there is none.

    What all jobs of a QOS, a user or an account may have together makes a job wait, unless it alone is more.
    """
    layout = fit.layout
    each = {"cpu": layout.tasks_per_node * cpus_per_task, "gres/gpu": layout.gpus_per_node}
    if fit.share.memory_mib:
        each["mem"] = fit.share.memory_mib
    if layout.gpu_type and "," not in layout.gpu_type:
        each[f"gres/gpu:{layout.gpu_type}"] = layout.gpus_per_node
    whole = {**{name: count * layout.nodes for name, count in each.items()}, "node": layout.nodes, "cpu": layout.tasks * cpus_per_task}
    minutes = {} if time_limit_s is None else {name: count * time_limit_s // 60 for name, count in whole.items()}
    refused = "which Slurm refuses" if "DenyOnLimit" in bounds.flags else "which would wait for ever"
    for broken in _broken(bounds, {"job": whole, "node": {**each, "node": 1}, "minutes": minutes}):
        return NeverFits(f"{broken.words}; this job has {broken.has}, {refused}", hint=_hint(request, broken, fit, each))
    wall = bounds.max_wall
    if wall is not None and (time_limit_s is None or time_limit_s > wall[0]):
        most = format_time(wall[0])
        message = f"{wall[1]} allows a time limit of {most} (MaxWall); this job has {format_time(time_limit_s)}, {refused}"
        return NeverFits(message, hint=f"-t {most}, or another --qos{_FORCE}")
    return None


@dataclass(frozen=True, slots=True)
class _Broken:
    """A limit that the job does not keep."""

    words: str
    resource: str
    value: int
    has: int
    counted: str
    """job, node or minutes: over what the resource is counted."""
    least: bool
    whose: str
    """What has other limits: --qos or --account."""


_KINDS = (
    ("MaxTRESPerJob", "per_job", "job", "a job"),
    ("MaxTRESPerNode", "per_node", "node", "a node"),
    ("MaxTRESPerUser", "per_user", "job", "all jobs of a user together"),
    ("MaxTRESPerAccount", "per_account", "job", "all jobs of an account together"),
    ("GrpTRES", "together", "job", "all its jobs together"),
    ("MaxTRESMinsPerJob", "minutes_per_job", "minutes", "a job"),
    ("GrpTRESRunMins", "minutes_together", "minutes", "all its running jobs together"),
    ("MinTRESPerJob", "least_per_job", "job", "a job"),
)
"""(Slurm's name of the limit, its field, over what it is counted, whom it holds for)."""


def _broken(bounds: Bounds, counts: Mapping[str, Mapping[str, int]]) -> Iterator[_Broken]:
    """The limits that are broken; of one kind and resource those of the first tier that has it count."""
    for key, name, counted, whom in _KINDS:
        seen: set[str] = set()
        least = name == "least_per_job"
        for tier in bounds.tiers:
            here = [(owner, resource, value) for owner, limits in tier for resource, value in getattr(limits, name).items()]
            for owner, resource, value in here:
                has = counts[counted].get(resource, 0 if least else None)
                if resource not in seen and has is not None and (has < value if least else has > value):
                    size = f"{resource}={value}{' minutes' if counted == 'minutes' else ''}"
                    words = f"{owner} {'asks of' if least else 'allows'} {whom} {'at least ' if least else ''}{size} ({key})"
                    yield _Broken(words, resource, value, has, counted, least, "--qos" if owner.startswith("QOS ") else "--account")
            seen.update(resource for _, resource, _ in here)


def _hint(request: Request, broken: _Broken, fit: Eligible, each: Mapping[str, int]) -> str:
    """The next thing to type: fewer nodes, less of what a rank or a node takes, or whose limits are others."""
    layout, other = fit.layout, f"another {broken.whose}{_FORCE}"
    per_node = {**each, "node": 1}.get(broken.resource.partition(":")[0], 0)
    if broken.counted == "minutes":
        return f"a shorter -t, fewer nodes, or {other}"
    ways = []
    if broken.counted != "node" and per_node:
        nodes = -(-broken.value // per_node) if broken.least else broken.value // per_node
        ways += [as_asked(request, layout, nodes, counted=True)] if nodes else []
    ranks, nodes = (layout.tasks_per_node, 1) if broken.counted == "node" else (layout.tasks, layout.nodes)
    if broken.resource == "cpu" and not broken.least and broken.value >= ranks:
        ways.append(f"-c {broken.value // ranks}")
    if broken.resource == "mem" and not broken.least and broken.value >= nodes:
        ways.append(f"--mem {broken.value // nodes}M")
    return f"{', '.join(ways)}, or {other}" if ways else other
