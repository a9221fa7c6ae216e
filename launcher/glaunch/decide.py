"""Request + settings + cluster + fabric → Plan. Pure: `plan` and `run` call this same function, so the two cannot differ."""

from collections.abc import Sequence
from dataclasses import replace

from glaunch.cluster import Cluster, Partition
from glaunch.errors import NeverFits, UsageError
from glaunch.fabric import Fabric
from glaunch.hostlist import fold
from glaunch.placement.eligible import Eligible, eligible, never_fits
from glaunch.placement.order import fabric_order
from glaunch.placement.partition import choose_partition
from glaunch.placement.place import Candidates, best_possible, place
from glaunch.placement.placement import Placement
from glaunch.plan import Launch, Option, Plan
from glaunch.request import Caller, Request
from glaunch.rule import Rule
from glaunch.sbatch_options import directives, pin_hindrance
from glaunch.settings import Settings, placing
from glaunch.tuning import tune
from glaunch.units import format_time, parse_time_s

SWITCHES = {"fail_fast": "fabric.fail_fast", "debug": "environment.debug"}
"""A rule's switch → the settings key that turns it on."""


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
) -> Plan:
    """All that will be submitted, kept under `submission_id` in `folder`.

    `held` are nodes that this user's other submissions just asked for. Raises UsageError for what cannot be meant, NeverFits for what
    this cluster can never run (unless `request.force`), ConfigError for what the site does not allow.
    """
    request = _with_defaults(request, settings)
    partition = choose_partition(request, cluster, user=caller.user, groups=caller.groups, account=request.account)
    settings = settings.for_partition(partition.name)
    request = _with_defaults(request, settings)
    time, time_limit_s, time_why = _time(request, settings, partition)
    fit = eligible(request, cluster, partition, now_s=now_s, time_limit_s=time_limit_s, excluded=held)
    impossible = never_fits(fit, partition, time_limit_s if time else None)
    if impossible and not request.force:
        raise NeverFits(impossible.message, hint=f"{impossible.hint}; to let Slurm say no itself: --force")
    placement = _place_free(fabric, fit, settings)
    mode, why = _mode(request, settings, partition, cluster, fit, placement)
    name = request.name or caller.job_name
    return Plan(
        submission_id=submission_id,
        name=name,
        folder=folder,
        request=request,
        partition=partition.name,
        time_limit_s=time_limit_s,
        time_limit_why=time_why,
        layout=fit.layout,
        mode=mode,
        mode_why=why,
        placement=placement,
        best_possible=best_possible(fabric, fit.could_ever, fit.layout.nodes),
        order=fabric_order(fabric, partition.nodes),
        directives=directives(
            request,
            name=name,
            partition=partition.name,
            partition_why="" if request.partition else _partition_why(partition),
            time=time,
            time_why="" if time_why == "-t" else time_why,
            layout=fit.layout,
            cpus_per_task=_cpus_per_task(cluster, partition, fit),
            memory_mib=0 if _says_memory(request, partition) else fit.share.memory_mib,
            folder=folder,
            work_dir=caller.work_dir,
            site=settings.rows("sbatch"),
        ),
        arguments=_arguments(placement) if mode == "pin" and placement else (),
        environment=tune(
            rules,
            fabric_class=settings.text("fabric.class"),
            node_count=fit.layout.nodes,
            user_env=caller.environ,
            site_env=settings.rows("environment.set"),
            extra=request.env,
            switches={name for name, key in SWITCHES.items() if settings.flag(key)},
        ),
        launch=Launch("srun", caller.program, caller.work_dir),
        fabric_source=fabric.source,
        cluster_taken_at_s=cluster.taken_at_s,
        warnings=_warnings(fabric, placement, impossible),
        notes=_notes(cluster, fit, placement, now_s),
    )


def _with_defaults(request: Request, settings: Settings) -> Request:
    """What the user did not say, said by the settings."""
    missing = (key for key in ("partition", "account", "qos", "gpus_per_node") if not getattr(request, key) and settings.text(key))
    return replace(request, **{key: settings.text(key) for key in missing})


def _partition_why(partition: Partition) -> str:
    return "the default partition" if partition.default else "the only partition with GPUs that you may use"


def _time(request: Request, settings: Settings, partition: Partition) -> tuple[str | None, int | None, str]:
    """(--time to ask for or None, the limit in seconds or None, who set it)."""
    if request.time:
        return request.time, parse_time_s(request.time), "-t"
    if settings.text("time"):
        return settings.text("time"), parse_time_s(settings.text("time")), settings.where("time")
    if partition.default_time_s is not None:
        return None, partition.default_time_s, f"partition {partition.name}'s default, as neither -t nor the site says a limit"
    return None, partition.max_time_s, f"partition {partition.name}'s maximum, as neither -t nor the site says a limit"


def _place_free(fabric: Fabric, fit: Eligible, settings: Settings) -> Placement | None:
    """The best set of what is free; nodes that must be powered up first come in only where the others do not suffice."""
    nodes = fit.nodes
    if fit.startable and (settings.text("placement.powered_down") == "free" or len(nodes) < fit.layout.nodes):
        nodes += fit.startable
    return place(fabric, Candidates(nodes, tuple(fit.weights[node] for node in nodes)), fit.layout.nodes)


def _mode(
    request: Request, settings: Settings, partition: Partition, cluster: Cluster, fit: Eligible, placement: Placement | None
) -> tuple[str, str]:
    """pin or order, and why in words."""
    way = placing(settings)
    if way == "order":
        asked = settings.text("placement.mode") == "order"
        return "order", f"{settings.where('placement.mode' if asked else 'placement.allowed')} says so"
    hindrance = pin_hindrance(request) or _preemptible(partition, cluster) or ("" if fit.decided else fit.notes[0])
    if settings.text("placement.mode") == "pin" and hindrance:
        raise UsageError(f"{settings.where('placement.mode')} pin: {hindrance}", hint="leave it out: Slurm picks the nodes, glaunch orders the ranks")
    if hindrance:
        return "order", hindrance
    if placement is None:
        return "order", "not enough nodes are free now"
    return "pin", f"pinned if it starts within {settings.number('pin.patience_s')} s, else Slurm chooses"


def _preemptible(partition: Partition, cluster: Cluster) -> str:
    """A pinned job is never requeued, so one that may be preempted must not be pinned: it would be lost."""
    kind = cluster.config.get("PreemptType", "preempt/none")
    if kind in {"preempt/none", "(null)", ""} or partition.preempt_mode.upper() in {"OFF", "SUSPEND", "GANG,SUSPEND", ""}:
        return ""
    if kind == "preempt/partition_prio":
        highest = max(other.priority_tier for other in cluster.partitions)
        return "" if partition.priority_tier >= highest else f"jobs of partition {partition.name} can be preempted"
    return "jobs can be preempted here by QOS, and a pinned job could not be requeued"


def _cpus_per_task(cluster: Cluster, partition: Partition, fit: Eligible) -> int | None:
    """Each GPU's share of the cores, where the partition's own defaults do not give it: one core for a rank starves its data loader."""
    layout = fit.layout
    if not layout.gpus_per_node or "DefCpuPerGPU" in partition.job_defaults or not fit.could_ever:
        return None
    if fit.exclusive:
        cpus = min(int(cluster.nodes.cpus_total[cluster.nodes.row[node]]) for node in fit.could_ever)
        return max(1, cpus // layout.tasks_per_node)
    return max(1, fit.share.cpus // layout.tasks_per_node)


def _says_memory(request: Request, partition: Partition) -> bool:
    return "DefMemPerGPU" in partition.job_defaults or any(name.startswith("mem") for name, _ in request.sbatch)


def _arguments(placement: Placement) -> tuple[Option, ...]:
    return (
        Option("nodelist", fold(placement.nodes), "the best set that is free now"),
        Option("no-requeue", None, "a pinned job that is requeued while one of its nodes is gone would wait for ever"),
    )


def _warnings(fabric: Fabric, placement: Placement | None, impossible: NeverFits | None) -> tuple[str, ...]:
    warnings = [f"Slurm will refuse this or never run it: {impossible.message}"] if impossible else []
    if fabric.flat:
        warnings.append(f"no topology is known ({fabric.source}): all nodes are taken to hang on one switch, so any set is as good as another")
    warnings += fabric.notes
    unknown = [] if placement is None else [node for node in placement.nodes if node not in fabric.leaf_of]
    if unknown:
        warnings.append(f"the topology does not mention {fold(unknown)}")
    return tuple(warnings)


def _notes(cluster: Cluster, fit: Eligible, placement: Placement | None, now_s: float) -> tuple[str, ...]:
    notes = list(fit.notes)
    if placement is None:
        free, layout = len(fit.nodes) + len(fit.startable), fit.layout
        notes.append(f"{free} of the {layout.nodes} nodes are free now: submitted all the same, it starts when Slurm finds the rest")
        if free and free < layout.nodes:
            notes.append(f"what would start sooner: -n {free * layout.tasks_per_node} ({free} nodes)")
        ahead = [row.start_s - now_s for row in cluster.reservations if row.start_s > now_s and not set(row.nodes).isdisjoint(fit.could_ever)]
        if ahead and any("before the job would end" in why for why, _ in fit.left_out):
            notes.append(f"what would start sooner: -t {format_time(int(min(ahead)) // 60 * 60)}, which ends before the next reservation begins")
    startable = set(fit.startable) & set(placement.nodes if placement else ())
    if startable:
        notes.append(f"{len(startable)} of these nodes are powered down and must start first")
    if fit.left_out:
        notes.append("not free: " + ", ".join(f"{count} {why}" for why, count in fit.left_out))
    return tuple(notes)
