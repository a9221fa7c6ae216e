"""Spare nodes: which, and the worst that Slurm can choose of a set that has some, against every choice there is."""

import random
from dataclasses import replace
from itertools import combinations

import pytest

from glaunch.fabric import Fabric, synthetic
from glaunch.placement.cost import cost_of
from glaunch.placement.place import Candidates, place
from glaunch.spares import worst_of


def worst_by_trying(fabric: Fabric, nodes: tuple[str, ...], n: int) -> int:
    costs = [cost_of(fabric, chosen) for chosen in combinations(nodes, n)]
    return max(cost.hops for cost in costs if cost is not None)


@pytest.mark.parametrize("shape", ["spine:1 leaf:3 node:4", "core:1 spine:3 leaf:2 node:3", "top:1 core:2 spine:2 leaf:2 node:2"])
def test_the_worst_choice_is_the_worst_of_all_choices(shape: str) -> None:
    fabric, r = synthetic(shape), random.Random(7)
    base = place(fabric, Candidates(fabric.nodes, (1,) * len(fabric.nodes)), 2)
    assert base is not None
    told = 0
    for _ in range(80):
        nodes = tuple(r.sample(fabric.nodes, r.randint(2, 7)))
        cost = cost_of(fabric, nodes)
        assert cost is not None
        leaves = {fabric.leaf_of[node] for node in nodes}
        more = [node for node in fabric.nodes if node not in nodes and fabric.leaf_of[node] in leaves][:3]
        worst = worst_of(fabric, replace(base, nodes=nodes, cost=cost), more)
        assert worst.hops == worst_by_trying(fabric, (*nodes, *more), len(nodes))
        assert bool(worst.words) == (worst.hops > cost.hops)
        told += bool(worst.words)
    assert told > 10


def test_on_one_leaf_any_choice_is_as_good() -> None:
    fabric = synthetic("spine:1 leaf:2 node:8")
    placement = place(fabric, Candidates(fabric.nodes, (1,) * 16), 5)
    assert placement is not None
    assert worst_of(fabric, placement, fabric.nodes[5:8]).words == ""
