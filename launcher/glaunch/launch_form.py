"""How the ranks of a job are started. Pure: what a node then does stands in `templates/node/form-NAME.sh`."""

import re

from glaunch.errors import UsageError
from glaunch.plan import Launch
from glaunch.request import Caller
from glaunch.settings import Settings

_MODULES = {"torchrun": "torch.distributed.run", "accelerate": "accelerate.commands.launch"}
"""What starts the ranks of a node, as a module of the user's own Python. **Source:** the entry points of torch and accelerate."""
_PROGRAMS = {"torchrun": ("torchrun",), "accelerate": ("accelerate", "launch")}


def launch_of(settings: Settings, caller: Caller, *, arranged: bool, is_python: bool) -> Launch:
    """The launch form that the settings name, for the caller's program; `is_python`: it is a .py file, run by the caller's interpreter.

    Raises UsageError for what belongs to another form.
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
    starter: tuple[str, ...] = ()
    if form in _MODULES:
        starter = (caller.program[0], "-m", _MODULES[form]) if is_python else _PROGRAMS[form]
    if restarts:
        starter += (f"--max_restarts={restarts}",)
    starter += settings.words("launch.options")
    return Launch(form, caller.program, caller.work_dir, arranged, starter, mpi if form == "mpi" else "")
