"""GL11x: where the ranks ran, beside where the plan's order puts them on the granted nodes."""

from collections.abc import Iterator

from glaunch.diagnosis.facts import JobFacts
from glaunch.diagnosis.finding import Finding
from glaunch.diagnosis.unstarted import stopped_before_ranks

_NO_ORDER = "the ranks follow Slurm's own"


def ranks(facts: JobFacts) -> Iterator[Finding]:
    """The rank order, verified; or how it differs; or that the job did not say."""
    yield from _without_order(facts)
    if stopped_before_ranks(facts):
        return
    if not facts.tasks or not facts.tasks_per_node or not facts.granted:
        return
    if not facts.ranks:
        if facts.job.over:
            where, evidence = facts.file("ranks.tsv"), "(no line)"
            yield Finding(
                "GL112",
                "warning",
                "no rank said where it runs: the order is not verified",
                "",
                None,
                where,
                evidence,
                "see the job's output",
            )
        return
    if facts.form == "exec":
        yield _once(facts)
        return
    expected = [rank for nodes, tasks, each in facts.sets for rank in [node for node in nodes for _ in range(each)][:tasks]]
    where = facts.file("ranks.tsv")
    wrong = [(line, row) for line, row in enumerate(facts.ranks, 1) if row.rank >= len(expected) or expected[row.rank] != row.host]
    if wrong:
        line, row = wrong[0]
        planned = expected[row.rank] if row.rank < len(expected) else "nowhere"
        title = f"{_count(len(wrong))} on another node than the order says, first rank {row.rank}: on {row.host} instead of {planned}"
        advice = "does the program start ranks of its own, or does a site's srun wrapper change --distribution?"
        yield Finding("GL111", "warning", title, row.host, row.rank, f"{where}:{line}", f"{row.rank}\t{row.host}\t{row.local_rank}", advice)
    missing = sorted(set(range(facts.tasks)) - {row.rank for row in facts.ranks})
    last = facts.ranks[-1]
    evidence = f"{last.rank}\t{last.host}\t{last.local_rank}"
    if missing:
        title = (
            f"{_count(len(missing))} never said where they run, first rank {missing[0]}"
            if len(missing) > 1
            else f"rank {missing[0]} never said where it runs"
        )
        host = expected[missing[0]]
        yield Finding(
            "GL112", "warning", title, host, missing[0], f"{where}:{len(facts.ranks)}", evidence, f"look at {facts.file(f'out/{host}.log')}"
        )
    elif not wrong:
        who, them = (f"all {facts.tasks} ranks", "them") if facts.tasks > 1 else ("the only rank", "it")
        title = f"{who} ran where the plan's order puts {them}" if _in_plan_order(facts) else f"{who} ran in the order that the job made"
        yield Finding("GL110", "note", title, "", None, f"{where}:{len(facts.ranks)}", evidence, "")


def _once(facts: JobFacts) -> Finding:
    """The program runs once, and what it starts is its own affair."""
    row, where = facts.ranks[0], f"{facts.file('ranks.tsv')}:1"
    evidence = f"{row.rank}\t{row.host}\t{row.local_rank}"
    if row.host == facts.granted[0]:
        return Finding("GL110", "note", "the program ran once, on the first node of the order", "", None, where, evidence, "")
    title = f"the program ran on {row.host}, and the first node of the order is {facts.granted[0]}"
    return Finding("GL111", "warning", title, row.host, row.rank, where, evidence, "does a site's srun wrapper change --nodelist?")


def _in_plan_order(facts: JobFacts) -> bool:
    position = dict(facts.order)
    places = [[position.get(node, len(position) + 1) for node in nodes] for nodes, _, _ in facts.sets]
    return bool(position) and all(some == sorted(some) for some in places)


def _without_order(facts: JobFacts) -> Iterator[Finding]:
    if facts.batch_log is None:
        return
    for where, line in facts.batch_log.lines():
        if line.startswith("glaunch: ") and _NO_ORDER in line:
            title = "the ranks ran in Slurm's order, not along the fabric"
            yield Finding(
                "GL113", "warning", title, "", None, where, line, "the line says why; glaunch plan shows the order that was meant"
            )
            return


def _count(count: int) -> str:
    return "1 rank" if count == 1 else f"{count} ranks"
