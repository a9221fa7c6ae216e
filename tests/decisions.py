"""A small cluster (two leaves of two nodes of 8 GPUs), and whole decisions on it under a site's file: what tests of a plan share."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from glaunch import config
from glaunch.cluster import Cluster, Partition
from glaunch.decide import Ground, decide
from glaunch.fabric import Fabric, synthetic
from glaunch.parsers.slurm_nodes import parse_nodes
from glaunch.parsers.slurm_topology import parse_topology_conf
from glaunch.plan import Plan
from glaunch.request import Caller, Request

FABRIC = synthetic("spine:1 leaf:2 node:2")
NODE_LINES = "\n".join(
    f"NodeName=n00{number} CPUAlloc=0 CPUEfctv=64 CPUTot=64 ActiveFeatures={'ib,fast' if number < 3 else 'ib'} Gres=gpu:h100:8 "
    f"GresUsed=(null) NodeAddr=n00{number} RealMemory=512000 AllocMem=0 State=IDLE Weight=1 Partitions=gpu"
    for number in range(1, 5)
)
NODES = parse_nodes(NODE_LINES)
GPU = Partition("gpu", NODES.names, True, True, 7200, None, None, 0, (), (), (), "NO", "OFF", MappingProxyType({}))
CLUSTER = Cluster("c", (24, 11, 5), 1_000_000, NODES, (GPU,), (), MappingProxyType({"TopologyPlugin": "topology/tree"}))
BLOCKS = parse_topology_conf("BlockName=b1 Nodes=n[001-002]\nBlockName=b2 Nodes=n[003-004]\nBlockSizes=2\n", where="topology.conf")


class Site:
    """A site's file, and decisions under it."""

    failed: Mapping[str, int] = MappingProxyType({})
    fabric: Fabric = FABRIC

    def __init__(self, folder: Path) -> None:
        self.etc = folder / "etc"
        self.etc.mkdir(mode=0o755)
        self.file = self.etc / "site.yaml"

    def says(self, text: str) -> None:
        self.file.write_text(text)
        self.file.chmod(0o644)

    def decide(self, *, cluster: Cluster = CLUSTER, **words: object) -> Plan:
        settings = config.load(home=self.etc, cwd=self.etc, environ={}, etc=self.etc)
        request = Request(**{"command": ("./a.out",), "tasks": 16, **words})  # type: ignore[arg-type]
        caller = Caller("ada", frozenset(), "/home/ada", ("./a.out",), "a.out", {})
        rules = config.load_rules()
        fabric = cluster.topology or self.fabric
        return decide(request, caller, Ground(settings, rules, cluster, fabric, "ab12", "/home/ada/j", 1_000_000, failed=self.failed))


def options(plan: Plan, name: str) -> list[tuple[str | None, str]]:
    """(value, why) of each line of an sbatch option."""
    return [(option.value, option.why) for option in plan.directives if option.name == name]
