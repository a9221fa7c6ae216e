"""A cluster's answers on file: recorded once, answered from again without a cluster.

A capture is a folder: `commands.json` (each command's words → the file of its answer, exit code, stderr, when), the files, and
`topology/` with the topology files that lay beside slurm.conf.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from glaunch.errors import SlurmError, UsageError
from glaunch.gateways.mask import Mask
from glaunch.gateways.process import Completed, Run

SCHEMA = "glaunch.capture/1"
INDEX = "commands.json"
TOPOLOGY_FILES = ("topology.conf", "topology.yaml")
_HINT = "make one on a login node: glaunch snapshot DIR"


@dataclass(frozen=True, slots=True)
class Asker:
    """Who a capture's answers were given to: accounting and partitions allow one user what they do not allow another."""

    user: str
    groups: frozenset[str]


@dataclass(frozen=True, slots=True)
class Recorded:
    """One command as it went, at `when_s` (seconds since the epoch)."""

    done: Completed
    when_s: float


def record(run: Run, into: list[Recorded], when_s: float) -> Run:
    """`run`, which also puts what it answered at the end of `into`."""

    def run_and_note(argv: Sequence[str], stdin: str, timeout_s: float) -> Completed:
        done = run(argv, stdin, timeout_s)
        into.append(Recorded(done, when_s))
        return done

    return run_and_note


def write_capture(
    folder: Path,
    recorded: Sequence[Recorded],
    *,
    plain: bool,
    topology: Mapping[str, str] | None = None,
    asker: Asker | None = None,
) -> tuple[Path, ...]:
    """Write a capture into a new or empty folder (mode 0700) and return its files; `topology`: file name → text.

    Unless `plain`, users, groups, accounts, hosts and addresses get other names, the same ones everywhere, and free texts go.
    Raises UsageError where the folder holds something already.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is not empty", hint="name a new folder: glaunch snapshot DIR")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    mask = None if plain else _mask_of(recorded, asker)
    files: dict[str, str] = {}
    index = []
    for entry in recorded if mask is None else (_masked(entry, mask) for entry in recorded):
        done = entry.done
        name = _file_name(done.argv, files)
        files[name] = done.stdout
        index.append({"argv": list(done.argv), "file": name, "code": done.code, "stderr": done.stderr, "when_s": entry.when_s})
    for name, text in (topology or {}).items():
        files[f"topology/{name}"] = mask(text) if mask else text
    document: dict[str, object] = {"schema": SCHEMA, "plain": plain, "commands": index}
    if asker is not None:
        told = (lambda name: name) if mask is None else mask.name
        document["asker"] = {"user": told(asker.user), "groups": sorted(map(told, asker.groups))}
    files[INDEX] = json.dumps(document, indent=1) + "\n"
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.write_bytes(text.encode(errors="surrogateescape"))
    return tuple(folder / name for name in files)


def _mask_of(recorded: Sequence[Recorded], asker: Asker | None) -> Mask:
    tables = [(entry.done.stdout, fields) for entry in recorded if (fields := _fields(entry.done.argv))]
    texts = [text for entry in recorded for text in ("" if _fields(entry.done.argv) else entry.done.stdout, entry.done.stderr)]
    return Mask(texts, tables=tables, user=asker.user if asker else "", groups=sorted(asker.groups) if asker else ())


def _fields(argv: Sequence[str]) -> tuple[str, ...]:
    """Of a question to sacctmgr the fields that its answer, a table, has."""
    formats = [word for word in argv if word.startswith("format=")] if argv[:1] == ("sacctmgr",) else []
    return tuple(formats[0].removeprefix("format=").split(",")) if formats else ()


def _masked(entry: Recorded, mask: Mask) -> Recorded:
    done, fields = entry.done, _fields(entry.done.argv)
    argv = tuple(f"name={mask.name(word.removeprefix('name='))}" if fields and word.startswith("name=") else word for word in done.argv)
    text = mask.table(done.stdout, fields) if fields else mask(done.stdout)
    said = mask.words(done.stderr) if fields else mask(done.stderr)
    return Recorded(Completed(argv, done.code, text, said), entry.when_s)


def _file_name(argv: Sequence[str], taken: Mapping[str, str]) -> str:
    words = [re.sub(r"[^A-Za-z0-9]+", "", word) for word in argv if len(word) > 2]
    stem = "-".join(word for word in words if word)[:60] or "command"
    number = next(count for count in range(1, len(taken) + 2) if f"{stem}{'' if count == 1 else f'-{count}'}.txt" not in taken)
    return f"{stem}{'' if number == 1 else f'-{number}'}.txt"


def replay(folder: Path) -> Run:
    """A `run` that answers from a capture, and only what was recorded: the same words, the same answer.

    Raises UsageError where the folder is no capture; the `run` raises SlurmError for a command that the capture lacks.
    """
    answers = {entry.done.argv: entry.done for entry in read_capture(folder)}

    def run_from_capture(argv: Sequence[str], stdin: str, timeout_s: float) -> Completed:
        done = answers.get(tuple(argv))
        if done is None:
            raise SlurmError(
                f"the capture {folder} has no answer of: {_cut(' '.join(argv))}",
                argv=tuple(argv),
                hint="a capture answers what a plan asks (glaunch --snapshot DIR plan …); jobs need the cluster itself",
            )
        return done

    return run_from_capture


def _cut(line: str) -> str:
    return line if len(line) <= 80 else f"{line[:79]}…"


def taken_at_s(folder: Path) -> float:
    """When the capture was taken (its last command), seconds since the epoch: the "now" of a plan made from it."""
    return max((entry.when_s for entry in read_capture(folder)), default=0.0)


def asker_of(folder: Path) -> Asker | None:
    """Who the answers were given to; None for a capture that does not say it. Raises UsageError where the folder is none."""
    told = _document(folder).get("asker")
    if not isinstance(told, dict) or not isinstance(told.get("user"), str) or not isinstance(told.get("groups"), list):
        return None
    return Asker(told["user"], frozenset(map(str, told["groups"])))


def read_capture(folder: Path) -> tuple[Recorded, ...]:
    """All that a capture holds, in the order it was recorded. Raises UsageError where it is none, or a part of it is missing."""
    try:
        return tuple(_recorded(folder, entry) for entry in _document(folder)["commands"])
    except (OSError, ValueError, KeyError, TypeError) as broken:
        raise _no_capture(folder, broken) from broken


def _document(folder: Path) -> dict[str, Any]:
    if not (folder / INDEX).is_file():
        raise UsageError(f"{folder} is no capture: it has no {INDEX}", hint=_HINT)
    try:
        document = json.loads((folder / INDEX).read_text(encoding="utf-8"))
        schema = document["schema"]
    except (OSError, ValueError, KeyError, TypeError) as broken:
        raise _no_capture(folder, broken) from broken
    if schema != SCHEMA or not isinstance(document, dict):
        raise UsageError(f"{folder / INDEX}: schema {schema!r}; this glaunch reads {SCHEMA!r}", hint="glaunch --version")
    return document


def _no_capture(folder: Path, broken: Exception) -> UsageError:
    return UsageError(f"{folder} is no capture ({broken})", hint=_HINT)


def _recorded(folder: Path, entry: Mapping[str, object]) -> Recorded:
    argv, file, code, stderr, when_s = (entry[key] for key in ("argv", "file", "code", "stderr", "when_s"))
    if not isinstance(argv, list) or not isinstance(file, str) or not isinstance(code, int | None) or not isinstance(when_s, int | float):
        raise TypeError(f"{INDEX}: a command is not as it should be: {entry}")
    if "/" in file or file in {"", ".", ".."}:
        raise ValueError(f"{INDEX}: {file!r} is no file of the capture")
    text = (folder / file).read_bytes().decode(errors="surrogateescape")
    return Recorded(Completed(tuple(map(str, argv)), code, text, str(stderr)), float(when_s))
