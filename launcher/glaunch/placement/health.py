"""Nodes that are rather left alone: what the settings say of them, and which of this user's jobs they failed."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from glaunch.hostlist import expand
from glaunch.settings import Row
from glaunch.units import plural


@dataclass(frozen=True, slots=True)
class Penalty:
    """One node that is taken only where no equally good set has a healthier one."""

    node: str
    points: int
    """The sum of all that is said against it."""
    why: str


def penalties(rows: Sequence[Row], failed: Mapping[str, int], nodes: Collection[str]) -> tuple[Penalty, ...]:
    """What counts against those of `nodes` of which anything does, in their order.

    `rows` are the lines of `placement.penalties` (a hostlist, its points and why); `failed`: node → jobs of this user's that it failed
    lately, a point each.
    """
    said: dict[str, list[tuple[int, str]]] = {}
    for row in rows:
        for node in expand(row.name) if row.value is not None else ():
            reason = f"{row.reason}; " if row.reason else ""
            said.setdefault(node, []).append((int(row.value or 0), f"{reason}{row.where}"))
    for node, count in failed.items():
        said.setdefault(node, []).append((count, f"failed {plural(count, 'job')} of yours in the last days"))
    return tuple(
        Penalty(node, sum(points for points, _ in said[node]), ", ".join(why for _, why in said[node])) for node in nodes if node in said
    )
