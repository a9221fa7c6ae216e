"""What a job waits for: `afterok:12:train,singleton`, with the user's own jobs by name; Slurm itself takes ids alone."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from glaunch.errors import UsageError
from glaunch.job import Job
from glaunch.reasons import ended, in_words

KINDS = ("after", "afterany", "afterburstbuffer", "aftercorr", "afternotok", "afterok", "singleton")
"""**Source:** sbatch(1), --dependency, of 22.05 to 26.05."""
_ID = re.compile(r"\d+(?:_(?:\d+|\*))?(?:\+\d+)*")
_HINT = "-d afterok:JOB, by its id or its name; also after, afterany, afternotok, aftercorr, singleton"


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of the user's own jobs: those that Slurm shows, and what glaunch remembers."""

    jobs: Sequence[Job]
    """One row an array task."""
    launches: Mapping[str, tuple[str, ...]]
    """Job id → all ids of its launch, where that is several (an array that is larger than Slurm takes)."""
    forgotten: Mapping[str, str]
    """Name → `12 (done)`: launches that Slurm may have forgotten."""


def names_in(text: str) -> tuple[str, ...]:
    """The jobs that a dependency names other than by id. Raises UsageError for what Slurm could not mean either."""
    return tuple(dict.fromkeys(name for kind, items in _conditions(text) for name in map(_name, items) if not _ID.fullmatch(name)))


def with_ids(text: str, known: Known, *, force: bool = False) -> str:
    """The dependency as Slurm takes it, each name in it as the id (or ids, for an array that is several jobs) of the one job that it means.

    Raises UsageError where a name means none or several, and for `afterok` of a job that has failed, unless `force`.
    """
    separator = "?" if "?" in text else ","
    said = []
    for kind, items in _conditions(text):
        ids = [kind]
        for item in items:
            name = _name(item)
            if _ID.fullmatch(name):
                ids.append(item)
                continue
            ids += [found + item[len(name) :] for found in _ids_of(name, kind, known, force=force)]
        said.append(":".join(ids))
    return separator.join(said)


def _conditions(text: str) -> list[tuple[str, tuple[str, ...]]]:
    found = []
    for term in re.split(r"[,?]", text):
        kind, *items = term.split(":")
        if kind not in KINDS and (not items or not all(_ID.fullmatch(item) for item in items)):
            words = f"it says not when: after {kind!r} has begun, ended, ended well?" if not items else f"{kind!r} is no kind of dependency"
            raise UsageError(f"-d {text}: {words}", hint=f"-d afterok:{kind}" if not items and kind else _HINT)
        if kind != "singleton" and not all(items[:1]):
            raise UsageError(f"-d {text}: no job stands behind {kind}", hint=_HINT)
        found.append((kind, tuple(items)))
    return found


def _name(item: str) -> str:
    """`train` of `train+10` (ten minutes after it began); an id stays whole."""
    return item if _ID.fullmatch(item) else re.sub(r"\+\d+$", "", item)


def _ids_of(name: str, kind: str, known: Known, *, force: bool) -> tuple[str, ...]:
    """Of all jobs of that name the one that lives; where none does, the last."""
    rows: dict[tuple[str, ...], list[Job]] = {}
    for job in known.jobs:
        if job.name == name:
            rows.setdefault(known.launches.get(job.whole_id, (job.whole_id,)), []).append(job)
    live = [ids for ids, jobs in rows.items() if not all(job.over for job in jobs)]
    last = max(rows, key=_newest, default=None)
    if last is None:
        gone = known.forgotten.get(name, "")
        what = f"job {gone}, which Slurm has forgotten" if gone else "no job of yours that Slurm knows"
        near = get_close_matches(name, {job.name for job in known.jobs if job.name}, 1)
        meant_one = f"did you mean {kind}:{near[0]}? " if near else ""
        hint = "leave it out, or launch that one again" if gone else f"{meant_one}your jobs and their names: squeue --me -o '%i %j %T'"
        raise UsageError(f"-d {kind}:{name}: {name!r} is {what}", hint=hint)
    meant = dict.fromkeys((*live, last) if not live or _newest(last) > max(map(_newest, live)) else live)
    if len(meant) > 1:
        several = ", ".join(f"{':'.join(ids)} ({_state(rows[ids])})" for ids in sorted(meant, key=_newest))
        raise UsageError(
            f"-d {kind}:{name}: {len(meant)} jobs of yours have this name: {several}", hint=f"say which: -d {kind}:{':'.join(last)}"
        )
    (ids,) = meant
    if kind == "aftercorr" and len(ids) > 1:
        raise UsageError(
            f"-d aftercorr:{name}: {name!r} is an array of {len(ids)} jobs, and aftercorr joins the indexes of two",
            hint=f"wait for all of it: -d afterok:{name}",
        )
    if kind in {"afterok", "aftercorr"} and not force and (bad := [job for job in rows[ids] if job.over and job.state != "COMPLETED"]):
        raise UsageError(
            f"-d {kind}:{name}: job {bad[0].id} {in_words(bad[0])}, so this one would never start",
            hint=f"-d afterany:{name} starts it all the same; --force submits it as it stands",
        )
    return ids


def _newest(ids: tuple[str, ...]) -> int:
    return max(map(int, ids))


def _state(jobs: Sequence[Job]) -> str:
    live = next((job for job in jobs if not job.over), None)
    return in_words(live) if live is not None else ended(None, jobs[0])
