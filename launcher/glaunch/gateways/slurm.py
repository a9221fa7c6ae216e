"""Slurm through its own commands: nouns in, nouns out."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from types import MappingProxyType
from typing import TYPE_CHECKING

from glaunch.cluster import NodeTable, Partition
from glaunch.errors import ControllerSilent, ParseError, UsageError
from glaunch.gateways.process import Completed, SignalsDeferred, Surroundings
from glaunch.gateways.slurm_call import checked
from glaunch.gateways.slurm_database import SlurmDatabase
from glaunch.gateways.slurm_environment import submitting_environment
from glaunch.gateways.slurm_refusals import is_silence, refusal, spoken
from glaunch.parsers.slurm_answers import read_nodes, read_partitions

if TYPE_CHECKING:
    from glaunch.job import Job, Occupation

QUESTIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "version": ("sinfo", "--version"),
        "nodes": ("scontrol", "-a", "-d", "-o", "show", "node"),
        "partitions": ("scontrol", "-a", "-o", "show", "partition"),
        "reservations": ("scontrol", "-a", "-o", "show", "reservation"),
        "topology": ("scontrol", "-o", "show", "topology"),
        "config": ("scontrol", "show", "config"),
    }
)
"""What a plan asks, and what a capture records. RPCs (`sdiag`): version 0, nodes 2, config 2, the others 1 each."""

_WHOLE = frozenset({"nodes", "partitions", "reservations"})
"""Each of these answers is lines, the last one too. **Source:** the recordings of 21.08 to 26.05."""
_NOTHING_THERE = re.compile(r"Invalid job id specified")
_HIDDEN = re.compile(r"slurm_load_node.*Access/permission denied")
"""PrivateData=nodes."""
_ANSWER = re.compile(r"(\d+)(?:;(\S+))?")


@dataclass(frozen=True, slots=True)
class SubmitAnswer:
    """What sbatch said: the id, the cluster ("" without a federation or --clusters) and whatever the site prints beside it."""

    job_id: str
    cluster: str
    banner: str


class SlurmCommands(SlurmDatabase):
    """The gateway over sinfo, scontrol, squeue, sbatch and scancel and, as SlurmDatabase, over sacct and sacctmgr.

    Raises SlurmError where Slurm says no or a command is missing, ControllerSilent where nothing answers (then it is not known what
    happened, and nothing is tried again), ParseError where an answer is not in its format.
    """

    def on(self, cluster: str) -> "SlurmCommands":
        """The same for another cluster of the same accounting database ("": this host's own)."""
        if cluster == self.cluster:
            return self
        environ = {**self._environ, "SLURM_CLUSTERS": cluster}
        if not cluster:
            del environ["SLURM_CLUSTERS"]
        return SlurmCommands(
            environ=environ, surround=self._surround, timeout_s=self._timeout_s, submit_timeout_s=self._submit_timeout_s, mark=self._mark
        )

    # What there is

    def answer(self, question: str, name: str = "") -> str:
        """The raw text of one of QUESTIONS; "" for a cluster without a topology, and for nodes that this user may not see.

        `name` is that of a topology of a topology.yaml; without it the default one answers.
        """
        done = self._ask((*QUESTIONS[question], *([name] if name else [])))
        if (
            question == "topology"
            and not is_silence(done)
            and (not done.stdout.strip() or "No topology information" in done.stdout + done.stderr)
        ):
            return ""
        if question == "nodes" and _HIDDEN.search(done.stderr):
            return ""
        if done.code != 0 or (not done.stdout.strip() and is_silence(done)):
            raise refusal(done, f"to show its {question}", self._timeout_s)
        if question in _WHOLE and not done.stdout.endswith("\n"):  # nodes that are missing would read as nodes that are not there
            where = f"{' '.join(QUESTIONS[question])}:{done.stdout.count(chr(10)) + 1}"
            raise ParseError(where, done.stdout[-60:], "a line break at the end: the answer was cut off")
        return done.stdout

    def answers(self, questions: Sequence[str], known: Mapping[str, str] = MappingProxyType({})) -> Mapping[str, str]:
        """Several of QUESTIONS, asked side by side; `known`: answers that are still good, for a gateway that can use them."""
        if len(questions) == 1:
            return {questions[0]: self.answer(questions[0])}
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(max_workers=max(1, len(questions))) as pool:
            return dict(zip(questions, pool.map(self.answer, questions), strict=True))

    def partitions_by_command(self) -> tuple[Partition, ...]:
        """The partitions as scontrol tells them, whichever gateway this is: pyslurm has no word of a partition's topology."""
        return read_partitions(SlurmCommands.answer(self, "partitions"))

    def nodes(self) -> NodeTable:
        """All nodes, those of hidden partitions too, with their GPUs in use; none where this user may not see them."""
        return read_nodes(self.answer("nodes"))

    # Jobs

    def job(self, job_id: str) -> "Job | None":
        """One job, with the cheapest look there is (1 RPC; 2 more for arrays and for a job whose name forges Slurm's lines); None: unknown.

        Of an array (`12`, several tasks) it is the first task that squeue shows; of a heterogeneous job its first component with the nodes
        of all.
        """
        from glaunch.job import whole
        from glaunch.parsers.slurm_jobs import parse_job

        argv = ("scontrol", "--local", "show", "job", checked(job_id))
        done = self._ask(argv)
        if done.code != 0:
            if _NOTHING_THERE.search(done.stderr):
                return None
            raise refusal(done, f"to show job {job_id}", self._timeout_s)
        job = parse_job(done.stdout)
        if job is not None:
            return job
        return next(iter(whole(self.jobs((job_id,)))), None)

    def jobs(self, ids: Iterable[str]) -> "tuple[Job, ...]":
        """Own jobs by id in one query (2 RPCs), one row per array task; forgotten ids and those of other users are missing.

        squeue's `--me` as root loads all jobs on 22.05 (user id 0 reads as "none"): glaunch is for users.
        """
        wanted = sorted(set(map(checked, ids)))
        return self._squeue(("-j", ",".join(wanted))) if wanted else ()

    def own_jobs(self) -> "tuple[Job, ...]":
        """All own jobs that Slurm still knows (ended ones for MinJobAge, 5 minutes): to find a submission by its script's path."""
        return self._squeue(())

    def _squeue(self, selection: Sequence[str]) -> "tuple[Job, ...]":
        from glaunch.parsers.slurm_jobs import SQUEUE_FIELDS, parse_squeue

        mark = self._mark()
        fields = ",".join(f"{field}:{mark}" for field in SQUEUE_FIELDS)
        done = self._ask(("squeue", "--local", "--me", "-h", "-r", "-t", "all", *selection, "-O", fields))
        if done.code != 0:
            if _NOTHING_THERE.search(done.stderr):
                return ()
            raise refusal(done, "to show your jobs", self._timeout_s)
        return parse_squeue(done.stdout, mark)

    def occupations(self) -> "tuple[Occupation, ...]":
        """Everybody's running jobs, as far as this user may see them (2 RPCs, one of them with all jobs: only where asked for by name)."""
        from glaunch.parsers.slurm_jobs import OCCUPATION_FIELDS, parse_occupations

        mark = self._mark()
        fields = ",".join(f"{field}:{mark}" for field in OCCUPATION_FIELDS)
        done = self._ask(("squeue", "--local", "-a", "-h", "-t", "running,suspended,completing", "-O", fields))
        if done.code != 0:
            raise refusal(done, "to show running jobs", self._timeout_s)
        return parse_occupations(done.stdout, mark)

    def would_start(self, options: Iterable[str], *, folder: str | None = None) -> tuple[tuple[str, ...], int | None] | str:
        """Where and when Slurm would start a job with these options (`--nodes=8`), submitting nothing: (nodes, seconds since the epoch),
        or why it refuses. 1 RPC, a will-run."""
        from glaunch.parsers.slurm_jobs import parse_test_only

        environment = {**submitting_environment(self._environ), "SLURM_TIME_FORMAT": "%s", "LC_ALL": "C"}
        argv = ("sbatch", "--test-only", *options)
        done = self._call(self._surround(Surroundings(environment, folder)), argv, self._timeout_s, "#!/bin/sh\n")
        found = parse_test_only(done.stderr + done.stdout)
        if done.code == 0 and found is not None:
            return found
        if done.code != 0 and not is_silence(done):
            return spoken(done)
        raise refusal(done, "to say where the job would start", self._timeout_s)

    # Acts

    def submit(
        self,
        script: str | PathLike[str],
        options: Iterable[str] = (),
        args: Iterable[str] = (),
        *,
        folder: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> SubmitAnswer:
        """Submit a script: its absolute path, sbatch's options as words (`--nodes=8`), the script's arguments.

        sbatch runs in `folder` (the job's working directory unless an option says otherwise; glaunch's own by default), with `environment`
        on top of the user's own, and in a process session of its own, so that ^C does not reach it; a ^C that comes meanwhile is given on
        afterwards. 1 RPC.
        """
        path = fspath(script)
        if not path.startswith("/") or "\n" in path:
            raise UsageError(
                f"{path!r} is no absolute path without line breaks: Slurm could not show it back", hint="choose another folder"
            )
        argv = ("sbatch", "--parsable", *(word for word in options if word != "--parsable"), path, *args)
        inherited = submitting_environment({**self._environ, **(environment or {})})
        with SignalsDeferred():
            done = self._call(self._surround(Surroundings(inherited, folder, own_session=True)), argv, self._submit_timeout_s)
        if done.code != 0:
            raise _unclear(done) or refusal(done, "the job", self._submit_timeout_s)
        return _submitted(done)

    def cancel(self, ids: Iterable[str]) -> None:
        """Cancel jobs; one that is over or unknown is no error (scancel says nothing about it). 1 RPC each."""
        wanted = tuple(map(checked, ids))
        if wanted:
            done = self._ask(("scancel", *wanted))
            if done.code != 0:
                raise refusal(done, f"to cancel {' '.join(wanted)}", self._timeout_s)

    def unpin(self, job_id: str) -> str:
        """Let a pending job start on any nodes: `lifted`, or why not: `running`, `over`, `unknown`, `later` (Slurm asks to try again).

        Only ever the empty list is sent: any other would shrink a job that has just started. 3 RPCs.
        """
        done = self._ask(("scontrol", "update", f"JobId={checked(job_id)}", "ReqNodeList="))
        if done.code == 0:
            return "lifted"
        for words, result in _UNPIN.items():
            if words in done.stderr:
                return result
        raise refusal(done, f"to lift the pin of job {job_id}", self._timeout_s)


_UNPIN = MappingProxyType(
    {
        "Invalid node name specified": "running",
        "already finished": "over",
        "already completing": "over",
        "Invalid job id specified": "unknown",
        "try again": "later",
    }
)
"""scontrol's words for an empty ReqNodeList that it does not take. **Source:** tried on 22.05.8; the same on 24.11.5 and 26.05.5."""


def _unclear(done: Completed) -> ControllerSilent | None:
    """The error for an sbatch that failed without a word of refusal: killed, silent, or with an id (a site's wrapper failed after it).

    The job may be there, so a second submission would be one too many. None where it is a refusal, or runs into the deadline.
    """
    if done.code is None or "error:" in done.stderr or "fatal:" in done.stderr:
        return None
    killed = done.code < 0 or 128 < done.code < 160
    told = (done.stdout + done.stderr).strip()
    if not killed and told and not any(_ANSWER.fullmatch(line.strip()) for line in done.stdout.splitlines()):
        return None
    end = f"signal {-done.code}" if done.code < 0 else f"code {done.code}"
    return ControllerSilent(
        f"sbatch ended with {end} and no word of Slurm's: {spoken(done) if told else 'it said nothing'}",
        argv=done.argv,
        stderr=done.stderr,
        hint="look: squeue --me",
    )


def _submitted(done: Completed) -> SubmitAnswer:
    lines = done.stdout.splitlines()
    matches = [(number, match) for number, line in enumerate(lines) if (match := _ANSWER.fullmatch(line.strip()))]
    if not matches:
        raise ControllerSilent(
            f"sbatch ended well but printed no job id: {spoken(done)}", argv=done.argv, stderr=done.stderr, hint="look: squeue --me"
        )
    number, match = matches[-1]
    rest = [*lines[:number], *lines[number + 1 :], *done.stderr.splitlines()]
    return SubmitAnswer(match[1], match[2] or "", "\n".join(line for line in rest if line.strip()))
