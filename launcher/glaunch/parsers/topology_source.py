"""Any text about a fabric, recognised by what stands in it."""

import re
from collections.abc import Callable

from glaunch.errors import ParseError
from glaunch.fabric import Fabric
from glaunch.fabric_json import fabric_from_json
from glaunch.network import Network
from glaunch.parsers.fabric_file import parse_fabric_file
from glaunch.parsers.ib_words import NOISE
from glaunch.parsers.iblinkinfo import parse_iblinkinfo
from glaunch.parsers.ibnetdiscover import parse_ibnetdiscover, parse_ibnetdiscover_ports
from glaunch.parsers.json_text import read_json
from glaunch.parsers.lldp import parse_lldp
from glaunch.parsers.nvlink import parse_nvlink_domains
from glaunch.parsers.opensm import parse_subnet_lst
from glaunch.parsers.slurm_topology import parse_topology, parse_topology_conf
from glaunch.parsers.topograph import parse_topograph_model
from glaunch.parsers.topology_yaml import parse_topology_yaml

Source = Network | Fabric

_GUIDS = r"(?:vendid|devid|sysimgguid|switchguid|caguid|rtguid)=0x"
FORMATS: dict[str, re.Pattern[str]] = {
    "opensm-subnet.lst": re.compile(r"\{ (?:CA|SW|RT)(?:-SM)? Ports:"),
    "json": re.compile(r'\{\s*"schema"'),
    "lldp": re.compile(r'\{\s*"lldp"'),
    "ibnetdiscover": re.compile(rf'{_GUIDS}|Switch\s*\d+\s*"S-[0-9a-fA-F]|Ca\s*\d+\s*"H-[0-9a-fA-F]'),
    "ibnetdiscover-p": re.compile(r"(?:CA|SW|RT)\s+\d+\s+\d+\s+0x"),
    "iblinkinfo": re.compile(r'(?:CA: .*:|Switch: 0x.*:)$|0x[0-9a-fA-F]+ ".*"\s+\d+\s+\d+\[.*\] ==\('),
    "scontrol": re.compile(r"(?:SwitchName=.*\sLevel=|(?:BlockName|AggregatedBlock)=.*\sBlockIndex=|(?:RingName|TorusName)=)"),
    "topology.yaml": re.compile(r"(?:- )?topology\s*:"),
    "fabric": re.compile(r"fabric\s*:"),
    "topograph": re.compile(r"(?:switches|blocks)\s*:\s*(?:#.*)?$"),
    "nvidia-smi": re.compile(r"(?:[^\s:]+:)?\s*(?:ClusterUUID|CliqueId)\s*:|[^\s:]+:\s+[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-"),
    "topology.conf": re.compile(r"\ufeff?[A-Za-z]\w*\s*[-+*/]?=|include\s|\s*(?:SwitchName|BlockName)\s", re.IGNORECASE),
}
"""Format → how its first telling line begins, in the order in which they are tried."""

_KNOWN = (
    "topology.conf, topology.yaml, scontrol show topology, ibnetdiscover (plain or -p), iblinkinfo, opensm-subnet.lst,"
    " lldpctl -f json, nvidia-smi -q, a fabric file (fabric: NAME), a model of topograph's, or what glaunch topo export --format json wrote"
)


def recognise(text: str) -> str | None:
    """The format of a text: that of its first line that is no comment, banner or noise; None for one that is not known."""
    if text.lstrip()[:1] == "{":
        return next((name for name in ("opensm-subnet.lst", "json", "lldp") if FORMATS[name].match(text.lstrip())), None)
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith(("#", "---")) or NOISE.match(line.strip()):
            continue
        found = next((name for name, start in FORMATS.items() if start.match(line.strip())), None)
        if found is None and re.search(r"(?m)^(?:[^\s:]+:)?\s+ClusterUUID\s*:", text):
            return "nvidia-smi"
        return found
    return None


def parse_source(
    text: str, *, where: str, host: str = "", include: Callable[[str], str] | None = None, topology: str = ""
) -> tuple[Source, ...]:
    """What one text says: networks and fabrics, the ones that count first in front. `where` names the text.

    `host` is the node that the answer of one node (lldpctl, nvidia-smi) comes from. Of a topology.yaml the one that `topology` names
    counts, else the default one, and the blocks of the first of blocks beside it. An `include` of a topology.conf is followed by the
    function of that name.
    Raises ParseError with FILE:LINE and what was expected.
    """
    kind = recognise(text)
    if kind is None:
        if text.lstrip().startswith("Unicast lids"):
            raise ParseError(
                f"{where}:1", text.lstrip(), "cables", hint=f"forwarding tables show a way: glaunch topo path --lfts {where} …"
            )
        number, line = next(((n, one) for n, one in enumerate(text.splitlines(), 1) if one.strip()), (1, ""))
        raise ParseError(f"{where}:{number}", line, _KNOWN)
    if kind == "lldp":
        return (parse_lldp(text, where=where, host=_needed(host, where)),)
    if kind == "nvidia-smi":
        return (parse_nvlink_domains(text, where=where, host=host),)
    if kind == "topology.conf":
        return (parse_topology_conf(text, where=where, include=include),)
    if kind == "topology.yaml":
        return _of_yaml(text, where, topology)
    if kind == "fabric":
        network, blocks = parse_fabric_file(text, where=where)
        return tuple(one for one in (network if network.devices else None, blocks if blocks.blocks or blocks.block_sizes else None) if one)
    if kind == "json":
        return (_of_json(text, where),)
    if kind == "scontrol":
        fabric = parse_topology(text, where=where)
        return () if fabric is None else (fabric,)
    if kind == "topograph":
        return (parse_topograph_model(text, where=where),)
    readers: dict[str, Callable[..., Network]] = {
        "ibnetdiscover": parse_ibnetdiscover,
        "ibnetdiscover-p": parse_ibnetdiscover_ports,
        "iblinkinfo": parse_iblinkinfo,
        "opensm-subnet.lst": parse_subnet_lst,
    }
    return (readers[kind](text, where=where),)


def _needed(host: str, where: str) -> str:
    if not host:
        raise ParseError(where, "no host", "the host's name as the file's: HOST.json")
    return host


def _of_yaml(text: str, where: str, name: str) -> tuple[Source, ...]:
    topologies = parse_topology_yaml(text, where=where)
    if name:
        chosen = tuple(one.fabric for one in topologies if one.name == name)
        if not chosen:
            raise ParseError(where, ", ".join(one.name for one in topologies), f"a topology that is called {name}")
        return chosen
    default = next(one for one in topologies if one.default)
    blocks = [one.fabric for one in topologies if one.kind == "block" and default.kind != "block"]
    return (default.fabric, *blocks[:1])


def _of_json(text: str, where: str) -> Fabric:
    return fabric_from_json(read_json(text, where=where), where=f"{where}:1")
