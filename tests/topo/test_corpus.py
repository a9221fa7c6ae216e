"""Real files of many centres and tools: each is read, or refused with its line; counts that are known are met."""

import csv
import os
from collections import Counter
from pathlib import Path

import pytest

from glaunch.errors import GlaunchError, ParseError
from glaunch.fabric import Fabric
from glaunch.fabric_files import read_sources
from glaunch.hierarchy import fabric_of
from glaunch.merge import merge
from glaunch.network import ENGINE
from glaunch.parsers.ibnetdiscover import parse_ibnetdiscover
from glaunch.parsers.topology_source import recognise

TOPOLOGY = Path(os.environ.get("GLAUNCH_SHARED") or Path(__file__).resolve().parents[3] / "shared") / "corpus" / "topology"
pytestmark = pytest.mark.skipif(not TOPOLOGY.is_dir(), reason=f"no corpus at {TOPOLOGY}")

READ = {
    "ibnetdiscover": 25, "ibnetdiscover-p": 13, "iblinkinfo": 17, "opensm-subnet.lst": 5, "lldp": 3, "topology.yaml": 10, "topograph": 5,
    "nvidia-smi": 1, "topology.conf": 60,
}  # fmt: skip
"""Format → at least so many files of it are read."""


def told(path: Path) -> Fabric | GlaunchError:
    """The fabric of a file, or why it is refused."""
    try:
        return merge(read_sources([path]))
    except GlaunchError as refused:
        return refused


def test_every_file_is_read_or_refused_with_its_line() -> None:
    read = Counter[str]()
    for path in sorted(path for path in TOPOLOGY.rglob("*") if path.is_file()):
        seen = told(path)
        if isinstance(seen, ParseError):
            assert seen.where.rpartition(":")[2].isdecimal(), seen.message
            assert seen.expected
        elif isinstance(seen, GlaunchError):
            assert path.name == "include_missing.topology.conf", seen.message
        else:
            read[str(recognise(path.read_bytes().decode(errors="surrogateescape")))] += 1
            assert seen.leaf_of or seen.blocks or seen.network or seen.flat or seen.switches, path
    assert {kind: (read[kind], least) for kind, least in READ.items() if read[kind] < least} == {}


def test_dumps_hold_what_is_known_to_be_in_them() -> None:
    checked = 0
    with open(TOPOLOGY / "fabric" / "FACTS.tsv", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    for row in rows:
        path = TOPOLOGY / row["file"].removeprefix("b-")
        network = parse_ibnetdiscover(path.read_text(errors="surrogateescape"), where=path.name)
        engines = {device.id for device in network.devices if device.kind == ENGINE}
        if "superbench" in path.name:  # this one names an engine from the switch's side alone, and was counted without it
            network = type(network)(
                tuple(device for device in network.devices if device.id not in engines),
                tuple(link for link in network.links if not engines & {link.one, link.two}),
                network.source,
            )
            engines = set()
        found = {
            "switches": len(network.switches),
            "cas": len({device.card for device in network.devices if device.card}),
            "aggregation_node_cas": len(engines),
            "self_links": sum(link.one == link.two for link in network.links),
            "distinct_hosts": len(network.hosts),
            "unnamed_cas": len({device.card for device in network.unnamed}),
            "one_sided_links": sum(link.sides == 1 for link in network.links),
            "cas_per_host_max": max((len({one.card for one in own}) for own in network.hosts.values()), default=0),
        }
        if "superbench" not in path.name:
            found["links"] = len(network.links)
        assert {key: (value, row[key]) for key, value in found.items() if str(value) != row[key]} == {}, path.name
        checked += 1
    assert checked >= 19


def test_a_real_rail_optimised_fabric() -> None:
    """25 groups of 8 rail leaves, 4 x 80 spines, 140 cores."""
    (path,) = (TOPOLOGY / "fabric" / "ibnetdiscover").glob("nvidia-selene*")
    fabric = fabric_of(parse_ibnetdiscover(path.read_text(), where=path.name))
    units = [switch for switch in fabric.switches if len(switch.members) == 8]
    assert len(units) == 25
    assert all(14 <= len(unit.nodes) <= 20 for unit in units)
    assert Counter(len(switch.members) for switch in fabric.switches if switch.tier and switch.members) == {80: 4, 140: 1}


def test_all_readings_of_one_fabric_agree() -> None:
    files = {path.name.split(".ib")[0]: path for path in (TOPOLOGY / "fabric" / "ibsim-out" / "ibnetdiscover").iterdir()}
    compared = 0
    for folder in ("ibnetdiscover-p", "ibnetdiscover-f", "iblinkinfo", "iblinkinfo-l"):
        for path in (TOPOLOGY / "fabric" / "ibsim-out" / folder).iterdir():
            both = merge(read_sources([files[path.name.split(".ib")[0]], path]))
            assert both.disputes == (), path
            compared += 1
    assert compared >= 34
