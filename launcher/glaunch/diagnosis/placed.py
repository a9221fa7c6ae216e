"""GL10x: the nodes that Slurm gave beside those that were planned and the best there could be."""

from collections.abc import Iterator

from glaunch.diagnosis.facts import JobFacts
from glaunch.diagnosis.finding import Finding
from glaunch.hostlist import fold
from glaunch.placement.placement import Cost


def placed(facts: JobFacts) -> Iterator[Finding]:
    """Placement got against placement planned, and against the best possible."""
    if not facts.granted:
        return
    where, evidence = facts.file("ordered"), fold(facts.granted)
    if facts.planned:
        yield _against_the_plan(facts, f"{where}:1", evidence)
    unknown = tuple(node for node in facts.granted if node not in dict(facts.order)) if facts.order else ()
    if unknown:
        yield Finding(
            "GL104",
            "warning",
            f"{fold(unknown)}: not in the fabric that the plan was made from; their ranks come last",
            fold(unknown),
            None,
            f"{where}:{facts.granted.index(unknown[0]) + 1}",
            unknown[0],
            "see whether the topology file names all nodes: glaunch plan says where it was read",
        )
    got, best = facts.granted_cost, facts.best_cost
    if got is not None and best is not None and got.hops > best.hops:
        title = f"on an empty partition the ranks could be nearer: {cost_words(best)}, and the job got {cost_words(got)}"
        advice = "nothing is wrong: nearer nodes were taken; a job that may wait for them can name them with --nodelist"
        yield Finding("GL103", "note", title, "", None, f"{where}:1", evidence, advice)


def _against_the_plan(facts: JobFacts, where: str, evidence: str) -> Finding:
    planned, granted = facts.planned, facts.granted
    if set(planned) == set(granted):
        words = f": {cost_words(facts.granted_cost)}" if facts.granted_cost else ""
        return Finding("GL101", "note", f"the job got the planned nodes{words}", "", None, where, evidence, "")
    got, plan = facts.granted_cost, facts.planned_cost
    title = f"Slurm gave other nodes than planned ({len(set(planned) & set(granted))} of {len(planned)} the same)"
    if got is None or plan is None:
        return Finding("GL102", "note", title, "", None, where, evidence, "the plan's nodes were " + fold(planned))
    severity = "warning" if got.hops > plan.hops else "note"
    judged = "farther apart" if got.hops > plan.hops else "nearer together" if got.hops < plan.hops else "just as near"
    title += f", and they are {judged}: {cost_words(got)} instead of {cost_words(plan)}"
    why = "the pin was kept, so somebody changed the job's nodes" if facts.pinned else "they were no longer free when the job started"
    return Finding("GL102", severity, title, "", None, where, evidence, f"planned was {fold(planned)}; {why}")


def cost_words(cost: Cost) -> str:
    """`2 leaves, 1 pod, 60 hops in all`."""
    leaves = "1 leaf" if cost.leaves == 1 else f"{cost.leaves} leaves"
    pods = "1 pod" if cost.pods == 1 else f"{cost.pods} pods"
    return f"{leaves}, {pods}, {cost.hops} {'hop' if cost.hops == 1 else 'hops'} in all"
