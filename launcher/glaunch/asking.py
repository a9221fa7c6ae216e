"""How Slurm is asked for nodes: pin, prefer or order; which of them a job gets, and why not a better one."""

from collections.abc import Sequence
from dataclasses import dataclass

from glaunch.cluster import Cluster, Partition, parameters
from glaunch.errors import UsageError
from glaunch.fabric import Fabric
from glaunch.hostlist import fold
from glaunch.placement.eligible import Eligible
from glaunch.placement.order import natural_order
from glaunch.placement.placement import Placement
from glaunch.plan import Option
from glaunch.request import Request
from glaunch.sbatch_options import hindrance
from glaunch.segments import list_refused
from glaunch.settings import Settings, placing
from glaunch.slurm_versions import LISTS_SPARES, version_text
from glaunch.spares import spares, worst_of
from glaunch.units import format_span, parse_time_s, plural

SWITCH_WAIT_S = 300
"""What caps the wait of `--switches` where the site says nothing. **Source:** slurm.conf(5), SchedulerParameters=max_switch_wait."""


@dataclass(frozen=True, slots=True)
class Way:
    """How nodes are asked for."""

    mode: str
    """pin, prefer or order."""
    why: str
    """In words: what it means for the job, or why not a better way."""
    arguments: tuple[Option, ...] = ()
    """What sbatch is told beside the script."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What the choice of a way looks at."""

    request: Request
    settings: Settings
    partition: Partition
    cluster: Cluster
    fit: Eligible
    placement: Placement | None
    fabric: Fabric
    slurm: Fabric
    """What Slurm itself places by."""
    segment: int = 0
    """So many nodes a segment are asked for; 0: none."""
    preempted: str = ""
    """By whom the job can be preempted, in words; "" for nobody: a job with listed nodes is never requeued, and would be lost."""


def way_of(ask: Ask) -> Way:
    """The way that is asked for, or `auto` becomes; `order` where something stands against it, with the reason.

    Raises ConfigError where the site forbids what was asked for, UsageError where `pin` is insisted on and something stands against it.
    """
    settings = ask.settings
    way = placing(settings)
    if ask.request.wait_for_leaves is not None:
        if "switches" in dict(ask.request.sbatch):
            raise UsageError("--wait-for-leaves and --switches say the same", hint="say it once: --wait-for-leaves N@TIME")
        if settings.text("placement.mode") in {"pin", "prefer"}:
            raise UsageError(
                f"{settings.where('placement.mode')} {way} and --wait-for-leaves both say which nodes are waited for",
                hint="leave one of them out",
            )
        return Way("order", wait_words(ask.request.wait_for_leaves, ask.cluster))
    if way == "order":
        asked = settings.text("placement.mode") == "order"
        return Way("order", f"{settings.where('placement.mode' if asked else 'placement.allowed')} says so")
    against = _against(ask, way)
    if settings.text("placement.mode") == "pin" and against:
        raise UsageError(
            f"{settings.where('placement.mode')} pin: {against}", hint="leave it out: Slurm picks the nodes, glaunch orders the ranks"
        )
    if against:
        return Way("order", against)
    if ask.placement is None:
        return Way("order", "not enough nodes are free now")
    return _pin(ask, ask.placement) if way == "pin" else _prefer(ask, ask.placement)


def wait_words(asked: str, cluster: Cluster) -> str:
    """What `--switches=N@t` means on this cluster: `Slurm waits at most 5 min for nodes on 2 leaf switches, then takes any`."""
    leaves, wait_s = parse_wait(asked)
    cap_s, whose = wait_cap(cluster)
    capped = wait_s is None or wait_s > cap_s
    told = f" ({whose})" if capped else ""
    return (
        f"Slurm waits at most {format_span(cap_s if wait_s is None or capped else wait_s)}{told} "
        f"for nodes on {plural(leaves, 'leaf switch', 'leaf switches')}, then takes any"
    )


def parse_wait(text: str) -> tuple[int, int | None]:
    """`4` or `4@10:00` → (leaf switches, seconds or None). Raises UsageError. **Source:** sbatch(1), --switches."""
    leaves, at, wait = text.partition("@")
    if not (leaves.isascii() and leaves.isdigit() and int(leaves)) or (at and not wait):
        raise UsageError(f"--wait-for-leaves {text!r} is no number of leaf switches", hint="--wait-for-leaves 4, --wait-for-leaves 4@10:00")
    return int(leaves), parse_time_s(wait, f"--wait-for-leaves {text!r}:") if at else None


def wait_cap(cluster: Cluster) -> tuple[int, str]:
    """What caps every wait of --switches: (seconds, where that is said)."""
    value = parameters(cluster.config, "SchedulerParameters").get("max_switch_wait", "")
    if value.isascii() and value.isdigit():
        return int(value), f"max_switch_wait={value} of this Slurm"
    return SWITCH_WAIT_S, "max_switch_wait, Slurm's default"


def _against(ask: Ask, way: str) -> str:
    """Why no nodes are asked for; "" when nothing stands against it."""
    most = ask.settings.number(f"placement.{way}_max_nodes")
    if most and ask.fit.layout.nodes > most:
        return f"{ask.settings.where(f'placement.{way}_max_nodes')} allows {way} up to {plural(most, 'node')}"
    listed = way == "pin" or _lists_spares(ask)
    return (
        hindrance(ask.request, listed=listed)
        or ("" if ask.partition.up else f"partition {ask.partition.name} is not up: nothing starts there now")
        or (ask.preempted if listed else "")
        or ("" if ask.fit.decided else ask.fit.notes[0])
        or ("" if ask.placement is None or not listed else _refused(ask, ask.placement, _spares(ask, ask.placement, way)))
    )


def _refused(ask: Ask, placement: Placement, more: Sequence[str]) -> str:
    """Why topology/block takes no list of these nodes; "" where it does. Without a list they are asked for in segments, if at all."""
    refused = list_refused(ask.slurm, placement.nodes, more, ask.segment, ask.cluster.slurm_version)
    return f"{refused}{_in_segments(ask)}" if refused else ""


def _in_segments(ask: Ask) -> str:
    return f"; in segments of {plural(ask.segment, 'node')}, each in one block" if ask.segment else ""


def _spares(ask: Ask, placement: Placement, way: str) -> tuple[str, ...]:
    return spares(ask.fit, placement, ask.fabric, ask.slurm) if way == "prefer" else ()


def _pin(ask: Ask, placement: Placement) -> Way:
    return Way(
        "pin",
        f"pinned if it starts within {_patience_s(ask)} s, else Slurm chooses{_in_segments(ask)}",
        _listed(placement.nodes, "the best set"),
    )


def _patience_s(ask: Ask) -> int:
    return ask.settings.number("pin.patience_s")


def _listed(nodes: tuple[str, ...], what: str) -> tuple[Option, ...]:
    return (
        Option("nodelist", fold(nodes), f"{what} that is free now"),
        Option("no-requeue", None, "a pinned job that is requeued while one of its nodes is gone would wait for ever"),
    )


def _lists_spares(ask: Ask) -> bool:
    return LISTS_SPARES.there(ask.cluster.slurm_version)


def _prefer(ask: Ask, placement: Placement) -> Way:
    """The best that this Slurm takes: a list with spares, else a number of leaf switches."""
    if _lists_spares(ask):
        more = _spares(ask, placement, "prefer")
        worst = worst_of(ask.fabric, placement, more)
        words = f" and {plural(len(more), 'spare node')} on the same leaves" if more else ", with no spare node free on their leaves"
        why = (
            f"among the best {plural(len(placement.nodes), 'node')}{words}{worst.words}, "
            f"if it starts within {_patience_s(ask)} s, else Slurm chooses{_in_segments(ask)}"
        )
        nodes = tuple(natural_order((*placement.nodes, *more)))
        return Way("prefer", why, _listed(nodes, "the best set, with spares,"))
    version = version_text(ask.cluster.slurm_version)
    if not placement.leaves or ask.slurm.flat:
        return Way("order", f"Slurm {version} takes no spare nodes in a list, and without topology/tree no number of switches")
    leaves = str(placement.cost.leaves)
    words = wait_words(leaves, ask.cluster)
    return Way(
        "prefer",
        f"{words}; no list with spare nodes, which Slurm takes from 23.02 on (here {version})",
        (Option("switches", leaves, "as many leaf switches as the best free set has"),),
    )
