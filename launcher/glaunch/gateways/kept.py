"""Answers of Slurm that are kept for a while, and a cluster read with as few questions as that allows."""

import contextlib
import hashlib
import json
import os
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from glaunch.cluster import Cluster, hidden_nodes
from glaunch.gateways.slurm import SlurmCommands
from glaunch.parsers.slurm_answers import read_config, read_nodes, read_partitions, read_reservations
from glaunch.parsers.slurm_config import parse_version

SCHEMA = "glaunch.kept/1"
KEPT = ("config", "partitions", "topology", "version")
"""What may be kept for long: what an administrator writes into files, not what jobs change."""
CONFIGURATIONS = ("/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf", "/run/slurm/conf/slurm.conf")
"""Where a slurm.conf lies when SLURM_CONF does not say it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of Slurm: its text, and when it was given (seconds since the epoch)."""

    text: str
    taken_at_s: float


class Kept:
    """The folder of kept answers (`$XDG_STATE_HOME/glaunch/kept`), one small compressed file a question, for this user only.

    A file that cannot be read, is not whole, is of another schema or of another cluster is as if it were not there; one that cannot be
    written (a full or read-only home) is not written: keeping answers is never a reason to fail.
    """

    def __init__(self, folder: Path, *, keep_s: float = 3600.0, environ: Mapping[str, str] | None = None, told_by: str = "") -> None:
        """`told_by`: the gateway; what one has said is not taken for what another would say."""
        self._folder = folder
        key = cluster_key(os.environ if environ is None else environ)
        self._key = key and "-".join(filter(None, (key, told_by)))
        self.keep_s = keep_s
        """How long config, partitions, topology and version are kept; 0: never."""

    def get(self, question: str, now_s: float, max_age_s: float) -> Answer | None:
        """The kept answer, if it is at most `max_age_s` old (and not from the future)."""
        if not self._key:
            return None
        path = self._path(question)
        try:
            if not path.is_file():  # to read a pipe would be to wait for ever
                return None
            document = json.loads(zlib.decompress(path.read_bytes()))
            answer = Answer(document["text"], float(document["taken_at_s"]))
            told = (document["schema"], document["key"], document["question"])
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError, zlib.error):
            return None
        fresh = isinstance(answer.text, str) and told == (SCHEMA, self._key, question) and 0 <= now_s - answer.taken_at_s <= max_age_s
        return answer if fresh else None

    def put(self, question: str, answer: Answer) -> None:
        """Keep an answer: written beside the old one and put in its place in one step, mode 0600."""
        if not self._key:
            return
        import tempfile

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

    def or_asked(self, question: str, now_s: float, ask: Callable[[], str]) -> str:
        """What is kept of a question for at most `keep_s`, else what `ask` says now, which is kept from then on."""
        answer = self.get(question, now_s, self.keep_s) if self.keep_s > 0 else None
        if answer is None:
            answer = Answer(ask(), now_s)
            if self.keep_s > 0:
                self.put(question, answer)
        return answer.text

    def forget(self) -> None:
        """Keep nothing of this cluster any more: what was kept cannot be read."""
        for path in self._folder.glob(f"*-{self._key}.json.z") if self._key else ():
            with contextlib.suppress(OSError):
                path.unlink()

    def _path(self, question: str) -> Path:
        return self._folder / f"{question}-{self._key}.json.z"


def cluster_key(environ: Mapping[str, str], candidates: Iterable[str] = CONFIGURATIONS) -> str:
    """A short name for the cluster that the environment leads to, as it is configured now.

    Made of the slurm.conf's path, time and size and of SLURM_CLUSTERS: another cluster, or the same one reconfigured, has another key.
    "" where no slurm.conf is seen that could tell when it changed: then nothing is kept.
    """
    conf = environ.get("SLURM_CONF")
    for path in (conf,) if conf else tuple(candidates):
        try:
            seen = os.stat(path)
        except OSError:
            continue
        told = json.dumps([os.path.realpath(path), seen.st_mtime_ns, seen.st_size, environ.get("SLURM_CLUSTERS", "")])
        return hashlib.sha256(told.encode()).hexdigest()[:16]
    return ""


def read_cluster(gateway: SlurmCommands, now_s: float, kept: Kept | None = None, *, nodes_max_age_s: float = 0.0) -> tuple[Cluster, str]:
    """(the cluster, its topology as Slurm's own text, "" for none). Questions are asked side by side; what is kept is not asked.

    Cold: nodes 2, partitions 1, topology 1, reservations 1, config 2 RPCs; warm: nodes and reservations, 3. `nodes_max_age_s`: how old the
    nodes' states may be (0 for a launch; a plan may live with 60 s, and prints `cluster.taken_at_s`). Raises what SlurmCommands raises.
    """
    limits = dict.fromkeys(KEPT, kept.keep_s if kept else 0.0) | {"nodes": nodes_max_age_s, "reservations": 0.0}
    old = {question: answer for question, age_s in limits.items() if kept and age_s > 0 and (answer := kept.get(question, now_s, age_s))}
    wanted = [question for question in limits if question not in old]
    told = gateway.answers(wanted, {question: answer.text for question, answer in old.items()})
    fresh = {question: Answer(text, now_s) for question, text in told.items()}
    for question, answer in fresh.items():
        if kept and limits[question] > 0:
            kept.put(question, answer)
    answers = {**old, **fresh}
    nodes, partitions = read_nodes(answers["nodes"].text), read_partitions(answers["partitions"].text)
    if not nodes.names:
        nodes = hidden_nodes(tuple(dict.fromkeys(name for partition in partitions for name in partition.nodes)))
    config = read_config(answers["config"].text)
    cluster = Cluster(
        name=config.get("ClusterName", ""),
        slurm_version=parse_version(answers["version"].text),
        taken_at_s=answers["nodes"].taken_at_s,
        nodes=nodes,
        partitions=partitions,
        reservations=read_reservations(answers["reservations"].text),
        config=config,
    )
    return cluster, answers["topology"].text


def read_topology(gateway: SlurmCommands, name: str, now_s: float, kept: Kept | None = None) -> str:
    """Slurm's own text of one topology of a topology.yaml, kept as the default one is. 1 RPC. Raises what SlurmCommands raises."""
    question = f"topology-{hashlib.sha256(name.encode(errors='surrogateescape')).hexdigest()[:16]}"

    def ask() -> str:
        return gateway.answer("topology", name)

    return kept.or_asked(question, now_s, ask) if kept else ask()
