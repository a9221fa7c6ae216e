"""How the ranks of a job are started. Pure: what a node then does stands in `templates/node/form-NAME.sh`."""

import re

from glaunch.container import container_of
from glaunch.errors import ConfigError, UsageError
from glaunch.placement.layout import RankLayout, as_asked
from glaunch.plan import Launch
from glaunch.request import Caller, Request
from glaunch.settings import Settings

_MODULES = {"torchrun": "torch.distributed.run", "accelerate": "accelerate.commands.launch"}
"""What starts the ranks of a node, as a module of the user's own Python. **Source:** the entry points of torch and accelerate."""
_PROGRAMS = {"torchrun": ("torchrun",), "accelerate": ("accelerate", "launch")}


def launch_of(request: Request, settings: Settings, caller: Caller, layout: RankLayout, variables: tuple[str, ...]) -> Launch:
    """The launch form that the settings name, for the caller's program, and what it runs in; `variables`: names that the plan sets.

    Raises UsageError for what belongs to another form, or what this one cannot do, ConfigError for what the site keeps to itself.
    **Source** of accelerate's even share: accelerate's utils/launch.py, prepare_multi_gpu_env (num_processes // num_machines).
    """
    is_python = request.command[0].endswith(".py")
    form, mpi = settings.text("launch.form"), settings.text("launch.mpi")
    restarts = settings.number("launch.max_restarts")
    if restarts and form != "torchrun":
        raise UsageError(
            f"{settings.where('launch.max_restarts')} {restarts}: only torchrun starts ranks again, and this is {form}",
            hint="--launcher torchrun, or let Slurm run the job again: --requeue",
        )
    if form == "mpi" and not re.fullmatch(r"[a-z][a-z0-9_]*", mpi):
        raise UsageError(f"{settings.where('launch.mpi')}: {mpi!r} is no type of srun --mpi", hint="srun --mpi=list shows them")
    if form == "accelerate" and layout.nodes > 1 and layout.last_node_tasks != layout.tasks_per_node:
        fewer, full = (as_asked(request, layout, nodes) for nodes in (layout.nodes - 1, layout.nodes))
        raise UsageError(
            f"accelerate puts as many ranks on every node, and {layout.tasks} are not {layout.nodes} × {layout.tasks_per_node}",
            hint=f"{fewer} or {full}, or --launcher torchrun",
        )
    starter: tuple[str, ...] = ()
    if form in _MODULES:
        starter = (caller.program[0], "-m", _MODULES[form]) if is_python else _PROGRAMS[form]
    if restarts:
        starter += (f"--max_restarts={restarts}",)
    starter += settings.words("launch.options")
    container = container_of(request, settings, caller, variables)
    if container is not None and (form, mpi, container.runtime) == ("mpi", "mpirun", "pyxis"):
        raise UsageError("mpirun starts no ranks in a container of pyxis", hint="launch.mpi: pmix, or --container-runtime apptainer")
    return Launch(
        form,
        caller.program,
        caller.work_dir,
        starter,
        mpi if form == "mpi" else "",
        modules=_added(settings, "launch.modules", request.modules, "--module"),
        setup=_added(settings, "launch.setup", request.setup, "--setup"),
        container=container,
    )


def _added(settings: Settings, key: str, more: tuple[str, ...], option: str) -> tuple[str, ...]:
    """The settings' list and what the line adds; where a site keeps the key to itself, nothing is added."""
    kept = settings.protection(key)
    if more and kept is not None:
        raise ConfigError(f"{option}: {key!r} is set by the site alone: {kept.message}", hint=f"fixed in {kept.where}")
    for text in more:
        if any(ord(char) < 0x20 and char != "\t" for char in text) or "\x7f" in text:
            raise UsageError(f"{option} {text!r}: a value of one line is expected", hint=f"{option} once more for each line")
    return (*settings.words(key), *more)
