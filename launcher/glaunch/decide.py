"""Request + settings + cluster + fabric → Plan. Pure: `plan` and `run` call this same function, so the two cannot differ."""

from collections.abc import Mapping
from dataclasses import replace

from glaunch.cluster import Cluster, Partition
from glaunch.errors import NeverFits, UsageError
from glaunch.fabric import Fabric
from glaunch.hostlist import expand
from glaunch.placement.eligible import Eligible, eligible
from glaunch.placement.layout import RankLayout, layout
from glaunch.placement.order import fabric_order
from glaunch.placement.partition import choose_partition
from glaunch.placement.place import place
from glaunch.placement.placement import Placement
from glaunch.plan import Launch, Option, Plan
from glaunch.request import Caller, Request
from glaunch.sbatch_options import Share, directives, pin_hindrance
from glaunch.settings import Settings
from glaunch.tuning import Rule, tune
from glaunch.units import format_time, parse_time_s


def decide(
    request: Request,
    settings: Settings,
    rules: tuple[Rule, ...],
    cluster: Cluster,
    fabric: Fabric,
    caller: Caller,
    submission: Submission,
    *,
    now_s: float,
    held: frozenset[str] = frozenset(),
) -> Plan:
    """All that will be submitted.

    `held` are nodes that this user's other submissions just asked for. Raises UsageError for what cannot be meant and NeverFits for
    what this cluster can never run (unless `request.force`).
    """
    request = _with_defaults(request, settings)
    partition = choose_partition(request, cluster, groups=caller.groups, account=request.account)
    settings = settings.for_partition(partition.name)
    request = _with_defaults(request, settings)
    time, time_limit_s, time_why = _time(request, settings, partition)
    chosen = layout(request, cluster, partition)
    fit = eligible(request, cluster, partition, chosen, now_s=now_s, time_limit_s=time_limit_s, excluded=held)
    if not request.force:
        _refuse_the_impossible(request, fit, chosen, partition, time_limit_s)
    ever = place(fabric, fit.could_ever, fit.could_ever_weights, chosen.nodes)
    placement = _place_free(fabric, fit, chosen, settings)
    mode, why = _mode(request, settings, partition, cluster, placement)
    environment = tune(
        rules, settings, node_count=chosen.nodes, user_env=caller.environ, extra=request.env, where_fabric=settings.where("fabric.class")
    )
    return Plan(
        submission_id=submission.id,
        name=request.name or caller.job_name,
        folder=submission.folder,
        request=request,
        partition=partition.name,
        time_limit_s=time_limit_s,
        time_limit_why=time_why,
        layout=chosen,
        mode=mode,
        mode_why=why,
        placement=placement,
        best_possible=ever,
        order=fabric_order(fabric, partition.nodes),
        directives=directives(
            request,
            name=request.name or caller.job_name,
            partition=partition.name,
            partition_why="" if request.partition else _partition_why(settings, partition),
            time=time,
            time_why="" if request.time == time else time_why,
            layout=chosen,
            share=_share(request, cluster, partition, chosen),
            folder=submission.folder,
            work_dir=caller.work_dir,
            site={name: (value, settings.where("sbatch")) for name, value in settings.table("sbatch").items()},
        ),
        arguments=_arguments(mode, placement),
        environment=environment,
        launch=Launch("srun", caller.program, caller.work_dir),
        fabric_source=fabric.source,
        cluster_taken_at_s=cluster.taken_at_s,
        warnings=_warnings(fabric, placement),
        notes=_notes(fit, chosen, placement, fabric),
    )


def _with_defaults(request: Request, settings: Settings) -> Request:
    """What the user did not say, said by the settings."""
    filled = {key: settings.text(key) for key in ("partition", "account", "qos", "gpus_per_node") if not getattr(request, key) and settings.text(key)}
    return replace(request, place=request.place or settings.text("placement.mode"), **filled)


def _partition_why(settings: Settings, partition: Partition) -> str:
    if settings.text("partition") == partition.name:
        return settings.where("partition")
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


def _refuse_the_impossible(request: Request, fit: Eligible, chosen: RankLayout, partition: Partition, time_limit_s: int | None) -> None:
    """Only what can never run is refused, with the limit named."""
    force = "; to let Slurm say no itself: --force"
    if partition.max_time_s is not None and time_limit_s is not None and time_limit_s > partition.max_time_s:
        raise NeverFits(
            f"a time limit of {format_time(time_limit_s)} is over partition {partition.name}'s maximum {format_time(partition.max_time_s)}",
            hint=f"-t {format_time(partition.max_time_s)}, or another partition{force}",
        )
    if partition.max_nodes is not None and chosen.nodes > partition.max_nodes:
        raise NeverFits(
            f"{_asks(chosen)}, and partition {partition.name} allows {partition.max_nodes} nodes a job",
            hint=f"-n {partition.max_nodes * chosen.tasks_per_node}, or another partition{force}",
        )
    have = len(fit.could_ever)
    if chosen.nodes > have:
        fits = f"-n {have * chosen.tasks_per_node} fits" if have else "glaunch plan without -C, -w, -x shows what there is"
        raise NeverFits(f"{_asks(chosen)}, and partition {partition.name} has {have} such nodes{_why_fewer(fit)}", hint=fits + force)


def _asks(chosen: RankLayout) -> str:
    return f"{chosen.tasks} ranks need {chosen.nodes} nodes of {chosen.tasks_per_node} ranks"


def _why_fewer(fit: Eligible) -> str:
    return f" ({', '.join(f'{count} {why}' for why, count in fit.never)})" if fit.never else ""


def _place_free(fabric: Fabric, fit: Eligible, chosen: RankLayout, settings: Settings) -> Placement | None:
    """The best set of what is free; nodes that must be powered up first come in only where the others do not suffice."""
    nodes, weights = fit.nodes, fit.weights
    if fit.startable and (settings.text("placement.powered_down") == "free" or len(nodes) < chosen.nodes):
        nodes, weights = nodes + fit.startable, weights + fit.startable_weights
    return place(fabric, nodes, weights, chosen.nodes)


def _mode(
    request: Request, settings: Settings, partition: Partition, cluster: Cluster, placement: Placement | None
) -> tuple[str, str]:
    """pin or order, and why in words."""
    allowed = settings.words("placement.allowed")
    if request.place == "pin" and "pin" not in allowed:
        raise UsageError("--place pin is switched off here", hint=f"see {settings.where('placement.allowed')}; --place order works")
    if request.place == "order":
        return "order", "asked for"
    if "pin" not in allowed:
        return "order", f"pinning is switched off ({settings.where('placement.allowed')})"
    hindrance = pin_hindrance(request) or _preemptible(settings, partition, cluster)
    if request.place == "pin" and hindrance:
        raise UsageError(f"--place pin: {hindrance}", hint="leave --place out: Slurm picks the nodes, glaunch orders the ranks")
    if hindrance:
        return "order", hindrance
    if placement is None:
        return "order", "not enough nodes are free now"
    return "pin", f"pinned if it starts within {settings.number('pin.patience_s')} s, else Slurm chooses"


def _preemptible(settings: Settings, partition: Partition, cluster: Cluster) -> str:
    """A pinned job is never requeued, so one that may be preempted must not be pinned: it would be lost."""
    kind = cluster.config.get("PreemptType", "preempt/none")
    if kind in {"preempt/none", "(null)", ""} or partition.preempt_mode.upper() in {"OFF", "SUSPEND", "GANG,SUSPEND", ""}:
        return ""
    if kind == "preempt/partition_prio":
        highest = max((other.priority_tier for other in cluster.partitions), default=0)
        return "" if partition.priority_tier >= highest else f"jobs of partition {partition.name} can be preempted"
    return "jobs can be preempted here by QOS, and a pinned job could not be requeued"


def _share(request: Request, cluster: Cluster, partition: Partition, chosen: RankLayout) -> Share:
    """Each GPU's share of cores and memory, where neither the user nor the partition's own defaults give it."""
    rows = [cluster.nodes.row[name] for name in partition.nodes if name in cluster.nodes.row]
    rows = [row for row in rows if int(cluster.nodes.gpus_total[row]) >= max(1, chosen.gpus_per_node)]
    if not rows or not chosen.gpus_per_node or request.exclusive:
        return Share()
    cpus = mem_mib = None
    if not request.cpus_per_task and "DefCpuPerGPU" not in partition.job_defaults and not any(name.startswith("cpus-per") for name, _ in request.sbatch):
        per_gpu = min(int(cluster.nodes.cpus_total[row]) // int(cluster.nodes.gpus_total[row]) for row in rows)
        cpus = max(1, per_gpu * chosen.gpus_per_node // chosen.tasks_per_node)
    tracked = "MEMORY" in cluster.config.get("SelectTypeParameters", "").upper()
    asked = request.mem or any(name.startswith("mem") for name, _ in request.sbatch)
    if tracked and not asked and "DefMemPerGPU" not in partition.job_defaults:
        mem_mib = min(int(cluster.nodes.memory_total_mib[row]) // int(cluster.nodes.gpus_total[row]) for row in rows)
    whole = all(int(cluster.nodes.gpus_total[row]) == chosen.gpus_per_node for row in rows)
    return Share(cpus, "0" if mem_mib and whole else None, None if whole else mem_mib)


def _arguments(mode: str, placement: Placement | None) -> tuple[Option, ...]:
    if mode != "pin" or placement is None:
        return ()
    return (
        Option("nodelist", ",".join(placement.nodes), "the best set that is free now"),
        Option("no-requeue", None, "a pinned job that is requeued while one of its nodes is gone would wait for ever"),
    )


def _warnings(fabric: Fabric, placement: Placement | None) -> tuple[str, ...]:
    warnings = []
    if fabric.flat:
        warnings.append(f"no topology is known ({fabric.source}): all nodes are taken to hang on one switch, so any set is as good as another")
    if placement is not None and not placement.optimal:
        warnings.append(f"this set has {placement.cost.hops} hops in sum; at best {placement.bound_hops} are possible")
    unknown = [] if placement is None else [node for node in placement.nodes if node not in fabric.leaf_of]
    if unknown:
        warnings.append(f"the topology does not mention {', '.join(unknown[:8])}{' …' if len(unknown) > 8 else ''}")
    return tuple(warnings)


def _notes(fit: Eligible, chosen: RankLayout, placement: Placement | None, fabric: Fabric) -> tuple[str, ...]:
    notes = []
    if placement is None:
        free = len(fit.nodes) + len(fit.startable)
        notes.append(f"{free} of the {chosen.nodes} nodes are free now: submitted all the same, it starts when Slurm finds the rest")
        if free:
            notes.append(f"what would start sooner: -n {free * chosen.tasks_per_node} ({free} nodes)")
        if fit.soonest_limit_s:
            notes.append(f"what would start sooner: -t {format_time(fit.soonest_limit_s)} (ends before the reservation ahead)")
    startable = set(fit.startable) & set(placement.nodes if placement else ())
    if startable:
        notes.append(f"{len(startable)} of these nodes are powered down and must start first")
    if fit.left_out:
        notes.append("not free: " + ", ".join(f"{count} {why}" for why, count in fit.left_out))
    return tuple(notes)


def asked_nodes(option: str | None) -> frozenset[str]:
    """The nodes of a -w or -x."""
    return frozenset(expand(option)) if option else frozenset()
