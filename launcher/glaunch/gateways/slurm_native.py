"""Slurm through pyslurm: the same gateway, nouns in and nouns out, and what pyslurm cannot do goes through Slurm's commands (BY_COMMANDS).

pyslurm runs in a program of its own (`pyslurm_program`), one for all questions of a glaunch command, each with a deadline.
"""

import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from types import MappingProxyType
from typing import Any

from glaunch.errors import ControllerSilent, SlurmError
from glaunch.gateways.answering import Answering, Ended
from glaunch.gateways.process import Completed, SignalsDeferred, Surround, within
from glaunch.gateways.slurm import SlurmCommands, SubmitAnswer
from glaunch.gateways.slurm_call import checked
from glaunch.gateways.slurm_environment import reading_environment, submitting_environment
from glaunch.gateways.slurm_refusals import refusal
from glaunch.hostlist import fold
from glaunch.parsers.pyslurm_answers import tells_gpus
from glaunch.parsers.slurm_answers import read_config

NODES = "nodes, where AccountingStorageTRES lacks gres/gpu"
BY_COMMANDS = MappingProxyType(
    {
        "topology": "pyslurm 25.11 has none",
        "another cluster (--clusters, SLURM_CLUSTERS)": "pyslurm asks this host's own",
        "version": "of the commands themselves; it costs no RPC",
        NODES: "pyslurm tells GPUs in use as TRES alone",
        "a look at a job": "3 RPCs in pyslurm (federation, steps) where scontrol takes 1; exit codes of 128 and more are wrong",
        "jobs by list, own jobs, everybody's running jobs": "pyslurm knows one job (of an array one task), or all jobs of everybody",
        "lifting a pin": "an empty list of nodes cannot be said in pyslurm",
        "cancelling an array's task or a component": "pyslurm takes whole numbers only",
        "what accounting allows you": "the database says it (sacctmgr), not the controller: 0 RPCs",
        "submission": "so that cli_filter and SPANK see it; slurm.submit: pyslurm goes past them, and has no --switches",
        "where a job would start, past jobs": "no will-run in pyslurm; and sacct takes one question where pyslurm needs several",
    }
)
"""What goes through Slurm's commands all the same, and why; docs/gateway.md shows it. **Source:** pyslurm 25.11.2."""

PROGRAM = Path(__file__).with_name("pyslurm_program.py")
OURS = ("config", "nodes", "partitions", "reservations")
"""Questions that pyslurm answers, in the order in which it is asked: the configuration says whether the nodes can be."""
UNKNOWN_JOB, DENIED = 2017, 2002
"""ESLURM_INVALID_JOB_ID, ESLURM_ACCESS_DENIED. **Source:** slurm_errno.h."""
SLURMS_OWN = 1000
"""Slurm's error numbers begin here; a smaller one is left over from somebody else's call (pyslurm reads errno, not the return code)."""
ADVICE = "go through Slurm's commands instead: GLAUNCH_SLURM_GATEWAY=commands, or slurm.gateway: commands in a settings file"


class Stumbled(Exception):
    """pyslurm itself failed: it cannot be imported, cannot read what Slurm said, or (`crashed`) its process was ended by a signal."""

    def __init__(self, why: str, *, crashed: bool = False) -> None:
        super().__init__(why)
        self.crashed = crashed


class SlurmNative(SlurmCommands):
    """The gateway over pyslurm. Raises what SlurmCommands raises.

    `fall_back`: where pyslurm itself fails in reading, say so once (`say`) and go through the commands from then on; else that is an
    error. `submits`: submit through pyslurm too. `program`: what runs `pyslurm_program` (this Python).
    """

    def __init__(
        self,
        *,
        fall_back: bool,
        say: Callable[[str], None],
        submits: bool = False,
        program: Sequence[str] = (),
        environ: Mapping[str, str] | None = None,
        surround: Surround = within,
        timeout_s: float = 30.0,
        submit_timeout_s: float = 120.0,
    ) -> None:
        super().__init__(environ=environ, surround=surround, timeout_s=timeout_s, submit_timeout_s=submit_timeout_s)
        self._fall_back, self._say, self._submits = fall_back, say, submits
        self._here = not program
        self._child = Answering(program or (sys.executable, str(PROGRAM)), _environment(self._environ))
        self._broken = False
        self._config = ""

    # What there is

    def answer(self, question: str, name: str = "") -> str:
        """As SlurmCommands; OURS come as documents of pyslurm's (`parsers/slurm_answers` reads both)."""
        return self.answers((question,))[question] if question in OURS else super().answer(question, name)

    def answers(self, questions: Sequence[str], known: Mapping[str, str] = MappingProxyType({})) -> Mapping[str, str]:
        """Several of QUESTIONS: pyslurm's one after the other, the others beside them. RPCs: nodes 2, partitions 2, the others 1 each."""
        self._config = known.get("config", self._config)
        theirs = [question for question in questions if question not in OURS]
        if not theirs:
            return self._told(questions)
        from concurrent.futures import ThreadPoolExecutor

        by_command = super().answer
        with ThreadPoolExecutor(max_workers=len(theirs)) as pool:
            asked = {question: pool.submit(by_command, question) for question in theirs}
            told = self._told(questions)
            return {**told, **{question: one.result() for question, one in asked.items()}}

    def _told(self, questions: Sequence[str]) -> dict[str, str]:
        """pyslurm's part of the questions."""
        return {question: self._question(question) for question in OURS if question in questions}

    def _question(self, question: str) -> str:
        if question == "nodes" and not self._tells_gpus():
            return super().answer(question)
        try:
            reply = self._asked({"ask": question}, f"to show its {question}")
        except Stumbled as why:
            self._give_up(str(why))
            found = super().answer(question)
        else:
            found = "" if question == "nodes" and reply.number == DENIED else reply.said()
        if question == "config":
            self._config = found
        return found

    def _tells_gpus(self) -> bool:
        return tells_gpus(read_config(self._config or self._question("config")))

    # Acts

    def cancel(self, ids: Iterable[str]) -> None:
        """As SlurmCommands: 1 RPC each."""
        wanted = tuple(map(checked, ids))
        rest = [job_id for job_id in wanted if not job_id.isdigit()]
        for job_id in (one for one in wanted if one.isdigit()):
            try:
                reply = self._asked({"ask": "cancel", "job": int(job_id)}, f"to cancel {job_id}")
            except Stumbled as why:
                self._give_up(str(why))
                rest.append(job_id)
                continue
            if 0 < reply.number < SLURMS_OWN:
                rest.append(job_id)  # cancelling twice does no harm
            elif reply.number != UNKNOWN_JOB:
                reply.said()
        super().cancel(rest)

    def submit(
        self,
        script: str | PathLike[str],
        options: Iterable[str] = (),
        args: Iterable[str] = (),
        *,
        folder: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> SubmitAnswer:
        """As SlurmCommands: by sbatch, unless `submits`. Nothing is tried a second time."""
        if not self._submits or self._broken:
            return super().submit(script, options, args, folder=folder, environment=environment)
        from glaunch.writers.pyslurm_job import HINT, fields_of

        self._say("submitted through pyslurm (slurm.submit): cli_filter plugins and SPANK options do not see this job")
        path, work_dir = fspath(script), folder or os.getcwd()
        words = [_with_list(word) for word in options]
        fields = fields_of(Path(path).read_text(encoding="utf-8", errors="surrogateescape"), words, work_dir=work_dir)
        inherited = submitting_environment({**self._environ, **(environment or {})})
        fields |= {"script": path, "script_args": list(args), "environment": {**inherited, "SLURM_SUBMIT_DIR": work_dir}}
        with SignalsDeferred():
            try:
                answer = self._asked({"ask": "submit", "fields": fields}, "the job", self._submit_timeout_s).said()
            except Stumbled as why:
                if why.crashed:
                    raise ControllerSilent(f"pyslurm failed while the job was submitted: {why}", hint="look: squeue --me") from why
                raise SlurmError(f"pyslurm cannot submit this job: {why}", argv=("pyslurm",), hint=HINT) from why
        return SubmitAnswer(str(json.loads(answer)["job_id"]), "", "")

    # The program

    def _asked(self, question: Mapping[str, Any], doing: str, timeout_s: float = 0.0) -> "_Reply":
        """What the program says. Raises Stumbled, and ControllerSilent or SlurmError where it is gone without an answer."""
        if self._broken:
            raise Stumbled("it failed before")
        if self._here:
            self._see_configuration(("pyslurm",))
        argv, deadline_s = ("pyslurm", str(question["ask"])), timeout_s or self._timeout_s
        try:
            text, stderr = self._child.ask(json.dumps(question), deadline_s)
        except Ended as end:
            if end.code is not None and end.code < 0:
                raise Stumbled(f"its process was ended by {signal.Signals(-end.code).name}", crashed=True) from end
            raise refusal(Completed(argv, end.code, "", words_of(end.stderr)), doing, deadline_s) from end
        if not text.startswith('{"failed"'):
            return _Reply(text)
        failed = json.loads(text)
        if failed["failed"] != "said no":
            raise Stumbled(failed["words"])
        return _Reply("", failed["errno"], refusal(Completed(argv, 1, "", f"{words_of(stderr)}\n{failed['words']}"), doing, deadline_s))

    def _give_up(self, why: str) -> None:
        """Say once why pyslurm is of no use here, or raise it as an error where it was asked for by name."""
        if not self._fall_back:
            raise SlurmError(f"pyslurm failed: {why}", argv=("pyslurm",), hint=ADVICE)
        if not self._broken:
            self._broken = True
            self._say(f"pyslurm failed ({why}): Slurm's commands are used instead")


@dataclass(frozen=True, slots=True)
class _Reply:
    """The program's answer, or Slurm's refusal with its number."""

    text: str
    number: int = 0
    error: SlurmError | None = None

    def said(self) -> str:
        """The answer's text. Raises the refusal."""
        if self.error is not None:
            raise self.error
        return self.text


def by_commands(config: Mapping[str, str]) -> Mapping[str, str]:
    """BY_COMMANDS as it is on a cluster of this configuration."""
    return {what: why for what, why in BY_COMMANDS.items() if what != NODES or not tells_gpus(config)}


def words_of(stderr: str) -> str:
    """libslurm's lines without the program's name and the kind of line before them."""
    return re.sub(r"^[\w.-]+: (?:(?:error|fatal|warning): )?", "", stderr, flags=re.M)


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    """As for Slurm's commands; pyslurm is looked for where this Python looks for it."""
    reading = {name: value for name, value in reading_environment(environ).items() if not name.startswith("PYSLURM_")}
    return {**reading, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def _with_list(word: str) -> str:
    """An option of sbatch whose list of nodes is in a file, as glaunch writes very long ones, with the list itself."""
    name, _, value = word.partition("=")
    if name in {"--nodelist", "--exclude"} and "/" in value:
        return f"{name}={fold(Path(value).read_text(encoding='utf-8').split())}"
    return word
