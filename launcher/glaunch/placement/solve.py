"""The exact optimum on one island: how many nodes each leaf gives."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from glaunch.placement.grouped import CountingGroups, InGroups, last_whole
from glaunch.placement.objective import HOPS, NO_GROUPS, Groups
from glaunch.placement.profiles import Array, Joined, LeafBundle, LoneLeaf, Penalties, Profile, best_full_share, never, penalty_of, spread
from glaunch.placement.scale import Scale, scale_of

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
    penalties: Mapping[int, Penalties] = field(default_factory=dict)
    """Leaf row → the sums of its least penalties; a leaf that is not there has none."""


@dataclass(frozen=True)
class Best:
    """What the search found: how many nodes each leaf gives, and the proof."""

    counts: Mapping[int, int]
    start: Mapping[int, int]
    """The floors from which `gains` counts, leaf row → nodes."""
    gains: Mapping[str, int]
    """What the optimum gains over the floors, as the search summed it up (`Scale.read`): it does not come from the counts, and so can
    check them."""
    whole_leaf_groups: bool
    """No group spans two leaves: only such sets were looked at."""
    whole_pod_groups: bool


def best_counts(island: Island, n: int, objective: str = HOPS, groups: Groups = NO_GROUPS, *, safe_value: int = SAFE_VALUE) -> Best:
    """The set of n nodes that the objective calls best, of those with the fewest groups over two leaves, then over two pods.

    Needs sum(floors) ≤ n ≤ sum(sizes), n ≥ 1, and groups that divide n. Among equals: the tightest last leaf, then the part with the
    least left over, then the least penalty, then the first in the fabric's order.
    """
    size = groups.leaf
    whole = size > 1 and _can_be_whole(island.floors, island.sizes, n, size)
    if not whole:
        return _search(island, n, objective, groups, 1, False, safe_value)
    floors, sizes = {}, {}
    for leaf in island.sizes:
        least, most = last_whole(island.floors[leaf], island.sizes[leaf], size)
        if most:
            floors[leaf], sizes[leaf] = least, most
    penalties = {leaf: sums[::size] for leaf, sums in island.penalties.items()}
    shrunk = Island(_with(island.root, sizes), floors, sizes, island.tiers, penalties)
    return _search(shrunk, n // size, objective, Groups(1, max(1, groups.pod // size)), size, True, safe_value)


def _with(branch: Branch, leaves: Collection[int]) -> Branch:
    """The part of a tree that has these leaves."""
    below = [_with(each, leaves) for each in branch.branches]
    return Branch([leaf for leaf in branch.leaves if leaf in leaves], [each for each in below if each.leaves or each.branches])


def _can_be_whole(floors: Mapping[int, int], sizes: Mapping[int, int], n: int, group: int) -> bool:
    """Whether n nodes can be had from parts with these floors and sizes so that each gives whole groups."""
    spans = [last_whole(floors[part], sizes[part], group) for part in sizes]
    return all(least <= most for least, most in spans) and sum(least for least, _ in spans) <= n // group <= sum(most for _, most in spans)


def _search(island: Island, n: int, objective: str, groups: Groups, size: int, whole_leaves: bool, safe_value: int) -> Best:
    """The search in units of `size` nodes."""
    pods = _pods(island.root)
    pod_floors = {index: sum(island.floors[leaf] for leaf in pod) for index, pod in enumerate(pods)}
    pod_sizes = {index: sum(island.sizes[leaf] for leaf in pod) for index, pod in enumerate(pods)}
    whole_pods = groups.pod > 1 and _can_be_whole(pod_floors, pod_sizes, n, groups.pod)
    leaves, used = min(len(island.sizes), n), min(len(pods), n)
    pairs = island.tiers * (n * size) ** 2
    ranges = {
        "pair": (-pairs, pairs),
        "link": (-min(_links(island.root), leaves * island.tiers), island.tiers),
        "pod": (-used, 0),
        "leaf": (-leaves, 0),
        "leaf_group": (0, n // groups.leaf if groups.leaf > 1 else 0),
        "pod_group": (0, n // groups.pod if groups.pod > 1 and not whole_pods else 0),
    }
    scale = scale_of(objective, n, ranges, safe_value, pairs=size * size)
    limit = n - sum(island.floors.values())
    shelf = _Shelf(island, scale, limit, groups, whole_pods)
    if whole_pods:
        limit = n // groups.pod - sum(last_whole(pod_floors[pod], pod_sizes[pod], groups.pod)[0] for pod in pod_sizes)
        scale = replace(scale, size=groups.pod)
    taken: dict[int, int] = {}
    gain = _take_best(_parts(island.root, shelf, scale, limit), scale, limit, taken)
    return Best(
        counts={leaf: count * size for leaf, count in taken.items() if count},
        start={leaf: count * size for leaf, count in island.floors.items() if count},
        gains=scale.read(gain),
        whole_leaf_groups=whole_leaves,
        whole_pod_groups=whole_pods or groups.pod == 1,
    )


def _pods(branch: Branch) -> list[list[int]]:
    return ([branch.leaves] if branch.leaves else []) + [pod for below in branch.branches for pod in _pods(below)]


def _links(branch: Branch) -> int:
    return len(branch.leaves) + sum(1 + _links(below) for below in branch.branches)


@dataclass(frozen=True)
class _Shelf:
    """All that a pod's profile is made from."""

    island: Island
    scale: Scale
    limit: int
    groups: Groups
    whole_pods: bool

    def pod(self, leaves: Sequence[int]) -> Profile:
        """The leaves of one switch; where groups count, it gives whole ones only (if it need not do otherwise) or counts them."""
        joined = Joined(self._leaves(leaves), self.scale, self.limit, pod=True, link=False)
        if self.groups.pod == 1:
            return joined
        if self.whole_pods:
            return InGroups(joined, self.groups.pod)
        return CountingGroups(joined, self.groups.pod, self.scale.pod_group, self.scale)

    def _leaves(self, leaves: Sequence[int]) -> list[Profile]:
        if self.groups.leaf > 1:
            return [CountingGroups(self._lone(leaf), self.groups.leaf, self.scale.leaf_group, self.scale) for leaf in leaves]
        floors, sizes, penalties = self.island.floors, self.island.sizes, self.island.penalties
        parts: list[Profile] = [self._lone(leaf) for leaf in leaves if 0 < floors[leaf] < sizes[leaf]]
        plain = [leaf for leaf in leaves if floors[leaf] in (0, sizes[leaf])]
        if plain:
            each = [penalties.get(leaf, ()) for leaf in plain]
            parts.append(LeafBundle(plain, [floors[leaf] for leaf in plain], [sizes[leaf] for leaf in plain], self.scale, self.limit, each))
        return parts

    def _lone(self, leaf: int) -> LoneLeaf:
        size = self.island.sizes[leaf]
        penalty = penalty_of(self.island.penalties.get(leaf, ()), size)
        return LoneLeaf(leaf, self.island.floors[leaf], size, self.scale, self.limit, penalty)


def _parts(branch: Branch, shelf: _Shelf, scale: Scale, limit: int) -> list[Profile]:
    """The profiles of what hangs right below a switch: its leaves as one pod, and each switch."""
    parts: list[Profile] = [shelf.pod(branch.leaves)] if branch.leaves else []
    parts.extend(Joined(_parts(below, shelf, scale, limit), scale, limit, pod=False, link=True) for below in branch.branches)
    return parts


def _take_best(parts: Sequence[Profile], scale: Scale, n: int, taken: dict[int, int]) -> int:
    """Writes the best n extras of the parts below a root; returns their gain.

    One part has the partly filled leaf, the others are full. What all parts together give in full states bounds what the others give
    beside any one part (which may count twice there). So pairs (part, its extras) are tried from the highest bound down: the first
    that does not count twice is optimal, as is the best one found once it reaches the next bound.
    """
    # The last parts get the first say when states are equal: those with the least free come last, of these the first of the fabric.
    parts = [parts[index] for index in sorted(range(len(parts)), key=lambda index: (-parts[index].room, -parts[index].penalty, -index))]
    if len(parts) == 1 or all(part.complete for part in parts):
        whole = Joined(parts, scale, n, pod=False, link=False)
        whole.take(n, False, taken)
        return int(whole.any_gain[n])
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
    tied.sort(key=lambda pair: (parts[pair[0]].waste(pair[1]), parts[pair[0]].room - pair[1], -pair[0], pair[1]))
    for index, extra in tied:
        shares = _full_shares(parts, forward, n - extra)
        if shares[index] == 0:
            return highest, [(extra, False) if place == index else (share, True) for place, share in enumerate(shares)]
    return None


def _best_repaired(parts: Sequence[Profile], forward: Sequence[Array], bounds: _Bounds, n: int) -> tuple[int, Shares]:
    """The best gain and its shares, each pair's true value found by joining the parts before it with those after it."""
    backward = _sweep(parts[::-1], n)
    best, found = never(parts[0].any_gain.dtype), (0, 0, 0)
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
        steps.append(spread(before, part.full_extras, part.full_gains, min(n, len(before) + int(part.full_extras[-1]) - 1) + 1))
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
        return never(before.dtype), 0
    sums = before[low : high + 1] + after[extra - high : extra - low + 1][::-1]
    place = int(sums.argmax())
    return int(sums[place]), low + place
