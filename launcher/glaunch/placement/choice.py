"""The sets that a plan holds: the best one that is free, those that another objective calls better, the best of all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from glaunch.fabric import Fabric
from glaunch.network_model import Model, Network
from glaunch.placement.eligible import Eligible
from glaunch.placement.objective import HOPS, OBJECTIVES, SPREAD, Groups
from glaunch.placement.order import natural_order
from glaunch.placement.place import Candidates, best_possible, place
from glaunch.placement.placement import Placement
from glaunch.placement.predict import Outlook, Prediction, predict


@dataclass(frozen=True, slots=True)
class Choice:
    """What can be had now, and what could be had at best."""

    free: Placement | None
    """The best set of what is free; None when not enough is."""
    alternatives: tuple[Placement, ...]
    """Free sets that have fewer pods, or fewer hops, than `free`: where fewest hops and fewest pods are two sets."""
    best_possible: Placement | None
    """The best set of all nodes that fit, were every one of them free."""


def choose(
    fabric: Fabric,
    fit: Eligible,
    objective: str,
    groups: Groups,
    *,
    powered_down_free: bool,
    segmented: bool = False,
    penalties: Mapping[str, int] = MappingProxyType({}),
) -> Choice:
    """The sets of a request. Nodes that must be powered up come in only where the others do not suffice, or if `powered_down_free`.

    `penalties` are those of nodes in doubtful health: they decide among equals.
    """
    n = fit.layout.nodes
    nodes, weights = fit.nodes, fit.weights
    if fit.startable and (powered_down_free or len(nodes) < n):
        nodes, weights = nodes + fit.startable, weights + fit.startable_weights
    candidates = Candidates(nodes, weights)
    free = place(fabric, candidates, n, objective, groups, penalties, segmented=segmented)
    # One pod cannot become fewer, and nodes on one leaf cannot be nearer.
    rivals = [other for other, room in ((HOPS, free and free.cost.leaves > 1), (SPREAD, free and free.cost.pods > 1)) if room]
    others = [place(fabric, candidates, n, other, groups, penalties, segmented=segmented) for other in rivals if other != objective]
    return Choice(
        free=free,
        alternatives=tuple(other for other in others if other and free and _beats(other, free)),
        best_possible=best_possible(fabric, fit.could_ever, n, objective, groups, segmented=segmented),
    )


def _beats(one: Placement, two: Placement) -> bool:
    """Whether `one` is better in what its own objective looks at first."""
    first = OBJECTIVES[one.objective][0]
    return bool(getattr(one.cost, first) < getattr(two.cost, first))


def outlook(fabric: Fabric, choice: Choice, ranks: int, network: Network, model: Model) -> Outlook | None:
    """What the free set means for an all-reduce, beside other orders and sets; None without one, or where the fabric does not know it."""

    def look(nodes: Sequence[str]) -> Prediction | None:
        return predict(fabric, nodes, ranks, network, model)

    if choice.free is None:
        return None
    planned, by_name = look(choice.free.nodes), look(natural_order(choice.free.nodes))
    if planned is None or by_name is None:
        return None
    return Outlook(planned, by_name, look(choice.best_possible.nodes) if choice.best_possible else None)
