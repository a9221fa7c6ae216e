"""GL10x: the nodes that Slurm gave beside those that were planned and the best there could be."""

from collections.abc import Iterator

from glaunch.diagnosis.facts import JobFacts
from glaunch.diagnosis.finding import Finding
from glaunch.hostlist import fold
from glaunch.placement.placement import Cost
from glaunch.units import plural


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
    if facts.pods is not None:
        yield _too_many_pods(facts, *facts.pods)
    got, best = facts.granted_cost, facts.best_cost
    if got is not None and best is not None and _worse(facts, got, best):
        nodes = len(facts.granted)
        title = f"on an empty partition the nodes could be nearer: {best.in_words(nodes)}; the job got {got.in_words(nodes)}"
        advice = "nothing is wrong: nearer nodes were taken; a job that may wait for them can name them with --nodelist"
        yield Finding("GL103", "note", title, "", None, f"{where}:1", evidence, advice)


def _too_many_pods(facts: JobFacts, pods: int, fewest: int, did: str) -> Finding:
    where, evidence = facts.file("placement.json"), f"pods {pods}, fewest {fewest}"
    title = f"the job started in {plural(pods, 'pod')}, and its size fits in {fewest}"
    if did == "failed":
        advice = "--on-bad-placement fail stopped the job for it"
        return Finding("GL105", "warning", title, "", None, f"{where}:1", evidence, advice)
    if did == "requeued":
        return Finding("GL105", "note", f"{title}: it went back to the queue, once", "", None, f"{where}:1", evidence, "")
    advice = "other jobs held the nearer nodes; --on-bad-placement requeue tries once more, --wait-for-leaves lets Slurm wait for them"
    return Finding("GL105", "warning", title, "", None, f"{where}:1", evidence, advice)


def _against_the_plan(facts: JobFacts, where: str, evidence: str) -> Finding:
    planned, granted = facts.planned, facts.granted
    if set(planned) == set(granted):
        return Finding("GL101", "note", "the job got the planned nodes", "", None, where, evidence, "")
    got, plan = facts.granted_cost, facts.planned_cost
    title = f"Slurm gave other nodes than planned ({len(set(planned) & set(granted))} of {len(planned)} the same)"
    if got is None or plan is None:
        return Finding("GL102", "note", title, "", None, where, evidence, "the plan's nodes were " + fold(planned))
    worse, better = _worse(facts, got, plan), _worse(facts, plan, got)
    severity = "warning" if worse else "note"
    judged = "farther apart" if worse else "nearer together" if better else "just as near"
    title += f", and they are {judged}: {got.in_words(len(granted))} instead of {plan.in_words(len(planned))}"
    why = "they were no longer free when the job started"
    if facts.pinned:
        why = "the pin was kept, so somebody changed the job's nodes"
    elif facts.preferred:
        why = "they were preferred, not pinned: Slurm chose"
    return Finding("GL102", severity, title, "", None, where, evidence, f"planned was {fold(planned)}; {why}")


def _worse(facts: JobFacts, one: Cost, two: Cost) -> bool:
    """Whether `one` is worse under the plan's objective; node weights are Slurm's business, not the job's."""
    return one.key(facts.objective)[1:] > two.key(facts.objective)[1:]
