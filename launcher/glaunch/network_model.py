"""What a network can carry: facts that a site knows, and the numbers of the model that predicts bandwidth."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Network:
    """What the site says of its network; 0: not known."""

    rails: int = 0
    """Adapters of a node that one job uses at once, each on a plane of switches of its own."""
    rate_gbps: int = 0
    """Of one adapter, each way, in Gbit/s."""
    leaf_oversubscription: int = 0
    """Links down per link up of a leaf: 1 = none."""
    pod_oversubscription: int = 0
    """The same for what stands above the leaves of a pod."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One number of the model with its range, and who says so."""

    low: float
    expected: float
    high: float
    source: str


Model = Mapping[str, Parameter]
"""Name → parameter, as `site/network-model.yaml` has them; see there what each one means."""

NAMES = ("efficiency", "ring_step_us", "tree_step_us", "tree_factor", "message_mib")
