"""Answers of Slurm that are kept for a while, and a cluster read with as few questions as that allows."""

import contextlib
import hashlib
import json
import os
import tempfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from glaunch.cluster import Cluster
from glaunch.gateways.slurm import SlurmCommands
from glaunch.parsers.slurm_config import parse_config, parse_version
from glaunch.parsers.slurm_nodes import parse_nodes
from glaunch.parsers.slurm_partitions import parse_partitions
from glaunch.parsers.slurm_reservations import parse_reservations

SCHEMA = "glaunch.kept/1"

MAX_AGE_S: Mapping[str, float] = MappingProxyType({"config": 3600.0, "partitions": 3600.0, "topology": 3600.0, "version": 3600.0})
"""What may be kept, and how long: what an administrator writes into files, not what jobs change."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of Slurm: its text, and when it was given (seconds since the epoch)."""

    text: str
    taken_at_s: float


@dataclass(frozen=True, slots=True)
class Reading:
    """A cluster as Slurm told of it just now, its topology as text ("": none), and the age of what was kept (question → seconds)."""

    cluster: Cluster
    topology_text: str
    kept_for_s: Mapping[str, float]


class Kept:
    """The folder of kept answers (`$XDG_STATE_HOME/glaunch/kept`), one small compressed file a question, for this user only.

    A file that cannot be read, is not whole, is of another schema or of another cluster is as if it were not there; one that cannot be
    written (a full or read-only home) is not written: keeping answers is never a reason to fail.
    """

    def __init__(self, folder: Path, key: str) -> None:
        self._folder = folder
        self._key = key

    def get(self, question: str, now_s: float, max_age_s: float) -> Answer | None:
        """The kept answer, if it is at most `max_age_s` old (and not from the future)."""
        try:
            document = json.loads(zlib.decompress(self._path(question).read_bytes()))
            answer = Answer(str(document["text"]), float(document["taken_at_s"]))
            told = (document["schema"], document["key"], document["question"])
        except (OSError, ValueError, KeyError, TypeError, zlib.error):
            return None
        fresh = told == (SCHEMA, self._key, question) and 0 <= now_s - answer.taken_at_s <= max_age_s
        return answer if fresh else None

    def put(self, question: str, answer: Answer) -> None:
        """Keep an answer: written beside the old one and put in its place in one step, mode 0600."""
        document = {"schema": SCHEMA, "key": self._key, "question": question, "taken_at_s": answer.taken_at_s, "text": answer.text}
        packed = zlib.compress(json.dumps(document).encode(), level=1)
        temporary = ""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=self._folder, prefix=f".{question}-")
            with os.fdopen(handle, "wb") as file:
                file.write(packed)
            os.replace(temporary, self._path(question))
        except OSError:
            if temporary:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)

    def _path(self, question: str) -> Path:
        return self._folder / f"{question}-{self._key}.json.z"


def kept_for(
    environ: Mapping[str, str], candidates: Iterable[str] = ("/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf")
) -> Kept | None:
    """The kept answers of the cluster that the environment leads to; None where no slurm.conf is seen that could tell when it changed.

    The key is the slurm.conf's path, time and size, with SLURM_CLUSTERS: another cluster, or the same one reconfigured, has another key.
    """
    conf = environ.get("SLURM_CONF")
    for path in (conf,) if conf else tuple(candidates):
        try:
            seen = os.stat(path)
        except OSError:
            continue
        told = json.dumps([os.path.realpath(path), seen.st_mtime_ns, seen.st_size, environ.get("SLURM_CLUSTERS", "")])
        return Kept(_state_folder(environ) / "kept", hashlib.sha256(told.encode()).hexdigest()[:16])
    return None


def _state_folder(environ: Mapping[str, str]) -> Path:
    state = environ.get("XDG_STATE_HOME", "")
    base = Path(state) if state.startswith("/") else Path(environ.get("HOME") or "/nonexistent") / ".local" / "state"
    return base / "glaunch"


def read_cluster(
    gateway: SlurmCommands,
    now_s: float,
    kept: Kept | None = None,
    *,
    with_config: bool = True,
    nodes_max_age_s: float = 0.0,
) -> Reading:
    """The cluster as it is now. Questions are asked side by side; what is kept and young enough is not asked.

    Cold: nodes 2, partitions 1, topology 1, reservations 1 (and config 2) RPCs; warm: nodes and reservations, 3. `nodes_max_age_s`: how
    old the nodes' states may be (0 for a launch; a plan may live with 60 s, and prints `cluster.taken_at_s`).
    Raises what SlurmCommands raises.
    """
    limits = {**MAX_AGE_S, "nodes": nodes_max_age_s, "reservations": 0.0}
    if not with_config and (kept is None or kept.get("config", now_s, limits["config"]) is None):
        del limits["config"]
    old = {
        question: answer
        for question, age_s in limits.items()
        if kept and age_s > 0 and (answer := kept.get(question, now_s, age_s)) is not None
    }
    fresh = _asked(gateway.answer, [question for question in limits if question not in old], now_s)
    for question, answer in fresh.items():
        if kept and limits[question] > 0:
            kept.put(question, answer)
    answers = {**old, **fresh}
    config = parse_config(answers["config"].text) if "config" in answers else MappingProxyType({})
    cluster = Cluster(
        name=config.get("ClusterName", ""),
        slurm_version=parse_version(answers["version"].text),
        taken_at_s=answers["nodes"].taken_at_s,
        nodes=parse_nodes(answers["nodes"].text),
        partitions=parse_partitions(answers["partitions"].text),
        reservations=parse_reservations(answers["reservations"].text),
        config=config,
    )
    ages = {question: now_s - answer.taken_at_s for question, answer in old.items()}
    return Reading(cluster, answers["topology"].text, MappingProxyType(ages))


def _asked(ask: Callable[[str], str], questions: list[str], now_s: float) -> dict[str, Answer]:
    with ThreadPoolExecutor(max_workers=max(1, len(questions))) as pool:
        texts = list(pool.map(ask, questions))
    return {question: Answer(text, now_s) for question, text in zip(questions, texts, strict=True)}
