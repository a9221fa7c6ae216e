"""The audit of any set of nodes."""

import random

from glaunch.fabric import synthetic
from glaunch.placement.cost import cost_of
from glaunch.placement.placement import Cost


def test_the_cost_is_the_sum_over_pairs() -> None:
    fabric = synthetic("core:1 spine:3 leaf:2 node:4")
    r = random.Random(9)
    for _ in range(50):
        nodes = r.sample(sorted(fabric.leaf_of), r.randint(1, 12))
        weights = {node: r.randint(0, 9) for node in nodes}
        pairs = [(one, two) for index, one in enumerate(nodes) for two in nodes[:index]]
        hops = sum(fabric.hops(one, two) or 0 for one, two in pairs)
        expected = Cost(sum(weights.values()), hops, len(set(map(fabric.pod_of, nodes))), len({fabric.leaf_of[node] for node in nodes}))
        assert cost_of(fabric, nodes, weights) == expected
        assert cost_of(fabric, [*nodes, *nodes], weights) == expected


def test_no_cost_where_no_path_joins_the_nodes() -> None:
    fabric = synthetic("spine:2 leaf:1 node:2")
    assert cost_of(fabric, ["n001", "n003"]) is None
    assert cost_of(fabric, ["n001", "x"]) is None
    assert cost_of(fabric, ["x", "y"]) is None
    assert cost_of(fabric, ["x"], {"x": 4}) == Cost(4, 0, 0, 0)
    assert cost_of(fabric, []) == Cost(0, 0, 0, 0)
