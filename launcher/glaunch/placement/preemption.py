"""Whether jobs of higher rank can throw a job out: then it must not be pinned, since a pinned job is not requeued."""

from glaunch.cluster import Cluster, Partition
from glaunch.errors import UsageError
from glaunch.request import Request
from glaunch.units import parse_time_s

_OUT = frozenset({"REQUEUE", "CANCEL", "CHECKPOINT"})
"""What ends a job; a suspended one comes back to its nodes."""


def preemptible(request: Request, partition: Partition, cluster: Cluster, time_limit_s: int | None) -> str:
    """By whom the job can be preempted, in words; "" where by nobody, or not before its time limit ends.

    **Source:** slurm.conf(5), PreemptType, PreemptMode, PreemptExemptTime; sacctmgr(1), QOS: Preempt, PreemptMode, PreemptExemptTime.
    """
    kind = cluster.config.get("PreemptType", "preempt/none")
    if kind in {"preempt/none", "(null)", ""}:
        return ""
    if kind == "preempt/partition_prio":
        highest = max(other.priority_tier for other in cluster.partitions)
        lower = partition.priority_tier < highest and _OUT & _words(partition.preempt_mode)
        return f"jobs of partition {partition.name} can be preempted" if lower else ""
    return _by_qos(request, partition, cluster, time_limit_s)


def _by_qos(request: Request, partition: Partition, cluster: Cluster, time_limit_s: int | None) -> str:
    known = cluster.accounting
    qos = None if known is None else known.qos_of(request.qos, request.account, partition.name)
    if known is None or qos is None:
        out = _OUT & (_words(cluster.config.get("PreemptMode", "")) | _words(partition.preempt_mode))
        return "jobs can be preempted here by QOS, and it is not known which one this job gets" if out else ""
    mode = _words(cluster.config.get("PreemptMode", "") if qos.preempt_mode.lower() == "cluster" else qos.preempt_mode)
    over = sorted(one.name for one in known.qos.values() if qos.name in one.preempts or (one.name == qos.name and "WITHIN" in mode))
    exempt_s = qos.exempt_s if qos.exempt_s is not None else _exempt_s(cluster)
    if not _OUT & mode or not over or (time_limit_s is not None and time_limit_s <= exempt_s):
        return ""
    return f"jobs of QOS {qos.name} can be preempted by those of QOS {', '.join(over)}"


def _words(mode: str) -> frozenset[str]:
    return frozenset(mode.upper().split(","))


def _exempt_s(cluster: Cluster) -> int:
    try:
        return parse_time_s(cluster.config.get("PreemptExemptTime", "0")) or 0
    except UsageError:
        return 0
