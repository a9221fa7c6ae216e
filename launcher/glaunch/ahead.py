"""Now or later: what waiting for running jobs to end would buy, and whether it pays. Slurm starts the job, whatever this says."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from glaunch.asking import wait_cap
from glaunch.cluster import Cluster, Partition
from glaunch.fabric import Fabric
from glaunch.job import Occupation
from glaunch.network_model import Model, Network
from glaunch.placement.eligible import Eligible, eligible
from glaunch.placement.place import Candidates, place
from glaunch.placement.placement import Placement
from glaunch.placement.predict import predict
from glaunch.plan import Later, Moment, Plan
from glaunch.units import format_span, format_time

MOMENTS_MAX = 64
"""So many ends of jobs are looked at; of more, so many spread evenly, the last among them."""
EXPOSED = 0.2
"""The part of the run time in which ranks wait for the network, where nobody says it: a fifth."""
LEAST_GAIN = 0.03
"""A network that is better by less is not waited for."""
LEAST_GAIN_S = 300
"""Nor is a gain of less than this, which is within the error of any end that is foretold."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What is looked at."""

    cluster: Cluster
    fabric: Fabric
    partition: Partition
    occupations: Sequence[Occupation]
    """Running jobs, as far as Slurm shows them."""
    held: frozenset[str]
    network: Network
    model: Model


def look_ahead(plan: Plan, objective: str, sight: Sight) -> Later:
    """The moments at which a better set comes free, each better than all before it, and what the rule says about waiting."""
    now_s = int(sight.cluster.taken_at_s)
    request = plan.request
    if plan.layout.gpus_per_node and (plan.layout.gpu_type or request.mixed):
        kind = f"{plan.layout.gpu_type}:" if plan.layout.gpu_type else ""
        request = replace(request, gpus_per_node=f"{kind}{plan.layout.gpus_per_node}", mixed=request.mixed and not plan.layout.gpu_type)

    def fit(cluster: Cluster, moment_s: int, held: frozenset[str]) -> Eligible:
        return eligible(request, cluster, sight.partition, now_s=moment_s, time_limit_s=plan.time_limit_s, excluded=held)

    ends = free_at(sight.occupations)
    now = frozenset(fit(sight.cluster, now_s, sight.held).nodes)
    after = fit(freed(sight.cluster, ends), now_s, frozenset())
    weights = dict(zip(after.nodes, after.weights, strict=True))
    coming = sorted({end_s for node, end_s in ends.items() if node in weights and node not in now})
    looked_at = _spread(coming)
    found: list[Moment] = []
    best = plan.placement
    segmented = any(option.name == "segment" for option in plan.directives)
    for end_s in looked_at:
        if _as_good(best, plan.best_possible, objective):
            break
        names = tuple(node for node in after.nodes if node in now or ends.get(node, end_s + 1) <= end_s)
        placement = place(sight.fabric, _candidates(names, weights), plan.layout.nodes, objective, plan.groups, segmented=segmented)
        if placement is None or not _better(placement, best, objective):
            continue
        # Only what looks better is looked at closely: by then a reservation may be too near for the job's time limit.
        names = tuple(node for node in fit(freed(sight.cluster, ends, end_s), max(end_s, now_s), frozenset()).nodes if node in names)
        placement = place(sight.fabric, _candidates(names, weights), plan.layout.nodes, objective, plan.groups, segmented=segmented)
        if placement is not None and _better(placement, best, objective):
            best = placement
            idle_s = sum(max(end_s, now_s) - max(ends.get(node, now_s) if node not in now else now_s, now_s) for node in placement.nodes)
            found.append(Moment(max(end_s - now_s, 0), placement.nodes, placement.cost, idle_s))
    return Later(tuple(found), len(looked_at), len(coming), _hidden(sight, ends), _advice(plan, found, sight))


def free_at(occupations: Iterable[Occupation]) -> Mapping[str, int]:
    """Node → when the last of its jobs ends by its time limit; nodes with a job that has none are missing."""
    ends: dict[str, int] = {}
    never: set[str] = set()
    for job in occupations:
        for node in job.nodes:
            if job.ends_s is None:
                never.add(node)
            else:
                ends[node] = max(ends.get(node, 0), job.ends_s)
    return {node: end_s for node, end_s in ends.items() if node not in never}


def freed(cluster: Cluster, ends: Mapping[str, int], by_s: int | None = None) -> Cluster:
    """The cluster with the nodes idle that `ends` says are free by then (None: all of them); other flags of their states stay."""
    nodes = cluster.nodes
    rows = [nodes.row[node] for node, end_s in ends.items() if node in nodes.row and (by_s is None or end_s <= by_s)]
    states = list(nodes.states)
    gpus = list(nodes.gpus)
    for row in rows:
        base, plus, flags = states[row].partition("+")
        states[row] = ("IDLE" if base in {"ALLOCATED", "ALLOC", "MIXED"} else base) + plus + flags
        if gpus:
            gpus[row] = tuple(replace(gpu, allocated=0) for gpu in gpus[row])
    gone = np.zeros(len(nodes), dtype=bool)
    gone[rows] = True
    table = replace(
        nodes,
        states=tuple(states),
        gpus=tuple(gpus),
        cpus_allocated=np.where(gone, 0, nodes.cpus_allocated),
        memory_allocated_mib=np.where(gone, 0, nodes.memory_allocated_mib),
        gpus_allocated=np.where(gone, 0, nodes.gpus_allocated),
    )
    return replace(cluster, nodes=table)


def _spread(ends: Sequence[int]) -> list[int]:
    if len(ends) <= MOMENTS_MAX:
        return list(ends)
    return [ends[round(index * (len(ends) - 1) / (MOMENTS_MAX - 1))] for index in range(MOMENTS_MAX)]


def _candidates(names: tuple[str, ...], weights: Mapping[str, int]) -> Candidates:
    return Candidates(names, tuple(weights[node] for node in names))


def _better(one: Placement, two: Placement | None, objective: str) -> bool:
    return two is None or one.cost.key(objective)[1:] < two.cost.key(objective)[1:]


def _as_good(one: Placement | None, two: Placement | None, objective: str) -> bool:
    return one is not None and two is not None and one.cost.key(objective)[1:] == two.cost.key(objective)[1:]


def _hidden(sight: Sight, ends: Mapping[str, int]) -> int:
    """Busy nodes of the partition on which Slurm shows no job to this user."""
    shown = {node for job in sight.occupations for node in job.nodes} | set(ends)
    nodes = sight.cluster.nodes
    states = Counter(
        nodes.states[nodes.row[node]].partition("+")[0] for node in sight.partition.nodes if node in nodes.row and node not in shown
    )
    return sum(states[base] for base in ("ALLOCATED", "ALLOC", "MIXED"))


def gain_s(run_time_s: float, part: float) -> float:
    """What a network that is better by this part saves of the run time: the longest wait for it that is worth anything."""
    return EXPOSED * run_time_s * part


def pays(gained_s: float, in_s: float, nodes: int, idle_node_s: float) -> bool:
    """Whether to wait `in_s` for what saves `gained_s`: more than any end is sure of, and more node-time than is kept idle for it."""
    left_s = gained_s - in_s
    return left_s > LEAST_GAIN_S and idle_node_s < nodes * left_s


def _advice(plan: Plan, found: Sequence[Moment], sight: Sight) -> str:
    """What the rule says: waiting costs its own time and what is kept idle, and gains what a better network saves of the run time."""
    if plan.placement is None or not found:
        return ""
    if plan.time_limit_s is None:
        return "start now: without a time limit nobody can say what waiting would save"
    gains = [(gain_s(plan.time_limit_s, _saved(plan, moment, sight)), moment) for moment in found]
    gained_s, moment = max(gains, key=lambda one: one[0] - one[1].in_s)
    part = _saved(plan, moment, sight)
    why = (
        f"a network better by {part:.0%} saves at most {format_span(gained_s)}, with a fifth of {format_time(plan.time_limit_s)} "
        f"spent in it, and the wait is ~{format_span(moment.in_s)}"
    )
    n = len(moment.nodes)
    if part < LEAST_GAIN or not pays(gained_s, moment.in_s, n, 0):
        return f"start now: {why}"
    hours = f"{moment.idle_node_s / 3600:.1f} node-hours"
    if not pays(gained_s, moment.in_s, n, moment.idle_node_s):
        return f"start now: {why}, and {hours} kept idle until then are more than the {n * (gained_s - moment.in_s) / 3600:.1f} it saves"
    if moment.idle_node_s:
        why += f", with at most {hours} idle until then for {n * (gained_s - moment.in_s) / 3600:.1f} saved"
    cap_s, _ = wait_cap(sight.cluster)
    minutes = -(-moment.in_s // 60)
    how = f"--wait-for-leaves {moment.cost.leaves}@{minutes}" if minutes * 60 <= cap_s else f"--sbatch begin=now+{minutes}minutes"
    return f"waiting may pay: {why}; to wait: {how}"


def _saved(plan: Plan, moment: Moment, sight: Sight) -> float:
    """The part of its time on the network that the later set saves: by predicted bandwidth, else by switches crossed."""
    if plan.placement is None:
        return 0.0
    later = predict(sight.fabric, moment.nodes, plan.layout.tasks, sight.network, sight.model)
    first = plan.outlook.planned.bandwidth if plan.outlook else None
    if first is not None and later is not None and later.bandwidth is not None:
        return max(0.0, 1 - first.expected_gb_s / later.bandwidth.expected_gb_s)
    return max(0.0, 1 - moment.cost.hops / plan.placement.cost.hops) if plan.placement.cost.hops else 0.0
