"""GL20x: why a job failed, and which rank did so first, from what srun, slurmstepd and Slurm say.

Slurm's words, as seen on 22.05 to 26.05: those of `parsers/srun_words.py`, and `slurmstepd-n001: error: *** STEP 3.0 ON n001 CANCELLED AT …
DUE TO TIME LIMIT ***`. What follows a cancellation is its consequence, so only the first line of its kind counts.
"""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from glaunch.diagnosis.facts import JobFacts
from glaunch.diagnosis.finding import Finding
from glaunch.diagnosis.launchers import AGENTS, failed_rank
from glaunch.diagnosis.unstarted import left_shell, stopped_before_ranks, unstarted
from glaunch.parsers.labelled import labelled
from glaunch.parsers.srun_words import bad_end

_LAUNCH = re.compile(r"srun: error: [Tt]ask (?P<task>\d+) launch failed: (?P<what>.+)$")
_EXIT = re.compile(r"Exited with exit code (\d+)")
_NOT_FOUND = re.compile(
    r"execve\(\): .*(No such file or directory|Permission denied)|"
    r": (command )?not found$|env: .*No such file or directory$|bad interpreter: "
)
_UNKNOWN_NAME = re.compile(r"([^\s:‘’'\"]+)[’'\"]?: (?:command not found|not found|No such file or directory)$")
"""Which program a shell, or env, did not find."""
_ENDED = re.compile(r"\[\d{4}-\d\d-\d\dT[\d:.]+\] error: \*\*\* (?:JOB|STEP) \d\S* ON \S+ CANCELLED AT ")
"""How slurmstepd may begin its line about an end, without its own name. **Source:** seen on 26.05.5."""
_OOM = re.compile(r"oom[-_ ]kill|Out [Oo]f [Mm]emory|OUT_OF_MEMORY", re.IGNORECASE)
_END = ("*** STEP ", "*** JOB ", "Job step aborted", "forcing job termination")  # Slurm ends the step: what dies afterwards dies of that
_SIGNALS = {2: "SIGINT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV", 13: "SIGPIPE", 15: "SIGTERM"}
_AFTERMATH = ("Terminated", "Killed")  # what ranks die of when Slurm ends the step

_CAUSES = (
    ("DUE TO TIME LIMIT", "GL205", "the time limit was reached", "ask for more with --time, or save and resume"),
    ("DUE TO NODE FAILURE", "GL204", "a node failed", "sinfo -R says what the centre knows; leave the node out with --exclude"),
    ("Node failure on ", "GL204", "a node failed", "sinfo -R says what the centre knows; leave the node out with --exclude"),
    ("DUE TO PREEMPTION", "GL211", "a job with higher priority took the nodes", "save and resume, or use a QOS that is not preempted"),
)
_STATES = {
    "TIMEOUT": _CAUSES[0],
    "NODE_FAIL": _CAUSES[1],
    "PREEMPTED": _CAUSES[3],
    "OUT_OF_MEMORY": ("", "GL203", "memory ran out", "ask for more with --mem, or put fewer ranks on a node"),
    "DEADLINE": ("", "GL205", "the job's deadline passed", "submit it again with a later deadline"),
    "BOOT_FAIL": ("", "GL204", "a node did not boot", "submit it again; sinfo -R says what the centre knows"),
}


@dataclass(frozen=True, slots=True)
class _Death:
    where: str
    line: str
    host: str
    rank: int
    what: str
    others: int
    after_the_end: bool


def failures(facts: JobFacts) -> Iterator[Finding]:
    """What ended the job, if it did not end well."""
    if facts.job.never_ran and not facts.attempt:
        yield _launch_failure(facts)
        return
    if stopped_before_ranks(facts):
        yield from (*_causes(facts), *unstarted(facts))
        return
    found = [*_causes(facts), *_deaths(facts), *_never_started(facts)]
    if not found and facts.exit_code and not facts.ranks:
        found = list(unstarted(facts))
    if not found and facts.job.over:
        found = list(left_shell(facts))
    yield from found
    if not found and (facts.exit_code or (facts.job.over and facts.job.state != "COMPLETED")):
        yield _unexplained(facts)


def _launch_failure(facts: JobFacts) -> Finding:
    return Finding(
        "GL207",
        "error",
        "the nodes cannot see or write the job's folder: the script could not begin",
        "",
        None,
        "Slurm's answer about the job",
        _job_words(facts),
        "put the job's folder on a file system that all nodes see: rundir.path in your settings, or start from such a folder",
    )


def _job_words(facts: JobFacts) -> str:
    job = facts.job
    reason = f" Reason={job.reason}" if job.reason else ""
    return f"JobId={job.id} JobState={job.state}{reason} ExitCode={job.exit_code}:{job.exit_signal}"


def _causes(facts: JobFacts) -> Iterator[Finding]:
    """What Slurm itself did to the job: the line that says so, else its state."""
    seen: set[str] = set()
    if facts.batch_log is not None:
        for where, line in facts.batch_log.lines():
            for words, code, title, advice in _CAUSES:
                if words in line and _from_slurm(line) and code not in seen:
                    seen.add(code)
                    yield Finding(code, "error", title, _host_in(line), None, where, line, advice)
            if _OOM.search(line) and _from_slurm(line) and "GL203" not in seen:
                seen.add("GL203")
                _, code, title, advice = _STATES["OUT_OF_MEMORY"]
                yield Finding(code, "error", title, _host_in(line), None, where, line, advice)
    state = _STATES.get(facts.job.state)
    if state is not None and state[1] not in seen:
        yield Finding(state[1], "error", state[2], "", None, "Slurm's answer about the job", _job_words(facts), state[3])
    told = _cancelled(facts)
    if facts.job.state == "CANCELLED" or (told and not seen and not facts.job.over):
        place, evidence = told or ("Slurm's answer about the job", _job_words(facts))
        yield Finding("GL206", "note", "the job was cancelled", "", None, place, evidence, "")


def _cancelled(facts: JobFacts) -> tuple[str, str] | None:
    """The line in which Slurm says that the job was cancelled: it is there before Slurm's own answer changes."""
    for found in _batch_lines(facts):
        if "CANCELLED AT" in found[1] and ("*** JOB " in found[1] or facts.job.state == "CANCELLED") and _from_slurm(found[1]):
            return found
    return None


def _batch_lines(facts: JobFacts) -> Iterator[tuple[str, str]]:
    return iter(()) if facts.batch_log is None else facts.batch_log.lines()


def _from_slurm(line: str) -> bool:
    return line.startswith(("slurmstepd", "srun:", "slurmd", "sbatch:")) or _ENDED.match(line) is not None


def _host_in(line: str) -> str:
    found = re.match(r"slurmstepd-(\S+?): ", line) or re.search(r"Node failure on (\S+)", line) or re.search(r" ON (\S+) CANCELLED", line)
    found = found or re.match(r"srun: error: ([A-Za-z0-9][^\s:]*): tasks? ", line)
    return found[1] if found else ""


def _deaths(facts: JobFacts) -> Iterator[Finding]:
    """The first rank that failed by itself, with its code or signal; a program that the node does not have."""
    deaths = list(_task_lines(facts))
    for death in _first(facts, deaths):
        exited = _EXIT.search(death.what)
        rest = sum(one.others + 1 for one in deaths) - 1
        what = "node" if facts.form in AGENTS else "rank"
        also = f"; {rest} more {what}{'s' if rest > 1 else ''} ended badly" if rest > 0 else ""
        missing = _missing_program(facts)
        if missing is not None and exited and int(exited[1]) in (2, 13, 126, 127):
            where, line = missing
            advice = "the node must have it at the same path: name one that it has, or start from a shared file system"
            title = f"{death.host} cannot start the program{f' {facts.program}' if facts.program else ''}{also}"
            other = _UNKNOWN_NAME.search(line)
            if other and facts.program.rpartition("/")[2] not in ("", other[1].rpartition("/")[2]):
                title = f"rank {death.rank} found no {other[1]} on {death.host} and exited with code {exited[1]}{also}"
                advice = "load it before the ranks start (--module, --setup), or name its whole path"
            yield Finding("GL208", "error", title, death.host, death.rank, where, line, advice)
            continue
        how = f"exited with code {exited[1]}{_signal_words(int(exited[1]))}" if exited else f"died: {death.what}"
        code = "GL201" if exited else "GL202"
        if facts.form in AGENTS and all(row.host != death.host for row in facts.ranks):
            yield from _agent_alone(facts, death, f"{how}{also}")
            continue
        advice = f"its last lines are in {facts.file(f'out/{death.host}.log')}, labelled {death.rank}:"
        yield Finding(
            code, "error", f"rank {death.rank} on {death.host} {how}{also}", death.host, death.rank, death.where, death.line, advice
        )
        yield from _last_words(facts, death)


def _agent_alone(facts: JobFacts, death: _Death, how: str) -> Iterator[Finding]:
    """An agent that ended before it had started a rank: what it says has no label."""
    advice = f"its own lines are in {facts.file(f'out/{death.host}.log')}, those without a label"
    title = f"{facts.form} on {death.host} ended before it started a rank: {how}"
    yield Finding("GL201", "error", title, death.host, None, death.where, death.line, advice)
    yield from _last_line(facts, death.host, None, f"the last line of {facts.form}")


def _first(facts: JobFacts, deaths: Sequence[_Death]) -> Sequence[_Death]:
    """The first rank that failed by itself. Where Slurm ended the job, ranks that died afterwards died of that."""
    before = [death for death in deaths if not death.after_the_end]
    own = [death for death in before if not death.what.startswith(_AFTERMATH)]
    if own or _ended_by_slurm(facts):
        return own[:1]
    return (before or list(deaths))[:1]


def first_failure(facts: JobFacts) -> tuple[int, str] | None:
    """(rank, host) of the first rank that failed by itself, so that its output can be read; `outputs` is not looked at."""
    if stopped_before_ranks(facts):
        return None
    first = _first(facts, list(_task_lines(facts)))
    return (first[0].rank, first[0].host) if first else None


def _signal_words(code: int) -> str:
    name = _SIGNALS.get(code - 128)
    return f" (128 + {code - 128}: {name})" if name else ""


def _last_words(facts: JobFacts, death: _Death) -> Iterator[Finding]:
    yield from _last_line(facts, death.host, death.rank, f"the last line of rank {death.rank}")


def _last_line(facts: JobFacts, host: str, rank: int | None, title: str) -> Iterator[Finding]:
    for output in facts.outputs:
        if output.name.endswith(f"out/{host}.log"):
            last = [line for line in labelled(output.text) if line.rank == rank and line.text.strip()][-1:]
            for line in last:
                where = f"{output.name}:{output.first_line + line.line - 1}"
                yield Finding("GL212", "note", title, host, rank, where, line.text, "")


def _ended_by_slurm(facts: JobFacts) -> bool:
    return facts.job.state in {*_STATES, "CANCELLED"} or (not facts.job.over and _cancelled(facts) is not None)


def _task_lines(facts: JobFacts) -> Iterator[_Death]:
    host_of = {row.rank: row.host for row in facts.ranks}
    over = seen = False
    for where, line in _batch_lines(facts):
        over = over or (_from_slurm(line) and any(words in line for words in _END))
        end = bad_end(line)
        if end is not None:
            first = re.match(r"\d+", end.tasks)
            task = facts.first_rank_beside(end.hosts) + (int(first[0]) if first else 0)
            rank, host = _whose(facts, task) or (task, host_of.get(task, end.hosts))
            seen = True
            yield _Death(where, line, host, rank, end.what, _how_many(end.tasks) - 1, over)
    if facts.form == "mpi" and facts.exit_code and facts.ranks and not (over or seen):
        yield _of_mpirun(facts, host_of)


def _whose(facts: JobFacts, task: int) -> tuple[int, str] | None:
    """(rank, host) where a task of srun is a node's agent: the rank that it names, else its node's first."""
    if facts.form not in AGENTS or task >= len(facts.granted):
        return None
    host = facts.granted[task]
    here = [row.rank for row in facts.ranks if row.host == host]
    named = failed_rank(facts)
    return (named.rank if named is not None and named.rank in here else min(here, default=task * facts.tasks_per_node)), host


def _of_mpirun(facts: JobFacts, host_of: Mapping[int, str]) -> _Death:
    """mpirun speaks into the output of rank 0's host; until that is read the rank is not known."""
    named = failed_rank(facts)
    if named is None:
        return _Death(
            facts.file(f"out/{facts.granted[0]}.log"), "", facts.granted[0], 0, f"Exited with exit code {facts.exit_code}", 0, False
        )
    return _Death(named.where, named.line, host_of.get(named.rank, ""), named.rank, f"Exited with exit code {named.code}", 0, False)


def _how_many(tasks: str) -> int:
    total = 0
    for part in tasks.split(","):
        low, dash, high = part.partition("-")
        if low.isdigit():
            total += int(high) - int(low) + 1 if dash and high.isdigit() else 1
    return total


def _missing_program(facts: JobFacts) -> tuple[str, str] | None:
    lines = itertools.chain(_batch_lines(facts), *(output.lines() for output in facts.outputs))
    return next(((where, line) for where, line in lines if _NOT_FOUND.search(line)), None)


def _never_started(facts: JobFacts) -> Iterator[Finding]:
    lines = [(where, line, found) for where, line in _batch_lines(facts) if (found := _LAUNCH.match(line))]
    if lines:
        where, line, found = lines[0]
        count = f"{len(lines)} ranks" if len(lines) > 1 else "1 rank"
        advice = "can every node write in the job's folder? srun returns 0 even then, so do not trust the job's exit code"
        rank = int(found["task"])
        host = next((row.host for row in facts.ranks if row.rank == rank), "")
        yield Finding("GL209", "error", f"{count} never started, first rank {rank}: {found['what']}", host, rank, where, line, advice)


def _unexplained(facts: JobFacts) -> Finding:
    place = (
        f"look at the end of {facts.batch_log.name}" if facts.batch_log is not None else f"what its ranks wrote is in {facts.file('out/')}"
    )
    code = facts.exit_code if facts.exit_code is not None else facts.job.exit_code
    state = f" as {facts.job.state}" if facts.job.over else ""  # Slurm's answer may be older than the job's end
    title = f"the job ended{state} with exit code {code}, and no line of Slurm's says why"
    return Finding("GL210", "error", title, "", None, "Slurm's answer about the job", _job_words(facts), place)
