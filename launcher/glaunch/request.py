"""What the user asked for; knows nothing of any cluster."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from glaunch.errors import UsageError
from glaunch.secret import shown


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
    clusters: str | None = None
    """The cluster that it goes to, by name; None: the one of this host."""
    tp: int | None = None
    """Ranks of a tensor-parallel group; the next three: pipeline stages, data-parallel ranks, expert-parallel ranks."""
    pp: int | None = None
    dp: int | None = None
    ep: int | None = None
    segment: int | None = None
    """Nodes that should stay together."""
    wait_for_leaves: str | None = None
    """`4` or `4@10:00`: let Slurm wait so long for nodes on so few leaf switches."""
    exclusive: bool = False
    requeue: bool = False
    max_requeues: int | None = None
    """So often the job may run again; the run after that ends at once."""
    force: bool = False
    """Hand a request to Slurm that can never run."""
    mixed: bool = False
    """Nodes of several GPU types and numbers of GPUs may be in one job."""
    env: tuple[tuple[str, str], ...] = ()
    """The user's own variables for the job (--env NAME=VALUE)."""
    modules: tuple[str, ...] = ()
    """More modules than the settings name."""
    setup: tuple[str, ...] = ()
    """More lines for the batch shell than the settings have."""
    container_mounts: tuple[str, ...] = ()
    container_env: tuple[str, ...] = ()
    export: str | None = None
    """Which of the caller's own variables the job gets: ALL (as without a word), NONE, or names with commas between them."""
    sbatch: tuple[tuple[str, str | None], ...] = ()
    """Any other sbatch option, name without dashes → value."""
    inherited: tuple[str, ...] = ()
    """Variables of the caller's environment that said what the line did not: `SBATCH_PARTITION=gpu`."""
    unused: tuple[str, ...] = ()
    """Those that would contradict the plan and are left out of the job's environment."""
    named_dependency: str = ""
    """The dependency as it was typed, where it named jobs: `afterok:train`; `dependency` then has their ids."""
    components: tuple["Request", ...] = ()
    """What runs beside it in the same job, each on nodes of its own (the further components of a heterogeneous job); () for a plain job."""


FIELDS = MappingProxyType(
    {
        "account": "account",
        "array": "array",
        "constraint": "constraint",
        "cpus-per-task": "cpus_per_task",
        "dependency": "dependency",
        "exclude": "exclude",
        "exclusive": "exclusive",
        "export": "export",
        "gpus-per-node": "gpus_per_node",
        "job-name": "name",
        "mem": "mem",
        "nodelist": "nodelist",
        "ntasks-per-node": "tasks_per_node",
        "partition": "partition",
        "qos": "qos",
        "requeue": "requeue",
        "reservation": "reservation",
        "time": "time",
    }
)
"""sbatch's long option → the field of a Request that says the same."""
DECIDED = frozenset(
    {"chdir", "error", "export-file", "nodefile", "nodes", "ntasks", "open-mode", "output", "parsable", "test-only", "wait", "wrap"}
    | {"clusters", "distribution", "input"}
)
"""sbatch options that glaunch decides itself; handed through, they would break the job's folder or the order."""
OF_THE_JOB = frozenset(
    {"array", "begin", "clusters", "comment", "deadline", "dependency", "export", "hold", "job-name", "kill-on-invalid-dep", "mail-type"}
    | {"mail-user", "nice", "priority", "requeue", "signal", "wckey"}
)
"""sbatch options that a heterogeneous job has once; its first component says them."""
PER_NODE = frozenset({"gpus", "gpus-per-socket", "gpus-per-task", "ntasks-per-gpu", "tres-per-task"})
"""Other ways to ask for GPUs; Slurm refuses them beside the one that a plan is made with."""


def asks(request: Request, name: str) -> bool:
    """Whether a request says anything about sbatch's option `name` (long, without dashes)."""
    return name in dict(request.sbatch) or (name in FIELDS and getattr(request, FIELDS[name]) not in {None, False})


def apart(name: str, value: str | None) -> tuple[tuple[str, str | None], ...]:
    """An option of sbatch as the ones that it means: `gres=gpu:h100:4,nvme:1` is `gpus-per-node=h100:4` and `gres=nvme:1`."""
    if name != "gres" or not value:
        return ((name, value),)
    words = value.split(",")
    gpus = tuple(("gpus-per-node", word.partition(":")[2] or "1") for word in words if word.partition(":")[0] == "gpu")
    others = ",".join(word for word in words if word.partition(":")[0] != "gpu")
    return (*gpus, (name, others)) if others else gpus


def with_option(request: Request, name: str, value: str | None) -> Request:
    """The request with sbatch's option `name` too (None: a switch): in the field that says the same, else among the others.

    So the placement sees all that sbatch will see. Raises UsageError for what glaunch decides, and for a value that cannot be meant.
    """
    if name in DECIDED:
        where = "the job's folder, which is made before Slurm needs it, holds all output: rundir.path says where, glaunch logs shows it"
        hint = where if name in {"output", "error"} else "options of glaunch: glaunch run --help"
        raise UsageError(f"--sbatch {name}: glaunch decides this itself", hint=hint)
    if name in PER_NODE:
        raise UsageError(f"--sbatch {name}: a plan counts GPUs by node", hint="--gpus-per-node [TYPE:]N and --ntasks-per-node N")
    if name == "export":
        return exporting(request, _text(name, value))
    field = FIELDS.get(name)
    if field is None or (field == "exclusive" and value is not None):
        return replace(request, sbatch=(*request.sbatch, (name, value)))
    change: dict[str, Any] = {field: _said(name, value)}
    return replace(request, **change)


def exporting(request: Request, value: str) -> Request:
    """The request with `--export VALUE`: words with commas between them, as sbatch takes them.

    A NAME=VALUE goes the way of --env, so sbatch never sees a value and cannot cut it; names, ALL and NONE stay what they are.
    Raises UsageError for a word that is no name. **Source:** sbatch(1), --export.
    """
    names, pairs = [], []
    for word in value.split(","):
        name, equals, text = word.partition("=")
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise UsageError(f"--export {shown(name, text) if equals else word!r}: {name!r} is no name of a variable", hint=EXPORT_HINT)
        names.append("NONE" if name == "NIL" and not equals else name)
        pairs += [(name, text)] if equals else []
    said = dict.fromkeys(names)
    if "ALL" in said:
        said = {"ALL": None}
    elif "NONE" in said and len(said) > 1:
        del said["NONE"]
    return replace(request, export=",".join(said), env=(*request.env, *pairs))


EXPORT_HINT = "--export ALL, NONE or NAME,NAME; a value of one's own, with commas or not: --env NAME=VALUE"


def _text(name: str, value: str | None) -> str:
    if value is None:
        raise UsageError(f"--sbatch {name} needs a value", hint=f"--sbatch {name}=VALUE")
    return value


def _said(name: str, value: str | None) -> str | int | bool:
    if name in {"exclusive", "requeue"}:
        return True
    value = _text(name, value)
    if name not in {"cpus-per-task", "ntasks-per-node"}:
        return value
    if not (value.isascii() and value.isdigit()):
        raise UsageError(f"--sbatch {name}={value} is no whole number", hint=f"--sbatch {name}=8")
    return int(value)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, from where, and what the command means there."""

    user: str
    groups: frozenset[str]
    work_dir: str
    program: tuple[str, ...]
    """As each rank runs it: ("/usr/bin/python3", "train.py", "--lr", "1e-3")."""
    job_name: str
    environ: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Words:
    """A launch line read: glaunch's own words, and the command with its arguments."""

    own: tuple[str, ...]
    command: tuple[str, ...]
    late: tuple[str, ...] = ()
    """Words of the script that glaunch knows too (`--detach`), behind one that it does not know: perhaps meant for glaunch."""
    slip: tuple[str, str] = ("", "")
    """(`--parition`, `--partition`): the first word of the script that is nearly one of glaunch's, and that one."""


def split_components(words: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The launch lines of the components in one line: a `:` that is a word of its own begins the next one, unless it stands behind a `--`.

    So a program that wants a `:` among its own arguments gets it behind a `--`, and is then the last component.
    """
    end = words.index("--") if "--" in words else len(words)
    cuts = [at for at in range(end) if words[at] == ":"]
    starts = [0, *(at + 1 for at in cuts)]
    return tuple(tuple(words[start:stop]) for start, stop in zip(starts, [*cuts, len(words)], strict=True))


def read_words(words: Sequence[str], takes_value: Mapping[str, bool], before: Mapping[str, bool] = MappingProxyType({})) -> Words:
    """Tell glaunch's words from the command's.

    `takes_value` holds every option of glaunch (`-n`, `--ntasks`) and whether a value follows it; `before` those that are glaunch's only
    before the script, since a script may well have one of that name (`--profile`). Options before the script are
    glaunch's and then all after it is the script's (as with srun). With none before it, the options right behind the script are
    glaunch's, up to the first word that glaunch does not know or `--`.

    Raises UsageError for an option before the script that glaunch does not have.
    """
    own, at = _take(words, 0, {**before, **takes_value})
    if at < len(words) and words[at] == "--":
        return Words(own, tuple(words[at + 1 :]))
    if at < len(words) and words[at].startswith("-") and words[at] != "-":
        raise UsageError(f"{words[at]!r} is no option of glaunch", hint=_near(words[at], takes_value))
    if at == len(words):
        return Words(own, ())
    script, at = words[at], at + 1
    if own:
        return Words(own, (script, *words[at:]))
    own, at = _take(words, at, takes_value)
    if at < len(words) and words[at] == "--":
        return Words(own, (script, *words[at + 1 :]))
    known = {name for name in takes_value if name.startswith("--") or not own}
    late = tuple(word for word in words[at:] if word.partition("=")[0] in known)
    first = words[at].partition("=")[0] if at < len(words) else ""
    close = _closest(first, takes_value, _SLIP) if first.startswith("--") and first not in takes_value else ""
    return Words(own, (script, *words[at:]), late, (first, close) if close else ("", ""))


def _take(words: Sequence[str], at: int, takes_value: Mapping[str, bool]) -> tuple[tuple[str, ...], int]:
    """The options that glaunch knows from `at` on, with their values, and where they end."""
    start = at
    while at < len(words):
        name, equals, _ = words[at].partition("=")
        if name in takes_value and not (equals and not name.startswith("--")):
            at += 2 if takes_value[name] and not equals else 1
            if at > len(words):
                raise UsageError(f"{name} needs a value behind it", hint="all options: glaunch run --help")
        elif words[at] not in HABITS and len(words[at]) > 2 and words[at][1] != "-" and takes_value.get(words[at][:2], False):  # -n64
            at += 1
        else:
            break
    return tuple(words[start:at]), at


HABITS = MappingProxyType(
    {"-np": "-n", "-G": "-n, a rank a GPU", "--gpus": "-n, a rank a GPU", "--gpus-per-task": "--gpus-per-node"}
    | dict.fromkeys(("--nproc-per-node", "--nproc_per_node", "--ppn"), "--ntasks-per-node")
)
"""What mpirun, torchrun and srun call what glaunch has by another name."""


_SLIP = 0.88
"""How near a script's own option must be to one of glaunch's to be doubted: `--parition` is, `--name` beside `--nodes` is not."""


def _closest(name: str, takes_value: Mapping[str, bool], least: float) -> str:
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, takes_value, 1, least)), "")


def _near(word: str, takes_value: Mapping[str, bool]) -> str:
    name = word.partition("=")[0]
    if name in HABITS:
        return f"did you mean {HABITS[name]}? all of them: glaunch run --help"
    close = _closest(name, takes_value, 0.75)
    known = f"did you mean {close}? " if close else ""
    key = word.lstrip("-") or "KEY"
    return f"{known}options of the script go behind it; any other option of sbatch: --sbatch {key}; all of them: glaunch run --help"
