"""What pyslurm says of a cluster, as the program beside it hands it over (JSON, `glaunch.pyslurm/1`), as our nouns.

The same nouns come out as from Slurm's commands. What pyslurm cannot know, or says otherwise:

- GPUs in use are told as TRES alone, so only where Slurm counts them (`tells_gpus`); of a node with several types of GPUs of which
  only the sum is counted, a type counts as all in use as soon as one GPU is.
- A type of GPUs that a node lists twice is there once (the last counts).
- Of the configuration only what glaunch looks at is there (`CONFIG` in the program).
- Flags of a reservation that pyslurm has no name for make all of them unknown; nothing is decided by them.

**Source:** pyslurm 25.11.2 with Slurm 26.05.5, each field beside what scontrol says (tests/gateways/test_same_snapshot.py).
"""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from glaunch.cluster import GpuCount, NodeTable, Partition, Reservation
from glaunch.errors import ParseError, UsageError
from glaunch.hostlist import expand
from glaunch.parsers.slurm_nodes import SLICE, NodeRow, node_table, parse_state
from glaunch.units import format_time

SCHEMA = "glaunch.pyslurm/1"
UNLIMITED = "UNLIMITED"

_FLAGS = MappingProxyType(
    {
        "MAINTENANCE": "MAINT",
        "FLEX": "FLEX",
        "OVERLAP": "OVERLAP",
        "IGNORE_RUNNING_JOBS": "IGNORE_JOBS",
        "USER_DELETION": "USER_DELETE",
        "SPECIFIC_NODES": "SPEC_NODES",
        "ALL_NODES": "ALL_NODES",
        "ANY_NODES": "ANY_NODES",
        "STATIC_NODES": "STATIC",
        "PARTITION_NODES_ONLY": "PART_NODES",
        "PURGE": "PURGE_COMP",
        "NO_JOB_HOLD_AFTER_END": "NO_HOLD_JOBS_AFTER_END",
        "MAGNETIC": "MAGNETIC",
    }
)
"""pyslurm's names → Slurm's. **Source:** reservation.pyx of pyslurm 25.11; scontrol(1), "Flags"."""


def is_ours(text: str) -> bool:
    """Whether a text is an answer of pyslurm's (else it is one of Slurm's commands)."""
    return text.startswith("{")


def parse_nodes(text: str) -> NodeTable:
    """The nodes, in Slurm's own order. Raises ParseError where the document is not as it should be."""
    document = _document(text, "nodes")
    columns = {name: number for number, name in enumerate(_list(document, "columns", "nodes"))}
    rows: dict[str, NodeRow] = {}
    try:
        for values in _list(document, "nodes", "nodes"):
            rows[values[columns["name"]]] = _node({name: values[number] for name, number in columns.items()})
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as wrong:
        raise ParseError("pyslurm, nodes", repr(wrong), "rows of nodes") from wrong
    return node_table(rows)


def _node(told: Mapping[str, Any]) -> NodeRow:
    row = NodeRow()
    row.state = parse_state(told["state"])
    row.address = told["address"] or told["name"]
    row.cpus = (told["effective_cpus"], told["allocated_cpus"])
    row.memory = ((told["real_memory"] or 0) - (told["memory_reserved_for_system"] or 0), told["allocated_memory"])
    row.weight = told["weight"] or 0
    row.features = frozenset(told["active_features"])
    row.partitions = frozenset(told["partitions"])
    row.gpus = gpus_of(told["configured_gres"], told["allocated_tres"])
    return row


def gpus_of(configured: Mapping[str, int], allocated: Mapping[str, int]) -> tuple[GpuCount, ...]:
    """The GPUs of a node by type, of `{"gpu:h100": 8}` and `{"gres/gpu": 3, "gres/gpu:h100": 3, "cpu": 6}`.

    TRES name a type only where the site counts it by type. What is counted without one belongs to the types that are left: all of it to a
    single one; of several, none is taken for free where one of them is in use.
    """
    counts = {name.partition(":")[2]: count for name, count in configured.items() if name.split(":")[0] == "gpu"}
    used = {kind: allocated[f"gres/gpu:{kind}"] for kind in counts if kind and f"gres/gpu:{kind}" in allocated}
    left = [kind for kind in counts if kind not in used]
    rest = max(0, allocated.get("gres/gpu", 0) - sum(used.values()))
    for kind in left:
        used[kind] = rest if len(left) == 1 or not rest else counts[kind]
    return tuple(GpuCount(kind, counts[kind], min(used[kind], counts[kind]), not SLICE.search(kind)) for kind in sorted(counts))


def tells_gpus(config: Mapping[str, str]) -> bool:
    """Whether pyslurm tells GPUs in use: where the site counts them as TRES, or has none."""
    return "gres/gpu" in config.get("AccountingStorageTRES", "").split(",") or "gpu" not in config.get("GresTypes", "").split(",")


def parse_partitions(text: str) -> tuple[Partition, ...]:
    """The partitions, in Slurm's own order. Raises ParseError where the document is not as it should be."""
    try:
        return tuple(_partition(told) for told in _list(_document(text, "partitions"), "partitions", "partitions"))
    except (KeyError, TypeError, ValueError) as wrong:
        raise ParseError("pyslurm, partitions", repr(wrong), "partitions") from wrong


def _partition(told: Mapping[str, Any]) -> Partition:
    defaults = {"DefCpuPerGPU": told["default_cpus_per_gpu"], "DefMemPerGPU": told["default_memory_per_gpu"]}
    return Partition(
        name=told["name"],
        nodes=_nodes(told["nodes"], "partitions"),
        up=told["state"] == "UP",
        default=told["is_default"],
        max_time_s=_limit_s(told["max_time"]),
        default_time_s=_limit_s(told["default_time"]),
        max_nodes=_count(told["max_nodes"]),
        min_nodes=_count(told["min_nodes"]) or 0,
        allow_accounts=_named(told["allowed_accounts"]),
        allow_groups=_named(told["allowed_groups"]),
        allow_qos=_named(told["allowed_qos"]),
        over_subscribe=told["oversubscribe"] or "NO",
        preempt_mode=told["preempt_mode"] or "",
        job_defaults=MappingProxyType({name: str(value) for name, value in defaults.items() if value is not None}),
        deny_accounts=_named(told["denied_accounts"]),
        deny_qos=_named(told["denied_qos"]),
        hidden=told["is_hidden"],
        root_only=told["is_root_only"],
        needs_reservation=told["requires_reservation"],
        priority_tier=told["priority_tier"] or 0,
        qos=told["qos"] or "",
    )


def parse_reservations(text: str) -> tuple[Reservation, ...]:
    """The reservations, in Slurm's own order. Raises ParseError where the document is not as it should be."""
    try:
        return tuple(_reservation(told) for told in _list(_document(text, "reservations"), "reservations", "reservations"))
    except (KeyError, TypeError, ValueError) as wrong:
        raise ParseError("pyslurm, reservations", repr(wrong), "reservations") from wrong


def _reservation(told: Mapping[str, Any]) -> Reservation:
    again = told["again"]
    return Reservation(
        name=told["name"],
        nodes=_nodes(told["nodes"], "reservations"),
        start_s=int(told["start_time"]),
        end_s=int(told["end_time"]),
        users=_named(told["users"]),
        accounts=_named(told["accounts"]),
        flags=(*(_FLAGS[name] for name in _FLAGS if name in told["flags"]), *(() if again == "NO" else (again,))),
        partition=told["partition"] or "",
        groups=_named(told["groups"]),
    )


def parse_config(text: str) -> Mapping[str, str]:
    """What pyslurm tells of the configuration, key → value as Slurm writes them. Raises ParseError where the document is none."""
    told = _document(text, "config").get("config")
    if not isinstance(told, dict):
        raise ParseError("pyslurm, config", text, "a configuration")
    written = {name: _written(value) for name, value in told.items()}
    for name in ("AccountingStorageEnforce", "PrivateData"):
        written[name] = written.get(name, "").lower() or "none"
    written["PreemptExemptTime"] = format_time(int(written.get("PreemptExemptTime") or 0))
    return MappingProxyType(written)


def _written(value: object) -> str:
    """`bf_window=600,defer` of `{"bf_window": 600, "defer": true}`; lists by commas; "" for nothing."""
    if isinstance(value, dict):
        return ",".join(name if said is True else f"{name}={said}" for name, said in value.items())
    if isinstance(value, list):
        return ",".join(map(str, value))
    return "" if value is None else str(value)


def _document(text: str, what: str) -> Mapping[str, Any]:
    try:
        document = json.loads(text)
    except ValueError as broken:
        raise ParseError(f"pyslurm, {what}", text, "a JSON document") from broken
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise ParseError(f"pyslurm, {what}", text, f"a document of schema {SCHEMA}")
    return document


def _list(document: Mapping[str, Any], key: str, what: str) -> Sequence[Any]:
    rows = document.get(key)
    if not isinstance(rows, list):
        raise ParseError(f"pyslurm, {what}", repr(rows), f"a list of {key}")
    return rows


def _nodes(text: str | None, what: str) -> tuple[str, ...]:
    try:
        return expand(text or "")
    except UsageError as wrong:
        raise ParseError(f"pyslurm, {what}", str(text), "a list of nodes") from wrong


def _named(words: Sequence[str] | None) -> tuple[str, ...]:
    """`["ALL"]` is what pyslurm says where nothing is set."""
    return () if not words or list(words) == ["ALL"] else tuple(word for word in words if word)


def _limit_s(minutes: int | str | None) -> int | None:
    return None if minutes is None or minutes == UNLIMITED else int(minutes) * 60


def _count(value: int | str | None) -> int | None:
    return None if value is None or value == UNLIMITED else int(value)
