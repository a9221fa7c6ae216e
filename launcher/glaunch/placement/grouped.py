"""Parts of a fabric that count whole groups: where no group need be split, and where as few as possible are."""

import numpy as np

from glaunch.placement.profiles import Array, Profile
from glaunch.placement.scale import Scale


def last_whole(floor: int, size: int, group: int) -> tuple[int, int]:
    """(least, most) whole groups of a part that gives whole groups only; least > most: it cannot."""
    return -(-floor // group), size // group


class InGroups:
    """A part that gives whole groups only: its extras are groups, and each number of them is a state of its own."""

    complete = True

    def __init__(self, part: Profile, group: int) -> None:
        self.part, self.group, self.base, self.penalty = part, group, part.base, part.penalty
        self.floor, most = last_whole(part.floor, part.floor + len(part.any_gain) - 1, group)
        self.room = most - self.floor
        self.full_extras = np.arange(self.room + 1)
        self.any_gain: Array = part.any_gain[self._nodes(self.full_extras)]
        self.full_gains = self.any_gain

    def _nodes(self, groups: Array) -> Array:
        return (self.floor + groups) * self.group - self.part.floor

    def take(self, extra: int, full: bool, taken: dict[int, int]) -> None:
        self.part.take((self.floor + extra) * self.group - self.part.floor, False, taken)

    def waste(self, extra: int) -> int:
        return self.part.waste((self.floor + extra) * self.group - self.part.floor)


class CountingGroups:
    """A part that gains `worth` for each whole group in it, beyond those in its floor.

    Between two multiples of the group's size nothing changes, so that the optimum still has at most one part that is neither full, nor
    at its floor, nor at such a multiple: these are its full states.
    """

    complete = False

    def __init__(self, part: Profile, group: int, worth: int, scale: Scale) -> None:
        self.part, self.floor, self.base, self.room, self.penalty = part, part.floor, part.base, part.room, part.penalty
        below = part.floor + np.arange(len(part.any_gain))
        whole: Array = (below // group - part.floor // group).astype(scale.dtype)
        self.any_gain = part.any_gain + whole * worth
        self.full_extras = np.union1d(part.full_extras, np.flatnonzero(below % group == 0))
        self.full_gains = self.any_gain[self.full_extras]

    def take(self, extra: int, full: bool, taken: dict[int, int]) -> None:
        self.part.take(extra, False, taken)

    def waste(self, extra: int) -> int:
        return self.part.waste(extra)
