"""Connections of rings and trees, the links that they share, and the model on cases that can be reckoned by hand."""

import random

import numpy as np
import pytest

from glaunch.config import load_model
from glaunch.fabric import synthetic
from glaunch.network_model import Network, Parameter
from glaunch.placement.cost import cost_of
from glaunch.placement.order import in_fabric_order
from glaunch.placement.predict import Crossings, fullest, predict, ring_connections, tree_connections

PLAIN = {
    "efficiency": Parameter(0.5, 1.0, 1.0, "here"),
    "ring_step_us": Parameter(1e-9, 1e-9, 1e-9, "here"),
    "tree_step_us": Parameter(1e-9, 1e-9, 1e-9, "here"),
    "tree_factor": Parameter(0.5, 0.5, 0.5, "here"),
    "message_mib": Parameter(1024, 1024, 1024, "here"),
}
FABRIC = synthetic("core:1 spine:2 leaf:2 node:4")


@pytest.mark.parametrize("n", range(1, 40))
def test_both_trees_join_all_nodes_once_and_no_node_has_three_children(n: int) -> None:
    edges = tree_connections(n)
    assert len(edges) == 4 * (n - 1)
    assert {tuple(edge) for edge in edges[: 2 * (n - 1)].tolist()} == {(b, a) for a, b in edges[2 * (n - 1) :].tolist()}
    for tree in (edges[: n - 1], edges[n - 1 : 2 * (n - 1)]):
        parent = dict(tree.tolist())
        assert len(parent) == n - 1
        roots = set()
        for node in range(n):
            steps = 0
            while node in parent:
                node, steps = parent[node], steps + 1
                assert steps <= n.bit_length(), "a tree is no deeper than the number's bits"
            roots.add(node)
        assert len(roots) == 1
        assert max(np.bincount(tree[:, 1], minlength=1), default=0) <= 2 + (n & (n - 1) != 0)


def test_a_node_is_inside_one_tree_and_a_leaf_of_the_other() -> None:
    edges = tree_connections(16)
    one, two = set(edges[:15, 1].tolist()), set(edges[15:30, 1].tolist())
    assert not one & two


def test_the_fabrics_order_leaves_each_leaf_once() -> None:
    r = random.Random(3)
    for _ in range(50):
        nodes = in_fabric_order(FABRIC, r.sample(sorted(FABRIC.leaf_of), r.randint(2, 16)))
        cost, found = cost_of(FABRIC, nodes), predict(FABRIC, nodes, len(nodes), Network(), {})
        assert cost is not None
        assert found is not None
        assert found.ring == Crossings(cost.leaves if cost.leaves > 1 else 0, cost.pods if cost.pods > 1 else 0, len(nodes))
        assert found.bandwidth is None
        assert found.assumed == ()


def test_a_ring_at_full_rate_carries_the_rate_of_all_rails() -> None:
    nodes = in_fabric_order(FABRIC, FABRIC.leaf_of)
    found = predict(FABRIC, nodes, 128, Network(8, 400, 1, 1), PLAIN)
    assert found is not None
    assert found.bandwidth is not None
    assert found.bandwidth.expected_gb_s == found.bandwidth.high_gb_s == 400
    assert found.bandwidth.low_gb_s == 200
    assert found.assumed == ("no other job on the links",)


def test_links_that_are_shared_cost_what_they_are_shared_by() -> None:
    """Every step leaves its leaf, four flows out of each on 4 / 2 links; and its pod, eight flows on 4 / 2 links."""
    turned = [f"n{number:03d}" for number in (1, 9, 5, 13, 2, 10, 6, 14, 3, 11, 7, 15, 4, 12, 8, 16)]
    found = predict(FABRIC, turned, 128, Network(8, 400, 2, 2), {**PLAIN, "tree_factor": Parameter(0.1, 0.1, 0.1, "no tree")})
    assert found is not None
    assert (found.ring.leaf, found.ring.pod) == (16, 16)
    assert found.bandwidth is not None
    assert found.bandwidth.expected_gb_s == 100  # 8 flows of a pod on its 4 / 2 links
    assert found.bandwidth.low_gb_s < 50  # and a hash puts more than that on one of them


def test_what_is_not_known_is_said() -> None:
    nodes = in_fabric_order(FABRIC, FABRIC.leaf_of)
    found = predict(FABRIC, nodes, 16, Network(1, 100), PLAIN)
    assert found is not None
    assert len(found.assumed) == 3
    assert predict(FABRIC, ["n001", "stranger"], 2, Network(1, 100), PLAIN) is None
    assert predict(FABRIC, [], 0, Network(), {}) is None
    single = predict(FABRIC, ["n001"], 8, Network(8, 400), PLAIN)
    assert single is not None
    assert single.bandwidth is None


def test_the_shipped_model_is_ordered_and_has_sources() -> None:
    model = load_model()
    nodes = in_fabric_order(FABRIC, FABRIC.leaf_of)
    found = predict(FABRIC, nodes, 128, Network(8, 400, 1, 1), model)
    assert found is not None
    assert found.bandwidth is not None
    assert 0 < found.bandwidth.low_gb_s < found.bandwidth.expected_gb_s < found.bandwidth.high_gb_s <= 400
    assert all(parameter.source for parameter in model.values())


def test_the_fullest_link_is_what_throwing_dice_gives() -> None:
    r = np.random.default_rng(1)
    for flows, links in ((1, 8), (4, 8), (8, 8), (32, 16), (64, 32), (3, 1)):
        thrown = [int(np.bincount(r.integers(0, links, flows)).max()) for _ in range(400)]
        assert abs(fullest(flows, links) - float(np.median(thrown))) <= 1, (flows, links)


def test_ring_of_one_has_no_connection() -> None:
    assert len(ring_connections(1)) == 0
    assert ring_connections(3).tolist() == [[0, 1], [1, 2], [2, 0]]
