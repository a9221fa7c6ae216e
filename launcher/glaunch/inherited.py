"""Options of sbatch and srun that stand in the user's environment: none of them may contradict the plan unsaid.

sbatch reads SBATCH_*, and a variable beats a line of the script. So glaunch reads them first, as part of what was asked, and hands sbatch
an environment without them. srun reads SLURM_* in the job; those that glaunch's own steps decide do not travel.
"""

import re
import shlex
from collections.abc import Collection, Mapping
from dataclasses import replace
from types import MappingProxyType

from glaunch.errors import UsageError
from glaunch.request import EXPORT_HINT, Request, apart, asks, with_option
from glaunch.secret import is_secret, shown_list

_ASKED = MappingProxyType(
    {
        "ACCOUNT": "account",
        "ACCTG_FREQ": "acctg-freq",
        "ARRAY_INX": "array",
        "BATCH": "batch",
        "BURST_BUFFER": "bb",
        "COMMENT": "comment",
        "CONSTRAINT": "constraint",
        "CONTAINER": "container",
        "CORE_SPEC": "core-spec",
        "CPU_FREQ_REQ": "cpu-freq",
        "CPUS_PER_GPU": "cpus-per-gpu",
        "DELAY_BOOT": "delay-boot",
        "EXCLUSIVE": "exclusive",
        "EXPORT": "export",
        "GPU_BIND": "gpu-bind",
        "GPU_FREQ": "gpu-freq",
        "GPUS_PER_NODE": "gpus-per-node",
        "GRES": "gres",
        "GRES_FLAGS": "gres-flags",
        "HINT": "hint",
        "JOB_NAME": "job-name",
        "MEM_BIND": "mem-bind",
        "MEM_PER_CPU": "mem-per-cpu",
        "MEM_PER_GPU": "mem-per-gpu",
        "MEM_PER_NODE": "mem",
        "NETWORK": "network",
        "NO_KILL": "no-kill",
        "OVERCOMMIT": "overcommit",
        "PARTITION": "partition",
        "POWER": "power",
        "PREFER": "prefer",
        "PROFILE": "profile",
        "QOS": "qos",
        "REQ_SWITCH": "switches",
        "REQUEUE": "requeue",
        "RESERVATION": "reservation",
        "SEGMENT_SIZE": "segment",
        "SIGNAL": "signal",
        "SPREAD_JOB": "spread-job",
        "THREAD_SPEC": "thread-spec",
        "THREADS_PER_CORE": "threads-per-core",
        "TIMELIMIT": "time",
        "USE_MIN_NODES": "use-min-nodes",
        "WAIT_ALL_NODES": "wait-all-nodes",
        "WCKEY": "wckey",
    }
)
"""SBATCH_NAME → the option that it stands for. **Source:** sbatch(1), INPUT ENVIRONMENT VARIABLES, of 22.05 to 25.05."""
_SWITCHES = frozenset({"overcommit", "requeue", "spread-job", "use-min-nodes"})
"""Options without a value: the variable's does not matter."""
_GLAUNCHS = frozenset(
    f"SBATCH_{name}"
    for name in (
        "DEBUG", "DISTRIBUTION", "ERROR", "GPUS", "GPUS_PER_TASK", "INPUT", "NO_REQUEUE", "NTASKS_PER_GPU",
        "OPEN_MODE", "OUTPUT", "TRES_PER_TASK", "WAIT", "WAIT4SWITCH",
    )
)  # fmt: skip
"""What glaunch decides itself, or what would bend the submission: not used."""
_STEPS = frozenset(
    f"SLURM_{name}"
    for name in (
        "CORE_SPEC", "CPUS_PER_GPU", "CPUS_PER_TASK", "DEBUG", "DEPENDENCY", "DISTRIBUTION", "EXACT", "EXCLUSIVE", "EXPORT_ENV",
        "GPUS", "GPUS_PER_NODE", "GPUS_PER_TASK", "GRES", "HOSTFILE", "IMMEDIATE", "LABELIO", "MEM_PER_CPU", "MEM_PER_GPU",
        "MEM_PER_NODE", "NNODES", "NODELIST", "NO_KILL", "NPROCS", "NTASKS", "NTASKS_PER_CORE", "NTASKS_PER_GPU",
        "NTASKS_PER_NODE", "NTASKS_PER_SOCKET", "NTASKS_PER_TRES", "OPEN_MODE", "OVERCOMMIT", "OVERLAP", "PARTITION",
        "REMOTE_CWD", "RESERVATION", "SPREAD_JOB", "STDERRMODE", "STDINMODE", "STDOUTMODE", "STEP_GRES", "TASKS_PER_NODE",
        "THREADS", "THREAD_SPEC", "TIMELIMIT", "TRES_PER_TASK", "UNBUFFEREDIO", "USE_MIN_NODES", "WORKING_DIR",
    )
) | {"SRUN_CPUS_PER_TASK", "SRUN_EXPORT_ENV"}  # fmt: skip
"""Options of srun that the job's own steps set. How ranks are bound (SLURM_CPU_BIND, SLURM_MPI_TYPE, …) stays the user's.
**Source:** srun(1), INPUT ENVIRONMENT VARIABLES."""

_CONTAINERS = frozenset(f"PYXIS_CONTAINER_{name}" for name in ("ENV", "IMAGE", "MOUNTS", "NAME", "SAVE", "WORKDIR"))
"""pyxis would put every step of the job into that container, also those that only order and gather. **Source:** pyxis args.c."""

NOT_HANDED_ON = frozenset(f"SBATCH_{name}" for name in _ASKED) | _GLAUNCHS | _STEPS | _CONTAINERS | {"SBATCH_CLUSTERS", "SLURM_CLUSTERS"}
"""What the environment of sbatch, and so of the job, is without."""


def with_inherited(request: Request, environ: Mapping[str, str]) -> Request:
    """The request with what SBATCH_* say and the line does not; which variables those were, and which are not used, stands in it.

    Raises UsageError for a value that cannot be meant.
    """
    used = []
    for name, option in _ASKED.items():
        value = environ.get(f"SBATCH_{name}")
        if value is None:
            continue
        for part, said in apart(option, None if option in _SWITCHES else value or None):
            if not asks(request, part):
                request = with_option(request, part, said)
                used.append(f"SBATCH_{name}={shown_list(value) if name == 'EXPORT' else value}")
    _all_there(request, environ)
    inside = _inside(environ)  # these describe the job around this shell; they are nobody's wish
    unused = _CONTAINERS | (_GLAUNCHS if inside else _GLAUNCHS | _STEPS)
    left_out = tuple(f"{name}={environ[name]}" for name in sorted(unused) if name in environ)
    return replace(request, inherited=tuple(dict.fromkeys(used)), unused=left_out)


def said_by(request: Request) -> dict[str, str]:
    """sbatch's option → the variable of the caller's environment that said it, `SBATCH_TIMELIMIT`."""
    names = (one.partition("=")[0] for one in request.inherited)
    return {part: name for name in names for part, _ in apart(_ASKED[name.removeprefix("SBATCH_")], "")}


def _all_there(request: Request, environ: Mapping[str, str]) -> None:
    """Refuse a name to export that names nothing: sbatch would say nothing, nor of the second half of a value with a comma in it."""
    own = {name for name, _ in request.env}
    for name in (request.export or "").split(","):
        if name and name not in {"ALL", "NONE"} and name not in own and name not in environ:
            raise UsageError(f"--export: there is no {name} in your environment", hint=EXPORT_HINT)


FUNCTIONS = "gl_functions"
"""The variable in which exported functions of bash travel (`with_functions`); node/task.sh makes them what they were."""
_FUNCTIONS_MAX = 64 * 1024
"""Linux takes 128 KiB in one variable."""
_OF_SH = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def with_functions(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment with all that a shell such as dash does not hand on (exported functions of bash, `a.b`) once more, in one variable.

    The job's script and the shells on its nodes are `sh`, and a program that calls an exported `module` would miss it. Secrets do not go
    this way, since the words of a command can be seen; nor does what is too large, or would be taken for an option.
    """
    own = {name: value for name, value in environ.items() if name != FUNCTIONS}
    words, room = [], _FUNCTIONS_MAX
    for name, value in own.items():
        if _OF_SH.fullmatch(name) or is_secret(name) or not name or name.startswith("-"):
            continue
        word = shlex.quote(f"{name}={value}")
        if len(word.encode(errors="surrogateescape")) < room:
            room -= len(word.encode(errors="surrogateescape")) + 1
            words.append(word)
    return {**own, FUNCTIONS: " ".join(words)} if words else own


def around_a_new_job(environ: Mapping[str, str], keep: Collection[str]) -> dict[str, str]:
    """An environment for the submission of a job, without what an allocation around this shell has put into it.

    All SLURM_* go but those named (they say where the cluster is), and what slurmstepd and MPI put into a task for that task alone: which
    of the node's GPUs are its own, and where its process manager listens. Outside an allocation nothing is taken.
    """
    if not _inside(environ):
        return dict(environ)
    return {name: value for name, value in environ.items() if name in keep or not (name.startswith("SLURM") or _a_tasks_own(name))}


def around_steps(environ: Mapping[str, str]) -> dict[str, str]:
    """An environment for steps in the allocation around this shell: the job's variables stay, those of the step or task around it go.

    A binding that a step was given (SLURM_CPU_BIND with its _TYPE and _LIST) would be taken over by every step started in it. What says
    that there is such a step (SLURM_STEP_ID) stays: it holds what the allocation has, so the job's own step must share with it.
    """
    if "SLURM_STEP_ID" not in environ and "SLURM_CPU_BIND_LIST" not in environ:
        return dict(environ)
    return {name: value for name, value in environ.items() if name == "SLURM_STEP_ID" or not _a_steps_own(name)}


def _inside(environ: Mapping[str, str]) -> bool:
    return "SLURM_JOB_ID" in environ or "SLURM_JOBID" in environ


def _a_steps_own(name: str) -> bool:
    return name.startswith(_OF_A_STEP) or name in _OF_A_TASK or _a_tasks_own(name)


def _a_tasks_own(name: str) -> bool:
    return name in _DEVICES or (name.startswith(_MPI) and not name.startswith(("PMIX_MCA_", "OMPI_MCA_")))


_MPI = ("PMI_", "PMI2_", "PMIX_", "OMPI_COMM_WORLD_", "OMPI_UNIVERSE_", "PALS_", "PRTE_LAUNCHED")
_DEVICES = frozenset({"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK", "GPU_DEVICE_ORDINAL"})
"""What Slurm's gres/gpu plugin sets for a task. **Source:** slurm-22.05 src/plugins/gres."""
_OF_A_STEP = ("SLURM_STEP", "SLURM_CPU_BIND", "SLURM_MEM_BIND", "SLURM_GPU_BIND", "SLURM_SRUN_COMM", "SLURM_UMASK", "SLURM_PRIO_PROCESS")
_OF_A_TASK = frozenset(
    f"SLURM_{name}"
    for name in ("DISTRIBUTION", "GTIDS", "LAUNCH_NODE_IPADDR", "LOCALID", "MPI_TYPE", "NODEID", "PROCID", "TASK_PID", "TOPOLOGY_ADDR")
)
