"""An array that is larger than one job of this Slurm may be: the plan of each of its submissions."""

from collections.abc import Sequence
from dataclasses import replace

from glaunch.cluster import Cluster
from glaunch.errors import UsageError
from glaunch.job_array import ArrayPart, limits_of, parse_array, split
from glaunch.plan import Option, Plan
from glaunch.request import Request
from glaunch.sbatch_options import batch_output
from glaunch.units import plural


def in_parts(plan: Plan, cluster: Cluster) -> Plan:
    """An array that is larger than one job may be as its first part, with all parts in it."""
    if not plan.request.array:
        return plan
    parts = split(parse_array(plan.request.array), *limits_of(cluster.config))
    if not parts:
        return plan
    return part_of(replace(plan, parts=parts, notes=(*_split(plan.request, parts, cluster), *plan.notes)), 0)


def _split(request: Request, parts: Sequence[ArrayPart], cluster: Cluster) -> tuple[str, ...]:
    """That an array is several submissions, which, and what its cap means then."""
    array, (size, most) = parse_array(request.array or ""), limits_of(cluster.config)
    if "aftercorr" in (request.dependency or ""):
        raise UsageError(
            f"-d {request.dependency}: aftercorr joins the indexes of two arrays, and this one is {len(parts)} jobs here",
            hint="wait for all of the other one: -d afterok:JOB",
        )
    shown = [part.tasks for part in parts[:4]] + (["…"] if len(parts) > 4 else [])
    limit = f"max_array_tasks is {most}" if most is not None and most < (size or 0) else f"MaxArraySize is {size}"
    words = f"{plural(array.count, 'task')} in {len(parts)} submissions ({'; '.join(shown)}), since {limit} here"
    cap = f", each begins when the one before it is over, so that at most {array.cap} run at once" if array.cap else ""
    return (f"{words}{cap}; the program sees the index that you asked for",)


def part_of(plan: Plan, number: int) -> Plan:
    """The plan of one submission of an array that is several: a folder, an id and indexes of its own, all else the same."""
    folder = f"{plan.folder}-{number + 1}" if number else plan.folder
    values = {"array": plan.parts[number].indexes, "output": batch_output(folder, array=True)}
    return replace(
        plan,
        part=number,
        submission_id=f"{plan.submission_id}-{number + 1}" if number else plan.submission_id,
        folder=folder,
        directives=tuple(replace(option, value=values.get(option.name, option.value)) for option in plan.directives),
    )


def after_part(plan: Plan, job_id: str) -> tuple[Option, ...]:
    """What the next part is told so that the cap on running tasks holds over all parts: it begins when the one before it is over.

    Alternatives (`?`) cannot be joined with a further condition; the part before it has waited for one of them.
    """
    if not plan.parts or "%" not in plan.parts[0].indexes:
        return ()
    own = plan.request.dependency or ""
    waits = f"afterany:{job_id}"
    return (Option("dependency", f"{own},{waits}" if own and "?" not in own else waits, "at most so many tasks at once, over all parts"),)
