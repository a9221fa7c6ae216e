"""What a placement means for an all-reduce: which neighbours are joined over which switches, and how fast that can be.

The model is that of alpha and beta: a ring or a double binary tree over the nodes, each rail by itself, one flow a connection. It knows
nothing of other jobs. Uncalibrated it is right to a quarter or so; what it is good for is the order of two alternatives.
**Source:** NCCL, src/graph/connect.cc (node i sends to node i + 1), src/graph/trees.cc, src/graph/tuning.cc.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, lgamma, log, log1p, log2

import numpy as np
import numpy.typing as npt

from glaunch.fabric import Fabric
from glaunch.network_model import Model, Network, Parameter

IntArray = npt.NDArray[np.int64]

_TREE_SHARE = 0.25
"""A node of a double binary tree sends on four connections at once: up twice, down twice."""


@dataclass(frozen=True, slots=True)
class Crossings:
    """Connections that leave a leaf, and those that leave a pod, of all connections."""

    leaf: int
    pod: int
    connections: int


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """An all-reduce's bus bandwidth in GB/s; the low end is hashed flows that meet on a link, the high end is a well-tuned network."""

    low_gb_s: float
    expected_gb_s: float
    high_gb_s: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """For one order of nodes."""

    ring: Crossings
    tree: Crossings
    """Of both trees of NCCL's double binary tree."""
    bandwidth: Bandwidth | None
    """None where the site does not say what its network carries."""
    assumed: tuple[str, ...]
    """What was taken for granted, in words."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """The same prediction for what is planned and for what could be instead."""

    planned: Prediction
    by_name: Prediction
    """The same nodes with ranks in the order of their names."""
    best_possible: Prediction | None
    """The best set of the whole partition, were every node free."""


def predict(fabric: Fabric, nodes: Sequence[str], ranks: int, network: Network, model: Model) -> Prediction | None:
    """The prediction for `nodes` in rank order, with `ranks` in all; None where the fabric does not know all of them.

    `model` may be empty: then there is no bandwidth.
    """
    rows = [fabric.leaf_row.get(node, -1) for node in nodes]
    if not rows or -1 in rows:
        return None
    leaf = np.array(rows, dtype=np.int64)
    pod_names = {name: index for index, name in enumerate(dict.fromkeys(map(fabric.pod_of_leaf, fabric.leaves)))}
    pod_of_leaf = np.array([pod_names[fabric.pod_of_leaf(name)] for name in fabric.leaves], dtype=np.int64)
    pod = pod_of_leaf[leaf]
    ring, tree = ring_connections(len(nodes)), tree_connections(len(nodes))
    bandwidth: Bandwidth | None = None
    assumed: tuple[str, ...] = ()
    if network.rails and network.rate_gbps and model and len(nodes) > 1:
        bandwidth, assumed = _bandwidth(_Loads(fabric, network, leaf, pod, pod_of_leaf), ring, tree, ranks, network, model)
    return Prediction(_crossings(ring, leaf, pod), _crossings(tree, leaf, pod), bandwidth, assumed)


def ring_connections(n: int) -> IntArray:
    """(from, to) of a closed ring over nodes 0 … n - 1, one row each; none for one node."""
    if n < 2:
        return np.zeros((0, 2), dtype=np.int64)
    here = np.arange(n)
    return np.stack([here, (here + 1) % n], axis=1)


def tree_connections(n: int) -> IntArray:
    """(from, to), both ways, of two binary trees over nodes 0 … n - 1: the second is the first in a mirror (shifted by one, if n is odd).

    In each the parent of a node is found by moving its lowest set bit one place up; where that is beyond the last node, by dropping it.
    """
    child = np.arange(1, n)
    bit = child & -child
    up = (child ^ bit) | (bit << 1)
    parent = np.where(up < n, up, child ^ bit)
    one = np.stack([child, parent], axis=1)
    two = (one + 1) % n if n % 2 else n - 1 - one
    edges = np.concatenate([one, two])
    return np.concatenate([edges, edges[:, ::-1]])


def _crossings(connections: IntArray, leaf: IntArray, pod: IntArray) -> Crossings:
    one, two = connections[:, 0], connections[:, 1]
    return Crossings(int((leaf[one] != leaf[two]).sum()), int((pod[one] != pod[two]).sum()), len(connections))


class _Loads:
    """How many links each leaf and pod has upwards on one rail, and how full they get."""

    def __init__(self, fabric: Fabric, network: Network, leaf: IntArray, pod: IntArray, pod_of_leaf: IntArray) -> None:
        sizes = Counter(fabric.leaf_row.values())
        nodes = np.array([sizes[row] for row in range(len(fabric.leaves))], dtype=np.int64)
        leaf_links = np.maximum(1, nodes // max(1, network.leaf_oversubscription))
        pod_links = np.maximum(1, np.bincount(pod_of_leaf, leaf_links).astype(np.int64) // max(1, network.pod_oversubscription))
        self.parts = ((leaf, leaf_links), (pod, pod_links))
        unknown = (("leaf", network.leaf_oversubscription), ("pod", network.pod_oversubscription))
        self.assumed = tuple(f"no oversubscription above a {what}, since the site does not say it" for what, known in unknown if not known)

    def busiest(self, connections: IntArray, share: float, *, hashed: bool) -> float:
        """The load of the fullest link in units of an adapter's rate, at least 1; each connection carries `share` of that rate.

        `hashed`: each flow stays on one link that a hash chooses; else all of a switch's flows share its links evenly.
        """
        worst = 1.0
        for part, links in self.parts:
            one, two = part[connections[:, 0]], part[connections[:, 1]]
            out = np.bincount(one[one != two], minlength=len(links))
            pairs = np.unique(np.stack([out, links], axis=1)[out > 0], axis=0).tolist()
            worst = max([worst, *(share * (fullest(flows, up) if hashed else flows / up) for flows, up in pairs)])
        return worst


def fullest(flows: int, links: int) -> int:
    """How many flows meet on the fullest link when a hash spreads them: the median, links taken as independent of each other."""
    if links == 1 or flows <= 1:
        return flows
    most, below = -1, 0.0
    while most < flows and below**links < 0.5:
        most += 1
        chance = lgamma(flows + 1) - lgamma(most + 1) - lgamma(flows - most + 1) - most * log(links) + (flows - most) * log1p(-1 / links)
        below += exp(chance)
    return most


def _bandwidth(
    loads: _Loads, ring: IntArray, tree: IntArray, ranks: int, network: Network, model: Model
) -> tuple[Bandwidth, tuple[str, ...]]:
    nodes = len(ring)
    rate_gb_s = network.rails * network.rate_gbps / 8
    size_gb = 1024**2 * model["message_mib"].expected / 1e9
    factor = 2 * (ranks - 1) / ranks

    def bus(which: str, *, hashed: bool) -> float:
        def value(name: str) -> float:
            parameter: Parameter = model[name]
            return float(getattr(parameter, which))

        rate = rate_gb_s * value("efficiency")
        ring_s = factor * size_gb * loads.busiest(ring, 1, hashed=hashed) / rate + 2 * (nodes - 1) * value("ring_step_us") / 1e6
        tree_s = (
            2 * size_gb * loads.busiest(tree, _TREE_SHARE, hashed=hashed) / (rate * value("tree_factor"))
            + 2 * log2(nodes) * value("tree_step_us") / 1e6
        )
        return round(factor * size_gb / min(ring_s, tree_s), 1)

    found = Bandwidth(bus("low", hashed=True), bus("expected", hashed=False), bus("high", hashed=False))
    return found, ("no other job on the links", *loads.assumed)
