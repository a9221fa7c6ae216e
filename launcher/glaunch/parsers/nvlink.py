"""NVLink domains as blocks, from what `nvidia-smi` says on each node: the cluster UUID and the clique that its GPUs belong to.

**Source:** nvidia-smi(1), `-q`, section Fabric; the lines that pdsh, clush and `srun --label` make of many nodes' answers.
"""

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from glaunch.errors import ParseError
from glaunch.fabric import Block, Fabric
from glaunch.hostlist import natural_key
from glaunch.network import is_name

_UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
_NODE = re.compile(
    rf"(?P<node>[^\s:]+):\s+(?:.*\bClusterUUID\s*[:=]\s*)?(?P<uuid>{_UUID}|N/A)(?:[\s,]+(?:CliqueId\s*[:=]?\s*)?(?P<clique>\d+))?\s*"
)
_FIELD = re.compile(r"(?:(?P<node>[^\s:]+):)?\s+(?P<key>ClusterUUID|CliqueId)\s*:\s*(?P<value>\S+)\s*")
_NO_DOMAIN = frozenset({"N/A", "00000000-0000-0000-0000-000000000000"})


class _Domain(NamedTuple):
    uuid: str
    clique: str


def parse_nvlink_domains(text: str, *, where: str, host: str = "") -> Fabric:
    """The blocks of a fabric without switches: one for each clique of each cluster UUID, called `nvl-UUID` (`nvl-UUID-CLIQUE` where
    one UUID has several), its nodes in natural order.

    Two forms: a line a node (`NODE: UUID` or `NODE: UUID CLIQUE`), or the lines of `nvidia-smi -q`, each behind `NODE:` or, for the answer
    of one node, with `host` for all. Nodes without a domain (`N/A`, all zeros) are in none.
    Raises ParseError with the line for a node whose GPUs are of different domains, for a line of the first form that is none, and for a
    text without any.
    """
    said: dict[str, _Domain] = {}
    lines: dict[str, str] = {}
    for at, node, domain in _answers(text, where, host):
        if said.setdefault(node, domain) != domain:
            raise ParseError(
                at, f"{node}: {domain.uuid} {domain.clique}", f"one domain for all GPUs of a node; {lines[node]} says {said[node].uuid}"
            )
        lines.setdefault(node, at)
    if not said:
        raise ParseError(f"{where}:1", text.strip(), "NODE: CLUSTER-UUID, or the section Fabric of nvidia-smi -q")
    return Fabric((), where, blocks=_blocks(said, lines))


def _blocks(said: Mapping[str, _Domain], lines: Mapping[str, str]) -> tuple[Block, ...]:
    members: dict[_Domain, list[str]] = defaultdict(list)
    for node, domain in said.items():
        if domain.uuid not in _NO_DOMAIN:
            members[domain].append(node)
    cliques: dict[str, int] = defaultdict(int)
    for domain in members:
        cliques[domain.uuid] += 1
    blocks = []
    for domain, nodes in members.items():
        name = f"nvl-{domain.uuid.lower()}" + (f"-{domain.clique}" if cliques[domain.uuid] > 1 else "")
        blocks.append(Block(name, tuple(sorted(nodes, key=natural_key)), lines[nodes[0]]))
    return tuple(blocks)


def _answers(text: str, where: str, host: str) -> list[tuple[str, str, _Domain]]:
    """(FILE:LINE, node, domain), one for each GPU or node."""
    found: list[tuple[str, str, _Domain]] = []
    clique_of: dict[str, tuple[str, str]] = {}
    uuid_of: dict[str, tuple[str, str]] = {}
    fields = re.search(r"(?m)^(?:[^\s:]+:)?\s+ClusterUUID\s*:", text) is not None
    for number, line in enumerate(text.splitlines(), 1):
        at = f"{where}:{number}"
        if not fields:
            if line.strip() and not line.startswith("#"):
                words = _NODE.fullmatch(line)
                if not words or not is_name(words["node"]):
                    raise ParseError(at, line, "NODE: CLUSTER-UUID [CLIQUE]")
                found.append((at, words["node"], _Domain(words["uuid"], words["clique"] or "")))
            continue
        words = _FIELD.fullmatch(line)
        if not words:
            continue
        node = words["node"] or host
        if not node:
            raise ParseError(at, line, "NODE: before each line, or a file called NODE.txt")
        own = clique_of if words["key"] == "CliqueId" else uuid_of
        own[node] = (words["value"], at)
        if node in clique_of and node in uuid_of:
            uuid, _ = uuid_of.pop(node)
            clique, _ = clique_of.pop(node)
            if uuid not in _NO_DOMAIN and not re.fullmatch(_UUID, uuid):
                raise ParseError(at, uuid, "a UUID")
            found.append((at, node, _Domain(uuid, clique)))
    left = [*uuid_of.values(), *clique_of.values()]
    if left:
        raise ParseError(left[0][1], left[0][0], "a ClusterUUID and a CliqueId for each GPU")
    return found
