"""From sizes of parallelism to nodes that stay together."""

import pytest

from glaunch.errors import UsageError
from glaunch.fabric import flat_fabric, synthetic
from glaunch.placement.layout import RankLayout
from glaunch.placement.objective import NO_GROUPS, Groups
from glaunch.placement.parallel import together
from glaunch.request import Request

PODS = synthetic("core:1 spine:4 leaf:4 node:8")
ONE_POD = synthetic("core:1 leaf:8 node:8")


def ask(**sizes: int) -> Request:
    return Request(("train.py",), tasks=1, **sizes)  # type: ignore[arg-type]


def on(nodes: int, per_node: int = 8) -> RankLayout:
    return RankLayout(nodes * per_node, nodes, per_node, per_node, "h100")


@pytest.mark.parametrize(
    ("sizes", "layout", "groups"),
    [
        ({}, on(64), NO_GROUPS),
        ({"tp": 8}, on(64), NO_GROUPS),  # inside a node
        ({"tp": 8, "dp": 64}, on(64), NO_GROUPS),  # all ranks are one data-parallel group
        ({"tp": 8, "pp": 4}, on(64), Groups(1, 16)),  # a stage is 16 nodes
        ({"tp": 8, "pp": 4, "dp": 16}, on(64), Groups(1, 16)),
        ({"pp": 4}, on(64), Groups(1, 16)),
        ({"dp": 16}, on(64), Groups(4, 4)),  # what --dp leaves over is tensor parallelism: 32 ranks
        ({"dp": 16, "pp": 4}, on(64), Groups(1, 16)),
        ({"tp": 16}, on(64), Groups(2, 2)),  # over nodes: in one leaf
        ({"tp": 16, "pp": 8}, on(64), Groups(2, 8)),
        ({"tp": 4, "ep": 8}, on(64), Groups(1, 4)),
        ({"tp": 8, "ep": 8, "pp": 4}, on(64), Groups(1, 16)),  # a stage holds its expert-parallel groups
        ({"segment": 16}, on(64), Groups(1, 16)),
        ({"segment": 16, "tp": 8, "pp": 2}, on(64), Groups(1, 16)),  # a segment goes before a stage
        ({"segment": 1}, on(64), NO_GROUPS),
        ({"tp": 8}, on(16, 4), Groups(2, 2)),
    ],
)
def test_groups_in_pods(sizes: dict[str, int], layout: RankLayout, groups: Groups) -> None:
    assert together(ask(**sizes), layout, PODS).groups == groups


def test_where_there_are_no_pods_groups_stay_in_leaves() -> None:
    assert together(ask(segment=4), on(64), ONE_POD).groups == Groups(4, 4)
    assert together(ask(tp=16, pp=8), on(64), ONE_POD).groups == Groups(2, 8)
    assert together(ask(segment=4), on(8), flat_fabric(["n1"])).groups == Groups(4, 4)


def test_groups_that_begin_inside_a_node_are_told_of() -> None:
    answer = together(ask(tp=6), RankLayout(48, 6, 8, 8, "h100"), PODS)
    assert answer.groups == NO_GROUPS
    assert answer.notes == ("groups of 6 ranks (tensor-parallel) begin and end inside nodes of 8 ranks: they cannot be kept together",)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"tp": 8, "pp": 3}, "--tp 8 --pp 3 do not make 512 ranks"),
        ({"tp": 8, "dp": 8, "pp": 4}, "--tp 8 --dp 8 --pp 4 do not make 512 ranks"),
        ({"tp": 8, "dp": 64, "ep": 5}, "64 data-parallel ranks hold no whole expert-parallel groups of 5"),
        ({"segment": 5}, "--segment 5 does not divide 64 nodes"),
        ({"segment": 128}, "--segment 128 does not divide 64 nodes"),
        ({"segment": 2, "tp": 32}, "groups of 2 nodes cannot hold whole tensor-parallel groups of 4 nodes"),
        ({"pp": 0}, "each must be at least 1"),
    ],
)
def test_what_cannot_be_meant_is_refused(sizes: dict[str, int], message: str) -> None:
    with pytest.raises(UsageError, match=message) as error:
        together(ask(**sizes), on(64), PODS)
    assert error.value.hint or "at least 1" in message
