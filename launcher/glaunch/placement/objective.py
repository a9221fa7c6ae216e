"""What a good set is: the objectives, and groups that should stay together."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

HOPS, RING, SPREAD = "hops", "ring", "spread"

OBJECTIVES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        HOPS: ("hops", "pods", "leaves"),
        RING: ("ring_hops", "hops", "pods", "leaves"),
        SPREAD: ("pods", "leaves", "hops"),
    }
)
"""Objective → the fields of Cost that it compares, one after the other, once weight and split groups are equal."""


@dataclass(frozen=True, slots=True)
class Groups:
    """Neighbours in rank order that should stay together, in nodes; 1: no such groups.

    Groups of `leaf` nodes should not span two leaves (or blocks), groups of `pod` nodes not two pods. `leaf` divides `pod` unless that is
    1, and both divide the number of nodes.
    """

    leaf: int = 1
    pod: int = 1


NO_GROUPS = Groups()


def compared(objective: str) -> tuple[str, ...]:
    """The fields of Cost in the order in which the objective compares them."""
    return ("weight", "leaf_splits", "pod_splits", *OBJECTIVES[objective])
