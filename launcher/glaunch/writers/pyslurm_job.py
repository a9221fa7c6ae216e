"""A batch script's #SBATCH lines and sbatch's words as the fields of pyslurm's JobSubmitDescription, for `slurm.submit: pyslurm`.

What pyslurm cannot say, or says wrong, is refused by name: nothing that was asked for is left out in silence.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from glaunch.errors import UsageError


def _minutes(value: str) -> int | str:
    return int(value) if value.isdigit() else value


def _count(value: str) -> int:
    if not value.isdigit():
        raise ValueError(value)
    return int(value)


def _memory(value: str) -> str:
    if not re.fullmatch(r"[1-9]\d*[KMGT]?", value):
        raise ValueError(value)  # 0, all of a node's, counts as nothing in pyslurm
    return value


def _gres(value: str) -> str:
    if not all(re.fullmatch(r"\w+(?::[\w.-]+)?:\d+", word) for word in value.split(",")):
        raise ValueError(value)
    return value


TEXTS: Mapping[str, tuple[str, Callable[[str], object]]] = MappingProxyType(
    {
        "account": ("account", str),
        "array": ("array", str),
        "begin": ("begin_time", str),
        "chdir": ("working_directory", str),
        "comment": ("comment", str),
        "constraint": ("constraints", str),
        "cpus-per-task": ("cpus_per_task", _count),
        "dependency": ("dependencies", str),
        "error": ("standard_error", str),
        "exclude": ("excluded_nodes", str),
        "gres": ("gres_per_node", _gres),
        "job-name": ("name", str),
        "licenses": ("licenses", str),
        "mail-type": ("mail_types", str),
        "mail-user": ("mail_user", str),
        "mem": ("memory_per_node", _memory),
        "mem-per-cpu": ("memory_per_cpu", _memory),
        "nice": ("nice", _count),
        "nodelist": ("required_nodes", str),
        "nodes": ("nodes", str),
        "ntasks": ("ntasks", _count),
        "ntasks-per-node": ("ntasks_per_node", _count),
        "open-mode": ("log_files_open_mode", str),
        "output": ("standard_output", str),
        "partition": ("partitions", str),
        "qos": ("qos", str),
        "reservation": ("reservations", str),
        "segment": ("segment_size", _count),
        "signal": ("signal", str),
        "threads-per-core": ("threads_per_core", _count),
        "time": ("time_limit", _minutes),
        "time-min": ("time_limit_min", _minutes),
        "wckey": ("wckey", str),
    }
)
"""Long option of sbatch → (pyslurm's field, how its value is made)."""
FLAGS: Mapping[str, tuple[str, object]] = MappingProxyType(
    {
        "contiguous": ("requires_contiguous_nodes", True),
        "exclusive": ("resource_sharing", "exclusive"),
        "hold": ("priority", 0),
        "no-requeue": ("is_requeueable", False),
        "overcommit": ("overcommit", True),
        "requeue": ("is_requeueable", True),
        "use-min-nodes": ("use_min_nodes", True),
    }
)
"""Options without a value → (pyslurm's field, its value). **Source:** of both: submission.pyx, sbatch_opts.pyx of pyslurm 25.11.2."""

_LINE = re.compile(r'#SBATCH --([a-z][a-z0-9-]*)(?:="((?:[^"\\]|\\.)*)")?')


def fields_of(script: str, words: Iterable[str], *, work_dir: str) -> dict[str, object]:
    """The fields of a script that glaunch wrote, and of the words that sbatch would be given beside it (`--nodelist=n[1-4]`), which win.

    `nodes` and `ntasks` are always there: without them pyslurm would submit a job of one. Raises UsageError, naming the option, for what
    pyslurm cannot say.
    """
    options: dict[str, str | None] = {}
    for line in script.splitlines():
        if line.startswith("#SBATCH"):
            match = _LINE.fullmatch(line)
            if match is None:
                raise UsageError(f"{line!r} is no line that glaunch wrote", hint=HINT)
            options[match[1]] = None if match[2] is None else re.sub(r"\\(.)", r"\1", match[2])
    for word in words:
        name, equals, value = word.removeprefix("--").partition("=")
        options[name] = value if equals else None
    fields: dict[str, object] = {"working_directory": work_dir}
    for name, said in options.items():
        if name != "parsable":
            fields.update((_field(name, said),))
    if not {"nodes", "ntasks"} <= fields.keys():
        raise UsageError("through pyslurm a job must say --nodes and --ntasks", hint=HINT)
    return fields


HINT = "leave it out, or submit by sbatch: GLAUNCH_SLURM_SUBMIT=sbatch, or slurm.submit: sbatch in a settings file"


def _field(name: str, value: str | None) -> tuple[str, object]:
    if value is None and name in FLAGS:
        return FLAGS[name]
    if value is not None and name in TEXTS:
        field, made = TEXTS[name]
        try:
            return field, made(value)
        except ValueError:
            pass
    said = f"--{name}" if value is None else f"--{name}={value}"
    raise UsageError(f"{said} cannot be said through pyslurm (slurm.submit)", hint=HINT)
