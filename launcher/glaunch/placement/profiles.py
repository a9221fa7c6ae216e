"""How much a part of a fabric gains by each number of nodes taken from it: the steps of the exact placement.

Everything counts from a floor: the nodes that must be taken (those of lower weight) are in `floor`, and an *extra* is what comes on
top. A gain is the value that extras add. A *full* state has every leaf at its floor or filled up; the optimum has at most one leaf in
between, because the cost is concave in what each leaf gives (a concave function is least at a vertex). Charges for what is used at all
(a leaf, a pod, a link) are concave too, so this holds for every objective.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from glaunch.placement.scale import Scale

Array = npt.NDArray[Any]
Penalties = Sequence[int]
"""Of a leaf: the sum of its k least penalties, for k = 0 … all it may give; () for none."""


def never(dtype: "np.dtype[Any]") -> int:
    """The gain of what cannot be; smaller than any true one by so much that adding true gains to it does not matter."""
    return -(1 << 400) if dtype.kind == "O" else -(1 << 61)


def possible(gains: Array) -> Array:
    """The numbers of extras that can be had."""
    return np.flatnonzero(gains > never(gains.dtype) // 2)


class Profile(Protocol):
    """One part of a fabric. `room` is the number of extras it has; `any_gain[e]` the best gain of e extras with at most one leaf partly
    filled, up to the room or the number that is asked for; `full_extras`, `full_gains` are the full states worth having (ascending; the
    first is 0, 0)."""

    floor: int
    room: int
    base: int
    """The nodes from which gains count: the floor, also where extras are whole groups."""
    penalty: int
    """Of all its candidates: among equals the part with less is used first."""
    complete: bool
    """True: every number of extras is a full state, as with whole groups; then the first need not be 0, 0."""
    full_extras: Array
    full_gains: Array
    any_gain: Array

    def take(self, extra: int, full: bool, taken: dict[int, int]) -> None:
        """Writes leaf → nodes (floors included) of the best state with `extra`; `full`: of the best full state."""

    def waste(self, extra: int) -> int:
        """Free nodes that stay unused in the leaf that `extra` fills partly; 0 when none is, or where it is not known."""


def penalty_of(penalties: Penalties, count: int) -> int:
    """The least penalty of `count` nodes of a leaf."""
    return penalties[count] if penalties else 0


class LeafBundle:
    """Leaves under one switch of which each is either taken whole (floor = room) or has no floor.

    Largest first is then optimal for every number of extras (its sorted vector majorises every other, and sums of squares are
    Schur-convex), and needs the fewest leaves; so the full states are the prefix sums of the sorted sizes.
    """

    complete = False

    def __init__(
        self,
        leaves: Sequence[int],
        floors: Sequence[int],
        sizes: Sequence[int],
        scale: Scale,
        limit: int,
        penalties: Sequence[Penalties] = (),
    ) -> None:
        self.penalties = dict(zip(leaves, penalties, strict=False))
        self.fixed = [(leaf, floor) for leaf, floor in zip(leaves, floors, strict=True) if floor]
        given = zip(leaves, floors, sizes, strict=True)
        self.free = sorted((-size, self._penalty(leaf, size), leaf) for leaf, floor, size in given if not floor)
        self.floor = self.base = sum(floor for _, floor in self.fixed)
        self.penalty = sum(penalty for _, penalty, _ in self.free)
        free = np.array([-size for size, _, _ in self.free], dtype=np.int64)
        ends = np.concatenate(([0], np.cumsum(free)))
        self.ends: list[int] = ends.tolist()
        self.room = self.ends[-1]
        squares: Array = np.concatenate(([0], np.cumsum(free * free))).astype(scale.dtype)
        extras = np.arange(min(limit, self.room) + 1)
        whole = np.searchsorted(ends, extras, side="right") - 1
        rest = extras - ends[whole]
        kept = squares[whole] + (rest * rest - scale.n * extras).astype(scale.dtype)
        self.any_gain = kept * scale.pair - (whole + (rest > 0)).astype(scale.dtype) * (scale.leaf + scale.link)
        if limit >= scale.n and len(free) and free[0] >= scale.n:  # all in one leaf: no link is used
            self.any_gain[scale.n] += scale.link
        self.full_extras = ends[ends <= limit]
        self.full_gains = self.any_gain[self.full_extras]

    def _penalty(self, leaf: int, count: int) -> int:
        return penalty_of(self.penalties.get(leaf, ()), count)

    def take(self, extra: int, full: bool, taken: dict[int, int]) -> None:
        taken.update(self.fixed)
        whole = int(np.searchsorted(self.ends, extra, side="right")) - 1
        for size, _, leaf in self.free[:whole]:
            taken[leaf] = -size
        rest = extra - self.ends[whole]
        if rest:
            taken[self._tightest(whole, rest)[1]] = rest

    def waste(self, extra: int) -> int:
        whole = int(np.searchsorted(self.ends, extra, side="right")) - 1
        rest = extra - self.ends[whole]
        return self._tightest(whole, rest)[0] - rest if rest else 0

    def _tightest(self, whole: int, rest: int) -> tuple[int, int]:
        """(size, leaf) of the smallest unused leaf that holds the rest; of equals the one with the least penalty, then the first in the
        fabric's order. It costs the same as any other."""
        size = min(-size for size, _, _ in self.free[whole:] if -size >= rest)
        equal = [leaf for other, _, leaf in self.free[whole:] if -other == size]
        return size, min(equal, key=lambda leaf: (self._penalty(leaf, rest), leaf))


class LoneLeaf:
    """A leaf by itself: one of which some nodes must be taken and others may, or one that counts its whole groups."""

    complete = False

    def __init__(self, leaf: int, floor: int, size: int, scale: Scale, limit: int, penalty: int = 0) -> None:
        self.leaf, self.floor, self.base, self.room, self.penalty = leaf, floor, floor, size - floor, penalty
        extras: Array = np.arange(min(limit, self.room) + 1).astype(scale.dtype)
        self.any_gain = (2 * floor + extras - scale.n) * extras * scale.pair
        if not floor:
            self.any_gain[1:] -= scale.leaf
        self.any_gain -= link_charge(floor, floor + np.arange(len(extras)), scale)
        self.full_extras = np.array([0, self.room] if 0 < self.room <= limit else [0])
        self.full_gains = self.any_gain[self.full_extras]

    def take(self, extra: int, full: bool, taken: dict[int, int]) -> None:
        taken[self.leaf] = self.floor + extra

    def waste(self, extra: int) -> int:
        return self.room - extra if extra else 0


def link_charge(base: int, below: Array, scale: Scale) -> Array:
    """What each number of nodes `below` a link is charged for its use, beyond what `base` is: a link is used with some, not all, below."""
    used: Array = ((below > 0) & (below < scale.n)).astype(scale.dtype)
    return (used - int(0 < base < scale.n)) * scale.link


class Joined:
    """Several parts side by side: the leaves of one switch (`pod` charged once), or what hangs below a switch with a link above."""

    def __init__(self, parts: Sequence[Profile], scale: Scale, limit: int, *, pod: bool, link: bool) -> None:
        self.parts = parts
        self.floor, self.base = sum(part.floor for part in parts), sum(part.base for part in parts)
        self.room, self.penalty = sum(part.room for part in parts), sum(part.penalty for part in parts)
        self.complete = all(part.complete for part in parts)
        self.steps: list[tuple[Array, Array]] = []
        if len(parts) == 1:
            full, partly = None, parts[0].any_gain
            extras, gains = parts[0].full_extras, parts[0].full_gains
        else:
            full, partly = self._merge(scale, limit)
            extras = possible(full)
            gains = full[extras]
        own: Array = np.zeros(len(partly), dtype=scale.dtype)
        if link:
            below = (self.floor + np.arange(len(partly))) * scale.size
            own += (below * (below - scale.n) - self.base * (self.base - scale.n)).astype(scale.dtype) * scale.pair
            own -= link_charge(self.base, below, scale)
        if pod and not self.floor:
            own[1:] -= scale.pod
        self.any_gain = partly + own
        self.full_extras, self.full_gains = extras, gains + own[extras]

    def _merge(self, scale: Scale, limit: int) -> tuple[Array, Array]:
        full: Array = np.zeros(1, dtype=scale.dtype)
        partly = full
        for part in self.parts:
            self.steps.append((full, partly))
            length = min(limit, len(full) + len(part.any_gain) - 2) + 1
            next_full = spread(full, part.full_extras, part.full_gains, length)
            if self.complete:
                full = partly = next_full
                continue
            next_partly = spread(partly, part.full_extras, part.full_gains, length)
            states = possible(full)
            if len(states) <= len(part.any_gain):
                raise_to(next_partly, part.any_gain, states, full[states])
            else:
                raise_to(next_partly, full, np.arange(len(part.any_gain)), part.any_gain)
            full, partly = next_full, next_partly
        return full, partly

    def take(self, extra: int, full: bool, taken: dict[int, int]) -> None:
        if len(self.parts) == 1:
            self.parts[0].take(extra, full, taken)
            return
        full = full or self.complete
        for part, (full_before, partly_before) in zip(reversed(self.parts), reversed(self.steps), strict=True):
            part_extra, part_full, full = _undo(part, full_before, partly_before, extra, full)
            part.take(part_extra, part_full, taken)
            extra -= part_extra

    def waste(self, extra: int) -> int:
        return self.parts[0].waste(extra) if len(self.parts) == 1 else 0


def _undo(part: Profile, full_before: Array, partly_before: Array, extra: int, full: bool) -> tuple[int, bool, bool]:
    """The part's share of the best state with `extra`: (its extras, whether it is full, whether what stood before is full)."""
    chosen, gain = best_full_share(part, full_before if full else partly_before, extra)
    if full:
        return chosen, True, True
    low, high = max(0, extra - len(full_before) + 1), min(extra, len(part.any_gain) - 1)
    sums = full_before[extra - high : extra - low + 1][::-1] + part.any_gain[low : high + 1]
    if len(sums) and int(sums.max()) > gain:
        return low + int(sums.argmax()), False, True
    return chosen, True, False


def best_full_share(part: Profile, before: Array, extra: int) -> tuple[int, int]:
    """(extras of the part, gain in all) of the best way to have `extra` with the part full; of equals the most from this part."""
    rest = extra - part.full_extras
    had = np.flatnonzero((rest >= 0) & (rest < len(before)))
    if not len(had):
        return 0, never(before.dtype)
    sums = before[rest[had]] + part.full_gains[had]
    best = sums.max()
    last = had[np.flatnonzero(sums == best)[-1]]
    return int(part.full_extras[last]), int(best)


def spread(before: Array, extras: Array, gains: Array, length: int) -> Array:
    """Max-plus: after[k] = max over i of before[k - extras[i]] + gains[i], k = 0 … length - 1."""
    after = np.full(length, never(before.dtype), dtype=before.dtype)
    raise_to(after, before, extras, gains)
    return after


def raise_to(after: Array, before: Array, extras: Array, gains: Array) -> None:
    """after[k] becomes at least before[k - extras[i]] + gains[i], for every i."""
    length, width = len(after), len(before)
    sums = np.empty_like(before)
    for extra, gain in zip(extras.tolist(), gains.tolist(), strict=True):
        span = min(width, length - extra)
        if span <= 0:
            continue
        target = after[extra : extra + span]
        np.maximum(target, np.add(before[:span], gain, out=sums[:span]), out=target)
