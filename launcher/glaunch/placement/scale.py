"""The costs of an objective as the digits of one whole number, so that one search serves them all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from glaunch.placement.objective import OBJECTIVES

_DIGIT = MappingProxyType({"hops": "pair", "ring_hops": "link", "pods": "pod", "leaves": "leaf"})
"""Field of Cost → what a search counts of it: pairs, links, pods, leaves."""


@dataclass(frozen=True, slots=True)
class Digit:
    """`what` is a number from `low` to `high`, of which each one counts `unit`."""

    what: str
    unit: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Scale:
    """What counts how much, and how to read a sum again.

    A link with x of `n` below it is crossed by x(n - x) pairs: it gains (x² - nx) `pair`. A link with some, not all, below it is used:
    it loses `link`. A pod that is used loses `pod`, a leaf `leaf`; a whole group inside one leaf gains `leaf_group`, inside one pod
    `pod_group`.
    """

    n: int
    pair: int
    pod: int
    leaf: int
    link: int
    leaf_group: int
    pod_group: int
    digits: tuple[Digit, ...]
    """The most important first."""
    dtype: type
    """np.int64, or object (Python's own whole numbers) where the sums would not fit."""
    size: int = 1
    """How many of the n one extra stands for."""

    def read(self, gain: int) -> dict[str, int]:
        """A gain as what it is made of: pairs that are saved (`pair`), groups that are kept whole; `pod`, `leaf`, `link` below 0: new."""
        gain -= sum(digit.low * digit.unit for digit in self.digits)
        found = {}
        for digit in self.digits:
            count, gain = divmod(gain, digit.unit)
            found[digit.what] = count + digit.low
        return found


def scale_of(objective: str, n: int, ranges: Mapping[str, tuple[int, int]], safe_value: int, *, pairs: int = 1) -> Scale:
    """The scale on which one of the objective's first cost outweighs any sum of the next, and so on.

    `ranges`: for `pair`, `link`, `pod`, `leaf`, `leaf_group` and `pod_group` the least and the most that a gain can hold of it; `pairs`:
    how many pairs one pair of the search stands for.
    """
    order: Sequence[str] = ("leaf_group", "pod_group", *(_DIGIT[name] for name in OBJECTIVES[objective]))
    digits: list[Digit] = []
    unit = 1
    for what in reversed(order):
        low, high = ranges[what]
        digits.insert(0, Digit(what, unit, low, high))
        unit *= high - low + 1
    one = {digit.what: digit.unit for digit in digits}
    dtype = np.int64 if unit < safe_value else object
    return Scale(
        n=n,
        pair=one["pair"] * pairs,
        pod=one["pod"],
        leaf=one["leaf"],
        link=one.get("link", 0),
        leaf_group=one["leaf_group"],
        pod_group=one["pod_group"],
        digits=tuple(digits),
        dtype=dtype,
    )
