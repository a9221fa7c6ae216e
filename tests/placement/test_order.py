"""Nodes along the fabric."""

import random

from hypothesis import given
from hypothesis import strategies as st

from glaunch.fabric import build_fabric, synthetic
from glaunch.placement.order import fabric_order, in_fabric_order, natural_order
from glaunch.placement.placement import OrderRow


def test_pod_by_pod_and_leaf_by_leaf_with_unknown_nodes_last() -> None:
    parents = {"core": None, "pod10": "core", "pod2": "core", "leafb": "pod10", "leafa": "pod2", "edge": "core"}
    nodes = {"leafb": ["n1"], "leafa": ["n10", "n9"], "edge": ["login1"]}
    fabric = build_fabric(parents, nodes, "by hand")
    assert fabric_order(fabric, ["x2", "n1", "n10", "x10", "n9", "login1", "n1"]) == (
        OrderRow("login1", 0, "edge", "core"),
        OrderRow("n9", 1, "leafa", "pod2"),
        OrderRow("n10", 2, "leafa", "pod2"),
        OrderRow("n1", 3, "leafb", "pod10"),
        OrderRow("x2", 4, "", ""),
        OrderRow("x10", 5, "", ""),
    )


def test_a_subset_sorted_by_position_is_the_order_of_the_subset() -> None:
    fabric = synthetic("core:2 spine:3 leaf:2 node:3")
    position = {row.node: row.position for row in fabric_order(fabric, fabric.leaf_of)}
    r = random.Random(2)
    for _ in range(50):
        subset = r.sample(sorted(position), 9)
        assert tuple(sorted(subset, key=position.__getitem__)) == in_fabric_order(fabric, subset)


def test_a_ring_along_the_order_crosses_every_link_twice_at_most() -> None:
    fabric = synthetic("core:1 spine:4 leaf:3 node:4")
    r = random.Random(7)
    for _ in range(50):
        nodes = in_fabric_order(fabric, r.sample(sorted(fabric.leaf_of), 17))
        crossed: dict[str, int] = {}
        for one, two in zip(nodes, nodes[1:] + nodes[:1], strict=True):
            for switch in set(fabric.path_up(one)) ^ set(fabric.path_up(two)):
                crossed[switch] = crossed.get(switch, 0) + 1
        assert set(crossed.values()) <= {2}


def test_numbers_are_counted_and_equal_numbers_keep_apart() -> None:
    long = "n" + "9" * 5000
    assert natural_order([long, "n7"]) == ["n7", long]
    assert natural_order(["n10", "n2", "n02", "n", "n1x10", "n1x9", "m3"]) == ["m3", "n", "n02", "n2", "n10", "n1x9", "n1x10"]


@given(st.lists(st.text(alphabet="ab01２-9", max_size=6)))
def test_any_names_have_an_order(names: list[str]) -> None:
    assert natural_order(natural_order(names)[::-1]) == natural_order(names)
