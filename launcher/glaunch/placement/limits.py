"""What a partition allows a job: how long, how many nodes."""

from collections.abc import Mapping

from glaunch.cluster import Partition
from glaunch.errors import NeverFits
from glaunch.placement.eligible import Eligible
from glaunch.request import Request
from glaunch.units import format_time, parse_time_s, plural


def limit_of(request: Request, origins: Mapping[str, str], partition: Partition) -> tuple[int | None, str]:
    """(the limit in seconds or None for none, who set it). A limit of 0 is none. **Source:** sbatch(1), --time."""
    if request.time:
        return parse_time_s(request.time) or None, origins.get("time", "-t")
    if partition.default_time_s is not None:
        return partition.default_time_s, f"partition {partition.name}'s default; -t asks for another"
    if partition.max_time_s is not None:
        return partition.max_time_s, f"partition {partition.name}'s maximum; -t asks for less"
    return None, f"partition {partition.name} has none; -t sets one"


def over_limits(fit: Eligible, partition: Partition, time_limit_s: int | None) -> NeverFits | None:
    """The error for what this partition can never run, with the limit named; None when it can, or when only Slurm can tell."""
    layout, force = fit.layout, "; to let Slurm say no itself: --force"
    asks = f"{layout.tasks} ranks need {plural(layout.nodes, 'node')} of {layout.tasks_per_node} ranks"
    if partition.max_time_s is not None and (time_limit_s is None or time_limit_s > partition.max_time_s):
        most = format_time(partition.max_time_s)
        message = f"a time limit of {format_time(time_limit_s)} is over partition {partition.name}'s maximum, {most}"
        return NeverFits(message, hint=f"-t {most}, or another partition{force}")
    if partition.max_nodes is not None and layout.nodes > partition.max_nodes:
        message = f"{asks}, and partition {partition.name} allows {partition.max_nodes} nodes a job"
        return NeverFits(message, hint=f"-n {partition.max_nodes * layout.tasks_per_node}, or another partition{force}")
    if layout.nodes < partition.min_nodes:
        message = f"{asks}, and partition {partition.name} takes no job of fewer than {partition.min_nodes}"
        return NeverFits(message, hint=f"-n {partition.min_nodes * layout.tasks_per_node}, or another partition{force}")
    have = len(fit.could_ever)
    if layout.nodes <= have or (not fit.decided and layout.nodes <= len(partition.nodes)):
        return None
    why = f" ({', '.join(f'{count} {reason}' for reason, count in fit.never)})" if fit.never else ""
    fits = f"-n {have * layout.tasks_per_node} fits" if have else "see what there is: sinfo -N -o '%N %P %c %m %G %f'"
    return NeverFits(f"{asks}, and partition {partition.name} has {have} such nodes{why}", hint=fits + force)
