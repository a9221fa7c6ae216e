"""What `glaunch plan` prints: every decision with its reason, readable at 60 columns."""

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from glaunch.hostlist import fold
from glaunch.placement.eligible import HIDDEN_NODES
from glaunch.placement.objective import HOPS, compared
from glaunch.placement.placement import OrderRow, Placement
from glaunch.plan import Launch, Option, Plan
from glaunch.report.outlook import alternatives, groups_words, later, outlook, slurm_choice
from glaunch.report.software import software
from glaunch.report.text import clean, columns, cut, pad, row, wrapped
from glaunch.secret import shown_words
from glaunch.tuning import Variable
from glaunch.units import format_span, format_time, plural

_BAR_MAX = 16
_LEAF_MAX = 24
_LEAVES_SHOWN = 40
_PODS_SHOWN = 40


def plan_text(plan: Plan, width: int = 80, now_s: float | None = None, *, verbose: bool = False) -> str:
    """The plan for people, `width` columns wide. With `now_s` (seconds since the epoch) it says how old Slurm's answer is.

    `verbose`: which free nodes are in doubtful health too.
    """
    health = _health(plan, width) if verbose else []
    lines = [*_head(plan, width), *_placement(plan, width, now_s), *health, "", *_asked(plan, width)]
    first = plan.layout.tasks
    for number, component in enumerate(plan.components, 1):
        lines += ["", *_component(number, component, plan.order, first, width)]
        first += component.layout.tasks
    lines += ["", *_environment(plan, width)]
    notes = [*_notes("note", (*plan.environment.notes, *plan.notes), width), *_notes("warning", plan.warnings, width)]
    return "\n".join([*lines, *([""] if notes else []), *notes]) + "\n"


def versions_text(plan: Plan, width: int = 80) -> str:
    """What the version of Slurm means for this job, row by row of `glaunch.slurm_versions`."""
    if not plan.by_version:
        return ""
    lines = [f"  Slurm {clean(plan.slurm_version) or 'of a version that is not known'}: what its version means for this job"]
    for one in plan.by_version:
        lines += wrapped(clean(one), width, first="    ", rest="      ")
    return "\n".join(lines) + "\n"


_ARGUMENTS_MAX = 2000
"""So many characters of a program's arguments are said; thousands of file names would hide everything else."""


def read_as(command: Sequence[str]) -> str:
    """One line that says which words went to the program: `train.py gets: --lr 1e-3`."""
    if not command:
        return "no program"
    rest = cut(shlex.join(shown_words(command)[1:]), _ARGUMENTS_MAX)
    return f"{command[0]} gets: {rest}" if rest else f"{command[0]} gets no arguments"


def shape(plan: Plan) -> str:
    """`8 nodes × 8 GPUs (h100) = 64 ranks`; of several components `… + 1 node, 2 ranks`."""
    return " + ".join(map(_shape, plan.all_components))


def _shape(plan: Plan) -> str:
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
    lines = wrapped(f"{clean(plan.name)}: {clean(shape(plan))}", width, rest="  ")
    return [*lines, "", *_component_head(0, plan, width)] if plan.components else [*lines, ""]


def _component_head(number: int, plan: Plan, width: int) -> list[str]:
    return wrapped(f"component {number}: {clean(_shape(plan))}", width, rest="  ")


def time_limit(plan: Plan) -> str:
    """`02:00:00`, or `none`."""
    return "none" if plan.time_limit_s is None else format_time(plan.time_limit_s)


def _asked(plan: Plan, width: int, *, whole: bool = True) -> list[str]:
    """What is asked of sbatch; without `whole` only what a further component says for itself."""
    options = {option.name: option for option in (*plan.directives, *plan.arguments)}
    lines = row("read as", read_as(plan.request.command), width)
    lines += row("runs", shlex.join(shown_words(plan.launch.argv)), width)
    if whole:
        lines += row("started by", started_by(plan.launch), width)
        lines += row("in", plan.launch.work_dir, width)
        lines += row("folder", plan.folder, width)
        lines += software(plan.launch, width)
    lines += row("partition", _because(plan.partition, options.get("partition")), width)
    lines += row("time limit", time_limit(plan) + (f" ({plan.time_limit_why})" if plan.time_limit_why else ""), width)
    shown = {"partition", "time", "job-name", "nodes", "ntasks", "ntasks-per-node", "output", "error", "nodelist", "parsable", "chdir"}
    others = [option for option in (*plan.directives, *plan.arguments) if option.name not in shown]
    for label, option in zip(("sbatch", *[""] * len(others)), others, strict=False):
        lines += row(label, _because(f"--{option.name}" + ("" if option.value is None else f"={option.value}"), option), width)
    return lines


def _component(number: int, plan: Plan, order: Iterable[OrderRow], first: int, width: int) -> list[str]:
    """A further component of a heterogeneous job: its nodes, its ranks from `first` on, what is asked for it."""
    layout = plan.layout
    lines = _component_head(number, plan, width)
    if plan.placement is None:
        lines += [] if HIDDEN_NODES in plan.notes else row("nodes", "not enough are free now: the job will wait", width)
    else:
        lines += row("nodes", f"{cost_words(plan.placement)}: {proof_words(plan.placement)}", width)
        lines += tree(plan.placement, order, layout.tasks_per_node, layout.tasks, width, first=first)
    lines += _at_best(plan, width)
    lines += _asked(plan, width, whole=False)
    return [*lines, *_notes("note", plan.notes, width), *_notes("warning", plan.warnings, width)]


def started_by(launch: Launch) -> str:
    """The launch form, and what it becomes."""
    words = shlex.join(launch.starter)
    if launch.form in {"torchrun", "accelerate"}:
        return f"{launch.form}, one a node, told its place (static rendezvous): {words}"
    options = f" {words}" if words else ""
    if launch.form == "exec":
        return f"srun{options}, once, on the first node: it starts what it wants itself; $GLAUNCH_HOSTFILE names nodes and slots"
    if launch.form != "mpi":
        return f"srun{options}, one task a rank"
    if launch.mpi == "auto":
        return (
            f"srun --mpi=pmix{options} where that works there, else Open MPI's mpirun{options}, else srun --mpi=pmi2{options}: one MPI job"
        )
    return f"{'mpirun' if launch.mpi == 'mpirun' else f'srun --mpi={launch.mpi}'}{options}: one MPI job"


def _because(text: str, option: Option | None) -> str:
    return f"{text} ({option.why})" if option is not None and option.why else text


def _placement(plan: Plan, width: int, now_s: float | None) -> list[str]:
    if plan.placement is None:
        lines = [] if HIDDEN_NODES in plan.notes else row("nodes", "not enough are free now: the job will wait", width)
    else:
        lines = row("nodes", f"{cost_words(plan.placement)}: {proof_words(plan.placement, _age_s(plan, now_s))}", width)
        lines += row("", together, width) if (together := groups_words(plan.groups, plan.placement)) else []
        lines += tree(plan.placement, plan.order, plan.layout.tasks_per_node, plan.layout.tasks, width)
    lines += alternatives(plan, width)
    lines += _at_best(plan, width)
    promise = plan.mode_why if plan.mode != "order" else f"Slurm chooses the nodes, glaunch orders the ranks on them ({plan.mode_why})"
    lines += row("placing", promise, width)
    lines += outlook(plan, width)
    lines += later(plan, width)
    lines += slurm_choice(plan, width, now_s)
    age_s = _age_s(plan, now_s)
    return [*lines, *row("fabric", plan.fabric_source + (f"; the nodes as seen {format_span(age_s)} ago" if age_s >= 1 else ""), width)]


def _age_s(plan: Plan, now_s: float | None) -> float:
    """How old Slurm's answer about the nodes is: a plan takes one of its last minute, a launch never does."""
    return 0.0 if now_s is None else now_s - plan.cluster_taken_at_s


def _health(plan: Plan, width: int) -> list[str]:
    """Free nodes that are taken only where no set without them is as good, those with the same reason as one list."""
    alike: dict[tuple[int, str], list[str]] = {}
    for one in plan.health:
        alike.setdefault((one.points, one.why), []).append(one.node)
    lines: list[str] = []
    for (points, why), nodes in sorted(alike.items(), key=lambda item: -item[0][0]):
        label = "" if lines else "health"
        lines += row(label, f"{fold(nodes)}: left alone among equals, {plural(points, 'point')} ({why})", width)
    return lines


def _at_best(plan: Plan, width: int) -> list[str]:
    now, best = plan.placement, plan.best_possible
    if best is None or plan.layout.nodes == 1:
        return []
    if now is not None and now.cost.key(best.objective)[1:] == best.cost.key(best.objective)[1:]:
        return row("at best", "the same: no nodes of the partition are nearer to each other", width)
    return row("at best", f"{cost_words(best)}, were every node of the partition free", width)


def cost_words(placement: Placement) -> str:
    """`2 leaves in 1 pod, 2.14 switches between two nodes on average`."""
    return placement.cost.in_words(len(placement.nodes))


def proof_words(placement: Placement, age_s: float = 0.0) -> str:
    """Whether a better set exists, of the nodes as they were `age_s` ago."""
    if len(placement.nodes) == 1:
        return "no switch to cross"
    if placement.optimal:
        what = "" if placement.objective == HOPS else f" for {placement.objective}"
        free = f"were free {format_span(age_s)} ago" if age_s >= 1 else "are free"
        return f"proven optimal{what} among the nodes that {free}"
    names = compared(placement.objective)
    costs = zip(names, placement.cost.key(placement.objective), placement.bound.key(placement.objective), strict=True)
    name, cost, bound = next(one for one in costs if one[1] != one[2])
    return f"{cost} {name.replace('_', ' ')}, and no set of free nodes has fewer than {bound}"


@dataclass(frozen=True, slots=True)
class _Group:
    """Neighbours in rank order that share a leaf (or, in a large plan, a pod)."""

    pod: str
    leaf: str
    nodes: tuple[str, ...]
    first: int


def tree(placement: Placement, order: Iterable[OrderRow], per_node: int, tasks: int, width: int, *, first: int = 0) -> list[str]:
    """The nodes under their leaves and pods, with their ranks from `first` on; of more than 40 leaves only the pods."""
    rows = {one.node: one for one in order}
    spot = {node: (rows[node].pod, rows[node].leaf) if node in rows else ("", "unknown to the fabric") for node in placement.nodes}
    groups: list[_Group] = []
    end = first + tasks
    for (pod, leaf), some in groupby(placement.nodes, spot.__getitem__):
        nodes = tuple(some)
        groups.append(_Group(pod, leaf, nodes, first))
        first += len(nodes) * per_node

    def ranks(first: int, nodes: int) -> str:
        last = min(first + nodes * per_node, end) - 1
        return f"rank {first}" if first == last else f"ranks {first}–{last}"

    return _pods(groups, ranks, width) if len(groups) > _LEAVES_SHOWN else _leaves(groups, ranks, width)


def _leaves(groups: Sequence[_Group], ranks: Callable[[int, int], str], width: int) -> list[str]:
    bars = all(len(group.nodes) <= _BAR_MAX for group in groups)
    cells = [
        (_leaf(group.leaf), "■" * len(group.nodes) if bars else plural(len(group.nodes), "node"), ranks(group.first, len(group.nodes)))
        for group in groups
    ]
    widths = [max(columns(one[index]) for one in cells) for index in range(3)]
    lines: list[str] = []
    last_pod: str | None = None
    for group, cell in zip(groups, cells, strict=True):
        if group.pod != last_pod and group.pod != group.leaf:
            lines.append(f"{'':13}{clean(group.pod)}")
        last_pod = group.pod
        start = f"{'':15}" + "".join(f"{pad(text, widest)}  " for text, widest in zip(cell, widths, strict=True))
        nodes = clean(fold(group.nodes))
        if columns(start) + columns(nodes) > width >= 17 + columns(nodes):  # too wide beside the marks: below them
            lines.append(start.rstrip())
            start = " " * 17
        lines += wrapped(nodes, width, first=start, rest=" " * 17)
    return lines


def _pods(groups: Sequence[_Group], ranks: Callable[[int, int], str], width: int) -> list[str]:
    pods = [tuple(some) for _, some in groupby(groups, lambda group: group.pod)]
    lines: list[str] = []
    for some in pods[:_PODS_SHOWN]:
        nodes = sum(len(group.nodes) for group in some)
        text = f"{plural(len(some), 'leaf', 'leaves')}, {plural(nodes, 'node')}, {ranks(some[0].first, nodes)}"
        lines += wrapped(text, width, first=f"{'':13}{_leaf(some[0].pod)}  ", rest=" " * 17)
    if len(pods) > _PODS_SHOWN:
        lines.append(f"{'':13}and {plural(len(pods) - _PODS_SHOWN, 'more pod')}")
    return lines + wrapped("each node and its ranks: --json", width, first=" " * 13)


def _leaf(name: str) -> str:
    return cut(clean(name), _LEAF_MAX)


def _environment(plan: Plan, width: int) -> list[str]:
    environment = plan.environment
    if not (environment.variables or environment.kept or environment.unset):
        return row("variables", "glaunch sets none", width)
    lines = ["  variables"] if environment.variables else []
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
    return lines


def _variable(variable: Variable, origin: str, width: int) -> list[str]:
    lines = wrapped(clean(f"{variable.name}={variable.value}"), width, first="    ", rest="      ")
    return lines + wrapped(clean(f"{origin}: {variable.reason}"), width, first="      ", rest="      ")


def _notes(label: str, notes: Sequence[str], width: int) -> list[str]:
    return [line for note in notes for line in row(label, note, width)]
