"""A job's folder: made once, written atomically, read back attempt by attempt.

    RUNDIR/NAME-SUBMISSION/    intent.json plan.json fabric.json *.tsv command.sh job.sbatch node/ batch-*.log
        JOB.TASK.RESTART/      granted ordered hosts placement.json audit.json ranks.tsv out/HOST.log logs/HOST.tar.gz manifest.jsonl
                               exit.json

Everything in an attempt's folder is written by the job itself (`templates/node/batch.sh`); a run inside an allocation that already had
one is `JOB.TASK.RESTART-2`.
"""

import contextlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from glaunch.errors import GlaunchError, ParseError, UsageError
from glaunch.logs import RankRow
from glaunch.parsers.ranks import parse_ranks

LOCAL_FILE_SYSTEMS = frozenset({"tmpfs", "ramfs", "devtmpfs", "overlay", "aufs"})
"""In memory, or a container's own layers: never seen by another host."""


@dataclass(frozen=True, slots=True)
class AttemptStart:
    """audit.json: what the job decided when it started its ranks (the last try, where rank 0's port was taken)."""

    order: str
    """planned, or slurm where the plan's order could not be had."""
    first: str
    """Rank 0's node, as Slurm names it."""
    master: str
    """MASTER_ADDR: the name under which others reach it."""
    port: int
    tries: int
    tasks: int
    nodes: int
    log_dir: str
    """$GLAUNCH_LOG_DIR on every node."""
    began_s: int


@dataclass(frozen=True, slots=True)
class AttemptPlaced:
    """placement.json: what the granted nodes cost, as the job itself found it before any rank started."""

    pods: int
    leaves: int
    hops: int
    """-1 where no path joins all nodes."""
    unknown: int
    """Nodes that the plan's table does not have."""
    fewest_pods: int
    """The plan's number for this size; 0: not known."""
    bad: bool
    """In more pods than that."""
    did: str
    """failed, requeued, or "" where it went on."""


@dataclass(frozen=True, slots=True)
class AttemptEnd:
    """exit.json: the job's own word about its end, written last."""

    job_id: str
    """SLURM_JOB_ID: of an array task, its raw id."""
    code: int
    """What the batch script ended with: 128 + signal where one ended the ranks."""
    signal: int
    told: str
    """TERM or INT when somebody ended the job (scancel, the time limit, a requeue), else ""."""
    began_s: int
    ended_s: int


@dataclass(frozen=True, slots=True)
class AttemptFolder:
    """One run of a submission. None, or empty, is what the job has not written (yet)."""

    path: Path
    job_id: str
    """Of an array, the array's."""
    task: int
    restart: int
    run: int
    """1, or more inside one allocation."""
    placed: AttemptPlaced | None
    start: AttemptStart | None
    end: AttemptEnd | None
    hosts: tuple[str, ...]
    """In rank order."""

    @property
    def ranks(self) -> tuple[RankRow, ...]:
        """Where the ranks really run: from ranks.tsv or, while they start or when they were killed, from what each node noted so far.

        Read when it is asked for: on a thousand nodes those notes are a thousand files.
        """
        whole = self.path / "ranks.tsv"
        notes = [whole] if whole.exists() else [self.path / "ranks.d" / host for host in _names(self.path / "ranks.d")]
        return tuple(sorted((row for note in notes for row in parse_ranks(_read(note))), key=lambda row: row.rank))


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
        raise GlaunchError(
            f"cannot make the job folder {folder}: {error.strerror}", hint="name another place with the key rundir"
        ) from error
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
        raise GlaunchError(f"cannot write {path}: {error.strerror}", hint="is the disk full, or the quota used up?") from error


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


def load_json(path: Path) -> dict[str, object] | None:
    """One document; None when the file is not there. Raises ParseError when it is no JSON object."""
    try:
        text = path.read_bytes().decode(errors="surrogateescape")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise GlaunchError(f"cannot read {path}: {error.strerror}") from error
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise ParseError(f"{path}:{error.lineno}", text[error.pos : error.pos + 80], "JSON") from error
    if not isinstance(document, dict):
        raise ParseError(f"{path}:1", text[:80], "a JSON object")
    return document


def attempts(folder: Path, job_id: str = "") -> tuple[AttemptFolder, ...]:
    """All runs of a submission in the order of job id, array task, restart, run; with `job_id` those of that job (not what ran by hand)."""
    found = []
    for name in _names(folder):
        match = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)(?:-(\d+))?", name)
        if match and job_id in {"", match[1]} and (folder / name).is_dir():
            found.append((int(match[1]), int(match[2]), int(match[3]), int(match[4] or 1), name))
    return tuple(_attempt(folder / name, str(job), task, restart, run) for job, task, restart, run, name in sorted(found))


def last_runs(runs: Sequence[AttemptFolder]) -> tuple[AttemptFolder, ...]:
    """Of each array task of each job the last run; `runs` in the order of `attempts`."""
    return tuple({(run.job_id, run.task): run for run in runs}.values())


def batch_logs(folder: Path, job_id: str, task: int | None = None) -> tuple[Path, ...]:
    """What the batch script of a job said, or those of an array's tasks: of all, or of one."""
    names = (f"batch-{job_id}.log", f"batch-{job_id}_{'*' if task is None else task}.log")
    return tuple(sorted(path for name in names for path in folder.glob(name)))


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


def clean_candidates(rundir: Path, *, older_than_s: float, now_s: float, over: frozenset[str] = frozenset()) -> tuple[Path, ...]:
    """Job folders below `rundir` in which nothing has changed for so long and no run is without its end. Only folders that glaunch made.

    `over`: folders (links resolved) whose job is known to be over, though a run that was killed hard has left no end in them.
    """
    old = []
    for name in _names(rundir):
        folder = rundir / name
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


def _attempt(path: Path, job_id: str, task: int, restart: int, run: int) -> AttemptFolder:
    audit, end = load_json(path / "audit.json"), load_json(path / "exit.json")
    placed = load_json(path / "placement.json")
    return AttemptFolder(
        path=path,
        job_id=job_id,
        task=task,
        restart=restart,
        run=run,
        placed=None
        if placed is None
        else AttemptPlaced(
            pods=_whole(placed, "pods"),
            leaves=_whole(placed, "leaves"),
            hops=_whole(placed, "hops"),
            unknown=_whole(placed, "unknown"),
            fewest_pods=_whole(placed, "fewest_pods"),
            bad=bool(_whole(placed, "bad")),
            did=_text(placed, "did"),
        ),
        start=None
        if audit is None
        else AttemptStart(
            order=_text(audit, "order"),
            first=_text(audit, "first"),
            master=_text(audit, "master"),
            port=_whole(audit, "port"),
            tries=_whole(audit, "try"),
            tasks=_whole(audit, "tasks"),
            nodes=_whole(audit, "nodes"),
            log_dir=_text(audit, "log_dir"),
            began_s=_whole(audit, "began_s"),
        ),
        end=None
        if end is None
        else AttemptEnd(
            job_id=_text(end, "job_id"),
            code=_whole(end, "code"),
            signal=_whole(end, "signal"),
            told=_text(end, "told"),
            began_s=_whole(end, "began_s"),
            ended_s=_whole(end, "ended_s"),
        ),
        hosts=tuple(_read(path / "ordered").split()),
    )


def _text(document: Mapping[str, object], key: str) -> str:
    return str(document.get(key, ""))


def _whole(document: Mapping[str, object], key: str) -> int:
    value = document.get(key)
    return value if isinstance(value, int) else 0


def _read(path: Path) -> str:
    """A text that a job writes; "" where it has not (yet)."""
    try:
        return path.read_bytes().decode(errors="surrogateescape")
    except OSError:
        return ""


def _names(folder: Path) -> tuple[str, ...]:
    try:
        return tuple(sorted(os.listdir(folder)))
    except OSError:
        return ()


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
