"""The exact optimum on one island: how many nodes each leaf gives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from glaunch.placement.profiles import NEVER, Array, Joined, LeafBundle, MixedLeaf, Profile, Scale, best_full_share, raise_to

SAFE_VALUE = 1 << 59
"""Values below this are added as 64-bit numbers without any overflow."""


@dataclass
class Branch:
    """A switch: the leaves right below it (by row in the fabric's order) and the switches below it."""

    leaves: list[int] = field(default_factory=list)
    branches: "list[Branch]" = field(default_factory=list)


@dataclass(frozen=True)
class Island:
    """What can be taken below a root (no leaf itself): per leaf row its floor (nodes that must be taken) and its size, floor included."""

    root: Branch
    floors: Mapping[int, int]
    sizes: Mapping[int, int]
    tiers: int


def best_counts(island: Island, n: int, *, safe_value: int = SAFE_VALUE) -> tuple[dict[int, int], int]:
    """(leaf row → nodes, pairs saved) for the set of n nodes with the fewest hops, then the fewest pods, then the fewest leaves.

    Pairs saved: by how many pairs, over all links, the optimum crosses fewer (negative: more) links than the floors alone do, where
    x nodes below a link stand for x(n - x) pairs. It comes from the search, not from the counts, and so can check them.
    Needs sum(floors) ≤ n ≤ sum(sizes), and n ≥ 1. Among equals: the tightest last leaf, then the part with the least left over.
    """
    leaves, pods = min(len(island.sizes), n), min(_pods(island.root), n)
    pair, pod = (pods + 1) * (leaves + 1), leaves + 1
    fits = pair * n * n * max(island.tiers, 1) < safe_value
    scale = Scale(n, pair, pod, 1, np.int64 if fits else object)
    limit = n - sum(island.floors.values())
    taken: dict[int, int] = {}
    gain = _take_best(_parts(island.root, island, scale, limit), limit, taken)
    # The pods and leaves that were charged are less than one pair: rounding up leaves the pairs.
    return {leaf: count for leaf, count in taken.items() if count}, -(-gain // pair)


def _pods(branch: Branch) -> int:
    return (1 if branch.leaves else 0) + sum(_pods(below) for below in branch.branches)


def _parts(branch: Branch, island: Island, scale: Scale, limit: int) -> list[Profile]:
    """The profiles of what hangs right below a switch: its leaves as one pod, and each switch."""
    parts: list[Profile] = []
    if branch.leaves:
        parts.append(_pod(branch.leaves, island, scale, limit))
    parts.extend(Joined(_parts(below, island, scale, limit), scale, limit, pod=False, link=True) for below in branch.branches)
    return parts


def _pod(leaves: Sequence[int], island: Island, scale: Scale, limit: int) -> Profile:
    mixed = [leaf for leaf in leaves if 0 < island.floors[leaf] < island.sizes[leaf]]
    plain = [leaf for leaf in leaves if island.floors[leaf] in (0, island.sizes[leaf])]
    parts: list[Profile] = [MixedLeaf(leaf, island.floors[leaf], island.sizes[leaf], scale, limit) for leaf in mixed]
    if plain:
        parts.append(LeafBundle(plain, [island.floors[leaf] for leaf in plain], [island.sizes[leaf] for leaf in plain], scale, limit))
    return Joined(parts, scale, limit, pod=True, link=False)


def _take_best(parts: Sequence[Profile], n: int, taken: dict[int, int]) -> int:
    """Writes the best n extras of the parts below a root; returns their gain.

    One part has the partly filled leaf, the others are full. What all parts together give in full states bounds what the others give
    beside any one part (which may count twice there). So pairs (part, its extras) are tried from the highest bound down: the first
    that does not count twice is optimal, as is the best one found once it reaches the next bound.
    """
    if len(parts) == 1:
        parts[0].take(n, False, taken)
        return int(parts[0].any_gain[n])
    # The last parts get the first say when states are equal: those with the least free come last.
    parts = sorted(parts, key=lambda part: -part.room)
    forward = _sweep(parts, n)
    bounds = _bounds(parts, forward[-1], n)
    gain, shares = _first_single(parts, forward, bounds, n) or _best_repaired(parts, forward, bounds, n)
    for part, (extra, full) in zip(parts, shares, strict=True):
        part.take(extra, full, taken)
    return gain


Shares = list[tuple[int, bool]]
"""For each part: its extras, and whether it is in a full state."""


@dataclass(frozen=True)
class _Bounds:
    """Row i: with `extras[i]` in part `index[i]`, the whole gains at most `bound[i]`."""

    bound: Array
    index: Array
    extras: Array


def _first_single(parts: Sequence[Profile], forward: Sequence[Array], bounds: _Bounds, n: int) -> tuple[int, Shares] | None:
    """The gain and shares of the first pair with the highest bound that does not count its part twice: tightest last leaf first."""
    highest = int(bounds.bound.max())
    rows = np.flatnonzero(bounds.bound == highest).tolist()
    tied = [(int(bounds.index[row]), int(bounds.extras[row])) for row in rows]
    tied.sort(key=lambda pair: (parts[pair[0]].waste(pair[1]), parts[pair[0]].room - pair[1], pair))
    for index, extra in tied:
        shares = _full_shares(parts, forward, n - extra)
        if shares[index] == 0:
            return highest, [(extra, False) if place == index else (share, True) for place, share in enumerate(shares)]
    return None


def _best_repaired(parts: Sequence[Profile], forward: Sequence[Array], bounds: _Bounds, n: int) -> tuple[int, Shares]:
    """The best gain and its shares, each pair's true value found by joining the parts before it with those after it."""
    backward = _sweep(parts[::-1], n)
    best, found = NEVER, (0, 0, 0)
    rows = np.argsort(-bounds.bound, kind="stable")
    for row in rows.tolist():
        if bounds.bound[row] <= best:
            break
        index, extra = int(bounds.index[row]), int(bounds.extras[row])
        gain, split = _beside(forward[index], backward[len(parts) - 1 - index], n - extra)
        if gain + int(parts[index].any_gain[extra]) > best:
            best, found = gain + int(parts[index].any_gain[extra]), (index, extra, split)
    index, extra, split = found
    before = _full_shares(parts[:index], forward, split)
    after = _full_shares(parts[:index:-1], backward, n - extra - split)
    return best, [*((share, True) for share in before), (extra, False), *((share, True) for share in reversed(after))]


def _sweep(parts: Sequence[Profile], n: int) -> list[Array]:
    """steps[i][k]: the best full state of the first i parts with k extras."""
    steps = [np.zeros(1, dtype=parts[0].any_gain.dtype)]
    for part in parts:
        before = steps[-1]
        after = np.full(min(n, len(before) + int(part.full_extras[-1]) - 1) + 1, NEVER, dtype=before.dtype)
        raise_to(after, before, part.full_extras, part.full_gains)
        steps.append(after)
    return steps


def _bounds(parts: Sequence[Profile], everything: Array, n: int) -> _Bounds:
    bounds, indexes, extras = [], [], []
    for index, part in enumerate(parts):
        low, high = max(0, n - len(everything) + 1), min(n, len(part.any_gain) - 1)
        if low <= high:
            bounds.append(everything[n - high : n - low + 1][::-1] + part.any_gain[low : high + 1])
            indexes.append(np.full(high - low + 1, index))
            extras.append(np.arange(low, high + 1))
    return _Bounds(np.concatenate(bounds), np.concatenate(indexes), np.concatenate(extras))


def _full_shares(parts: Sequence[Profile], steps: Sequence[Array], extra: int) -> list[int]:
    """Each part's extras in the best full state of all of them with `extra`."""
    shares = []
    for part, before in zip(reversed(parts), reversed(steps[: len(parts)]), strict=True):
        share, _ = best_full_share(part, before, extra)
        shares.append(share)
        extra -= share
    return shares[::-1]


def _beside(before: Array, after: Array, extra: int) -> tuple[int, int]:
    """(gain, extras before) of the best full states of the parts before and after one part that have `extra` together."""
    low, high = max(0, extra - len(after) + 1), min(extra, len(before) - 1)
    if low > high:
        return NEVER, 0
    sums = before[low : high + 1] + after[extra - high : extra - low + 1][::-1]
    place = int(sums.argmax())
    return int(sums[place]), low + place
