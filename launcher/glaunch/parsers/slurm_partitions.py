"""`scontrol -a -o show partition` as Partitions."""

from types import MappingProxyType

from glaunch.cluster import Partition
from glaunch.errors import ParseError, UsageError
from glaunch.hostlist import expand
from glaunch.parsers.slurm_fields import count_or_none, fields, limit_s, listed, text_of

COMMAND = "scontrol show partition"

_KEYS = (
    "PartitionName",
    "AllowGroups",
    "AllowAccounts",
    "DenyAccounts",
    "AllowQos",
    "DenyQos",
    "Default",
    "Hidden",
    "DefaultTime",
    "MaxTime",
    "MaxNodes",
    "MinNodes",
    "Nodes",
    "State",
    "OverSubscribe",
    "Exclusive",
    "PreemptMode",
    "JobDefaults",
    "RootOnly",
    "ReqResv",
    "PriorityTier",
    "QoS",
    "Topology",
)


def parse_partitions(text: str) -> tuple[Partition, ...]:
    """The partitions, in Slurm's own order. Raises ParseError (`scontrol show partition:LINE`) where a line is none.

    **Source:** scontrol(1), "show partition"; seen with Slurm 21.08 to 26.05.
    """
    partitions: list[Partition] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("PartitionName="):
            partitions.append(_partition(line, f"{COMMAND}:{number}"))
        elif line.strip() and not line.startswith(("No partitions in the system", "CLUSTER: ")):
            raise ParseError(f"{COMMAND}:{number}", line, "PartitionName=…")
    return tuple(partitions)


def _partition(line: str, where: str) -> Partition:
    found = fields(line, _KEYS)
    state = found.get("State")
    if state is None:
        raise ParseError(where, line, "a field State=")
    try:
        nodes = expand(text_of(found.get("Nodes", "")))
    except UsageError as wrong:
        raise ParseError(where, found["Nodes"], "a list of nodes in Nodes=") from wrong
    defaults = dict(pair.split("=", 1) for pair in listed(found.get("JobDefaults", "")) if "=" in pair)
    return Partition(
        name=found["PartitionName"],
        nodes=nodes,
        up=state == "UP",
        default=found.get("Default") == "YES",
        max_time_s=limit_s(found.get("MaxTime", ""), where),
        default_time_s=limit_s(found.get("DefaultTime", ""), where),
        max_nodes=count_or_none(found.get("MaxNodes", ""), where),
        min_nodes=count_or_none(found.get("MinNodes", ""), where) or 0,
        allow_accounts=listed(found.get("AllowAccounts", "")),
        allow_groups=listed(found.get("AllowGroups", "")),
        allow_qos=listed(found.get("AllowQos", "")),
        over_subscribe="EXCLUSIVE" if found.get("Exclusive") in {"NODE", "TOPO"} else found.get("OverSubscribe", "NO"),
        preempt_mode=found.get("PreemptMode", ""),
        job_defaults=MappingProxyType(defaults),
        deny_accounts=listed(found.get("DenyAccounts", "")),
        deny_qos=listed(found.get("DenyQos", "")),
        hidden=found.get("Hidden") == "YES",
        root_only=found.get("RootOnly") == "YES",
        needs_reservation=found.get("ReqResv") == "YES",
        priority_tier=count_or_none(found.get("PriorityTier", ""), where) or 0,
        topology=text_of(found.get("Topology", "")),
        qos=text_of(found.get("QoS", "")),
    )
