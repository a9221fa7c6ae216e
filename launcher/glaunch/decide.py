"""Request + settings + cluster + fabric → Plan. Pure: `plan` and `run` call this same function, so the two cannot differ."""

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from glaunch.asking import Ask, Way, parse_wait, way_of
from glaunch.block_rule import block_rule, tops
from glaunch.cluster import Cluster, Partition
from glaunch.errors import NeverFits
from glaunch.fabric import Fabric
from glaunch.hostlist import fold
from glaunch.network_model import Model, Network
from glaunch.placement.choice import Choice, choose, outlook
from glaunch.placement.cost import fewest_pods
from glaunch.placement.eligible import Eligible, eligible
from glaunch.placement.limits import limit_of, over_limits
from glaunch.placement.objective import Groups
from glaunch.placement.order import fabric_order
from glaunch.placement.parallel import together
from glaunch.placement.partition import choose_partition
from glaunch.placement.placement import Placement
from glaunch.placement.preemption import preemptible
from glaunch.placement.qos import bounds_of, closed_qos, over_bounds
from glaunch.plan import Launch, Option, Plan
from glaunch.request import Caller, Request, asks, with_option
from glaunch.rule import SWITCHES, Rule
from glaunch.sbatch_options import directives
from glaunch.schema import OWN_KEYS
from glaunch.segments import NO_SEGMENT, Segment, segment_of, takes_segments
from glaunch.settings import Settings
from glaunch.tuning import Environment, tune
from glaunch.units import format_time, plural


def decide(
    request: Request,
    settings: Settings,
    rules: Sequence[Rule],
    cluster: Cluster,
    fabric: Fabric,
    caller: Caller,
    *,
    submission_id: str,
    folder: str,
    now_s: float,
    held: frozenset[str] = frozenset(),
    model: Model = MappingProxyType({}),
) -> Plan:
    """All that will be submitted, kept under `submission_id` in `folder`.

    `held` are nodes that this user's other submissions just asked for; `model` predicts bandwidth (empty: none is predicted).
    Raises UsageError for what cannot be meant, NeverFits for what this cluster can never run (unless `request.force`), ConfigError for
    what the site does not allow.
    """
    partition = partition_of(request, settings, cluster, caller)
    settings = settings.for_partition(partition.name)
    request, origins = completed(request, settings)
    bounds = bounds_of(request, cluster, partition)
    time_limit_s, time_why = limit_of(request, origins, partition, bounds.max_wall)
    fit = eligible(request, cluster, partition, now_s=now_s, time_limit_s=time_limit_s, excluded=held)
    impossible = (
        closed_qos(request, cluster, partition)
        or over_limits(fit, partition, time_limit_s, bounds.flags)
        or over_bounds(bounds, fit, time_limit_s)
    )
    if impossible is not None and not request.force:
        raise impossible
    kept = together(request, fit.layout, fabric)
    slurm = cluster.topology or fabric
    choice, segment = _choose(request, settings, cluster, fabric, fit, kept.groups)
    placement, best = choice.free, choice.best_possible
    preempted = preemptible(request, partition, cluster, time_limit_s)
    way = way_of(Ask(request, settings, partition, cluster, fit, placement, fabric, slurm, segment.size, preempted))
    order = fabric_order(fabric, partition.nodes)
    return Plan(
        submission_id=submission_id,
        name=request.name or caller.job_name,
        folder=folder,
        request=request,
        partition=partition.name,
        time_limit_s=time_limit_s,
        time_limit_why=time_why,
        layout=fit.layout,
        mode=way.mode,
        mode_why=way.why,
        placement=placement,
        best_possible=best,
        order=order,
        paths=tuple(fabric.path_of_leaf(leaf) for leaf in dict.fromkeys(row.leaf for row in order) if leaf in fabric.row_of_leaf),
        fewest_pods=1 if best is not None and best.cost.pods == 1 else fewest_pods(fabric, fit.could_ever, fit.layout.nodes),
        on_bad=settings.text("placement.on_bad"),
        directives=_directives(request, origins, cluster, partition, fit, caller, folder, segment),
        arguments=way.arguments,
        environment=_environment(request, settings, rules, fit.layout.nodes, caller),
        launch=Launch("srun", caller.program, caller.work_dir),
        fabric_source=fabric.source,
        cluster_taken_at_s=cluster.taken_at_s,
        warnings=(*_warnings(fabric, placement, impossible), *_apart(fabric, fit, best), *_vain(request, fabric, best)),
        notes=(
            *kept.notes,
            *_requeues(settings, way),
            *((cluster.accounting_note,) if cluster.accounting_note else ()),
            *_notes(request, fit, placement, hidden=cluster.nodes.hidden),
        ),
        groups=kept.groups,
        alternatives=choice.alternatives,
        outlook=outlook(fabric, choice, fit.layout.tasks, network_of(settings), model),
    )


def partition_of(request: Request, settings: Settings, cluster: Cluster, caller: Caller) -> Partition:
    """The partition that the job will go to. Raises UsageError where none or several could be meant."""
    return choose_partition(completed(request, settings)[0], cluster, user=caller.user, groups=caller.groups)


def _choose(
    request: Request, settings: Settings, cluster: Cluster, fabric: Fabric, fit: Eligible, groups: Groups
) -> tuple[Choice, Segment]:
    """The sets, and the segment that Slurm is asked for: with one, topology/block lets a job lie over more blocks than without."""
    slurm, version = cluster.topology or fabric, cluster.slurm_version
    free = settings.text("placement.powered_down") == "free"
    objective = settings.text("placement.objective")
    if takes_segments(slurm, version) and (request.segment is not None or groups.leaf > 1):
        choice = choose(fabric, fit, objective, groups, powered_down_free=free, segmented=True)
        segment = segment_of(request, groups, choice.free or choice.best_possible, slurm, version)
        if segment.size:
            return choice, segment
    return choose(fabric, fit, objective, groups, powered_down_free=free), NO_SEGMENT


def completed(request: Request, settings: Settings) -> tuple[Request, dict[str, str]]:
    """What the user did not say, said by the settings: (the request, sbatch's option → where a setting says it)."""
    keys = ((option, settings.text(key), settings.where(key)) for option, key in OWN_KEYS.items())
    rows = ((row.name, row.value, row.where) for row in settings.rows("sbatch"))
    origins: dict[str, str] = {}
    for option, value, where in (*(one for one in keys if one[1]), *(one for one in rows if one[1] is not None)):
        if not asks(request, option):
            request, origins[option] = with_option(request, option, value or None), where
    return request, origins


def _directives(
    request: Request,
    origins: Mapping[str, str],
    cluster: Cluster,
    partition: Partition,
    fit: Eligible,
    caller: Caller,
    folder: str,
    segment: Segment,
) -> tuple[Option, ...]:
    by_default = "the default partition" if partition.default else "the only partition with GPUs that you may use"
    return directives(
        request,
        origins=origins,
        name=request.name or caller.job_name,
        partition=partition.name,
        partition_why="" if request.partition else by_default,
        layout=fit.layout,
        cpus_per_task=_cpus_per_task(request, cluster, partition, fit),
        memory_mib=0 if _says_memory(request, partition) else fit.share.memory_mib,
        folder=folder,
        work_dir=caller.work_dir,
        segment=Option("segment", str(segment.size), segment.why) if segment.size else None,
    )


def _environment(request: Request, settings: Settings, rules: Sequence[Rule], node_count: int, caller: Caller) -> Environment:
    return tune(
        rules,
        fabric_class=settings.text("fabric.class"),
        node_count=node_count,
        user_env=caller.environ,
        site_env=settings.rows("environment.set"),
        extra=request.env,
        switches={name for name, key in SWITCHES.items() if settings.flag(key)},
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


def _warnings(fabric: Fabric, placement: Placement | None, impossible: NeverFits | None) -> tuple[str, ...]:
    warnings = [f"Slurm will refuse this or never run it: {impossible.message}"] if impossible else []
    if fabric.flat:
        warnings.append(
            f"no topology is known ({fabric.source}): all nodes are taken to hang on one switch, so any set is as good as another"
        )
    warnings += fabric.notes
    unknown = [] if placement is None else [node for node in placement.nodes if node not in fabric.leaf_of]
    if unknown:
        warnings.append(f"the topology does not mention {fold(unknown)}")
    return tuple(warnings)


def _apart(fabric: Fabric, fit: Eligible, best: Placement | None) -> tuple[str, ...]:
    """Why no set is good enough, however many nodes are free: no path, or no block, joins so many; () where one does."""
    n = fit.layout.nodes
    if best is not None or n > len(fit.could_ever) or not fit.decided:
        return ()
    top_of = tops(fabric, n)
    held = Counter(top_of[fabric.leaf_of[node]] for node in fit.could_ever if node in fabric.leaf_of)
    most, where = max(((count, name) for name, count in held.items()), default=(0, ""))
    has = f"; the most has {where}: {most}" if most else ""
    if block_rule(fabric, n) is not None:
        return (f"topology/block keeps a job of {n} nodes in one block of the size that holds it, and none has so many such nodes{has}",)
    return (f"no island has {n} such nodes{has}: between islands no path is known, and Slurm's topology/tree starts no job over two",)


def _requeues(settings: Settings, way: Way) -> tuple[str, ...]:
    """That a pinned job is not requeued, where it was asked to be."""
    listed = any(option.name == "nodelist" for option in way.arguments)
    if settings.text("placement.on_bad") != "requeue" or not listed:
        return ()
    return (f"{settings.where('placement.on_bad')} requeue: a job that asks for its nodes by name is never requeued; it warns",)


def _vain(request: Request, fabric: Fabric, best: Placement | None) -> tuple[str, ...]:
    """Why waiting for so few leaf switches gets nothing; () where it may."""
    if not request.wait_for_leaves:
        return ()
    leaves, _ = parse_wait(request.wait_for_leaves)
    if fabric.flat:
        return ("--wait-for-leaves: this Slurm knows of no leaf switches",)
    if best is not None and best.cost.leaves > leaves:
        words = plural(best.cost.leaves, "leaf", "leaves")
        return (f"--wait-for-leaves {leaves}: even with all nodes free it takes {words}; Slurm waits in vain, then takes any",)
    return ()


def _notes(request: Request, fit: Eligible, placement: Placement | None, *, hidden: bool) -> tuple[str, ...]:
    notes = list(fit.notes)
    if request.inherited:
        notes.append(f"asked for by your environment: {', '.join(request.inherited)}")
    if request.unused:
        notes.append(f"of your environment the job does not get, as it contradicts the plan: {', '.join(request.unused)}")
    if hidden:
        return tuple(notes)
    if placement is None:
        free, layout = len(fit.nodes) + len(fit.startable), fit.layout
        some = f"{free} of {plural(layout.nodes, 'node')} free now"
        if free >= layout.nodes:
            some = f"{free} nodes are free now, but not {layout.nodes} that lie together"
        notes.append(f"{some}: submitted all the same, it starts when Slurm finds the rest")
        if free and free < layout.nodes:
            notes.append(f"what would start sooner: -n {free * layout.tasks_per_node} ({free} nodes)")
        if fit.soonest_limit_s:
            notes.append(f"what would start sooner: -t {format_time(fit.soonest_limit_s)}, which ends before a reservation begins")
    startable = set(fit.startable) & set(placement.nodes if placement else ())
    if startable:
        notes.append(f"{len(startable)} of these nodes are powered down and must start first")
    if fit.left_out:
        notes.append("not free: " + ", ".join(f"{count} {why}" for why, count in fit.left_out))
    return tuple(notes)
