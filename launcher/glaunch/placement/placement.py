"""The answer of the placement: which nodes, in which order, at what cost, and how sure that is."""

from dataclasses import dataclass

from glaunch.units import plural


@dataclass(frozen=True, slots=True)
class Cost:
    """What a node set costs on the fabric; lower is better, compared in this order."""

    weight: int
    """Sum of Slurm's node weights (lower first, as Slurm does)."""
    hops: int
    """Sum over all pairs of nodes of the switches between them."""
    pods: int
    leaves: int

    def in_words(self, nodes: int) -> str:
        """`2 leaves in 1 pod, 2.14 switches between two nodes on average`, for a set of so many nodes."""
        if self.leaves <= 1:
            return "1 leaf, 1 switch between any two nodes" if nodes > 1 else "1 node"
        mean = self.hops / (nodes * (nodes - 1) // 2)
        return f"{self.leaves} leaves in {plural(self.pods, 'pod')}, {mean:.2f} switches between two nodes on average"


@dataclass(frozen=True, slots=True)
class Placement:
    """Nodes in rank order (along the fabric: pod by pod, leaf by leaf) and the proof."""

    nodes: tuple[str, ...]
    cost: Cost
    bound_hops: int
    """No set of this size and weight from the eligible nodes has fewer hops; equal to cost.hops: optimal."""
    leaves: tuple[tuple[str, int], ...]
    """(leaf, nodes taken there), in rank order; empty for a node that the fabric does not know."""
    pods: tuple[tuple[str, int], ...]
    """(pod, nodes taken there), in rank order."""
    mean_hops: float
    """cost.hops over the number of pairs; 0 for one node."""

    @property
    def optimal(self) -> bool:
        """True when the cost is proven to be the least possible."""
        return self.cost.hops == self.bound_hops


@dataclass(frozen=True, slots=True)
class OrderRow:
    """One line of order.tsv: where a node stands in the fabric's order, whichever nodes Slurm grants."""

    node: str
    position: int
    """0 for the first."""
    leaf: str
    pod: str
