"""Nodes that Slurm does not show, from what its partitions say."""

import pytest

from glaunch.errors import ParseError
from glaunch.parsers.hidden_nodes import hidden_nodes

TEXT = """\
PartitionName=gpu Nodes=n[001-004] State=UP TotalCPUs=256 TotalNodes=4 TRES=cpu=256,mem=2000000M,node=4,gres/gpu=32,gres/gpu:h100=32
PartitionName=cpu Nodes=n[003-006] State=UP TotalCPUs=128 TotalNodes=4 TRES=cpu=128,mem=1000G,node=4
PartitionName=none Nodes=(null) State=UP TotalCPUs=0 TotalNodes=0 TRES=(null)
"""


def test_each_node_has_an_even_share_of_its_first_partition_and_is_never_free() -> None:
    nodes = hidden_nodes(TEXT)
    assert nodes.names == ("n001", "n002", "n003", "n004", "n005", "n006")
    assert set(nodes.states) == {"HIDDEN"}
    assert nodes.cpus_total.tolist() == [64, 64, 64, 64, 32, 32]
    assert nodes.memory_total_mib.tolist() == [500000] * 4 + [256000] * 2
    assert nodes.gpus_total.tolist() == [8, 8, 8, 8, 0, 0]
    assert nodes.gpu_types[0] == "h100"
    assert nodes.partitions[2] == {"gpu", "cpu"}


def test_sums_that_are_none_are_said() -> None:
    with pytest.raises(ParseError, match="show partition:1"):
        hidden_nodes("PartitionName=gpu Nodes=n1 TRES=cpu=many,mem=1M")
