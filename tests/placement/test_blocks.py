"""Topologies of blocks: what Slurm grants there, and the best of it."""

import random
from itertools import combinations

import pytest

from glaunch.block_rule import BlockRule, block_rule, granted
from glaunch.fabric import Fabric
from glaunch.hostlist import expand
from glaunch.parsers.slurm_topology import parse_topology_conf
from glaunch.placement.cost import cost_of, fewest_pods
from glaunch.placement.layout import RankLayout
from glaunch.placement.objective import Groups
from glaunch.placement.parallel import together
from glaunch.placement.place import Candidates, best_possible, place
from glaunch.request import Request


def blocks(sizes: str, count: int = 4, nodes: int = 4) -> Fabric:
    lines = [f"BlockName=b{number + 1} Nodes=n[{number * nodes + 1}-{(number + 1) * nodes}]" for number in range(count)]
    return parse_topology_conf("\n".join([*lines, *([f"BlockSizes={sizes}"] if sizes else [])]), where="topology.conf")


def free(names: str) -> Candidates:
    nodes = expand(names)
    return Candidates(nodes, (1,) * len(nodes))


@pytest.mark.parametrize(
    ("sizes", "names", "taken"),
    [
        ("4,8", "n[1-4]", True),
        ("4,8", "n[1-2,5-6]", False),
        ("4,8", "n[1-6]", True),
        ("4,8", "n[3-4,9-10]", False),
        ("4,8", "n[1-10]", True),
        ("4,8", "n[1-5,9-12]", True),
        ("4,8", "n[3-6]", False),
        ("4,8", "n[1-4,9-12]", False),
        ("4,8", "n[1-2,5-8]", True),
        ("4,16", "n[1-2,5-6,9-10]", False),
        ("4,16", "n[1-3,5-7]", True),
        ("4,16", "n[1-3,13-15]", True),
        ("4,16", "n[1-3,5-7,9-10]", False),
        ("4,16", "n[1-2,5-6]", False),
        ("4,16", "n[1-3,5-7,9-11]", True),
        ("4,16", "n[1-3,5-7,9-10,13]", False),
    ],
)
def test_what_slurm_takes_and_refuses(sizes: str, names: str, taken: bool) -> None:
    """As `sbatch --test-only -N… -w…` of Slurm 24.11.5 answered on four idle blocks of four nodes."""
    assert granted(blocks(sizes), expand(names)) is taken


def test_the_rule_in_numbers() -> None:
    assert block_rule(blocks("4,8"), 4) == BlockRule(1, 1, 1)
    assert block_rule(blocks("4,8"), 10) == BlockRule(4, 2, 2)
    assert block_rule(blocks("16,32", count=7, nodes=18), 17) == BlockRule(2, 1, 2)
    assert block_rule(blocks(""), 4) is None, "nobody says how large a block counts as"


def test_a_job_larger_than_a_block_gets_the_fewest_blocks() -> None:
    fabric = blocks("4,8", count=8)
    some = free("n[1,5,9-11,13-16,17,21-24,29-32]")
    seven, eight, nine = (place(fabric, some, n) for n in (7, 8, 9))
    assert seven is not None
    assert seven.optimal
    assert seven.leaves == (("b3", 3), ("b4", 4))
    assert eight is None, "no aggregated block of 8 nodes has 8 of them free"
    assert fewest_pods(fabric, some.nodes, 8) == 0
    assert nine is not None
    assert nine.optimal
    assert (nine.cost.leaves, nine.cost.pods) == (3, 2), "larger than every aggregated block: anywhere"


def test_what_no_block_holds_is_not_free() -> None:
    fabric = blocks("4,8")
    assert place(fabric, free("n[1-2,5-6]"), 4) is None
    assert place(fabric, free("n[1-2,5-6]"), 4, segmented=True) is not None
    assert place(fabric, free("n[1-3,5-7]"), 6) is not None
    assert best_possible(fabric, expand("n[1-3,9-12]"), 7) is None
    assert place(blocks(""), free("n[1-2,5-6]"), 4) is not None


def test_no_granted_set_is_better() -> None:
    """Every subset of random free nodes of four to eight blocks, those that Slurm refuses left out."""
    r = random.Random(5)
    answers = 0
    for _ in range(300):
        count = r.choice((4, 5, 7, 8))
        fabric = blocks(r.choice(("2,4", "2,8", "2,4,8", "2")), count, nodes=2)
        nodes = tuple(sorted(r.sample(sorted(fabric.leaf_of), r.randint(1, min(10, 2 * count)))))
        n = r.randint(1, len(nodes))
        sets = [one for one in combinations(nodes, n) if granted(fabric, one)]
        found = place(fabric, Candidates(nodes, (1,) * len(nodes)), n)
        assert (found is None) == (not sets), (nodes, n)
        if found is not None:
            answers += 1
            assert granted(fabric, found.nodes)
            keys = [cost.key(found.objective) for one in sets if (cost := cost_of(fabric, one)) is not None]
            assert found.cost.key(found.objective)[1:] == min(key[1:] for key in keys), (nodes, n, found.objective)
    assert answers > 150


@pytest.mark.parametrize(
    ("sizes", "groups"),
    [
        ({"segment": 4}, Groups(4, 4)),
        ({"segment": 8}, Groups(1, 8)),  # larger than a block: in one aggregated block
        ({"tp": 16}, Groups(2, 2)),
        ({"tp": 16, "pp": 4}, Groups(2, 4)),
        ({"tp": 8, "pp": 4}, Groups(4, 4)),
        ({"tp": 16, "segment": 4}, Groups(4, 4)),
    ],
)
def test_groups_stay_in_blocks(sizes: dict[str, int], groups: Groups) -> None:
    request = Request(("train.py",), tasks=1, **sizes)  # type: ignore[arg-type]
    assert together(request, RankLayout(128, 16, 8, 8, "h100"), blocks("4,8", count=8)).groups == groups


def test_segments_are_whole_in_blocks_and_may_lie_anywhere() -> None:
    fabric = blocks("4,8", count=8)
    placement = place(fabric, free("n[1-3,5-6,9-10,13,17-18,21-23,29]"), 8, groups=Groups(2, 2), segmented=True)
    assert placement is not None
    assert placement.cost.leaf_splits == 0
    assert [fabric.leaf_of[node] for node in placement.nodes[::2]] == [fabric.leaf_of[node] for node in placement.nodes[1::2]]
