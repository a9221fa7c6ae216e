"""What a job needs of each of its nodes."""

from collections.abc import Sequence
from dataclasses import dataclass

from glaunch.cluster import Cluster, Partition
from glaunch.placement.layout import RankLayout
from glaunch.request import Request
from glaunch.units import parse_memory_mib


@dataclass(frozen=True, slots=True)
class Share:
    """GPUs, CPUs and memory on each node; `memory_mib` 0: memory is not counted."""

    gpus: int
    cpus: int
    memory_mib: int


def share_of(
    request: Request, cluster: Cluster, partition: Partition, layout: RankLayout, rows: Sequence[int], node_gpus: int
) -> tuple[bool, Share]:
    """(whether the job has its nodes alone, its share of each); `rows` are the nodes of the kind it runs on, `node_gpus` their GPUs.

    On shared nodes each GPU brings its part of the node's cores and memory (what Slurm's DefCpuPerGPU and DefMemPerGPU say where they
    are set), of the smallest node; what was asked for counts instead. Memory counts only where Slurm counts it (SelectTypeParameters
    with MEMORY), or where it was asked for.
    **Source:** slurm.conf(5), SelectTypeParameters, DefCpuPerGPU, DefMemPerGPU, OverSubscribe; sbatch(1), `--exclusive`, `--mem`.
    """
    nodes = cluster.nodes
    others = dict(request.sbatch)
    linear = cluster.config.get("SelectType", "").endswith("/linear")
    exclusive = request.exclusive or linear or partition.over_subscribe.startswith("EXCLUSIVE")
    gpus = layout.gpus_per_node
    smallest_cpus = min(int(nodes.cpus_total[row]) for row in rows)
    smallest_mib = min(int(nodes.memory_total_mib[row]) for row in rows)

    cpus = layout.tasks_per_node * (request.cpus_per_task or 1)
    if request.cpus_per_task is None and gpus and not exclusive:
        per_gpu = int(partition.job_defaults.get("DefCpuPerGPU", 0)) or smallest_cpus // max(node_gpus, 1)
        cpus = max(cpus, per_gpu * gpus)

    counted = "MEMORY" in cluster.config.get("SelectTypeParameters", "").upper()
    memory_mib = 0
    if request.mem is not None:
        memory_mib = parse_memory_mib(request.mem, "--mem") or smallest_mib
    elif others.get("mem-per-gpu") and gpus:
        memory_mib = parse_memory_mib(others["mem-per-gpu"] or "0", "--mem-per-gpu") * gpus
    elif others.get("mem-per-cpu"):
        memory_mib = parse_memory_mib(others["mem-per-cpu"] or "0", "--mem-per-cpu") * cpus
    elif counted and not exclusive and gpus:
        per_gpu = int(partition.job_defaults.get("DefMemPerGPU", 0)) or smallest_mib // max(node_gpus, 1)
        memory_mib = per_gpu * gpus
    return exclusive, Share(gpus, cpus, memory_mib)
