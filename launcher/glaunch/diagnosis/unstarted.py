"""GL208, GL213: no rank was started, because the job's own look at its nodes said so, or because it stopped before that.

The job says these lines itself (`glaunch: n003: python3: not found`), in its batch log; templates/node/probe.sh and batch.sh print them.
"""

import re
from collections.abc import Iterator

from glaunch.diagnosis.facts import JobFacts
from glaunch.diagnosis.finding import Finding
from glaunch.hostlist import fold
from glaunch.secret import shown_line

_STOPPED = "no rank was started"
_NODE = re.compile(r"glaunch: (?P<host>[^\s:]+): (?P<what>.+)$")
_NO_PROGRAM = re.compile(r": not found(, and .+ is run by it)?$|: may not be executed$| has no package \S+$")
_PROGRAM_ADVICE = "every node must have it at the same path: name one that they have, or start from a shared file system"
_NODE_ADVICE = "leave the node out with --exclude and tell your centre, or put the job's folder where all nodes can write (rundir.path)"

_LEFT_ADVICE = "take out its exec (or its own EXIT trap), or that of a file that it reads: the shell that starts the ranks was gone"


def stopped_before_ranks(facts: JobFacts) -> bool:
    """True when the job says that it started no rank; what srun says of exit codes then is about the look at the nodes."""
    return facts.batch_log is not None and any(line.startswith("glaunch: ") and _STOPPED in line for _, line in facts.batch_log.lines())


def unstarted(facts: JobFacts) -> Iterator[Finding]:
    """One finding a reason, with the nodes that gave it; the job's last word where no node spoke."""
    if facts.batch_log is None:
        return
    said: dict[str, list[tuple[str, str, str]]] = {}  # what → (host, where, line)
    last: tuple[str, str] | None = None
    for where, line in facts.batch_log.lines():
        if line.startswith("glaunch: "):
            last = (where, line)
        found = _NODE.match(line)
        if found and found["host"] in facts.granted:
            said.setdefault(found["what"], []).append((found["host"], where, line))
    if stopped_before_ranks(facts):
        for what, nodes in said.items():
            yield _node_finding(what, nodes)
    if not said and last is not None:
        where, line = last[0], shown_line(last[1])  # it may be a line of setup
        title = f"the job stopped before its ranks: {line.removeprefix('glaunch: ')}"
        yield Finding(
            "GL213", "error", title, "", None, where, line, "the line says what it met; the job's whole output is in the same file"
        )


def left_shell(facts: JobFacts) -> Iterator[Finding]:
    """That the job's own shell was left in a line of setup, and could say nothing of its end, whatever Slurm says of it."""
    if facts.left_in:
        title = f"the job ended in a line of setup, and no rank was started: {facts.left_in}"
        yield Finding("GL213", "error", title, "", None, f"{facts.file('setup')}:1", facts.left_in, _LEFT_ADVICE)


def _node_finding(what: str, nodes: list[tuple[str, str, str]]) -> Finding:
    hosts = fold(host for host, _, _ in nodes)
    _, where, line = nodes[0]
    if _NO_PROGRAM.search(what):
        return Finding("GL208", "error", f"{hosts} cannot start the program: {what}", hosts, None, where, line, _PROGRAM_ADVICE)
    return Finding("GL213", "error", f"{hosts} cannot take part: {what}", hosts, None, where, line, _NODE_ADVICE)
