"""What `glaunch plan` prints: every decision with its reason, readable at 60 columns."""

import shlex
from collections.abc import Iterable, Mapping, Sequence

from glaunch.hostlist import fold
from glaunch.placement.objective import HOPS, NO_GROUPS, OBJECTIVES, Groups, compared
from glaunch.placement.placement import Cost, OrderRow, Placement
from glaunch.placement.predict import Bandwidth, Crossings
from glaunch.plan import Option, Plan
from glaunch.report.text import clean, columns, cut, pad, plural, row, wrapped
from glaunch.tuning import Variable
from glaunch.units import format_span, format_time

_BAR_MAX = 16
_LEAF_MAX = 24


def plan_text(plan: Plan, width: int = 80, now_s: float | None = None) -> str:
    """The plan for people, `width` columns wide. With `now_s` (seconds since the epoch) it says how old Slurm's answer is."""
    lines = [*_head(plan, width), "", *_asked(plan, width), "", *_placement(plan, width), "", *_environment(plan, width)]
    lines += _notes("note", plan.notes, width, skip=read_as(plan.request.command))
    lines += _notes("warning", plan.warnings, width)
    lines += ["", *row("folder", plan.folder, width)]
    if now_s is not None and now_s - plan.cluster_taken_at_s >= 1:
        lines += row("seen", f"Slurm's answer is {format_span(now_s - plan.cluster_taken_at_s)} old", width)
    return "\n".join(lines) + "\n"


def read_as(command: Sequence[str]) -> str:
    """One line that says which words went to the program: `train.py gets: --lr 1e-3`."""
    if not command:
        return "no program"
    rest = shlex.join(command[1:])
    return f"{command[0]} gets: {rest}" if rest else f"{command[0]} gets no arguments"


def shape(plan: Plan) -> str:
    """`8 nodes × 8 GPUs (h100) = 64 ranks`."""
    layout = plan.layout
    nodes = plural(layout.nodes, "node")
    if layout.gpus_per_node:
        kind = f" ({layout.gpu_type})" if layout.gpu_type else ""
        if layout.gpus_per_node == layout.tasks_per_node and layout.last_node_tasks == layout.tasks_per_node:
            return f"{nodes} × {plural(layout.gpus_per_node, 'GPU')}{kind} = {plural(layout.tasks, 'rank')}"
        return f"{nodes} × {plural(layout.gpus_per_node, 'GPU')}{kind}, {_ranks(plan)}"
    return f"{nodes}, {_ranks(plan)}"


def _ranks(plan: Plan) -> str:
    layout = plan.layout
    if layout.nodes > 1 and layout.last_node_tasks != layout.tasks_per_node:
        return f"{plural(layout.tasks, 'rank')}: {layout.tasks_per_node} a node, {layout.last_node_tasks} on the last"
    return f"{plural(layout.tasks, 'rank')}, {layout.tasks_per_node} a node" if layout.nodes > 1 else plural(layout.tasks, "rank")


def _head(plan: Plan, width: int) -> list[str]:
    return wrapped(f"{clean(plan.name)}: {clean(shape(plan))}", width, rest="  ")


def _asked(plan: Plan, width: int) -> list[str]:
    options = {option.name: option for option in (*plan.directives, *plan.arguments)}
    lines = row("read as", read_as(plan.request.command), width)
    lines += row("runs", shlex.join(plan.launch.argv), width)
    lines += row("in", plan.launch.work_dir, width)
    lines += row("partition", _because(plan.partition, options.get("partition")), width)
    time = format_time(plan.time_limit_s)
    lines += row("time limit", f"{time} ({plan.time_limit_why})" if plan.time_limit_why else time, width)
    shown = {"partition", "time", "job-name", "nodes", "ntasks", "ntasks-per-node", "output", "error", "nodelist", "parsable"}
    others = [option for option in (*plan.directives, *plan.arguments) if option.name not in shown]
    for label, option in zip(("sbatch", *[""] * len(others)), others, strict=False):
        lines += row(label, _because(f"--{option.name}" + ("" if option.value is None else f"={option.value}"), option), width)
    return lines


def _because(text: str, option: Option | None) -> str:
    return f"{text} ({option.why})" if option is not None and option.why else text


def _placement(plan: Plan, width: int) -> list[str]:
    promise = plan.mode_why if plan.mode == "pin" else f"Slurm chooses the nodes, glaunch orders the ranks on them ({plan.mode_why})"
    lines = row("nodes", promise, width)
    if plan.placement is None:
        lines += row("", "not enough nodes are free now: the job will wait", width)
    else:
        lines += row("", f"{cost_words(plan.placement)}: {proof_words(plan.placement)}", width)
        lines += row("", groups_words(plan.groups, plan.placement), width) if plan.groups != NO_GROUPS else []
        lines += tree(plan.placement, plan.order, plan.layout.tasks_per_node, plan.layout.tasks, width)
    for label, other in zip(("or", *[""] * len(plan.alternatives)), plan.alternatives, strict=False):
        lines += row(label, f"--objective {other.objective} gives fewer {OBJECTIVES[other.objective][0]}: {cost_words(other)}", width)
    if plan.best_possible is not None:
        lines += row("at best", _at_best(plan.placement, plan.best_possible), width)
    return [*lines, *_outlook(plan, width), *row("fabric", plan.fabric_source, width)]


def _outlook(plan: Plan, width: int) -> list[str]:
    """Which connections of an all-reduce leave a leaf, and how fast it can be; nothing for a job in one leaf."""
    look = plan.outlook
    if look is None or plan.placement is None or plan.placement.cost.leaves < 2:
        return []
    lines = row("rank order", _crossing("ring", look.planned.ring, look.by_name.ring), width)
    lines += row("", _crossing("NCCL's trees", look.planned.tree, look.by_name.tree), width)
    if look.planned.bandwidth is None:
        return lines
    text = f"{_speed(look.planned.bandwidth)} bus bandwidth"
    if look.by_name.bandwidth and look.by_name.bandwidth != look.planned.bandwidth:
        text += f"; in the order of names {_speed(look.by_name.bandwidth)}"
    if look.best_possible and look.best_possible.bandwidth:
        text += f"; the best set of all {_speed(look.best_possible.bandwidth)}"
    lines += row("all-reduce", text, width)
    return lines + row("", f"a model, right to about a quarter: {', '.join(look.planned.assumed)}", width)


def _crossing(what: str, planned: Crossings, by_name: Crossings) -> str:
    text = f"{what}: {planned.leaf} of {planned.connections} connections leave a leaf, {planned.pod} a pod"
    same = (planned.leaf, planned.pod) == (by_name.leaf, by_name.pod)
    return text if same else f"{text} (in the order of names {by_name.leaf} and {by_name.pod})"


def _speed(bandwidth: Bandwidth) -> str:
    return f"{bandwidth.expected_gb_s:.0f} GB/s ({bandwidth.low_gb_s:.0f}–{bandwidth.high_gb_s:.0f})"


def _at_best(now: Placement | None, best: Placement) -> str:
    if now is not None and now.cost.key(best.objective)[1:] == best.cost.key(best.objective)[1:]:
        return "were every node of the partition free, no set would be better"
    return f"were every node of the partition free: {cost_words(best)}"


def cost_words(placement: Placement) -> str:
    """`2 leaves in 1 pod, 2.14 switches between two nodes on average`."""
    cost = placement.cost
    text = f"{plural(cost.leaves, 'leaf', 'leaves')} in {plural(cost.pods, 'pod')}"
    return text if len(placement.nodes) < 2 else f"{text}, {placement.mean_hops:.2f} switches between two nodes on average"


def proof_words(placement: Placement) -> str:
    """Whether a better set exists, and better in what."""
    if not placement.optimal:
        cost, bound = (dict(zip(compared(placement.objective), one.key(placement.objective), strict=True)) for one in _both(placement))
        name = next(name for name in cost if cost[name] != bound[name])
        return f"{cost[name]} {name.replace('_', ' ')}, and no set has fewer than {bound[name]}"
    if placement.objective == HOPS:
        return "proven optimal among the nodes that are free"
    return f"proven optimal for {placement.objective} among the nodes that are free"


def _both(placement: Placement) -> tuple[Cost, Cost]:
    return placement.cost, placement.bound


def groups_words(groups: Groups, placement: Placement) -> str:
    """`4 groups of 16 nodes, none over two pods`."""
    cost, n = placement.cost, len(placement.nodes)
    kinds = ((groups.pod, cost.pod_splits, "pods"), (groups.leaf, cost.leaf_splits, "leaves"))
    parts = []
    for size, splits, what in kinds:
        if size > 1 and not (what == "pods" and groups.pod == groups.leaf and not splits):
            over = f"{splits} of them over two {what} or more, and no set has fewer" if splits else f"none over two {what}"
            parts.append(f"{plural(n // size, 'group')} of {plural(size, 'node')}, {over}")
    return "; ".join(parts)


def tree(placement: Placement, order: Iterable[OrderRow], per_node: int, tasks: int, width: int) -> list[str]:
    """The nodes under their leaves and pods, with their ranks."""
    rows = {one.node: one for one in order}
    groups: list[tuple[str, str, list[str], int]] = []  # pod, leaf, nodes, first rank
    for index, node in enumerate(placement.nodes):
        known = rows.get(node)
        pod, leaf = (known.pod, known.leaf) if known else ("", "unknown to the fabric")
        if not groups or groups[-1][:2] != (pod, leaf):
            groups.append((pod, leaf, [], index * per_node))
        groups[-1][2].append(node)
    widest = max((columns(_leaf(leaf)) for _, leaf, _, _ in groups), default=0)
    lines: list[str] = []
    last_pod: str | None = None
    for pod, leaf, nodes, first in groups:
        if pod != last_pod and pod != leaf:
            lines.append(f"{'':13}{clean(pod)}")
        last_pod = pod
        last = min(first + len(nodes) * per_node, tasks) - 1
        ranks = f"rank {first}" if first == last else f"ranks {first}–{last}"
        bar = "■" * len(nodes) if len(nodes) <= _BAR_MAX else f"{len(nodes)} nodes"
        start = f"{'':15}{pad(_leaf(leaf), widest)}  {bar}  "
        lines += wrapped(f"{clean(fold(nodes))}  {ranks}", width, first=start, rest=" " * 17)
    return lines


def _leaf(name: str) -> str:
    return cut(clean(name), _LEAF_MAX)


def _environment(plan: Plan, width: int) -> list[str]:
    environment = plan.environment
    if not (environment.variables or environment.kept or environment.unset or environment.notes):
        return row("environment", "glaunch sets nothing", width, indent=15)
    lines = ["  environment"] if environment.variables else []
    for variable in environment.variables:
        lines += _variable(variable, variable.origin, width)
    if environment.kept:
        lines.append("  kept as you set it")
        for variable in environment.kept:
            lines += _variable(variable, "your environment", width)
    if environment.unset:
        lines.append("  taken out of what the job inherits")
        for variable in environment.unset:
            lines += _variable(variable, variable.origin, width)
    return lines + _notes("note", environment.notes, width)


def _variable(variable: Variable, origin: str, width: int) -> list[str]:
    lines = wrapped(clean(f"{variable.name}={variable.value}"), width, first="    ", rest="      ")
    return lines + wrapped(clean(f"{origin}: {variable.reason}"), width, first="      ", rest="      ")


def _notes(label: str, notes: Sequence[str], width: int, skip: str = "") -> list[str]:
    lines: list[str] = []
    for note in notes:
        if note != skip:
            lines += row(label, note, width)
    return lines


def option_values(options: Iterable[Option]) -> Mapping[str, str | None]:
    """Name → value of sbatch options."""
    return {option.name: option.value for option in options}
