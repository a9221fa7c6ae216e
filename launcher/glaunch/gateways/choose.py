"""Which gateway asks Slurm: pyslurm or Slurm's own commands, and why. `slurm.gateway` says what is wished."""

import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from glaunch.errors import ParseError, SlurmError, UsageError
from glaunch.gateways.kept import Kept
from glaunch.gateways.slurm import SlurmCommands
from glaunch.parsers.slurm_config import parse_version
from glaunch.settings import Settings
from glaunch.slurm_versions import version_text
from glaunch.talk import talk


@dataclass(frozen=True, slots=True)
class Choice:
    """A gateway, the answers that are kept of it, why it is this one, and what a person must be told of that."""

    gateway: SlurmCommands
    kept: Kept
    why: str
    notes: tuple[str, ...] = ()


def choose(settings: Settings, kept_folder: Path, environ: Mapping[str, str] | None = None) -> Choice:
    """The gateway that the settings wish for, as far as it can be had; asks Slurm for nothing but its commands' version (0 RPCs).

    Raises UsageError where pyslurm is wished for by name and is not installed.
    """
    environ = os.environ if environ is None else environ
    timeout_s, keep_s = float(settings.number("slurm.timeout_s")), float(settings.number("slurm.keep_s"))
    wished, submits = settings.text("slurm.gateway"), settings.text("slurm.submit") == "pyslurm"
    commands = SlurmCommands(environ=environ, timeout_s=timeout_s)
    kept = Kept(kept_folder, keep_s=keep_s, environ=environ)
    found = installed() if wished != "commands" else None
    notes: list[str] = []
    if wished == "pyslurm" and found is None:
        raise UsageError(
            f"slurm.gateway is pyslurm ({settings.where('slurm.gateway')}), and this Python has no pyslurm",
            hint="pip install 'pyslurm==MAJOR.MINOR.*' of your Slurm (sinfo --version) beside glaunch, or slurm.gateway: auto",
        )
    why = f"{settings.where('slurm.gateway')} says so" if wished == "commands" else "pyslurm is not installed beside glaunch"
    if found is not None and commands.cluster:
        why = f"pyslurm asks this host's own cluster only, and {commands.cluster} was asked for"
        notes += [f"{why}: Slurm's commands are used"] if wished == "pyslurm" else []
    elif found is not None:
        slurm = _slurm_version(commands, kept)
        fits = slurm is not None and slurm[:2] == _numbers(found)[:2]
        why = f"pyslurm {found or 'of an unknown version'} {_beside(slurm, fits=fits)}"
        if wished == "pyslurm" and not fits:
            notes.append(f"{why}; it is used all the same ({settings.where('slurm.gateway')} says so)")
        if wished == "pyslurm" or fits:
            from glaunch.gateways.slurm_native import SlurmNative

            native = SlurmNative(fall_back=wished == "auto", say=talk, submits=submits, environ=environ, timeout_s=timeout_s)
            return Choice(native, Kept(kept_folder, keep_s=keep_s, environ=environ, told_by="pyslurm"), why, tuple(notes))
        if slurm is not None:
            notes.append(f"{why}: Slurm's commands are used instead (slurm.gateway: commands says nothing of it)")
    if submits:
        notes.append(f"{settings.where('slurm.submit')} pyslurm, but Slurm's commands are used ({why}): jobs go through sbatch")
    return Choice(commands, kept, why, tuple(notes))


def installed() -> str | None:
    """pyslurm's version as it is written in its folder, "" where none is; None where it is not installed.

    It is not imported: that may end the process.
    """
    spec = find_spec("pyslurm")
    if spec is None:
        return None
    for folder in spec.submodule_search_locations or ():
        try:
            match = re.search(r"__version__ = ['\"]([\w.]+)['\"]", (Path(folder) / "version.py").read_text(encoding="utf-8"))
        except OSError:
            continue
        if match:
            return match[1]
    return ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def _slurm_version(commands: SlurmCommands, kept: Kept) -> tuple[int, ...] | None:
    """The version of Slurm's commands, whose library pyslurm uses too; None where it cannot be told (whoever asks more will hear why)."""
    try:
        return parse_version(kept.or_asked("version", time.time(), lambda: commands.answer("version")))
    except (SlurmError, ParseError):
        return None


def _beside(slurm: tuple[int, ...] | None, *, fits: bool) -> str:
    if slurm is None:
        return "is there, but the version of this Slurm is not known"
    version = version_text(slurm[:2])
    return f"is made for this Slurm {version}" if fits else f"is not made for this Slurm {version}"
