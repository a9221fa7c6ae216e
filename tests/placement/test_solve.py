"""The exact search on counts: the slow way round, and values too large for 64 bits."""

import random

from glaunch.placement.objective import NO_GROUPS, OBJECTIVES
from glaunch.placement.profiles import Profile
from glaunch.placement.scale import scale_of
from glaunch.placement.solve import Branch, Island, _best_repaired, _bounds, _first_single, _parts, _Shelf, _sweep, best_counts


def random_island(r: random.Random) -> tuple[Island, int]:
    """Pods of few large leaves, so that one pod's part often counts twice; some leaves have nodes that must be taken."""
    sizes: dict[int, int] = {}
    pods = []
    for _ in range(r.randint(2, 4)):
        rows = range(len(sizes), len(sizes) + r.randint(1, 3))
        sizes |= {row: r.randint(1, 9) for row in rows}
        pods.append(Branch(list(rows)))
    floors = {row: r.choice((0, 0, 0, r.randint(0, size))) for row, size in sizes.items()}
    n = r.randint(max(1, sum(floors.values())), sum(sizes.values()))
    return Island(Branch([], pods), floors, sizes, 3), n


def roots_parts(island: Island, n: int) -> tuple[list[Profile], int]:
    limit = n - sum(island.floors.values())
    ranges = {"pair": (-3 * n * n, 3 * n * n), "pod": (-4, 0), "leaf": (-12, 0), "leaf_group": (0, 0), "pod_group": (0, 0)}
    scale = scale_of("hops", n, ranges, 1 << 59)
    return _parts(island.root, _Shelf(island, scale, limit, NO_GROUPS, False), scale, limit), limit


def test_trying_the_highest_bounds_and_joining_both_sides_agree() -> None:
    r = random.Random(3)
    quick = slow = 0
    for _ in range(600):
        island, n = random_island(r)
        parts, limit = roots_parts(island, n)
        forward = _sweep(parts, limit)
        bounds = _bounds(parts, forward[-1], limit)
        first = _first_single(parts, forward, bounds, limit)
        gain, shares = _best_repaired(parts, forward, bounds, limit)
        assert sum(extra for extra, _ in shares) == limit
        assert sum(not full for _, full in shares) == 1
        if first is None:
            slow += 1
            assert gain < bounds.bound.max()
        else:
            quick += 1
            assert first[0] == gain
    assert quick > 100
    assert slow > 100


def test_whole_numbers_of_any_size_give_the_same_counts() -> None:
    r = random.Random(4)
    for _ in range(200):
        island, n = random_island(r)
        for objective in OBJECTIVES:
            assert best_counts(island, n, objective, safe_value=0) == best_counts(island, n, objective)
