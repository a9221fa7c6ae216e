"""A request as options of sbatch: which go into the script, and which beside it."""

from collections.abc import Iterator, Mapping

from glaunch import __version__
from glaunch.placement.layout import RankLayout
from glaunch.plan import Option
from glaunch.request import OF_THE_JOB, Request, asks

SWITCHES = ("exclusive", "requeue")
TEXTS = ("clusters", "account", "qos", "constraint", "exclude", "nodelist", "reservation", "dependency", "array", "export")


def directives(
    request: Request,
    *,
    origins: Mapping[str, str],
    name: str,
    partition: str,
    partition_why: str,
    layout: RankLayout,
    cpus_per_task: int | None,
    memory_mib: int,
    folder: str,
    work_dir: str,
    segment: Option | None = None,
) -> tuple[Option, ...]:
    """The #SBATCH lines, in a fixed order.

    `origins`: option → where a setting says it (an option that is in the request and not in here was asked for by the user).
    `cpus_per_task` and `memory_mib` (a node's) are the job's share where neither the user nor the partition says it (None, 0: not asked
    for).
    """
    each = layout.tasks_per_node
    options = [
        Option("job-name", name, "" if request.name else "the script's name"),
        Option("partition", partition, origins.get("partition", partition_why)),
        Option("nodes", str(layout.nodes), "" if request.nodes else f"{layout.tasks} ranks at {each} a node"),
        Option("ntasks", str(layout.tasks), "" if request.tasks else f"{layout.nodes} nodes of {each} ranks"),
        Option("ntasks-per-node", str(each), "" if request.tasks_per_node else "one rank per GPU"),
    ]
    options += _of_a_node(request, origins, layout, cpus_per_task, memory_mib)
    if request.wait_for_leaves:
        options.append(Option("switches", request.wait_for_leaves))
    if segment is not None:
        options.append(segment)
    if request.time:
        options.append(Option("time", request.time, origins.get("time", "")))
    options += [Option(option, value, origins.get(option, "")) for option in TEXTS if (value := getattr(request, option))]
    options += [Option(option, None, origins.get(option, "")) for option in SWITCHES if getattr(request, option)]
    options += [Option(option, value, origins.get(option, "")) for option, value in request.sbatch if option != "gres"]
    if not asks(request, "comment"):
        options.append(Option("comment", f"glaunch/{__version__}", "so that your centre can tell whose script this is"))
    options += [
        Option("chdir", work_dir, "where you typed the command"),
        Option(
            "output",
            batch_output(folder, array=bool(request.array)),
            "the batch script's own words; the ranks' output is in out/HOST.log",
        ),
        Option("open-mode", "append", "a requeued job must not wipe what it said before"),
    ]
    return tuple(options)


def _of_a_node(
    request: Request, origins: Mapping[str, str], layout: RankLayout, cpus_per_task: int | None, memory_mib: int
) -> Iterator[Option]:
    """GPUs and other generic resources, cores and memory."""
    gres = [value for name, value in request.sbatch if name == "gres" and value]
    if layout.gpus_per_node:
        kind = f"{layout.gpu_type}:" if layout.gpu_type else ""
        gres.insert(0, f"gpu:{kind}{layout.gpus_per_node}")
    if gres:
        why = origins.get("gpus-per-node", "" if request.gpus_per_node or not layout.gpus_per_node else "a GPU for each rank")
        yield Option("gres", ",".join(gres), why)
    if request.cpus_per_task:
        yield Option("cpus-per-task", str(request.cpus_per_task), origins.get("cpus-per-task", ""))
    elif cpus_per_task:
        yield Option("cpus-per-task", str(cpus_per_task), "each GPU's share of the node's cores")
    if request.mem:
        yield Option("mem", request.mem, origins.get("mem", ""))
    elif memory_mib:
        yield Option("mem", f"{memory_mib}M", "each GPU's share of the node's memory")


def of_component(options: tuple[Option, ...]) -> tuple[Option, ...]:
    """The directives of a further component of a heterogeneous job: without those that a job has once."""
    return tuple(option for option in options if option.name not in OF_THE_JOB | {"chdir", "output", "open-mode"})


def batch_output(folder: str, *, array: bool) -> str:
    """The value of sbatch's --output for a job's folder: one batch log a job, or an array task. **Source:** sbatch(1), filename pattern."""
    return folder.replace("%", "%%") + ("/batch-%A_%a.log" if array else "/batch-%j.log")


def hindrance(request: Request, *, listed: bool = True) -> str:
    """Why no nodes are asked for, whatever is free; "" when nothing stands against it. `listed`: they would be listed by name."""
    others = {name for name, _ in request.sbatch}
    if request.nodelist:
        return "your own -w names the nodes"
    if request.components:
        return "a job of several components is never pinned"
    if request.array:
        return "a pinned array would run one task at a time"
    if request.dependency:
        return "it waits for other jobs, and what is free then is not known now"
    if request.requeue and listed:
        return "a pinned job that is requeued can wait for ever"
    for name, words in {
        "begin": "it begins later",
        "hold": "it is held",
        "switches": "your own --switches asks Slurm for the nodes",
        "contiguous": "--contiguous asks Slurm for the nodes",
        "spread-segments": "--spread-segments asks Slurm for the nodes",
        "consolidate-segments": "--consolidate-segments asks Slurm for the nodes",
        "nice": "it gives way to other jobs",
    }.items():
        if name in others:
            return f"{words}, and what is free then is not known now" if name in {"begin", "hold"} else words
    if request.reservation:
        return "its reservation names the nodes"
    return ""
