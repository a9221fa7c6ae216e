"""What this user launched: append-only lines, one file a login host, since homes are shared and locks on them are not to be trusted.

An intent is on disk before anything is submitted, so that a submission whose glaunch was killed can be found again.
"""

import errno
import fcntl
import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from glaunch.errors import DiskError
from glaunch.talk import talk

FAULTS_S = 7 * 86400.0
"""A node that failed a job counts as doubtful for so long."""
_TICK_S = 0.05
HELD_S = 120.0
"""A submission that was never seen running keeps its nodes from this user's next launches for so long."""


@dataclass(frozen=True, slots=True)
class Submission:
    """One launch, folded from its lines."""

    id: str
    name: str
    folder: str
    script: str
    """The absolute path of job.sbatch."""
    created_s: float
    nodes: tuple[str, ...]
    """The pinned nodes; () when Slurm chose."""
    job_id: str
    """"" until it is known."""
    state: str
    """intent, submitted, running, over, refused (sbatch said no), lost (Slurm knows nothing of it)."""
    pin: str
    """none, held, lifted or settled (it started on its nodes, or is over)."""
    detail: str = ""
    cluster: str = ""
    """The cluster that it went to, by name; "" for the one of the host where it was launched."""
    launch: str = ""
    """Of an array that is several submissions: the id of the first of them; "" where a launch is one."""
    tasks: str = ""
    """Of such a one: its part of the indexes that were asked for, `1000-1999`."""
    offset: int = 0
    """What is to be added to Slurm's index for the one that was asked for."""
    faulty: tuple[str, ...] = ()
    """Nodes that failed it."""


_WORDS = ("name", "folder", "script", "job_id", "state", "pin", "detail", "cluster", "launch", "tasks")
"""Fields that are copied from a line as they are."""


class History:
    """The lines of all login hosts; this process appends to its own host's file only."""

    def __init__(self, folder: Path, host: str) -> None:
        self.folder = folder
        self.path = folder / f"submissions-{host}.jsonl"

    def append(self, submission_id: str, moment_s: float, **facts: Any) -> None:  # noqa: ANN401 - JSON
        """Add one line and have it on disk before returning. Raises DiskError where that cannot be."""
        # A newline before it too: a torn line of a killed writer must not swallow this one.
        line = ("\n" + json.dumps({"id": submission_id, "at_s": moment_s, **facts}, ensure_ascii=True) + "\n").encode()
        with self._faults_told():
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                if os.write(handle, line) < len(line):  # a disk that fills up just now takes a part and says nothing
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(handle)
            finally:
                os.close(handle)

    def note(self, submission_id: str, moment_s: float, **facts: Any) -> None:  # noqa: ANN401 - JSON
        """Add one line about a job that is there whether or not it can be written down: a full disk is told and stops nothing."""
        try:
            self.append(submission_id, moment_s, **facts)
        except DiskError as error:
            talk(error.message)

    def submissions(self) -> tuple[Submission, ...]:
        """All that was launched, oldest first. A torn last line (a killed writer) is passed over."""
        found: dict[str, Submission] = {}
        for event in self._events():
            found[event["id"]] = _fold(found.get(event["id"]), event)
        return tuple(sorted(found.values(), key=lambda submission: submission.created_s))

    def _events(self) -> Iterator[dict[str, Any]]:
        events = []
        with self._faults_told():
            # To read what is no file would be to wait for ever
            texts = [
                path.read_text(errors="replace")
                for path in sorted(self.folder.glob("submissions-*.jsonl"))
                if path.is_file() or path.is_dir()
            ]
        for text in texts:
            for line in text.splitlines():
                try:
                    event = json.loads(line)
                except (ValueError, RecursionError):
                    continue
                if "\\u0000" not in line and isinstance(event, dict) and isinstance(event.get("id"), str) and _is_moment(event.get("at_s")):
                    events.append(event)
        return iter(sorted(events, key=lambda event: event["at_s"]))

    @contextmanager
    def lock(self, *, told_s: float = 5.0, most_s: float = 120.0) -> Iterator[None]:
        """One launch at a time on this login host looks at free nodes and writes its intent: two never choose the same ones.

        That one waits for another is said after `told_s`; after `most_s` it goes on: a launch that was stopped (^Z) keeps the lock.
        """
        with self._faults_told():
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(self.folder / f"{self.path.stem}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _lock(handle, told_s, most_s)
            yield
        finally:
            os.close(handle)

    @contextmanager
    def _faults_told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise DiskError(
                f"{self.path}: cannot remember what is launched ({error.strerror})",
                hint="free space there, or set XDG_STATE_HOME to a folder that you can write",
            ) from error


def _lock(handle: int, told_s: float, most_s: float) -> None:
    """Take the lock. On a file system without locks, or where its holder was stopped and keeps it, two may choose the same nodes."""
    began_s = monotonic()
    told = False
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waited_s = monotonic() - began_s
        except OSError:
            return
        else:
            return
        if waited_s >= most_s:
            talk(f"another launch of yours on this host is not done after {most_s:g} s (stopped?): not waited for any longer")
            return
        if waited_s >= told_s and not told:
            told = True
            talk("waits for another launch of yours on this host, which looks for nodes just now")
        sleep(_TICK_S)


def _is_moment(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value < 1e11


def _fold(before: Submission | None, event: dict[str, Any]) -> Submission:
    if before is None:
        before = Submission(event["id"], "", "", "", event["at_s"], (), "", "intent", "none")
    changes = {key: event[key] for key in _WORDS if isinstance(event.get(key), str)}
    for key in ("nodes", "faulty"):
        if isinstance(event.get(key), list):
            changes[key] = tuple(name for name in event[key] if isinstance(name, str))
    if not re.fullmatch(r"\d*", changes.get("job_id", ""), re.ASCII):
        del changes["job_id"]
    if isinstance(event.get("offset"), int):
        changes["offset"] = event["offset"]
    return replace(before, **changes)


def failed_jobs(submissions: tuple[Submission, ...], now_s: float) -> Mapping[str, int]:
    """Node → how many of this user's submissions of the last FAULTS_S seconds it failed."""
    return Counter(
        node for submission in submissions if now_s - submission.created_s < FAULTS_S for node in dict.fromkeys(submission.faulty)
    )


def held_nodes(submissions: tuple[Submission, ...], now_s: float) -> frozenset[str]:
    """Nodes that this user's own submissions ask for and that were not yet seen running: Slurm may still call them idle."""
    return frozenset(
        node
        for submission in submissions
        if submission.state in {"intent", "submitted"} and submission.pin == "held" and now_s - submission.created_s < HELD_S
        for node in submission.nodes
    )
