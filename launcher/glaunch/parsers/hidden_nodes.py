"""Nodes that Slurm does not show to a user (PrivateData=nodes), as far as its partitions tell of them."""

import re

from glaunch.cluster import NodeTable
from glaunch.errors import ParseError
from glaunch.hostlist import expand
from glaunch.parsers.slurm_fields import fields, text_of
from glaunch.parsers.slurm_nodes import parse_nodes

HIDDEN = "HIDDEN"
"""The state of such a node: not one of Slurm's, so that it is never taken for free."""


def hidden_nodes(partitions: str) -> NodeTable:
    """The nodes of `scontrol -o show partition`, each with an even share of its first partition's CPUs, memory and GPUs.

    What the shares are good for is the shape of a job; what is free is not known.
    Raises ParseError where a number is none. **Source:** seen with Slurm 22.05, which refuses `show node` and `sinfo` altogether then.
    """
    shapes: dict[str, str] = {}
    member_of: dict[str, list[str]] = {}
    for number, line in enumerate(partitions.split("\n"), 1):
        if not line.startswith("PartitionName="):
            continue
        found = fields(line, ("PartitionName", "Nodes", "TRES"))
        names = expand(text_of(found.get("Nodes", "")))
        shape = _shape(found.get("TRES", ""), max(1, len(names)), f"scontrol show partition:{number}")
        for name in names:
            shapes.setdefault(name, shape)
            member_of.setdefault(name, []).append(found["PartitionName"])
    lines = (f"NodeName={name} NodeAddr={name} State={HIDDEN} {shapes[name]} Partitions={','.join(member_of[name])}" for name in shapes)
    return parse_nodes("\n".join(lines))


def _shape(tres: str, nodes: int, where: str) -> str:
    """The fields of a node, from the sums of its partition: `cpu=512,mem=4000000M,node=8,gres/gpu:h100=64`."""
    sums = dict(pair.split("=", 1) for pair in text_of(tres).split(",") if "=" in pair)
    memory = re.fullmatch(r"(\d+)([MGT]?)", sums.get("mem", "0"))
    cpus = sums.get("cpu", "0")
    if memory is None or not cpus.isdigit():
        raise ParseError(where, tres, "TRES=cpu=…,mem=…")
    mebibytes = int(memory[1]) * {"": 1, "M": 1, "G": 1024, "T": 1024**2}[memory[2]]
    gpus = [(name[9:], int(count) // nodes) for name, count in sums.items() if name.startswith("gres/gpu:") and count.isdigit()]
    total = sums.get("gres/gpu", "0")
    if not gpus and total.isdigit() and int(total) >= nodes:
        gpus = [("", int(total) // nodes)]
    gres = ",".join(f"gpu:{kind}:{count}" if kind else f"gpu:{count}" for kind, count in gpus if count)
    machine = f"CPUTot={int(cpus) // nodes} CPUAlloc=0 RealMemory={mebibytes // nodes} AllocMem=0"
    return f"{machine} Weight=1 Gres={gres or '(null)'} GresUsed=(null)"
