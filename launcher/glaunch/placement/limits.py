"""What a partition allows a job: how long, how many nodes."""

from collections.abc import Collection, Mapping

from glaunch.cluster import Partition
from glaunch.errors import NeverFits
from glaunch.placement.eligible import OTHER_GPUS, Eligible
from glaunch.placement.layout import as_asked
from glaunch.request import Request
from glaunch.units import format_time, parse_time_s, plural


def limit_of(
    request: Request, origins: Mapping[str, str], partition: Partition, max_wall: tuple[int, str] | None = None
) -> tuple[int | None, str]:
    """(the limit in seconds or None for none, who set it). A limit of 0 is none. `max_wall`: what accounting allows, and who says so.

    Without --time and a default of the partition Slurm gives what the QOS allows, and at most the partition's maximum.
    **Source:** sbatch(1), --time; jobs of 22.05 under a QOS with MaxWall.
    """
    if request.time:
        where = origins.get("time", "-t")
        return parse_time_s(request.time, where) or None, where
    if partition.default_time_s is not None:
        return partition.default_time_s, f"partition {partition.name}'s default; -t asks for another"
    if max_wall is not None and (partition.max_time_s is None or max_wall[0] <= partition.max_time_s):
        return max_wall[0], f"{max_wall[1]}: MaxWall; -t asks for less"
    if partition.max_time_s is not None:
        return partition.max_time_s, f"partition {partition.name}'s maximum; -t asks for less"
    return None, f"partition {partition.name} has none; -t sets one"


def over_limits(
    request: Request, fit: Eligible, partition: Partition, time_limit_s: int | None, flags: Collection[str] = frozenset()
) -> NeverFits | None:
    """The error for what this partition can never run, with the limit named; None when it can, or when only Slurm can tell.

    `flags` are those of the job's QOS: some lift limits of partitions. **Source:** sacctmgr(1), Flags.
    """
    layout, force = fit.layout, "; to let Slurm say no itself: --force"
    each = f"{plural(layout.nodes, 'node')} of {plural(layout.tasks_per_node, 'rank')}"
    asks = f"{layout.tasks} ranks need {each}" if layout.tasks > 1 else "1 rank needs 1 node"
    if partition.needs_reservation and not request.reservation:
        message = f"partition {partition.name} takes jobs of reservations only (ReqResv)"
        return NeverFits(message, hint=f"--reservation NAME; see them: scontrol show reservation{force}")
    if partition.max_time_s is not None and _longer(time_limit_s, partition.max_time_s) and "PartitionTimeLimit" not in flags:
        most = format_time(partition.max_time_s)
        message = f"a time limit of {format_time(time_limit_s)} is over partition {partition.name}'s maximum, {most}"
        return NeverFits(message, hint=f"-t {most}, or another partition{force}")
    if partition.max_nodes is not None and layout.nodes > partition.max_nodes and "PartitionMaxNodes" not in flags:
        message = f"{asks}, and partition {partition.name} allows {partition.max_nodes} nodes a job"
        return NeverFits(message, hint=f"{as_asked(request, layout, partition.max_nodes)}, or another partition{force}")
    if layout.nodes < partition.min_nodes and "PartitionMinNodes" not in flags:
        message = f"{asks}, and partition {partition.name} takes no job of fewer than {partition.min_nodes}"
        return NeverFits(message, hint=f"{as_asked(request, layout, partition.min_nodes)}, or another partition{force}")
    have = len(fit.could_ever)
    if layout.nodes <= have or (not fit.decided and layout.nodes <= len(partition.nodes)):
        return None
    why = f" ({', '.join(f'{count} {reason}' for reason, count in fit.never)})" if fit.never else ""
    fits = f"{as_asked(request, layout, have)} fits" if have else "see what there is: sinfo -N -o '%N %P %c %m %G %f'"
    others = "; --mixed takes those with other GPUs too" if OTHER_GPUS in dict(fit.never) and not request.mixed else ""
    return NeverFits(f"{asks}, and partition {partition.name} has {have} such nodes{why}", hint=fits + others + force)


def _longer(time_limit_s: int | None, most_s: int) -> bool:
    return time_limit_s is None or time_limit_s > most_s
