"""What holds of a snapshot wherever it comes from: recorded answers of every version, and a living Slurm through each gateway."""

import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.gateways.conftest import Live

from glaunch.cluster import Cluster
from glaunch.errors import SlurmError
from glaunch.gateways.kept import read_cluster
from glaunch.gateways.process import Completed
from glaunch.gateways.slurm import QUESTIONS, SlurmCommands
from glaunch.parsers.slurm_topology import parse_topology
from glaunch.placement.eligible import eligible
from glaunch.placement.partition import choose_partition
from glaunch.request import Request

SHARED = Path(os.environ.get("GLAUNCH_SHARED") or Path(__file__).resolve().parents[3] / "shared")
CAPTURES = sorted(SHARED.glob("captures/*/*"))
FILES = {
    "version": "version.txt",
    "nodes": "scontrol-show-node-d-oneliner.txt",
    "partitions": "scontrol-show-partition-oneliner.txt",
    "reservations": "scontrol-show-reservation.txt",
    "topology": "scontrol-show-topology-oneliner.txt",
    "config": "scontrol-show-config.txt",
}
"""Where a capture of other versions has the answer to each question."""
LIVE = [
    pytest.param("commands", marks=pytest.mark.slurm),
    pytest.param("pyslurm", marks=[pytest.mark.slurm, pytest.mark.needs_pyslurm]),
]
BASES = {"ALLOCATED", "MIXED", "IDLE", "DOWN", "DRAINED", "ERROR", "FUTURE", "UNKNOWN"}


def recorded(folder: Path) -> SlurmCommands:
    """The gateway over a capture's files."""

    def run(argv: Sequence[str], stdin: str, timeout_s: float) -> Completed:
        question = next((question for question, words in QUESTIONS.items() if words == tuple(argv)), "")
        if question not in FILES:
            raise SlurmError(f"not recorded: {argv}")
        return Completed(tuple(argv), 0, (folder / FILES[question]).read_text(), "")

    return SlurmCommands(run, environ={})


@pytest.fixture(params=[*(pytest.param(path, id=f"{path.parent.name}-{path.name}") for path in CAPTURES), *LIVE])
def snapshot(request: pytest.FixtureRequest) -> tuple[Cluster, str]:
    """A cluster and its topology."""
    if isinstance(request.param, Path):
        cluster, topology = read_cluster(recorded(request.param), time.time())
        assert f"{cluster.slurm_version[0]}.{cluster.slurm_version[1]:02d}" == request.param.parent.name
        return cluster, topology
    live = Live(request.getfixturevalue("accounting_box"), request.param)
    live.quiet()
    return read_cluster(live.gateway(), time.time())


def test_every_snapshot_is_whole(snapshot: tuple[Cluster, str]) -> None:
    cluster, topology = snapshot
    nodes = cluster.nodes
    assert len(set(nodes.names)) == len(nodes) == 8
    assert {len(getattr(nodes, column)) for column in nodes.__dataclass_fields__} == {8}
    assert set(map(int, nodes.gpus_total)) == {8}
    assert (nodes.gpus_allocated <= nodes.gpus_total).all()
    assert (nodes.cpus_allocated <= nodes.cpus_total).all()
    assert {state.split("+")[0] for state in nodes.states} <= BASES
    for state, gpus, cpus in zip(nodes.states, nodes.gpus_allocated, nodes.cpus_allocated, strict=True):
        assert state.split("+")[0] != "IDLE" or (int(gpus), int(cpus)) == (0, 0)
    (default,) = [partition for partition in cluster.partitions if partition.default]
    assert set(default.nodes) == set(nodes.names)
    for partition in cluster.partitions:
        assert all(partition.name in nodes.partitions[nodes.row[name]] for name in partition.nodes)
    for reservation in cluster.reservations:
        assert reservation.start_s < reservation.end_s
        assert set(reservation.nodes) <= set(nodes.names)
    assert cluster.config["ClusterName"] == cluster.name != ""
    assert cluster.config["TopologyPlugin"].startswith("topology/")
    fabric = parse_topology(topology, where="scontrol show topology")
    assert fabric is not None
    assert set(fabric.leaf_of) == set(nodes.names)


def test_every_snapshot_can_be_planned_on(snapshot: tuple[Cluster, str]) -> None:
    cluster, _ = snapshot
    request = Request(("x",), tasks=4, tasks_per_node=4, gpus_per_node="8")  # the recorded nodes have 4 cores and 8 GPUs
    found = eligible(request, cluster, choose_partition(request, cluster), now_s=cluster.taken_at_s, time_limit_s=600)
    idle = [name for name, state in zip(cluster.nodes.names, cluster.nodes.states, strict=True) if state == "IDLE"]
    assert set(found.nodes) == set(idle) != set()
