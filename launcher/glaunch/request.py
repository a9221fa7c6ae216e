"""What the user asked for; knows nothing of any cluster."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Request:
    """One launch as it was asked for. None or () = not asked: a setting or Slurm decides."""

    command: tuple[str, ...]
    """The program and its arguments as typed: ("train.py", "--lr", "1e-3")."""
    tasks: int | None = None
    nodes: int | None = None
    tasks_per_node: int | None = None
    gpus_per_node: str | None = None
    """As sbatch takes it: `8` or `h100:8`."""
    cpus_per_task: int | None = None
    mem: str | None = None
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    time: str | None = None
    name: str | None = None
    constraint: str | None = None
    exclude: str | None = None
    """A hostlist."""
    nodelist: str | None = None
    reservation: str | None = None
    dependency: str | None = None
    array: str | None = None
    exclusive: bool = False
    requeue: bool = False
    place: str = "auto"
    """auto, pin or order."""
    force: bool = False
    """Hand a request to Slurm that can never run."""
    env: tuple[tuple[str, str], ...] = ()
    """The user's own variables for the job (--env NAME=VALUE)."""
    sbatch: tuple[tuple[str, str | None], ...] = ()
    """Any other sbatch option, name without dashes → value."""
