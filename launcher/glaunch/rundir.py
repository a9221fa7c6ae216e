"""A job's folder: made once, written atomically, removed when it is old. What the job itself writes into it is read by `attempt`.

RUNDIR/NAME-SUBMISSION/    intent.json plan.json fabric.json *.tsv command.sh job.sbatch node/ batch-*.log JOB.TASK.RESTART/
"""

import contextlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from glaunch.attempt import attempts
from glaunch.errors import DiskError, GlaunchError, UsageError

LOCAL_FILE_SYSTEMS = frozenset({"tmpfs", "ramfs", "devtmpfs", "overlay", "aufs"})
"""In memory, or a container's own layers: never seen by another host."""
SYSTEM = ("/usr/", "/bin/", "/sbin/", "/lib", "/opt/")
"""What each node is expected to have of its own."""


def create(folder: Path, intent: Mapping[str, object]) -> None:
    """Make a job's folder (mode 0700) and put intent.json into it; both are on disk when this returns.

    Raises UsageError for a path that Slurm cannot carry, GlaunchError when the folder is there already or cannot be made.
    """
    if re.search(r"[\x00-\x1f\x7f\\]", str(folder)):
        raise UsageError(
            f"job folder {str(folder)!r}: Slurm cannot carry a path with a backslash or a control character", hint="name another rundir"
        )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700)
    except FileExistsError as there:
        raise GlaunchError(f"{there.filename} exists already", hint="glaunch never writes into a folder that it did not make") from there
    except OSError as error:
        raise DiskError(f"cannot make the job folder {folder}: {error.strerror}", hint="name another place: the key rundir.path") from error
    write_text(folder / "intent.json", json.dumps(intent, indent=1, sort_keys=True) + "\n")
    _sync_folder(folder.parent)


def write_text(path: Path, text: str, mode: int = 0o600) -> None:
    """Write a file so that a reader sees all of it or none: `.part`, synced, renamed. Surrogates (foreign bytes) go back to bytes."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0), mode)
        with open(handle, "wb") as file:
            file.write(text.encode(errors="surrogateescape"))
            file.flush()
            os.fsync(file.fileno())
        os.rename(part, path)
        _sync_folder(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        raise DiskError(f"cannot write {path}: {error.strerror}", hint="is the disk full, or the quota used up?") from error


def write_texts(folder: Path, texts: Iterable[tuple[str, str]]) -> None:
    """Write a Script's files below `folder`, in the order given: programs 0700, the rest 0600.

    Raises GlaunchError when one cannot be written.
    """
    for name, text in texts:
        path = folder / name
        if not path.is_relative_to(folder) or ".." in Path(name).parts:
            raise ValueError(f"{name} does not lie in the job's folder")
        if not path.parent.is_dir():
            path.parent.mkdir(mode=0o700, parents=True)
        write_text(path, text, 0o700 if path.suffix in {".sh", ".sbatch"} else 0o600)


def warn_local(path: str, shared: Sequence[str], local: Sequence[str], mounts_text: str) -> str | None:
    """Why other nodes will not see `path`, or None when nothing speaks for that.

    `path`: absolute, links resolved. `shared`, `local`: paths that the site names so. `mounts_text`: /proc/self/mountinfo.
    A job whose folder its nodes cannot see ends without a word (JobLaunchFailure, exit 0:53), so this is told before.
    **Source:** proc(5), /proc/pid/mountinfo.
    """
    if any(_below(path, place) for place in shared):
        return None
    named = next((place for place in local if _below(path, place)), None)
    if named is not None:
        return f"{path} lies below {named}, which this site names local to each node: the job's nodes may not see it"
    point, kind = "", ""
    for line in mounts_text.splitlines():
        fields, _, rest = line.partition(" - ")
        words = fields.split()
        if len(words) < 5 or not rest.split():
            continue
        mounted = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), words[4])
        if _below(path, mounted) and len(mounted) >= len(point):  # of two on one point, the later one is seen
            point, kind = mounted, rest.split()[0]
    if kind in LOCAL_FILE_SYSTEMS:
        return f"{path} lies on a {kind} ({point}), which only this host sees: the job's nodes would not find it"
    return None


def folder_of_program(program: str, work_dir: str) -> str:
    """The folder that nodes must see for a program to start there; "" where PATH finds it, or where each node has its own (the system)."""
    if "/" not in program:
        return ""
    folder = os.path.normpath(os.path.join(work_dir, os.path.dirname(program)))
    return "" if f"{folder}/".startswith(SYSTEM) else folder


def clean_candidates(rundir: Path, *, older_than_s: float, now_s: float, over: frozenset[str] = frozenset()) -> tuple[Path, ...]:
    """Job folders below `rundir` in which nothing has changed for so long and no run is without its end. Only folders that glaunch made.

    `over`: folders (links resolved) whose job is known to be over, though a run that was killed hard has left no end in them.
    """
    old = []
    for folder in sorted(rundir.iterdir()) if rundir.is_dir() else ():
        if folder.is_symlink() or not (folder / "intent.json").is_file():
            continue
        runs = attempts(folder)
        newest = max(path.stat().st_mtime for path in (folder, *(run.path for run in runs)))
        ended = all(run.end is not None for run in runs) or os.path.realpath(folder) in over
        if now_s - newest >= older_than_s and ended:
            old.append(folder)
    return tuple(old)


def remove(folder: Path) -> None:
    """Remove a job's folder. Raises GlaunchError for one that glaunch did not make, or that cannot be removed."""
    if folder.is_symlink() or not (folder / "intent.json").is_file():
        raise GlaunchError(f"{folder} is no job folder of glaunch (it has no intent.json)")
    try:
        shutil.rmtree(folder)
    except OSError as error:
        raise GlaunchError(f"cannot remove {error.filename or folder}: {error.strerror}") from error


def _below(path: str, place: str) -> bool:
    return (path.rstrip("/") + "/").startswith(place.rstrip("/") + "/")


def _sync_folder(folder: Path) -> None:
    """A new name is on disk only when its folder is; some file systems refuse to sync a folder, and then there is nothing to do."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
