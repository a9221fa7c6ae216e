"""The answer of the placement: which nodes, in which order, at what cost, and how sure that is."""

from dataclasses import dataclass

from glaunch.placement.objective import HOPS, compared
from glaunch.units import plural


@dataclass(frozen=True, slots=True)
class Cost:
    """What a node set costs on the fabric; lower is better. `objective.compared` says which field goes first."""

    weight: int
    """Sum of Slurm's node weights (lower first, as Slurm does)."""
    hops: int
    """Sum over all pairs of nodes of the switches between them."""
    pods: int
    leaves: int
    ring_hops: int | None = None
    """Switches that a closed ring over the nodes crosses at best: n + 2 for each link between switches that has some of the nodes below
    it and some not; 0 for one node. None in a bound: the objective says nothing of it."""
    leaf_splits: int = 0
    """Groups that span two leaves, in the best rank order; 0 where nothing is said of groups."""
    pod_splits: int = 0
    """Groups that span two pods."""

    def key(self, objective: str) -> tuple[int, ...]:
        """What the objective compares: the least key is the best cost."""
        return tuple(int(getattr(self, name)) for name in compared(objective))

    def in_words(self, nodes: int) -> str:
        """`2 leaves in 1 pod, 2.14 switches between two nodes on average`, for a set of so many nodes."""
        if self.leaves <= 1:
            return "1 leaf, 1 switch between any two nodes" if nodes > 1 else "1 node"
        mean = self.hops / (nodes * (nodes - 1) // 2)
        split = [(self.pod_splits, "pods"), (self.leaf_splits, "leaves")]
        groups = "".join(f", {plural(count, 'group')} over two {what} or more" for count, what in split if count)
        return f"{self.leaves} leaves in {plural(self.pods, 'pod')}, {mean:.2f} switches between two nodes on average{groups}"


@dataclass(frozen=True, slots=True)
class Placement:
    """Nodes in rank order (along the fabric: pod by pod, leaf by leaf; whole groups first) and the proof."""

    nodes: tuple[str, ...]
    cost: Cost
    bound: Cost
    """No set of this size from the eligible nodes costs less under the objective, as the search found it before any node was named."""
    leaves: tuple[tuple[str, int], ...]
    """(leaf, nodes taken there), in rank order; empty for a node that the fabric does not know."""
    pods: tuple[tuple[str, int], ...]
    """(pod, nodes taken there), in rank order."""
    mean_hops: float
    """cost.hops over the number of pairs; 0 for one node."""
    objective: str = HOPS
    """What was minimised: hops, ring or spread."""

    @property
    def optimal(self) -> bool:
        """True when the cost, counted again from the nodes, is the proven bound."""
        return self.cost.key(self.objective) == self.bound.key(self.objective)


@dataclass(frozen=True, slots=True)
class OrderRow:
    """One line of order.tsv: where a node stands in the fabric's order, whichever nodes Slurm grants."""

    node: str
    position: int
    """0 for the first."""
    leaf: str
    pod: str
