"""A heterogeneous job (`glaunch A : B`) decided: each component as a job of its own would be, then put together. Pure.

One batch script runs on the first component's first node, and the ranks of all components are one world, in order. Slurm gives no node to
two components.
"""

from collections.abc import Sequence
from dataclasses import replace

from glaunch.cluster import Cluster, parameters
from glaunch.decide import Ground, decide, environment_of
from glaunch.errors import NeverFits, UsageError
from glaunch.placement.order import fabric_order, paths_of
from glaunch.plan import Plan
from glaunch.request import Caller, Request
from glaunch.sbatch_options import of_component
from glaunch.settings import Settings
from glaunch.tuning import Environment
from glaunch.units import format_time

BACKFILL_S = "30"
"""Seconds between two rounds of backfill where the site says nothing. **Source:** slurm.conf(5), SchedulerParameters=bf_interval."""
INHERITED = ("account", "qos", "reservation", "time")
"""What a component has from the first where it does not say it. Slurm's own default for the time would end one component alone: its step
is then cancelled and the others wait for it to their own limit (tried on 22.05.8)."""


def decide_all(request: Request, caller: Caller, ground: Ground, *, programs: Sequence[tuple[str, ...]] = ()) -> Plan:
    """As `decide`, for a request with components too; `programs`: what each rank of the further components runs.

    Raises what `decide` raises, and UsageError for what a heterogeneous job cannot be.
    """
    if not request.components:
        return decide(request, caller, ground)
    _refuse(request, ground.settings)
    first = decide(request, caller, ground)
    _refuse_form(first)
    _refuse_container(first, ground.settings)
    taken = _nodes_of(first)
    others: list[Plan] = []
    for component, program in zip(request.components, programs, strict=True):
        defaults = {name: getattr(first.request, name) for name in INHERITED if getattr(component, name) is None}
        asked = replace(component, force=request.force, **defaults)
        plan = decide(asked, replace(caller, program=program), replace(ground, beside=taken))
        taken |= _nodes_of(plan)
        others.append(plan)
    if not request.force:
        _refuse_crowd((first, *others), ground.cluster)
    return _together(first, others, caller, ground)


def _nodes_of(plan: Plan) -> frozenset[str]:
    return frozenset(plan.placement.nodes if plan.placement else ())


def _refuse(request: Request, settings: Settings) -> None:
    if request.array:
        raise UsageError("an array of jobs cannot have components: Slurm refuses it", hint="leave --array out, or launch one job a task")
    if settings.text("placement.on_bad") != "warn" and settings.where("placement.on_bad").startswith("--"):
        raise UsageError(
            f"--on-bad-placement {settings.text('placement.on_bad')}: a job of several components is not judged as one set of nodes",
            hint="leave it out; how near the nodes of each came to lie is in the report",
        )


def _refuse_form(first: Plan) -> None:
    if first.launch.form != "srun":
        raise UsageError(
            f"--launcher {first.launch.form}: the components of a job (':') are started by srun alone, as one world of ranks",
            hint="--launcher srun (torch programs run under it as they are: RANK, WORLD_SIZE and MASTER_ADDR are set)",
        )


def _refuse_crowd(plans: Sequence[Plan], cluster: Cluster) -> None:
    """Slurm gives no node to two components (tried on 24.11.5: it waits for ever)."""
    for name in dict.fromkeys(one.partition for one in plans):
        partition = cluster.partition(name)
        wanted = sum(one.layout.nodes for one in plans if one.partition == name)
        if partition is not None and partition.nodes and wanted > len(partition.nodes):
            raise NeverFits(
                f"the components want {wanted} nodes of partition {name}, which has {len(partition.nodes)}, and no two share one",
                hint="fewer nodes, or another partition for one of them: -p",
            )


def _refuse_container(first: Plan, settings: Settings) -> None:
    if first.launch.container is not None:
        where = settings.where("container.image")
        instead = "leave it out" if where.startswith("--") else f"{where} names it: --container none"
        raise UsageError(
            f"--container {first.launch.container.named}: the components of a job (':') start outside of containers",
            hint=f"{instead}, and each program in one by its own line: -N 1 apptainer exec IMAGE PROGRAM",
        )


def _together(first: Plan, others: Sequence[Plan], caller: Caller, ground: Ground) -> Plan:
    """The first component's plan with the others in it: one table of all nodes, one environment for all."""
    cluster, fabric, settings = ground.cluster, ground.fabric, ground.settings.for_partition(first.partition)
    plans = (first, *others)
    partitions = [found for one in plans if (found := cluster.partition(one.partition))]
    nodes = tuple(dict.fromkeys(node for partition in partitions for node in partition.nodes))
    order = fabric_order(fabric, nodes)
    decided = replace(
        first,
        order=order,
        paths=paths_of(fabric, order),
        fewest_pods=0,
        on_bad="warn",
        outlook=None,
        environment=environment_of(first.request, settings, ground.rules, sum(one.layout.nodes for one in plans), caller),
        components=tuple(_slim(one, first) for one in others),
    )
    return replace(decided, notes=(*decided.notes, *_notes(plans, cluster)))


def _slim(plan: Plan, first: Plan) -> Plan:
    """What differs from the first: what is the whole job's is not said twice."""
    return replace(
        plan,
        mode="order",
        mode_why="",
        order=(),
        paths=(),
        fewest_pods=0,
        outlook=None,
        directives=of_component(plan.directives),
        arguments=(),
        environment=Environment((), (), (), ()),
        warnings=tuple(warning for warning in plan.warnings if warning not in first.warnings),
        notes=tuple(note for note in plan.notes if note not in first.notes),
    )


def _notes(plans: Sequence[Plan], cluster: Cluster) -> tuple[str, ...]:
    """What is different for such a job: when it starts, and that a component which ends before the others is missed by them."""
    every_s = parameters(cluster.config, "SchedulerParameters").get("bf_interval", BACKFILL_S)
    starts = f"Slurm starts a job of several components in its backfill rounds alone, every {every_s} s here"
    limits = [one.time_limit_s for one in plans]
    known = [limit for limit in limits if limit is not None]
    if not known or len(set(limits)) == 1:
        return (starts,)
    number = limits.index(min(known))
    return (
        starts,
        f"component {number} ends first, after {format_time(min(known))}: Slurm then ends its ranks alone, and the others wait for them "
        "to their own limit; logs are gathered before the first limit",
    )
