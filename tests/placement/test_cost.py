"""The audit of any set of nodes."""

import random
from itertools import pairwise, permutations

from glaunch.fabric import synthetic
from glaunch.placement.cost import cost_of, fewest_pods
from glaunch.placement.objective import Groups
from glaunch.placement.order import in_fabric_order
from glaunch.placement.place import best_possible
from glaunch.placement.placement import Cost


def test_the_cost_is_the_sum_over_pairs() -> None:
    fabric = synthetic("core:1 spine:3 leaf:2 node:4")
    r = random.Random(9)
    for _ in range(50):
        nodes = r.sample(sorted(fabric.leaf_of), r.randint(1, 12))
        weights = {node: r.randint(0, 9) for node in nodes}
        pairs = [(one, two) for index, one in enumerate(nodes) for two in nodes[:index]]
        hops = sum(fabric.hops(one, two) or 0 for one, two in pairs)
        ring = in_fabric_order(fabric, nodes)
        expected = Cost(
            weight=sum(weights.values()),
            hops=hops,
            pods=len(set(map(fabric.pod_of, nodes))),
            leaves=len({fabric.leaf_of[node] for node in nodes}),
            ring_hops=sum(fabric.hops(one, two) or 0 for one, two in zip(ring, (*ring[1:], ring[0]), strict=True)),
        )
        assert cost_of(fabric, nodes, weights) == expected
        assert cost_of(fabric, [*nodes, *nodes], weights) == expected


def test_no_closed_ring_crosses_fewer_switches_than_the_fabrics_order() -> None:
    fabric = synthetic("core:1 spine:3 leaf:2 node:3")
    r = random.Random(10)
    for _ in range(60):
        nodes = r.sample(sorted(fabric.leaf_of), r.randint(2, 6))
        first, *rest = nodes
        around = [(first, *order, first) for order in permutations(rest)]
        shortest = min(sum(fabric.hops(one, two) or 0 for one, two in pairwise(ring)) for ring in around)
        cost = cost_of(fabric, nodes)
        assert cost is not None
        assert cost.ring_hops == shortest


def test_groups_are_counted_where_they_can_be_whole() -> None:
    fabric = synthetic("core:1 spine:2 leaf:2 node:4")
    nodes = ["n001", "n002", "n003", "n005", "n006", "n007", "n009", "n013"]  # 3 + 3 in one pod, 1 + 1 in the other
    cost = cost_of(fabric, nodes, groups=Groups(2, 4))
    assert cost is not None
    assert (cost.leaf_splits, cost.pod_splits) == (2, 1)
    without = cost_of(fabric, nodes)
    assert without is not None
    assert (without.leaf_splits, without.pod_splits) == (0, 0)


def test_no_cost_where_no_path_joins_the_nodes() -> None:
    fabric = synthetic("spine:2 leaf:1 node:2")
    assert cost_of(fabric, ["n001", "n003"]) is None
    assert cost_of(fabric, ["n001", "x"]) is None
    assert cost_of(fabric, ["x", "y"]) is None
    assert cost_of(fabric, ["x"], {"x": 4}) == Cost(4, 0, 0, 0, ring_hops=0)
    assert cost_of(fabric, []) == Cost(0, 0, 0, 0, ring_hops=0)


def test_the_fewest_pods_are_those_of_the_proven_set() -> None:
    r = random.Random(3)
    for shape in ("core:1 spine:4 leaf:2 node:4", "core:2 spine:3 leaf:2 node:3", "core:1 leaf:4 node:5", "leaf:1 node:8"):
        fabric = synthetic(shape)
        for _ in range(20):
            nodes = r.sample(sorted(fabric.leaf_of), r.randint(1, len(fabric.leaf_of)))
            n = r.randint(1, len(nodes))
            best = best_possible(fabric, nodes, n, "spread")
            assert fewest_pods(fabric, (*nodes, "x1"), n) == (0 if best is None else best.cost.pods)
