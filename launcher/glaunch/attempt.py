"""What a job wrote into its folder, read back run by run: each attempt has a folder of its own.

    RUNDIR/NAME-SUBMISSION/JOB.TASK.RESTART/
        setup granted ordered hosts placement.json audit.json ranks.tsv out/HOST.log logs/HOST.tar.gz manifest.jsonl exit.json

All of it is written by the job itself (`templates/node/batch.sh`); a run inside an allocation that already had one is
`JOB.TASK.RESTART-2`.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from glaunch.bundle import has_archive
from glaunch.errors import DiskError, ParseError
from glaunch.logs import RankRow
from glaunch.parsers.ranks import parse_ranks
from glaunch.secret import shown_line


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

    def code_as(self, state: str) -> int:
        """The exit code, where Slurm calls the job `state` ("": not known). A program that somebody ended, and that says 0 all the same, is
        done only where Slurm says COMPLETED too; else the code is that of the signal."""
        early = {"TERM": 128 + 15, "INT": 128 + 2}.get(self.told, 0)
        return early if early and self.code == 0 and state != "COMPLETED" else self.code


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
    def log_hosts(self) -> tuple[str, ...]:
        """The hosts whose logs are looked for: all; where the program ran once (--launcher exec), the first; where no rank was started,
        none; and those that sent some."""
        ran_once = (self.path / "hostfile").exists()
        sought = frozenset(() if self.start is None else self.hosts[:1] if ran_once else self.hosts)
        return tuple(host for host in self.hosts if host in sought or has_archive(self.path, host))

    @property
    def left_in(self) -> str:
        """The line of setup (launch.setup) that runs, or that the job's shell was left in, without a word about its end (`exec`); else "".

        Without secrets. Read when it is asked for: a follower looks at the folder five times a second, and at this hardly ever.
        """
        return shown_line(_read(self.path / "setup").rstrip("\n")) if self.end is None else ""

    @property
    def ranks(self) -> tuple[RankRow, ...]:
        """Where the ranks really run: from ranks.tsv or, while they start or when they were killed, from what each node noted so far.

        Read when it is asked for: on a thousand nodes those notes are a thousand files.
        """
        whole = self.path / "ranks.tsv"
        notes = [whole] if whole.exists() else [self.path / "ranks.d" / host for host in _names(self.path / "ranks.d")]
        return tuple(sorted((row for note in notes for row in parse_ranks(_read(note))), key=lambda row: row.rank))


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


def load_json(path: Path) -> dict[str, object] | None:
    """One document; None when the file is not there. Raises ParseError when it is no JSON object."""
    try:
        text = path.read_bytes().decode(errors="surrogateescape")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DiskError(f"cannot read {path}: {error.strerror}") from error
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise ParseError(f"{path}:{error.lineno}", text[error.pos : error.pos + 80], "JSON") from error
    if not isinstance(document, dict):
        raise ParseError(f"{path}:1", text[:80], "a JSON object")
    return document


def _attempt(path: Path, job_id: str, task: int, restart: int, run: int) -> AttemptFolder:
    audit, end, placed = _word(path / "audit.json"), _word(path / "exit.json"), _word(path / "placement.json")
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


def _word(path: Path) -> dict[str, object] | None:
    """What a job said of itself; one that a full disk cut short, or that cannot be read just now, is as if it had not been said."""
    try:
        return load_json(path)
    except (DiskError, ParseError):
        return None


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
