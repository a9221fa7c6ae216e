"""What a plan says beyond its nodes: groups, sets that another objective calls better, what an all-reduce can expect."""

from collections import Counter

from glaunch.hostlist import fold
from glaunch.placement.eligible import HIDDEN_NODES
from glaunch.placement.objective import NO_GROUPS, OBJECTIVES, Groups
from glaunch.placement.placement import Cost, Placement
from glaunch.placement.predict import Bandwidth, Crossings
from glaunch.plan import Plan
from glaunch.reasons import UNFORESEEN_S
from glaunch.report.text import row
from glaunch.units import format_span, plural


def groups_words(groups: Groups, placement: Placement) -> str:
    """`4 groups of 16 nodes, none over two pods`; "" where nothing is said of groups."""
    if groups == NO_GROUPS:
        return ""
    cost, n = placement.cost, len(placement.nodes)
    kinds = ((groups.pod, cost.pod_splits, "pods"), (groups.leaf, cost.leaf_splits, "leaves"))
    parts = []
    for size, splits, what in kinds:
        if size > 1 and not (what == "pods" and groups.pod == groups.leaf and not splits):
            over = f"{splits} of them over two {what} or more, and no set has fewer" if splits else f"none over two {what}"
            parts.append(f"{plural(n // size, 'group')} of {plural(size, 'node')}, {over}")
    return "; ".join(parts)


def alternatives(plan: Plan, width: int) -> list[str]:
    """A line for each set that another objective calls better."""
    lines: list[str] = []
    for other in plan.alternatives:
        text = f"--objective {other.objective} has fewer {OBJECTIVES[other.objective][0]}: {other.cost.in_words(len(other.nodes))}"
        lines += row("" if lines else "or", text, width)
    return lines


def outlook(plan: Plan, width: int) -> list[str]:
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


def later(plan: Plan, width: int) -> list[str]:
    """What waiting for running jobs would buy, and the rule's advice."""
    look = plan.later
    if look is None:
        return []
    if HIDDEN_NODES in plan.notes:
        return row("later", "not known: Slurm does not show its nodes", width)
    sets = [(one.cost, len(one.nodes)) for one in look.moments]
    sets = [(plan.placement.cost, len(plan.placement.nodes)), *sets] if plan.placement else sets
    plain = Counter(_pods_leaves(cost) for cost, _ in sets)  # the better of two alike has fewer switches to cross
    words = [text if plain[text := _pods_leaves(cost)] == 1 else cost.in_words(nodes) for cost, nodes in sets]
    parts = [f"now: {words.pop(0) if plan.placement else 'not enough nodes are free'}"]
    parts += [f"in ~{format_span(one.in_s)}, if nobody else takes them: {text}" for one, text in zip(look.moments, words, strict=True)]
    if not look.moments:
        parts.append(f"no better when running jobs end ({plural(look.ends, 'moment')} at which nodes come free)")
    lines = row("later", "; ".join(parts), width)
    if look.looked_at < look.ends and look.moments:
        lines += row("", f"looked at {look.looked_at} of {look.ends} moments at which nodes come free", width)
    if look.hidden:
        lines += row("", f"Slurm shows you no job on {plural(look.hidden, 'busy node')}: they count as never free", width)
    return lines + (row("", look.advice, width) if look.advice else [])


def _pods_leaves(cost: Cost) -> str:
    return f"{plural(cost.pods, 'pod')}, {plural(cost.leaves, 'leaf', 'leaves')}"


def slurm_choice(plan: Plan, width: int, now_s: float | None) -> list[str]:
    """What Slurm would choose by itself, beside the plan's set."""
    choice = plan.slurm_choice
    if choice is None:
        return []
    if choice.refusal:
        return row("Slurm", f"refuses this job: {choice.refusal}", width)
    words = choice.cost.in_words(len(choice.nodes)) if choice.cost else "nodes that no known path joins"
    text = f"by itself: {fold(choice.nodes)}, {words}"
    if plan.placement is not None and choice.cost is not None:
        objective = plan.placement.objective
        ours, theirs = plan.placement.cost.key(objective)[1:], choice.cost.key(objective)[1:]
        text += (
            ": worse than this plan's" if theirs > ours else ": as good as this plan's" if theirs == ours else ": better, at its own time"
        )
    lines = row("Slurm", text, width)
    wait_s = 0.0 if choice.starts_s is None or now_s is None else choice.starts_s - now_s
    if wait_s > UNFORESEEN_S:
        return lines + row("", "when it would start Slurm cannot say: jobs without a time limit come first", width)
    start = f"in ~{format_span(wait_s)}" if wait_s > 60 else "at once"
    return lines + row("", f"it would start {start} (Slurm's estimate; changes with the queue)", width)


def _crossing(what: str, planned: Crossings, by_name: Crossings) -> str:
    text = f"{what}: {planned.leaf} of {planned.connections} connections leave a leaf, {planned.pod} a pod"
    same = (planned.leaf, planned.pod) == (by_name.leaf, by_name.pod)
    return text if same else f"{text} (in the order of names {by_name.leaf} and {by_name.pod})"


def _speed(bandwidth: Bandwidth) -> str:
    return f"{bandwidth.expected_gb_s:.0f} GB/s ({bandwidth.low_gb_s:.0f}–{bandwidth.high_gb_s:.0f})"
