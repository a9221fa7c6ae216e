"""How the ranks of a job are started. Pure: what a node then does stands in `templates/node/form-NAME.sh`."""

import re

from glaunch.errors import UsageError
from glaunch.placement.layout import RankLayout
from glaunch.plan import Launch
from glaunch.request import Caller
from glaunch.settings import Settings

_MODULES = {"torchrun": "torch.distributed.run", "accelerate": "accelerate.commands.launch"}
"""What starts the ranks of a node, as a module of the user's own Python. **Source:** the entry points of torch and accelerate."""
_PROGRAMS = {"torchrun": ("torchrun",), "accelerate": ("accelerate", "launch")}


def launch_of(settings: Settings, caller: Caller, layout: RankLayout, *, is_python: bool) -> Launch:
    """The launch form that the settings name, for the caller's program; `is_python`: it is a .py file, run by the caller's interpreter.

    Raises UsageError for what belongs to another form, or what this one cannot do. **Source** of accelerate's even share:
    accelerate's utils/launch.py, prepare_multi_gpu_env (num_processes // num_machines).
    """
    form, mpi = settings.text("launch.form"), settings.text("launch.mpi")
    restarts = settings.number("launch.max_restarts")
    if restarts and form != "torchrun":
        raise UsageError(
            f"{settings.where('launch.max_restarts')} {restarts}: only torchrun starts ranks again, and this is {form}",
            hint="--launcher torchrun, or let Slurm run the job again: --requeue",
        )
    if form == "mpi" and not re.fullmatch(r"[a-z][a-z0-9_]*", mpi):
        raise UsageError(f"{settings.where('launch.mpi')}: {mpi!r} is no type of srun --mpi", hint="srun --mpi=list shows them")
    if form == "accelerate" and layout.last_node_tasks != layout.tasks_per_node:
        fewer, nodes = layout.tasks_per_node * (layout.nodes - 1), layout.nodes
        raise UsageError(
            f"accelerate puts as many ranks on every node, and {layout.tasks} are not {nodes} × {layout.tasks_per_node}",
            hint=f"-n {fewer} or -n {layout.tasks_per_node * nodes}, or --launcher torchrun",
        )
    starter: tuple[str, ...] = ()
    if form in _MODULES:
        starter = (caller.program[0], "-m", _MODULES[form]) if is_python else _PROGRAMS[form]
    if restarts:
        starter += (f"--max_restarts={restarts}",)
    starter += settings.words("launch.options")
    return Launch(form, caller.program, caller.work_dir, starter, mpi if form == "mpi" else "")
