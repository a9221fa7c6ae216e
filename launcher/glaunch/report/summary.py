"""What a launch says about its plan before it submits: a few lines; `glaunch plan` says it all."""

from glaunch.hostlist import fold
from glaunch.placement.placement import Placement
from glaunch.plan import Plan
from glaunch.report.outlook import groups_words
from glaunch.report.plan import cost_words, proof_words, shape
from glaunch.report.text import clean, cut
from glaunch.units import format_time

_NODES_MAX = 60


def summary(plan: Plan) -> tuple[str, ...]:
    """The shape, where and how long, the nodes' cost, the warnings and notes."""
    limit = "no time limit (-t sets one)" if plan.time_limit_s is None else f"limit {format_time(plan.time_limit_s)}"
    if plan.time_limit_s is not None and plan.time_limit_why.startswith("partition"):
        limit += f" ({plan.time_limit_why})"
    lines = [f"{clean(plan.name)}: {clean(shape(plan))}, partition {clean(plan.partition)}, {limit}"]
    if plan.placement is not None:
        lines.append(("component 0: " if plan.components else "") + _set(plan.placement, pinned=plan.mode == "pin"))
        lines += [together] if (together := groups_words(plan.groups, plan.placement)) else []
    for number, one in enumerate(plan.components, 1):
        theirs = "no time limit" if one.time_limit_s is None else f"limit {format_time(one.time_limit_s)}"
        nodes = f"; {_set(one.placement)}" if one.placement else ""
        lines.append(f"component {number}: partition {clean(one.partition)}, {theirs}{nodes}")
        lines += [f"component {number}: {clean(words)}" for words in (*(f"warning: {text}" for text in one.warnings), *one.notes)]
    lines.append(plan.mode_why if plan.mode != "order" else f"Slurm chooses the nodes, glaunch orders the ranks ({plan.mode_why})")
    variables = plan.environment.variables
    if variables:
        lines.append("sets " + ", ".join(f"{clean(one.name)}={clean(one.value)}" for one in variables) + "  (why: glaunch plan)")
    lines += [f"{one.name} stays {clean(one.value)}, as you set it" for one in plan.environment.kept]
    lines += [f"{one.name}={clean(one.value)} of your environment is taken out: {clean(one.reason)}" for one in plan.environment.unset]
    lines += [f"warning: {clean(warning)}" for warning in plan.warnings]
    return (*lines, *(clean(note) for note in plan.notes))


def _set(placement: Placement, *, pinned: bool = False) -> str:
    which = "nodes" if pinned else "best free nodes"
    return f"{which} {cut(clean(fold(placement.nodes)), _NODES_MAX)}: {cost_words(placement)}, {proof_words(placement)}"
