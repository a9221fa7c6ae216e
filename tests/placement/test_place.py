"""The placement against every subset, against a plain tree search, and against the known ways to get it wrong."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from math import comb

import numpy as np
import pytest
from tests.greedy import COUNTER_EXAMPLES, free_in, just_large_enough

from glaunch.errors import UsageError
from glaunch.fabric import Fabric, build_fabric, flat_fabric, synthetic
from glaunch.placement.choice import choose
from glaunch.placement.cost import cost_of
from glaunch.placement.eligible import Eligible
from glaunch.placement.layout import RankLayout
from glaunch.placement.objective import NO_GROUPS, OBJECTIVES, Groups, compared
from glaunch.placement.order import in_fabric_order
from glaunch.placement.place import Candidates, best_possible, place
from glaunch.placement.placement import Cost, Placement
from glaunch.placement.share import Share


def random_fabric(r: random.Random, *, fan_out: int = 3, leaf_nodes: int = 4, tiers: int = 4) -> Fabric:
    """Islands of different depth, branches that end early, leaves of different sizes, some empty."""
    parents: dict[str, str | None] = {}
    nodes: dict[str, list[str]] = {}

    def grow(parent: str | None, depth: int, deepest: int) -> None:
        name = f"s{len(parents)}"
        parents[name] = parent
        if depth == deepest - 1 or (depth > 0 and r.random() < 0.25):
            nodes[name] = [f"{name}n{index}" for index in range(r.randint(0, leaf_nodes))]
            return
        for _ in range(r.randint(1, fan_out)):
            grow(name, depth + 1, deepest)

    for _ in range(r.choice((1, 1, 1, 2))):
        grow(None, 0, r.randint(1, tiers))
    return build_fabric(parents, nodes, "random")


def random_candidates(r: random.Random, fabric: Fabric, most: int) -> Candidates:
    names = [name for switch in fabric.switches for name in switch.nodes]
    chosen = r.sample(names, min(len(names), r.randint(1, most)))
    heaviest = r.choice((1, 1, 2, 3))
    return Candidates(tuple(chosen), tuple(r.randint(1, heaviest) for _ in chosen))


Key = tuple[int, ...]
Costs = Mapping[str, np.ndarray]


def costs_of_all_subsets(fabric: Fabric, candidates: Candidates, n: int) -> Costs:
    """Every subset of n nodes that a path joins, one a row, by looking at it: distances from node to node, counts of names, no links."""
    nodes = in_fabric_order(fabric, candidates.nodes)
    weight = dict(zip(candidates.nodes, candidates.weights, strict=True))
    far = 10**6
    hops = np.array([[far if (h := fabric.hops(one, two)) is None else h for two in nodes] for one in nodes])
    subsets = np.array(list(combinations(range(len(nodes)), n)))
    inside = np.zeros((len(subsets), len(nodes)), dtype=np.int64)
    np.put_along_axis(inside, subsets, 1, axis=1)
    total = ((inside @ hops) * inside).sum(axis=1) // 2
    leaves, pods = _counts(inside, [fabric.leaf_of[node] for node in nodes]), _counts(inside, [fabric.pod_of(node) for node in nodes])
    found = {
        "weight": inside @ np.array([weight[node] for node in nodes]),
        "hops": total,
        "pods": (pods > 0).sum(axis=1),
        "leaves": (leaves > 0).sum(axis=1),
        # Around the nodes in the fabric's order; that no order is better is a test of its own.
        "ring_hops": hops[subsets, np.roll(subsets, -1, axis=1)].sum(axis=1),
        "in_leaf": leaves,
        "in_pod": pods,
    }
    return {name: values[total < far] for name, values in found.items()}


def _counts(inside: np.ndarray, names: list[str]) -> np.ndarray:
    different = sorted(set(names))
    return inside @ np.array([[name == one for one in different] for name in names], dtype=np.int64)


def best_key(costs: Costs, n: int, objective: str, groups: Groups) -> Key | None:
    """The least key of all subsets, whole groups counted leaf by leaf and pod by pod."""
    split = {
        f"{what}_splits": n // size - (costs[f"in_{what}"] // size).sum(axis=1) if size > 1 else np.zeros_like(costs["hops"])
        for what, size in (("leaf", groups.leaf), ("pod", groups.pod))
    }
    rows = zip(*(({**costs, **split}[name]).tolist() for name in compared(objective)), strict=True)
    return min(rows, default=None)


def some_groups(r: random.Random, n: int) -> Groups:
    """Sizes that divide n and each other, of every kind."""
    sizes = [size for size in range(2, n + 1) if n % size == 0]
    if not sizes:
        return NO_GROUPS
    leaf = r.choice(sizes)
    pod = r.choice([size for size in sizes if size % leaf == 0])
    return r.choice((Groups(leaf, 1), Groups(1, leaf), Groups(leaf, pod)))


def split_groups(part_of: Mapping[str, str], nodes: Sequence[str], size: int) -> int:
    """Groups of neighbours in this order that span two parts."""
    return sum(len({part_of[node] for node in nodes[start : start + size]}) > 1 for start in range(0, len(nodes), size))


def test_no_subset_is_better_on_2400_random_fabrics() -> None:
    """Every objective, without groups and with groups of both kinds, on the same fabrics."""
    r = random.Random(20240607)
    seen: Counter[str] = Counter()
    done = 0
    while done < 2400:
        fabric = random_fabric(r)
        if not fabric.leaf_of:
            continue
        candidates = random_candidates(r, fabric, 11)
        n = r.randint(1, len(candidates.nodes))
        if comb(len(candidates.nodes), n) > 300:
            continue
        done += 1
        costs = costs_of_all_subsets(fabric, candidates, n)
        kinds = {
            "deep": fabric.tiers == 4,
            "weighed": len(set(candidates.weights)) > 1,
            "islands": len(fabric.roots) > 1,
            "uneven": len({len(fabric.path_of_leaf(leaf)) for leaf in fabric.leaves}) > 1,
        }
        groups = some_groups(r, n)
        kinds |= dict.fromkeys(("groups over two leaves", "groups over two pods", "whole groups"), False)
        for objective in OBJECTIVES:
            for together in {NO_GROUPS, groups}:
                placement = place(fabric, candidates, n, objective, together)
                best = best_key(costs, n, objective, together)
                what = f"fabric {done}, {objective}, {together}"
                if placement is None:
                    assert best is None, what
                    continue
                assert placement.cost.key(objective) == best, what
                check(fabric, candidates, n, placement, together, what)
                splits = placement.cost.leaf_splits, placement.cost.pod_splits
                kinds["groups over two leaves"] |= splits[0] > 0
                kinds["groups over two pods"] |= splits[1] > 0
                kinds["whole groups"] |= together != NO_GROUPS and splits == (0, 0)
        seen.update(kind for kind, shown in kinds.items() if shown)
    assert min(seen.values()) > 200, f"the random fabrics must show every kind: {seen}"


def check(fabric: Fabric, candidates: Candidates, n: int, placement: Placement, groups: Groups, what: str) -> None:
    """What holds for every placement: it is proven, made of candidates, and counted again from its nodes."""
    nodes = placement.nodes
    assert placement.optimal, what
    assert len(set(nodes)) == n, what
    assert set(nodes) <= set(candidates.nodes), what
    assert placement.cost == cost_of(fabric, nodes, dict(zip(candidates.nodes, candidates.weights, strict=True)), groups), what
    pod_of = {node: fabric.pod_of(node) for node in nodes}
    assert split_groups(fabric.leaf_of, nodes, groups.leaf) == placement.cost.leaf_splits, what
    assert groups.pod == 1 or split_groups(pod_of, nodes, groups.pod) == placement.cost.pod_splits, what


NOTHING: Key = (0,) * 7


def tree_search(fabric: Fabric, candidates: Candidates, n: int, objective: str, groups: Groups) -> Key | None:
    """The plain dynamic program: every split of every count at every switch. Slow, short, and of another make than the product's."""
    names = ("weight", "leaf_splits", "pod_splits", "hops", "pods", "leaves", "ring_hops")
    order = [names.index(name) for name in compared(objective)]
    free: dict[str, list[int]] = {}
    for node, weight in zip(candidates.nodes, candidates.weights, strict=True):
        free.setdefault(fabric.leaf_of[node], []).append(weight)

    def add(one: Key, two: Key) -> Key:
        return tuple(a + b for a, b in zip(one, two, strict=True))

    def rank(key: Key) -> Key:
        return tuple(key[index] for index in order)

    def best(name: str, above: bool) -> dict[int, Key]:
        children = fabric.children[name]
        found: dict[int, Key]
        if not children:
            weights = sorted(free.get(name, []))
            found = {k: (sum(weights[:k]), -(k // groups.leaf) * (groups.leaf > 1), 0, 0, 0, min(k, 1), 0) for k in range(len(weights) + 1)}
        else:
            found = {0: NOTHING}
            for tier0 in (True, False):
                for child in children:
                    if (fabric.by_name[child].tier == 0) is tier0:
                        found = joined(found, best(child, True))
                if tier0:
                    found = {k: add(key, as_pod(k)) for k, key in found.items()}
        if not above and not children:
            found = {k: add(key, as_pod(k)) for k, key in found.items()}
        return {k: add(key, (0, 0, 0, k * (n - k), 0, 0, 2 * (0 < k < n)) if above else NOTHING) for k, key in found.items()}

    def as_pod(k: int) -> Key:
        return (0, 0, -(k // groups.pod) * (groups.pod > 1), 0, min(k, 1), 0, 0)

    def joined(one: dict[int, Key], two: dict[int, Key]) -> dict[int, Key]:
        after: dict[int, Key] = {}
        for i, a in one.items():
            for j, b in two.items():
                if i + j <= n:
                    key = add(a, b)
                    if i + j not in after or rank(key) < rank(after[i + j]):
                        after[i + j] = key
        return after

    keys = [found[n] for root in fabric.roots if n in (found := best(root, False))]
    whole = [n // size if size > 1 else 0 for size in (groups.leaf, groups.pod)]
    return min((rank(add(key, (0, *whole, n * (n - 1) // 2, 0, 0, n if n > 1 else 0))) for key in keys), default=None)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("shape", [(5, 7, 3), (3, 6, 5), (6, 12, 4)], ids=["wide", "deep", "full"])
def test_as_good_as_the_plain_tree_search_on_larger_fabrics(shape: tuple[int, int, int], objective: str) -> None:
    fan_out, leaf_nodes, tiers = shape
    r = random.Random(f"{shape}{objective}")
    done = 0
    while done < 40:
        fabric = random_fabric(r, fan_out=fan_out, leaf_nodes=leaf_nodes, tiers=tiers)
        if len(fabric.leaf_of) < 20:
            continue
        candidates = random_candidates(r, fabric, 80)
        n = r.randint(1, min(len(candidates.nodes), 36))
        groups = some_groups(r, n)
        placement = place(fabric, candidates, n, objective, groups)
        best = tree_search(fabric, candidates, n, objective, groups)
        assert (None if placement is None else placement.cost.key(objective)) == best, f"fabric {done}, {groups}"
        assert placement is None or placement.optimal
        done += 1


def free_per_leaf(pods: list[list[int]], *, above: str = "core") -> tuple[Fabric, Candidates]:
    """Pods of leaves with so many free nodes each, one switch above all."""
    parents: dict[str, str | None] = {above: None}
    nodes: dict[str, list[str]] = {}
    for pod, leaves in enumerate(pods):
        parents[f"pod{pod}"] = above
        for leaf, free in enumerate(leaves):
            parents[f"leaf{pod}.{leaf}"] = f"pod{pod}"
            nodes[f"leaf{pod}.{leaf}"] = [f"n{pod}-{leaf}-{index}" for index in range(free)]
    fabric = build_fabric(parents, nodes, "by hand")
    names = tuple(name for leaf in nodes.values() for name in leaf)
    return fabric, Candidates(names, (1,) * len(names))


@pytest.mark.parametrize(
    ("pods", "n", "greedy", "hops", "used_pods"),
    [
        # A leaf elsewhere that fits the rest is no reason to leave a pod that fits it too.
        ([[4, 1, 1], [2, 2, 1]], 5, ["n0-0-0", "n0-0-1", "n0-0-2", "n1-0-0", "n1-0-1"], 18, 1),
        # When nothing fits the rest, near is still better than far.
        ([[1, 0], [1, 1], [1, 1]], 4, ["n0-0-0", "n1-0-0", "n1-1-0", "n2-0-0"], 26, 2),
        # The pod that fits most tightly may be the most scattered one.
        ([[1, 1], [2, 0]], 3, ["n0-0-0", "n0-1-0", "n1-0-0"], 11, 2),
        # And the lowest switch above enough nodes may be the wrong one: here all of one pod, a node a leaf.
        ([[1] * 16, [15], [1]], 16, [f"n0-{leaf}-0" for leaf in range(16)], 180, 2),
    ],
)
def test_where_greedy_choices_go_wrong(pods: list[list[int]], n: int, greedy: list[str], hops: int, used_pods: int) -> None:
    fabric, candidates = free_per_leaf(pods)
    placement = place(fabric, candidates, n)
    assert placement is not None
    assert placement.optimal
    assert (placement.cost.hops, placement.cost.pods) == (hops, used_pods)
    worse = cost_of(fabric, greedy)
    assert worse is not None
    assert worse.hops > hops


def test_every_counter_example_has_its_proven_optimum() -> None:
    """The ones that real controllers are asked about (tests/cluster/test_choice.py): hops, pods."""
    found = {}
    for name, example in COUNTER_EXAMPLES.items():
        fabric = just_large_enough(example.pods)
        free = free_in(fabric, example.pods)
        placement = place(fabric, Candidates(free, (1,) * len(free)), example.n)
        assert placement is not None
        assert placement.optimal
        found[name] = (placement.cost.hops, placement.cost.pods)
    assert found == {
        "leaves-its-pod": (18, 1),
        "pod-after-pod": (183, 2),
        "one-after-one": (26, 2),
        "tightest-pod": (11, 2),
        "lowest-switch": (180, 2),
    }


def test_pods_are_not_visited_in_turn_when_none_fits_the_rest() -> None:
    placement = place(*free_per_leaf([[3, 0], [2, 2], [4, 4]]), 11)
    assert placement is not None
    assert placement.cost == Cost(11, 183, 2, 3, ring_hops=11 + 2 * 5)
    assert placement.pods == (("pod0", 3), ("pod2", 8))


def test_lighter_nodes_come_first_whatever_the_fabric_says() -> None:
    fabric, candidates = free_per_leaf([[2, 2], [1, 1]])
    light = {"n0-0-0", "n1-0-0", "n1-1-0"}
    weighed = Candidates(candidates.nodes, tuple(1 if node in light else 5 for node in candidates.nodes))
    three = place(fabric, weighed, 3)
    four = place(fabric, weighed, 4)
    assert three is not None
    assert four is not None
    assert set(three.nodes) == light
    assert set(four.nodes) == light | {"n0-0-1"}
    assert four.optimal


def test_equal_choices_go_where_least_is_left_over() -> None:
    leaf = place(*free_per_leaf([[4, 3], [2, 2]]), 3)
    assert leaf is not None
    assert leaf.leaves == (("leaf0.1", 3),)
    pod = place(*free_per_leaf([[2, 2, 2], [2, 2]]), 4)
    assert pod is not None
    assert pod.pods == (("pod1", 4),)
    last = place(*free_per_leaf([[5, 3, 2]]), 7)
    assert last is not None
    assert last.leaves == (("leaf0.0", 5), ("leaf0.2", 2))


def test_health_decides_among_equals_and_never_against_cost() -> None:
    fabric, candidates = free_per_leaf([[3, 3], [3, 3]])
    ill = {"n0-0-0": 5, "n0-1-1": 1, "n1-0-2": 1}
    three = place(fabric, candidates, 3, penalties=ill)
    assert three is not None
    assert three.leaves == (("leaf1.1", 3),), "the only leaf of healthy nodes"
    two = place(fabric, candidates, 2, penalties={**ill, "n1-1-0": 1, "n1-1-1": 1})
    assert two is not None
    assert two.nodes == ("n1-0-0", "n1-0-1"), "two healthy nodes of one leaf, in the pod that is in better health"
    six = place(fabric, candidates, 6, penalties=ill)
    assert six is not None
    assert six.pods == (("pod1", 6),), "a penalty of 1 rather than one of 6"
    twelve = place(fabric, candidates, 12, penalties=ill)
    assert twelve is not None
    assert twelve.cost == place(*free_per_leaf([[3, 3], [3, 3]]), 12).cost  # type: ignore[union-attr]
    tight = place(*free_per_leaf([[3], [2]]), 2, penalties={"n1-0-0": 9, "n1-0-1": 9})
    assert tight is not None
    assert tight.leaves == (("leaf1.0", 2),), "what is left for others goes before health"


def test_of_equal_pods_and_leaves_the_first_is_taken() -> None:
    fabric, candidates = free_per_leaf([[4, 4], [4, 4], [4, 4]])
    for n in (1, 3, 4, 5, 8):
        placement = place(fabric, candidates, n)
        assert placement is not None
        assert placement.nodes == in_fabric_order(fabric, candidates.nodes)[:n]


def test_fewest_hops_and_fewest_pods_can_be_two_sets() -> None:
    fabric, candidates = free_per_leaf([[4], [1], [1, 1, 1, 1, 1]])
    hops, spread = place(fabric, candidates, 5), place(fabric, candidates, 5, "spread")
    assert hops is not None
    assert spread is not None
    assert hops.cost.key("hops") == (5, 0, 0, 26, 2, 2)
    assert spread.cost.key("spread") == (5, 0, 0, 1, 5, 30)
    names, weights = candidates.nodes, candidates.weights
    layout = RankLayout(5, 5, 1, 0, "")
    fit = Eligible(
        layout=layout,
        exclusive=True,
        share=Share(0, 1, 0),
        nodes=names,
        startable=(),
        could_ever=names,
        weights=weights,
        startable_weights=(),
        left_out=(),
        never=(),
        soonest_limit_s=None,
        notes=(),
        decided=True,
    )
    for objective, other in (("hops", spread), ("spread", hops)):
        choice = choose(fabric, fit, objective, NO_GROUPS, powered_down_free=False)
        assert choice.free is not None
        assert choice.free.objective == objective
        assert choice.alternatives == (other,)
    assert {one.objective for one in choose(fabric, fit, "ring", NO_GROUPS, powered_down_free=False).alternatives} == {"spread"}


def test_the_same_question_gets_the_same_answer_in_any_order() -> None:
    fabric, candidates = free_per_leaf([[3, 3, 1], [3, 3, 1], [2, 2, 2]])
    turned = Candidates(candidates.nodes[::-1], candidates.weights)
    for n in range(1, len(candidates.nodes) + 1):
        assert place(fabric, candidates, n) == place(fabric, turned, n)


def test_names_decide_among_equals_with_their_numbers_counted() -> None:
    fabric = flat_fabric([f"n{number}" for number in (10, 9, 2, 1)])
    placement = place(fabric, Candidates(("n10", "n9", "n2", "n1"), (1, 1, 1, 1)), 3)
    assert placement is not None
    assert placement.nodes == ("n1", "n2", "n9")
    assert placement.cost == Cost(3, 3, 1, 1, ring_hops=3)
    assert placement.mean_hops == 1.0


def test_a_set_never_spans_two_islands() -> None:
    fabric = synthetic("spine:2 leaf:2 node:2")
    everything = Candidates(tuple(fabric.leaf_of), (1,) * 8)
    assert place(fabric, everything, 5) is None
    four = place(fabric, everything, 4)
    assert four is not None
    assert len(four.pods) == 1


def test_the_fuller_island_is_taken_and_the_lighter_one_before_it() -> None:
    fabric = synthetic("leaf:2 node:4")
    some = Candidates(("n001", "n002", "n003", "n005", "n006"), (1,) * 5)
    fuller = place(fabric, some, 2)
    assert fuller is not None
    assert fuller.nodes == ("n005", "n006")
    lighter = place(fabric, Candidates(some.nodes, (1, 1, 1, 2, 2)), 2)
    assert lighter is not None
    assert lighter.nodes == ("n001", "n002")


def test_unknown_nodes_carry_a_single_node_job_and_only_where_no_known_node_can() -> None:
    fabric = synthetic("leaf:1 node:2")
    assert place(fabric, Candidates(("x1", "x2", "n001"), (1, 1, 9)), 2) is None
    known = place(fabric, Candidates(("x1", "n001"), (1, 9)), 1)
    assert known is not None
    assert known.nodes == ("n001",)
    alone = place(fabric, Candidates(("x10", "x9", "x2"), (1, 1, 2)), 1)
    assert alone == Placement(("x9",), Cost(1, 0, 0, 0), Cost(1, 0, 0, 0), (), (), 0.0)


def test_nothing_to_choose_from() -> None:
    assert place(synthetic("leaf:1 node:2"), Candidates((), ()), 1) is None
    assert place(flat_fabric(()), Candidates((), ()), 1) is None


@pytest.mark.parametrize(
    ("candidates", "n"), [(Candidates(("n001",), (1,)), 0), (Candidates(("n001", "n001"), (1, 1)), 1), (Candidates(("n001",), ()), 1)]
)
def test_what_cannot_be_meant_is_refused(candidates: Candidates, n: int) -> None:
    with pytest.raises(UsageError):
        place(synthetic("leaf:1 node:2"), candidates, n)


def test_the_answer_stands_in_the_fabrics_order() -> None:
    fabric = synthetic("core:1 spine:3 leaf:3 node:5")
    r = random.Random(5)
    for _ in range(20):
        chosen = r.sample(sorted(fabric.leaf_of), 30)
        placement = place(fabric, Candidates(tuple(chosen), (1,) * 30), r.randint(1, 30))
        assert placement is not None
        assert placement.nodes == in_fabric_order(fabric, placement.nodes)
        assert sum(count for _, count in placement.leaves) == sum(count for _, count in placement.pods) == len(placement.nodes)
        assert (len(placement.pods), len(placement.leaves)) == (placement.cost.pods, placement.cost.leaves)


def test_the_best_possible_ignores_weights_and_repeated_names() -> None:
    fabric = synthetic("core:1 spine:2 leaf:4 node:8")
    best = best_possible(fabric, [*fabric.leaf_of, *fabric.leaf_of], 32)
    assert best is not None
    assert best.cost == Cost(0, 32 * 31 // 2 + 4 * 8 * 24, 1, 4, ring_hops=32 + 2 * 4)


def test_a_hundred_thousand_nodes() -> None:
    fabric = synthetic("core:1 spine:100 leaf:32 node:32")
    r = random.Random(1)
    free = tuple(node for node in fabric.leaf_of if r.random() < 0.3)
    placement = place(fabric, Candidates(free, (1,) * len(free)), 4096)
    assert placement is not None
    assert placement.optimal
