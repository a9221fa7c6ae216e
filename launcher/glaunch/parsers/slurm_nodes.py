"""`scontrol -a -d -o show node` as a NodeTable."""

import re
from collections.abc import Callable
from functools import lru_cache
from types import MappingProxyType

import numpy as np

from glaunch.cluster import GpuCount, IntArray, NodeTable
from glaunch.errors import ParseError
from glaunch.parsers.slurm_fields import NOTHING, fields

COMMAND = "scontrol show node"

_KEYS = (
    "NodeName",
    "NodeAddr",
    "State",
    "CPUAlloc",
    "CPUEfctv",
    "CPUTot",
    "RealMemory",
    "AllocMem",
    "MemSpecLimit",
    "Weight",
    "ActiveFeatures",
    "Gres",
    "GresUsed",
    "Partitions",
)
_FREE_TEXTS = (" Comment=", " Extra=", " Reason=")
_MARKS = MappingProxyType(
    {
        "*": "NOT_RESPONDING",
        "~": "POWERED_DOWN",
        "#": "POWERING_UP",
        "!": "POWER_DOWN",
        "%": "POWERING_DOWN",
        "$": "MAINTENANCE",
        "@": "REBOOT_REQUESTED",
        "^": "REBOOT_ISSUED",
        "-": "PLANNED",
    }
)
"""sinfo(1), NODE STATE CODES: what a character behind a state means."""
SLICE = re.compile(r"(?:^|[_-])\d+(?:c\.\d+)?g\.\d+gb")
"""A GPU type that is a slice of one (MIG)."""


def parse_nodes(text: str) -> NodeTable:
    """The nodes, in Slurm's own order; no nodes give an empty table.

    A reason, a comment or an extra text stands at the end of a line and is cut off before anything is read; what an administrator wrote
    there on several lines is skipped. Fields that are not known are not looked at; without `-d` (no GresUsed) GPUs in use are not known
    and count as 0 on an idle node and as all of them on any other.
    Raises ParseError (`scontrol show node:LINE`) where a line is no node or a number is none.
    **Source:** scontrol(1), "show node"; seen with Slurm 21.08 to 26.05.
    """
    rows: dict[str, NodeRow] = {}
    open_text = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("NodeName="):
            cuts = [line.find(key) for key in _FREE_TEXTS if key in line]
            open_text = bool(cuts)
            name = line[9:].split(" ", 1)[0]
            if name and name not in rows:
                rows[name] = _row(line[: min(cuts)] if cuts else line, f"{COMMAND}:{number}")
        elif line.strip() and not open_text and not _is_talk(line):
            raise ParseError(f"{COMMAND}:{number}", line, "NodeName=…")
    return node_table(rows)


def _is_talk(line: str) -> bool:
    return line.startswith(("No nodes in the system", "CLUSTER: "))


class NodeRow:
    """One node's fields, between an answer and the columns."""

    __slots__ = ("address", "cpus", "features", "gpus", "memory", "partitions", "state", "weight")

    address: str
    cpus: tuple[int, int]
    memory: tuple[int, int]
    state: str
    weight: int
    features: frozenset[str]
    partitions: frozenset[str]
    gpus: tuple[GpuCount, ...]


def _row(line: str, where: str) -> NodeRow:
    found = fields(line, _KEYS)
    row = NodeRow()
    try:
        row.state = parse_state(found["State"])
        total = int(found.get("CPUEfctv") or found["CPUTot"])
        row.cpus = (total, int(found["CPUAlloc"]))
        row.memory = (int(found["RealMemory"]) - int(found.get("MemSpecLimit", 0)), int(found.get("AllocMem", 0)))
        row.weight = int(found.get("Weight", 1))
    except KeyError as missing:
        raise ParseError(where, line, f"a field {missing.args[0]}=") from missing
    except ValueError as wrong:
        raise ParseError(where, line, "whole numbers in CPUAlloc, CPUTot, RealMemory, AllocMem, Weight") from wrong
    row.address = found.get("NodeAddr", found["NodeName"])
    row.features = _words(found.get("ActiveFeatures", ""))
    row.partitions = _words(found.get("Partitions", ""))
    try:
        row.gpus = _gpus(found.get("Gres", ""), found.get("GresUsed"), row.state.startswith("IDLE"))
    except ParseError as wrong:
        raise ParseError(where, wrong.seen, wrong.expected) from wrong
    return row


@lru_cache(maxsize=4096)
def parse_state(text: str) -> str:
    """`DOWN*+DRAIN` → `DOWN+DRAIN+NOT_RESPONDING`: upper case, flags after the base state, marks written out."""
    words = text.upper().split("+")
    flags: list[str] = []
    for word in words:
        base = word.rstrip("".join(_MARKS))
        flags += [base] if base else []
    flags += [_MARKS[mark] for word in words for mark in word[len(word.rstrip("".join(_MARKS))) :]]
    return "+".join(dict.fromkeys(flags))


@lru_cache(maxsize=4096)
def _words(value: str) -> frozenset[str]:
    return frozenset() if value in NOTHING else frozenset(value.split(","))


@lru_cache(maxsize=4096)
def _gpus(total: str, used: str | None, idle: bool) -> tuple[GpuCount, ...]:
    counts = parse_gpus(total)
    taken = (dict.fromkeys(counts, 0) if idle else counts) if used is None else parse_gpus(used)
    return tuple(GpuCount(kind, counts[kind], min(taken.get(kind, 0), counts[kind]), not SLICE.search(kind)) for kind in sorted(counts))


def parse_gpus(value: str) -> dict[str, int]:
    """GPU type → count of a GRES text: `gpu:h100:8(S:0-1),shard:h100:32`; type "" for untyped ones; other GRES (shard, mps) are left out.

    **Source:** gres.conf(5); slurm.conf(5), "Gres".
    """
    counts: dict[str, int] = {}
    for item in re.split(r",(?![^()]*\))", "" if value in NOTHING else value):
        words = re.sub(r"\(.*?\)", "", item).split(":")
        if words[0] != "gpu":
            continue
        last = re.fullmatch(r"(\d+)([KMG]?)", words[-1]) if len(words) > 1 else None
        kind = ":".join(words[1:-1] if last else words[1:])
        counts[kind] = counts.get(kind, 0) + (int(last[1]) * 1024 ** " KMG".find(last[2] or " ") if last else 1)
    if value and not value.isprintable():
        raise ParseError(COMMAND, value, "a GRES such as gpu:h100:8")
    return counts


def node_table(rows: dict[str, NodeRow]) -> NodeTable:
    """The columns of these rows."""
    nodes = tuple(rows.values())
    whole = [tuple(gpu for gpu in node.gpus if gpu.whole and gpu.total) for node in nodes]

    def column(value: Callable[[NodeRow], int]) -> IntArray:
        return np.fromiter(map(value, nodes), dtype=np.int64, count=len(nodes))

    def sums(value: Callable[[GpuCount], int]) -> IntArray:
        return np.fromiter((sum(map(value, gpus)) for gpus in whole), dtype=np.int64, count=len(nodes))

    return NodeTable(
        names=tuple(rows),
        addresses=tuple(node.address for node in nodes),
        states=tuple(node.state for node in nodes),
        cpus_total=column(lambda node: node.cpus[0]),
        cpus_allocated=column(lambda node: node.cpus[1]),
        memory_total_mib=column(lambda node: node.memory[0]),
        memory_allocated_mib=column(lambda node: node.memory[1]),
        gpus_total=sums(lambda gpu: gpu.total),
        gpus_allocated=sums(lambda gpu: gpu.allocated),
        gpu_types=tuple(",".join(gpu.kind for gpu in gpus) for gpus in whole),
        weights=column(lambda node: node.weight),
        features=tuple(node.features for node in nodes),
        partitions=tuple(node.partitions for node in nodes),
        gpus=tuple(node.gpus for node in nodes),
    )
