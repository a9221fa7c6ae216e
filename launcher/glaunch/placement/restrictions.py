"""What keeps nodes from a job besides their state: reservations, features, and options that only Slurm follows."""

import re
from collections.abc import Callable, Mapping

from glaunch.cluster import Cluster
from glaunch.errors import UsageError
from glaunch.request import Request

SLURM_DECIDES = frozenset(
    {
        "batch",
        "cluster-constraint",
        "contiguous",
        "core-spec",
        "cores-per-socket",
        "gpus",
        "gpus-per-task",
        "gpus-per-socket",
        "gres",
        "mincpus",
        "prefer",
        "segment",
        "sockets-per-node",
        "switches",
        "thread-spec",
        "threads-per-core",
        "tmp",
        "licenses",
        "extra-node-info",
    }
)
"""sbatch options that change which nodes fit in ways that only Slurm follows."""


def reservations(
    request: Request, cluster: Cluster, now_s: float, time_limit_s: int | None
) -> tuple[Mapping[str, str], frozenset[str] | None, Mapping[str, int]]:
    """Node → why a reservation keeps it out now; the nodes of the request's own one (None: none named); node → start of one ahead."""
    held: dict[str, str] = {}
    ahead: dict[str, int] = {}
    inside: frozenset[str] | None = None
    for reservation in cluster.reservations:
        if reservation.name == request.reservation:
            inside = frozenset(reservation.nodes)
            if reservation.start_s > now_s:
                held.update(dict.fromkeys(reservation.nodes, "in a reservation that has not begun"))
            if reservation.end_s <= now_s:
                held.update(dict.fromkeys(reservation.nodes, "in a reservation that is over"))
        elif reservation.end_s > now_s and reservation.start_s <= now_s:
            held.update(dict.fromkeys(reservation.nodes, "reserved"))
        elif reservation.end_s > now_s and (time_limit_s is None or reservation.start_s < now_s + time_limit_s):
            ahead.update((node, min(reservation.start_s, ahead.get(node, reservation.start_s))) for node in reservation.nodes)
    if request.reservation and inside is None:
        shown = ", ".join(reservation.name for reservation in cluster.reservations) or "none"
        raise UsageError(f"no reservation {request.reservation!r}; there are: {shown}", hint="see them: scontrol show reservation")
    return held, inside, ahead


def features(constraint: str | None) -> Callable[[frozenset[str]], bool] | None:
    """A test for `a`, `a&b` or `a|b`; None for no constraint and for those that only Slurm can judge."""
    if not constraint or not re.fullmatch(r"[\w.:@+-]+(?:&[\w.:@+-]+)*|[\w.:@+-]+(?:\|[\w.:@+-]+)*", constraint):
        return None
    words = frozenset(re.split(r"[&|]", constraint))
    return (lambda features: bool(words & features)) if "|" in constraint else (lambda features: words <= features)
