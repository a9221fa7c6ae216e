"""What the user asked for; knows nothing of any cluster."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from glaunch.errors import UsageError


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
    force: bool = False
    """Hand a request to Slurm that can never run."""
    env: tuple[tuple[str, str], ...] = ()
    """The user's own variables for the job (--env NAME=VALUE)."""
    sbatch: tuple[tuple[str, str | None], ...] = ()
    """Any other sbatch option, name without dashes → value."""
    inherited: tuple[str, ...] = ()
    """Variables of the caller's environment that said what the line did not: `SBATCH_PARTITION=gpu`."""
    unused: tuple[str, ...] = ()
    """Those that would contradict the plan and are left out of the job's environment."""


_FIELDS = {
    "account": "account",
    "array": "array",
    "constraint": "constraint",
    "dependency": "dependency",
    "exclude": "exclude",
    "gpus-per-node": "gpus_per_node",
    "job-name": "name",
    "mem": "mem",
    "nodelist": "nodelist",
    "partition": "partition",
    "qos": "qos",
    "reservation": "reservation",
    "time": "time",
}
_COUNTS = {"cpus-per-task": "cpus_per_task", "ntasks-per-node": "tasks_per_node"}
_SWITCHES = ("exclusive", "requeue")


def with_options(request: Request, options: Sequence[tuple[str, str | None]], *, given_twice: bool = True) -> Request:
    """The request with further options of sbatch (name without dashes, value): what it has a field for goes there, the rest stays as it is.

    GPUs in `gres` are `--gpus-per-node`. An option that the request holds already is an error, or with `given_twice` False left out.
    Raises UsageError.
    """
    for name, value in _with_gpus_apart(options):
        field = _FIELDS.get(name) or _COUNTS.get(name) or (name if name in _SWITCHES and value is None else "")
        if field and value is None and name not in _SWITCHES:
            raise UsageError(f"--{name} needs a value", hint=f"--sbatch {name}=VALUE")
        if name in _COUNTS and not (value or "").isdigit():
            raise UsageError(f"--{name}={value} is no number")
        held = getattr(request, field) if field else name in (other for other, _ in request.sbatch)
        if held and not given_twice:
            continue
        if field and held and name not in _SWITCHES:
            raise UsageError(f"--{name} was given twice: {held} and {value}", hint="give it once")
        new: Any = True if field in _SWITCHES else int(value or 0) if name in _COUNTS else value
        request = replace(request, **{field: new}) if field else replace(request, sbatch=(*request.sbatch, (name, value)))
    return request


def _with_gpus_apart(options: Sequence[tuple[str, str | None]]) -> Iterator[tuple[str, str | None]]:
    for name, value in options:
        if name != "gres" or not value:
            yield name, value
            continue
        words = value.split(",")
        yield from (("gpus-per-node", word.partition(":")[2] or "1") for word in words if word.partition(":")[0] == "gpu")
        others = [word for word in words if word.partition(":")[0] != "gpu"]
        if others:
            yield name, ",".join(others)


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
    options_first: bool
    """True when glaunch's options stood before the script, so that all after it is the script's."""


def read_words(words: Sequence[str], takes_value: Mapping[str, bool]) -> Words:
    """Tell glaunch's words from the command's.

    `takes_value` holds every option of glaunch (`-n`, `--ntasks`) and whether a value follows it. Options before the script are
    glaunch's and then all after it is the script's (as with srun). With none before it, the options right behind the script are
    glaunch's, up to the first word that glaunch does not know or `--`.

    Raises UsageError for an option before the script that glaunch does not have.
    """
    own, at = _take(words, 0, takes_value)
    if at < len(words) and words[at] == "--":
        return Words(own, tuple(words[at + 1 :]), bool(own))
    if at < len(words) and words[at].startswith("-") and words[at] != "-":
        raise UsageError(f"{words[at]!r} is no option of glaunch", hint=_near(words[at], takes_value))
    if at == len(words):
        return Words(own, (), bool(own))
    script, at = words[at], at + 1
    if own:
        return Words(own, (script, *words[at:]), True)
    own, at = _take(words, at, takes_value)
    if at < len(words) and words[at] == "--":
        at += 1
    return Words(own, (script, *words[at:]), False)


def _take(words: Sequence[str], at: int, takes_value: Mapping[str, bool]) -> tuple[tuple[str, ...], int]:
    """The options that glaunch knows from `at` on, with their values, and where they end."""
    start = at
    while at < len(words):
        name, equals, _ = words[at].partition("=")
        if name in takes_value and not (equals and not name.startswith("--")):
            at += 2 if takes_value[name] and not equals else 1
            if at > len(words):
                raise UsageError(f"{name} needs a value behind it", hint="all options: glaunch run --help")
        elif len(words[at]) > 2 and words[at][1] != "-" and takes_value.get(words[at][:2], False):  # -n64
            at += 1
        else:
            break
    return tuple(words[start:at]), at


def _near(word: str, takes_value: Mapping[str, bool]) -> str:
    close = get_close_matches(word.partition("=")[0], takes_value, 1)
    known = f"did you mean {close[0]}? " if close else ""
    key = word.lstrip("-") or "KEY"
    return f"{known}options of the script go behind it; any other option of sbatch: --sbatch {key}; all of them: glaunch run --help"
