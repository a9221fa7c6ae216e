"""How `glaunch` runs inside as it runs outside: the same interpreter and the same checkout, at the same paths."""

import os
import re
import shlex
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import glaunch
from glaunch.sandbox.mounts import PRIVATE


@dataclass(frozen=True, slots=True)
class Outer:
    """The Python that glaunch runs on out here."""

    executable: str
    prefixes: tuple[str, ...]
    path: tuple[str, ...]
    """The folders of sys.path as it is now, without the current one and that of the program's own file."""
    home: str
    """The folder that glaunch came from: its checkout, or the folder it is installed in."""


def outer() -> Outer:
    """What this process runs on."""
    package = Path(glaunch.__file__).resolve().parent
    checkout = package.parents[1]
    bare = package.parent.name == "launcher" and (checkout / "setup.cfg").is_file()
    started_from = {"", os.path.dirname(os.path.realpath(sys.argv[0]))}
    try:
        started_from.add(os.getcwd())
    except FileNotFoundError:  # a folder that is gone
        pass
    path = [entry for entry in sys.path if entry not in started_from and os.path.isdir(entry)]
    if str(package.parent) not in path:
        path.insert(0, str(package.parent))
    prefixes = dict.fromkeys((sys.prefix, sys.exec_prefix, sys.base_prefix, str(Path(sys.executable).resolve().parent.parent)))
    return Outer(sys.executable, tuple(prefixes), tuple(path), str(checkout if bare else package.parent))


def folders(python: Outer, *, other_root: bool) -> tuple[str, ...]:
    """What must be bound inside for `python` to run: outermost folders only, none that the system itself brings (/usr).

    With `other_root` (a chroot with a Python of its own) only glaunch's own folder.
    """
    wanted = (python.home,) if other_root else (*python.prefixes, *python.path, python.home)
    return outermost(path for path in wanted if not is_system(path) and path not in PRIVATE)


def is_system(path: str) -> bool:
    """Whether a path is part of the operating system, which every root file system has at the same place."""
    return path in {"/", "/usr", "/usr/local"} or path.startswith(("/usr/lib", "/usr/bin", "/bin", "/lib", "/usr/local/"))


def outermost(paths: Iterable[str]) -> tuple[str, ...]:
    """The paths, each once, without those below another one."""
    kept: list[str] = []
    for path in sorted(set(paths), key=lambda each: (each.count("/"), each)):
        if not any(path == above or path.startswith(above.rstrip("/") + "/") for above in kept):
            kept.append(path)
    return tuple(kept)


def wrapper(python: Outer, *, other_root: bool) -> str:
    """/usr/local/bin/glaunch inside. It sets nothing that a job would inherit, and takes nothing away, as sh would (functions of bash)."""
    executable = "/usr/bin/python3" if other_root else python.executable
    comment = "# Written by `glaunch sandbox up`: the glaunch that made this sandbox."
    if re.fullmatch(r"[\w./+-]{1,100}", executable, re.ASCII):  # what the kernel can read in a first line
        return f"#!{executable}\n{comment}\n{starter(python, other_root=other_root)}"
    return f'#!/bin/sh\n{comment}\nexec {shlex.quote(executable)} /srv/glaunch.py "$@"\n'


def starter(python: Outer, *, other_root: bool) -> str:
    """What the wrapper runs."""
    if other_root:
        place = f"sys.path.insert(0, {next(path for path in python.path if (Path(path) / 'glaunch').is_dir())!r})"
    else:
        place = f"sys.path[:] = {list(python.path)!r}"
    return f'import sys\n\n{place}\nsys.argv[0] = "glaunch"\nfrom glaunch.__main__ import main\n\nmain()\n'


def python_folders(python: Outer) -> tuple[str, ...]:
    """The folders in which nodes without Python must not find one."""
    known = ["/usr/bin", "/usr/local/bin", *(f"{prefix}/bin" for prefix in python.prefixes), *os.environ.get("PATH", "").split(":")]
    known += [str(path) for pattern in ("*/bin", "*/versions/*/bin") for path in Path("/opt").glob(pattern)]
    return tuple(dict.fromkeys(path for path in known if path.startswith("/") and not path.startswith(PRIVATE) and "\n" not in path))


def unreadable(python: Outer) -> str:
    """The first file or folder that a plain user inside could not read or enter; "" when all is open."""
    package = Path(glaunch.__file__).resolve().parent
    tops = [Path(top) for top in folders(python, other_root=False)]
    for path in (package / "__init__.py", Path(python.executable)):
        for each in (path, *path.parents):
            inside = any(each == top or top in each.parents for top in tops)
            if inside and not each.stat().st_mode & (0o001 if each.is_dir() else 0o004):
                return str(each)
    return ""
