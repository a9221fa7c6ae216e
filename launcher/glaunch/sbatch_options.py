"""A request as options of sbatch: which go into the script, and which beside it."""

from collections.abc import Mapping
from dataclasses import dataclass

from glaunch.errors import UsageError
from glaunch.plan import Option
from glaunch.placement.layout import RankLayout
from glaunch.request import Request

OURS = frozenset({"wrap", "parsable", "wait", "test-only", "nodes", "ntasks", "nodefile", "output", "error", "chdir", "open-mode", "export-file"})
"""What glaunch itself decides; handed through, it would break the job's folder or the order."""


@dataclass(frozen=True, slots=True)
class Share:
    """What of each node a job asks for beside its GPUs, where neither the user nor the partition says it; None: not asked."""

    cpus_per_task: int | None = None
    mem: str | None = None
    mem_per_gpu_mib: int | None = None


def directives(
    request: Request,
    *,
    name: str,
    partition: str,
    partition_why: str,
    time: str | None,
    time_why: str,
    layout: RankLayout,
    share: Share,
    folder: str,
    work_dir: str,
    site: Mapping[str, tuple[str, str]],
) -> tuple[Option, ...]:
    """The #SBATCH lines, in a fixed order. `site` holds the site's further options: name → (value, where it was set).

    Raises UsageError for an option that glaunch decides itself.
    """
    log = f"{folder}/batch-{'%A_%a' if request.array else '%j'}.log"
    options = [
        Option("job-name", name, "" if request.name else "the script's name"),
        Option("partition", partition, partition_why),
        Option("nodes", str(layout.nodes), "" if request.nodes else f"{layout.tasks} ranks at {layout.tasks_per_node} a node"),
        Option("ntasks", str(layout.tasks), "" if request.tasks else f"{layout.nodes} nodes of {layout.tasks_per_node} ranks"),
        Option("ntasks-per-node", str(layout.tasks_per_node), "" if request.tasks_per_node else "one rank per GPU"),
    ]
    if layout.gpus_per_node:
        kind = f"{layout.gpu_type}:" if layout.gpu_type else ""
        options.append(Option("gres", f"gpu:{kind}{layout.gpus_per_node}", "" if request.gpus_per_node else "a GPU for each rank"))
    cpus = request.cpus_per_task or share.cpus_per_task
    if cpus:
        options.append(Option("cpus-per-task", str(cpus), "" if request.cpus_per_task else "each GPU's share of the node's cores"))
    if request.mem or share.mem:
        options.append(Option("mem", request.mem or share.mem, "" if request.mem else "all memory of the node, as all its GPUs are asked for"))
    elif share.mem_per_gpu_mib:
        options.append(Option("mem-per-gpu", f"{share.mem_per_gpu_mib}M", "each GPU's share of the node's memory"))
    if time:
        options.append(Option("time", time, time_why))
    for option in ("account", "qos", "constraint", "exclude", "nodelist", "reservation", "dependency", "array"):
        value = getattr(request, option)
        if value:
            options.append(Option(option, value))
    options += [Option(option, None) for option in ("exclusive", "requeue") if getattr(request, option)]
    options += _others(request, site)
    options += [
        Option("chdir", work_dir, "where you typed the command"),
        Option("output", log, "the batch script's own words; the ranks' output is in out/HOST.log"),
        Option("open-mode", "append", "a requeued job must not wipe what it said before"),
    ]
    return tuple(options)


def _others(request: Request, site: Mapping[str, tuple[str, str]]) -> list[Option]:
    for name, _ in request.sbatch:
        if name in OURS:
            raise UsageError(f"--sbatch {name}: glaunch decides this itself", hint="options of glaunch: glaunch run --help")
    asked = {name for name, _ in request.sbatch}
    others = [Option(name, value or None, where) for name, (value, where) in site.items() if name not in asked]
    return others + [Option(name, value) for name, value in request.sbatch]


def pin_hindrance(request: Request) -> str:
    """Why this request is not pinned, whatever is free; "" when nothing stands against it."""
    others = {name for name, _ in request.sbatch}
    if request.nodelist or "nodefile" in others:
        return "your own -w names the nodes"
    if request.array:
        return "a pinned array would run one task at a time"
    if request.dependency:
        return "it waits for other jobs, and what is free then is not known now"
    if request.requeue or "requeue" in others:
        return "a pinned job that is requeued can wait for ever"
    for name, words in {
        "begin": "it begins later",
        "hold": "it is held",
        "switches": "your own --switches asks Slurm for the nodes",
        "contiguous": "--contiguous asks Slurm for the nodes",
        "nice": "it gives way to other jobs",
    }.items():
        if name in others:
            return f"{words}, and what is free then is not known now" if name in {"begin", "hold"} else words
    if request.reservation:
        return "its reservation names the nodes"
    return ""
