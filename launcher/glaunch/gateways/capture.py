"""A cluster's answers on file: recorded once, answered from again without a cluster.

A capture is a folder: `commands.json` (each command's words → the file of its answer, exit code, stderr, when), the files, and
`topology/` with the topology files that lay beside slurm.conf.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from glaunch.errors import SlurmError, UsageError
from glaunch.gateways.mask import Mask
from glaunch.gateways.process import Completed, Run

SCHEMA = "glaunch.capture/1"
INDEX = "commands.json"
TOPOLOGY_FILES = ("topology.conf", "topology.yaml")


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
    folder: Path, recorded: Sequence[Recorded], *, plain: bool, topology: Mapping[str, str] | None = None
) -> tuple[Path, ...]:
    """Write a capture into a new or empty folder (mode 0700) and return its files; `topology`: file name → text.

    Unless `plain`, users, groups, accounts, hosts and addresses get other names, the same ones everywhere, and free texts go.
    Raises UsageError where the folder holds something already.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is not empty", hint="name a new folder: glaunch snapshot DIR")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    mask = None if plain else Mask(text for entry in recorded for text in (entry.done.stdout, entry.done.stderr))
    files: dict[str, str] = {}
    index = []
    for entry in recorded:
        name = _file_name(entry.done.argv, files)
        files[name] = mask(entry.done.stdout) if mask else entry.done.stdout
        stderr = mask(entry.done.stderr) if mask else entry.done.stderr
        index.append({"argv": list(entry.done.argv), "file": name, "code": entry.done.code, "stderr": stderr, "when_s": entry.when_s})
    for name, text in (topology or {}).items():
        files[f"topology/{name}"] = mask(text) if mask else text
    document = {"schema": SCHEMA, "plain": plain, "commands": index}
    files[INDEX] = json.dumps(document, indent=1) + "\n"
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.write_bytes(text.encode(errors="surrogateescape"))
    return tuple(folder / name for name in files)


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
                f"the capture {folder} has no answer of: {' '.join(argv)[:200]}",
                argv=tuple(argv),
                hint="a capture answers what a plan asks (glaunch --snapshot DIR plan …); jobs need the cluster itself",
            )
        return done

    return run_from_capture


def taken_at_s(folder: Path) -> float:
    """When the capture was taken (its last command), seconds since the epoch: the "now" of a plan made from it."""
    return max((entry.when_s for entry in read_capture(folder)), default=0.0)


def read_capture(folder: Path) -> tuple[Recorded, ...]:
    """All that a capture holds, in the order it was recorded. Raises UsageError where it is none, or a part of it is missing."""
    if not (folder / INDEX).is_file():
        raise UsageError(f"{folder} is no capture: it has no {INDEX}", hint="make one on a login node: glaunch snapshot DIR")
    try:
        document = json.loads((folder / INDEX).read_text(encoding="utf-8"))
        if document["schema"] != SCHEMA:
            raise UsageError(f"{folder / INDEX}: schema {document['schema']!r}; this glaunch reads {SCHEMA!r}", hint="glaunch --version")
        return tuple(_recorded(folder, entry) for entry in document["commands"])
    except (OSError, ValueError, KeyError, TypeError) as broken:
        raise UsageError(f"{folder} is no capture ({broken})", hint="make one on a login node: glaunch snapshot DIR") from broken


def _recorded(folder: Path, entry: Mapping[str, object]) -> Recorded:
    argv, file, code, stderr, when_s = (entry[key] for key in ("argv", "file", "code", "stderr", "when_s"))
    if not isinstance(argv, list) or not isinstance(file, str) or not isinstance(code, int | None) or not isinstance(when_s, int | float):
        raise TypeError(f"{INDEX}: a command is not as it should be: {entry}")
    if "/" in file or file in {"", ".", ".."}:
        raise ValueError(f"{INDEX}: {file!r} is no file of the capture")
    text = (folder / file).read_bytes().decode(errors="surrogateescape")
    return Recorded(Completed(tuple(map(str, argv)), code, text, str(stderr)), float(when_s))
