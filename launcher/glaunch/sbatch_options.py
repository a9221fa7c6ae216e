"""A request as options of sbatch: which go into the script, and which beside it."""

from collections.abc import Sequence

from glaunch.errors import UsageError
from glaunch.placement.layout import RankLayout
from glaunch.plan import Option
from glaunch.request import Request
from glaunch.script import batch_output
from glaunch.settings import Row

OURS = frozenset(
    {"wrap", "parsable", "wait", "test-only", "nodes", "ntasks", "nodefile", "output", "error", "chdir", "open-mode", "export-file"}
    | {"input", "clusters", "distribution"}
)
"""What glaunch itself decides; handed through, it would break the job's folder or the order."""
PER_NODE = frozenset({"gpus", "gpus-per-task", "gpus-per-socket", "ntasks-per-gpu", "tres-per-task"})
"""Other ways to ask for GPUs, which contradict the one that the plan is made with."""


def directives(
    request: Request,
    *,
    name: str,
    partition: str,
    partition_why: str,
    time: str | None,
    time_why: str,
    layout: RankLayout,
    cpus_per_task: int | None,
    memory_mib: int,
    folder: str,
    work_dir: str,
    site: Sequence[Row],
) -> tuple[Option, ...]:
    """The #SBATCH lines, in a fixed order.

    `cpus_per_task` and `memory_mib` (a node's) are the job's share where neither the user nor the partition says it (None, 0: not asked
    for); `site` holds the site's further options.

    Raises UsageError for an option that glaunch decides itself.
    """
    log = batch_output(folder, array=bool(request.array))
    options = [
        Option("job-name", name, "" if request.name else "the script's name"),
        Option("partition", partition, partition_why),
        Option("nodes", str(layout.nodes), "" if request.nodes else f"{layout.tasks} ranks at {layout.tasks_per_node} a node"),
        Option("ntasks", str(layout.tasks), "" if request.tasks else f"{layout.nodes} nodes of {layout.tasks_per_node} ranks"),
        Option("ntasks-per-node", str(layout.tasks_per_node), "" if request.tasks_per_node else "one rank per GPU"),
    ]
    gres = [value for name, value in request.sbatch if name == "gres" and value]
    if layout.gpus_per_node:
        kind = f"{layout.gpu_type}:" if layout.gpu_type else ""
        gres.insert(0, f"gpu:{kind}{layout.gpus_per_node}")
    if gres:
        options.append(Option("gres", ",".join(gres), "" if request.gpus_per_node or not layout.gpus_per_node else "a GPU for each rank"))
    if request.cpus_per_task:
        options.append(Option("cpus-per-task", str(request.cpus_per_task)))
    elif cpus_per_task:
        options.append(Option("cpus-per-task", str(cpus_per_task), "each GPU's share of the node's cores"))
    if request.mem:
        options.append(Option("mem", request.mem))
    elif memory_mib:
        options.append(Option("mem", f"{memory_mib}M", "each GPU's share of the node's memory"))
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


def _others(request: Request, site: Sequence[Row]) -> list[Option]:
    for name, _ in request.sbatch:
        if name in OURS:
            raise UsageError(f"--sbatch {name}: glaunch decides this itself", hint="options of glaunch: glaunch run --help")
        if name in PER_NODE:
            raise UsageError(f"--sbatch {name}: a plan counts GPUs by node", hint="--gpus-per-node [TYPE:]N and --ntasks-per-node N")
    asked = {name for name, _ in request.sbatch}
    others = [Option(row.name, row.value or None, row.where) for row in site if row.value is not None and row.name not in asked | OURS]
    return others + [Option(name, value) for name, value in request.sbatch if name != "gres"]


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
