"""One attempt of a job as a report: reads its folder, hands the facts to the diagnosis, and puts both together."""

import os
import re
import time
from dataclasses import replace
from pathlib import Path

from glaunch import __version__
from glaunch.attempt import AttemptFolder, batch_logs, load_json
from glaunch.bundle import load_bundle
from glaunch.diagnosis.diagnose import diagnose
from glaunch.diagnosis.facts import JobFacts, TextFile
from glaunch.diagnosis.failures import first_failure
from glaunch.fabric import Fabric
from glaunch.fabric_json import fabric_from_json
from glaunch.job import Job
from glaunch.parsers.labelled import tail_of
from glaunch.placement.cost import cost_of
from glaunch.placement.objective import HOPS, NO_GROUPS
from glaunch.plan import Plan
from glaunch.report.documents import plan_from_document
from glaunch.report.job import Component, JobReport, Tail

TEXT_MAX_BYTES = 4 << 20
"""Of a longer file its end is read: what went wrong stands there."""
TAIL_LINES = 15
RUN_BEGINS = re.compile(r"glaunch: run \d+\.\d+\.\d+(?:-\d+)? begins")
"""What node/batch.sh says when a requeued job runs again."""


def load_plan(folder: Path) -> Plan | None:
    """The plan that was submitted; None where its file is gone. Raises ParseError for one of a glaunch with another schema."""
    document = load_json(folder / "plan.json")
    return None if document is None else plan_from_document(document, str(folder / "plan.json"))


def load_fabric(folder: Path) -> Fabric | None:
    """The fabric as it was when the job was planned."""
    document = load_json(folder / "fabric.json")
    return None if document is None else fabric_from_json(document, where=str(folder / "fabric.json"))


def report_of(folder: Path, attempt: AttemptFolder | None, job: Job) -> JobReport:
    """All that can be said of one attempt, from its folder alone."""
    plan, fabric = load_plan(folder), load_fabric(folder)
    single = plan is not None and not plan.components  # several components have no best set of their own
    granted = attempt.hosts if attempt is not None else ()
    end = attempt.end if attempt is not None else None
    placed = attempt.placed if attempt is not None else None
    over = end is not None or job.over  # a job that was killed hard leaves no end of its own, and logs all the same
    bundle = load_bundle(attempt.path, attempt.log_hosts) if attempt is not None and over else None
    facts = JobFacts(
        job=job,
        attempt=attempt.path.name if attempt is not None else "",
        program=plan.launch.argv[0] if plan and single else "",
        form=plan.launch.form if plan else "srun",
        tasks=plan.tasks if plan else 0,
        tasks_per_node=plan.layout.tasks_per_node if plan else 0,
        layouts=tuple(one.layout for one in plan.all_components) if plan and plan.components else (),
        pinned=plan is not None and plan.mode == "pin" and bool(job.required_nodes),
        preferred=plan is not None and plan.mode == "prefer",
        planned=plan.placement.nodes if plan and plan.placement and plan.mode != "order" else (),
        order=tuple((row.node, row.position) for row in plan.order) if plan else (),
        granted=granted,
        planned_cost=replace(plan.placement.cost, weight=0) if plan and plan.placement and plan.mode != "order" else None,
        granted_cost=cost_of(fabric, granted, groups=plan.groups if plan and single else NO_GROUPS) if fabric and granted else None,
        best_cost=plan.best_possible.cost if plan and plan.best_possible and single else None,
        pods=(placed.pods, placed.fewest_pods, placed.did) if placed is not None and placed.bad else None,
        objective=plan.best_possible.objective if plan and plan.best_possible else HOPS,
        ranks=attempt.ranks if attempt is not None else (),
        batch_log=_batch_log(folder, attempt, job),
        exit_code=end.code if end else None,
        left_in=attempt.left_in if attempt is not None else "",
        logs=bundle,
    )
    facts, tails = _with_outputs(facts, folder, attempt)
    return JobReport(
        job=job,
        name=plan.name if plan else job.name,
        folder=str(folder),
        attempt=facts.attempt,
        plan=plan,
        exit_code=facts.exit_code,
        run_time_s=float(end.ended_s - end.began_s) if end else None,
        granted=granted,
        ranks=facts.ranks,
        planned_cost=facts.planned_cost,
        granted_cost=facts.granted_cost,
        best_cost=facts.best_cost,
        granted_leaves=_leaves(fabric, granted),
        findings=diagnose(facts),
        logs=bundle,
        tails=tails,
        made_at_s=time.time(),
        glaunch_version=__version__,
        components=_components(facts, plan, fabric),
    )


def _components(facts: JobFacts, plan: Plan | None, fabric: Fabric | None) -> tuple[Component, ...]:
    """What each component got, where the allocation is of the planned size (by hand it need not be) and all of its nodes are known."""
    if plan is None or not plan.components or fabric is None or len(facts.granted) != plan.nodes:
        return ()
    found, first = [], 0
    for one, (nodes, tasks, _) in zip(plan.all_components, facts.sets, strict=True):
        best = one.best_possible.cost if one.best_possible is not None else None
        found.append(Component(nodes, first, tasks, cost_of(fabric, nodes, groups=one.groups), best))
        first += tasks
    return tuple(found)


def _with_outputs(facts: JobFacts, folder: Path, attempt: AttemptFolder | None) -> tuple[JobFacts, tuple[Tail, ...]]:
    """With the output of the host where a rank failed, and that rank's last lines. Where srun knows only the agent that started it, the
    output names the rank, which may lie on another host: so it is asked twice."""
    failed = None
    for _ in range(2):
        failed = first_failure(facts)
        if failed is None or attempt is None:
            return facts, ()
        name = str((attempt.path / "out" / f"{failed[1]}.log").relative_to(folder))
        if all(output.name != name for output in facts.outputs):
            facts = replace(facts, outputs=(*facts.outputs, _text_file(folder, folder / name)))
    tail = _tail(facts.outputs[-1], *failed) if failed else None
    return facts, (tail,) if tail is not None and tail.lines else ()  # an agent that started no rank has lines, and no label


def _leaves(fabric: Fabric | None, granted: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    """(leaf, nodes on it) in rank order."""
    counts: dict[str, int] = {}
    for node in granted:
        leaf = fabric.leaf_of.get(node, "") if fabric is not None else ""
        if leaf:
            counts[leaf] = counts.get(leaf, 0) + 1
    return tuple(counts.items())


def _batch_log(folder: Path, attempt: AttemptFolder | None, job: Job) -> TextFile | None:
    """The batch script's own words in this attempt: of an array the task's; of a requeued job this run's part of the log."""
    logs = batch_logs(folder, job.id) if attempt is None else batch_logs(folder, attempt.job_id, attempt.task)
    return _of_run(_text_file(folder, logs[0]), attempt.path.name if attempt is not None else "") if logs else None


def _of_run(log: TextFile, run: str) -> TextFile:
    """The lines between `run … begins` of this run (the log's start, for the first) and the next run's."""
    lines = log.text.split("\n")
    begins = [number for number, line in enumerate(lines) if RUN_BEGINS.fullmatch(line)]
    start = next((number for number in begins if lines[number] == f"glaunch: run {run} begins"), 0)
    end = next((number for number in begins if number > start), len(lines))
    return TextFile(log.name, "\n".join(lines[start:end]), log.first_line + start)


def _text_file(folder: Path, path: Path) -> TextFile:
    """A file's text, of a long one the end; an unreadable one is empty."""
    name = str(path.relative_to(folder))
    try:
        with path.open("rb") as file:
            before = max(0, os.fstat(file.fileno()).st_size - TEXT_MAX_BYTES)
            skipped = 1
            while before > 0 and (block := file.read(min(before, 1 << 20))):
                before -= len(block)
                skipped += block.count(b"\n")
            return TextFile(name, file.read().decode(errors="surrogateescape"), skipped)
    except OSError:
        return TextFile(name, "")


def _tail(output: TextFile, rank: int, host: str) -> Tail:
    """The last lines of one rank."""
    return Tail(rank, host, output.name, tuple(line.text for line in tail_of(output.text, rank, TAIL_LINES)))
