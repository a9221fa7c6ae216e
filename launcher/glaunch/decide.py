"""Request + settings + cluster + fabric → Plan. Pure: `plan` and `run` call this same function, so the two cannot differ."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from glaunch import remarks
from glaunch.array_parts import in_parts
from glaunch.asking import Ask, Way, way_of
from glaunch.cluster import Cluster, Partition, parameters
from glaunch.container import NONE
from glaunch.errors import NeverFits
from glaunch.fabric import Fabric
from glaunch.launch_form import launch_of
from glaunch.network_model import Model, Network
from glaunch.parsers.slurm_topology import SLURMS_OWN
from glaunch.placement.choice import Choice, choose, outlook
from glaunch.placement.cost import fewest_pods
from glaunch.placement.eligible import Eligible, eligible
from glaunch.placement.health import Penalty, penalties
from glaunch.placement.layout import as_asked
from glaunch.placement.limits import limit_of, over_limits
from glaunch.placement.objective import Groups
from glaunch.placement.order import fabric_order, paths_of
from glaunch.placement.parallel import together
from glaunch.placement.partition import choose_partition
from glaunch.placement.placement import Placement
from glaunch.placement.preemption import preemptible
from glaunch.placement.qos import Bounds, bounds_of, closed_account, closed_qos, over_bounds, spelled
from glaunch.plan import Option, Plan
from glaunch.request import Caller, Request, asks, with_option
from glaunch.rule import SWITCHES, Rule
from glaunch.sbatch_options import directives
from glaunch.schema import OWN_KEYS
from glaunch.segments import NO_SEGMENT, Segment, in_blocks, segment_of, segment_that_fits, segment_too_large, takes_segments
from glaunch.settings import Settings
from glaunch.setup_lines import leaving
from glaunch.slurm_versions import version_text
from glaunch.tuning import Environment, tune
from glaunch.units import plural


@dataclass(frozen=True, slots=True)
class Ground:
    """What the decisions of one launch stand on, whichever component of its job they are about."""

    settings: Settings
    rules: Sequence[Rule]
    cluster: Cluster
    fabric: Fabric
    submission_id: str
    folder: str
    """The job's folder."""
    now_s: float
    held: frozenset[str] = frozenset()
    """Nodes that this user's other submissions just asked for."""
    beside: frozenset[str] = frozenset()
    """Nodes of the components of this job that are decided already."""
    model: Model = field(default_factory=dict)
    """Predicts bandwidth; empty: none is predicted."""
    failed: Mapping[str, int] = field(default_factory=dict)
    """Node → jobs of this user's that it failed lately."""

    @property
    def slurm(self) -> Fabric:
        """What Slurm itself places by."""
        return self.cluster.topology or self.fabric


def decide(request: Request, caller: Caller, ground: Ground) -> Plan:
    """All that will be submitted.

    Raises UsageError for what cannot be meant, NeverFits for what this cluster can never run (unless `request.force`), ConfigError for
    what the site does not allow.
    """
    cluster, fabric = ground.cluster, ground.fabric
    partition = partition_of(request, ground.settings, cluster, caller)
    settings = ground.settings.for_partition(partition.name)
    ground = replace(ground, settings=settings)
    request, origins = completed(request, settings)
    request = spelled(request, cluster)
    bounds = bounds_of(request, cluster, partition)
    time_limit_s, time_why = limit_of(request, origins, partition, bounds.max_wall)
    fit = eligible(request, cluster, partition, now_s=ground.now_s, time_limit_s=time_limit_s, excluded=ground.held, beside=ground.beside)
    cpus = _cpus_per_task(request, cluster, partition, fit)
    impossible = _impossible(request, cluster, partition, bounds, fit, time_limit_s, request.cpus_per_task or cpus or 1)
    kept = together(request, fit.layout, fabric)
    health = penalties(settings.rows("placement.penalties"), ground.failed, (*fit.nodes, *fit.startable))
    choice, segment = _choose(request, ground, fit, kept.groups, health)
    best, layout = choice.best_possible, fit.layout
    preempted = preemptible(request, partition, cluster, time_limit_s)
    way = way_of(Ask(request, settings, partition, cluster, fit, choice.free, fabric, ground.slurm, segment.size, preempted))
    order = fabric_order(fabric, partition.nodes)
    environment = environment_of(request, settings, ground.rules, layout.nodes, caller)
    launch = launch_of(request, settings, caller, layout, tuple(one.name for one in environment.variables))
    decided = Plan(
        submission_id=ground.submission_id,
        name=request.name or caller.job_name,
        folder=ground.folder,
        request=request,
        partition=partition.name,
        time_limit_s=time_limit_s,
        time_limit_why=time_why,
        layout=layout,
        mode=way.mode,
        mode_why=way.why,
        placement=choice.free,
        best_possible=best,
        order=order,
        paths=paths_of(fabric, order),
        fewest_pods=1 if best is not None and best.cost.pods == 1 else fewest_pods(fabric, fit.could_ever, layout.nodes),
        on_bad=settings.text("placement.on_bad"),
        health=health,
        directives=_directives(request, origins, ground, partition, fit, caller, segment, cpus),
        arguments=way.arguments,
        environment=environment,
        launch=launch,
        fabric_source=fabric.source,
        cluster_taken_at_s=cluster.taken_at_s,
        warnings=(*_warnings(request, ground, fit, choice, impossible), *leaving(launch.setup)),
        notes=(*kept.notes, *_notes(request, ground, fit, choice, way, segment, never=impossible is not None)),
        groups=kept.groups,
        alternatives=choice.alternatives,
        outlook=outlook(fabric, choice, layout.tasks, network_of(settings), ground.model),
    )
    return in_parts(_on_this_slurm(decided, ground, fit), cluster)


def _warnings(request: Request, ground: Ground, fit: Eligible, choice: Choice, impossible: NeverFits | None) -> tuple[str, ...]:
    fabric, best = ground.fabric, choice.best_possible
    return (
        *remarks.warnings(fabric, choice.free, impossible),
        *_apart(request, ground.cluster, fabric, fit, best),
        *remarks.vain(request, fabric, best),
        *remarks.mixed(fit),
        *remarks.twice(request, ground.settings.text("launch.form"), fit.layout),
    )


def _notes(request: Request, ground: Ground, fit: Eligible, choice: Choice, way: Way, segment: Segment, *, never: bool) -> tuple[str, ...]:
    cluster = ground.cluster
    return (
        *remarks.requeues(ground.settings, way),
        *((cluster.accounting_note,) if cluster.accounting_note else ()),
        *_in_segments(cluster, ground.slurm, fit, choice.free, segment),
        *remarks.notes(request, fit, choice.free, hidden=cluster.nodes.hidden, never=never),
    )


def partition_of(request: Request, settings: Settings, cluster: Cluster, caller: Caller) -> Partition:
    """The partition that the job will go to. Raises UsageError where none or several could be meant."""
    return choose_partition(spelled(completed(request, settings)[0], cluster), cluster, user=caller.user, groups=caller.groups)


def _choose(request: Request, ground: Ground, fit: Eligible, groups: Groups, health: Sequence[Penalty]) -> tuple[Choice, Segment]:
    """The sets, and the segment that Slurm is asked for: with one, topology/block lets a job lie over more blocks than without."""
    settings, slurm, version = ground.settings, ground.slurm, ground.cluster.slurm_version
    free, objective = settings.text("placement.powered_down") == "free", settings.text("placement.objective")
    points = {one.node: one.points for one in health if one.points}
    if takes_segments(slurm, version) and (request.segment is not None or groups.leaf > 1):
        choice = choose(ground.fabric, fit, objective, groups, powered_down_free=free, segmented=True, penalties=points)
        segment = segment_of(request, groups, choice.free or choice.best_possible, slurm, version)
        if segment.size:
            return choice, segment
    return choose(ground.fabric, fit, objective, groups, powered_down_free=free, penalties=points), NO_SEGMENT


def _impossible(
    request: Request, cluster: Cluster, partition: Partition, bounds: Bounds, fit: Eligible, time_limit_s: int | None, cpus_per_task: int
) -> NeverFits | None:
    """Why the job can never run, where it is submitted all the same. Raises it where it is not."""
    found = (
        closed_account(request, cluster, partition)
        or closed_qos(request, cluster, partition)
        or over_limits(request, fit, partition, time_limit_s, bounds.flags)
        or over_bounds(request, bounds, fit, time_limit_s, cpus_per_task)
        or (segment_too_large(request, cluster.topology, cluster.slurm_version) if cluster.topology else None)
    )
    if found is not None and not request.force:
        raise found
    return found


def _apart(request: Request, cluster: Cluster, fabric: Fabric, fit: Eligible, best: Placement | None) -> tuple[str, ...]:
    """The warning that nothing joins so many nodes. Raises NeverFits where it is Slurm that keeps them apart.

    **Source:** 22.05.8 and 24.11.5 refuse a job that is larger than each of two trees, whatever is free.
    """
    why, most = remarks.apart(request, fabric, fit, best)
    optional = "topooptional" in parameters(cluster.config, "TopologyParam")
    if why and fabric.source.startswith(SLURMS_OWN) and not optional and not request.force:
        fits = f"{as_asked(request, fit.layout, most)} fits; " if most else ""
        raise NeverFits(why, hint=f"{fits}to let Slurm say no itself: --force")
    return (why,) if why else ()


def completed(request: Request, settings: Settings) -> tuple[Request, dict[str, str]]:
    """What the user did not say, said by the settings: (the request, sbatch's option → where a setting says it)."""
    keys = ((option, settings.text(key), settings.where(key)) for option, key in OWN_KEYS.items())
    rows = ((row.name, row.value, row.where) for row in settings.rows("sbatch"))
    origins: dict[str, str] = {}
    for option, value, where in (*(one for one in keys if one[1]), *(one for one in rows if one[1] is not None)):
        if not asks(request, option):
            request, origins[option] = with_option(request, option, value or None), where
    return request, origins


def _in_segments(cluster: Cluster, slurm: Fabric, fit: Eligible, placement: Placement | None, segment: Segment) -> tuple[str, ...]:
    """That a job which topology/block would let wait starts in segments."""
    if placement is not None or segment.size or not takes_segments(slurm, cluster.slurm_version):
        return ()
    size = segment_that_fits(slurm, fit.nodes, fit.layout.nodes, cluster.slurm_version)
    return (f"what would start sooner: --segment {size}, {plural(size, 'node')} or more in each block",) if size else ()


def _on_this_slurm(plan: Plan, ground: Ground, fit: Eligible) -> Plan:
    """With what this version of Slurm means for the job."""
    version, segmented = ground.cluster.slurm_version, any(option.name == "segment" for option in plan.directives)
    mode, blocks = ground.settings.text("placement.mode"), in_blocks(ground.slurm)
    met = remarks.by_version(version, plan.request, fit, mode, blocks=blocks, segmented=segmented)
    return replace(plan, slurm_version=version_text(version), by_version=met, warnings=(*remarks.untried(version), *plan.warnings))


def _directives(
    request: Request,
    origins: Mapping[str, str],
    ground: Ground,
    partition: Partition,
    fit: Eligible,
    caller: Caller,
    segment: Segment,
    cpus_per_task: int | None,
) -> tuple[Option, ...]:
    by_default = "the default partition" if partition.default else "the only partition with GPUs that you may use"
    return directives(
        request,
        origins=origins,
        name=request.name or caller.job_name,
        partition=partition.name,
        partition_why="" if request.partition else by_default,
        layout=fit.layout,
        cpus_per_task=cpus_per_task,
        memory_mib=0 if _says_memory(request, partition) else fit.share.memory_mib,
        folder=ground.folder,
        work_dir=caller.work_dir,
        segment=Option("segment", str(segment.size), segment.why) if segment.size else None,
    )


def environment_of(request: Request, settings: Settings, rules: Sequence[Rule], node_count: int, caller: Caller) -> Environment:
    """The variables of a launch on so many nodes."""
    return tune(
        rules,
        fabric_class=settings.text("fabric.class"),
        node_count=node_count,
        user_env=caller.environ,
        site_env=settings.rows("environment.set"),
        extra=request.env,
        switches={name for name, key in SWITCHES.items() if settings[key] not in {False, "", NONE}},
    )


def network_of(settings: Settings) -> Network:
    """What the site says of its network."""
    return Network(
        rails=settings.number("network.rails"),
        rate_gbps=settings.number("network.rate_gbps"),
        leaf_oversubscription=settings.number("network.leaf_oversubscription"),
        pod_oversubscription=settings.number("network.pod_oversubscription"),
    )


def _cpus_per_task(request: Request, cluster: Cluster, partition: Partition, fit: Eligible) -> int | None:
    """Each GPU's share of the cores, where the partition's own defaults do not give it: one core for a rank starves its data loader."""
    layout = fit.layout
    theirs = cluster.nodes.hidden or "DefCpuPerGPU" in partition.job_defaults or any(name == "cpus-per-gpu" for name, _ in request.sbatch)
    if not layout.gpus_per_node or theirs or not fit.could_ever:
        return None
    if fit.exclusive:
        cpus = min(int(cluster.nodes.cpus_total[cluster.nodes.row[node]]) for node in fit.could_ever)
        return max(1, cpus // layout.tasks_per_node)
    return max(1, fit.share.cpus // layout.tasks_per_node)


def _says_memory(request: Request, partition: Partition) -> bool:
    return "DefMemPerGPU" in partition.job_defaults or any(name.startswith("mem") for name, _ in request.sbatch)
