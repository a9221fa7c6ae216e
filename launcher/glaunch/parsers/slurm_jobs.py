"""Jobs, as scontrol, squeue and sacct tell of them. A job's name, arguments and comment are its user's: they can hold anything."""

import re
from collections.abc import Iterator

from glaunch.errors import ParseError
from glaunch.hostlist import expand
from glaunch.job import Job, Occupation
from glaunch.parsers.slurm_fields import count_or_none, exit_of, limit_s, moment_s, text_of

SQUEUE_FIELDS = (
    "JobArrayID",
    "State",
    "exit_code",
    "RestartCnt",
    "StartTime",
    "TimeLimit",
    "NumNodes",
    "NodeList",
    "ReqNodes",
    "Reason",
    "Partition",
    "Name",
    "Command",
)
"""For `squeue -O`, in the order that `parse_squeue` reads."""
OCCUPATION_FIELDS = ("NodeList", "EndTime")
"""For `squeue -O`, in the order that `parse_occupations` reads."""
SACCT_FIELDS = ("JobID", "State", "ExitCode", "Start", "Timelimit", "NNodes", "NodeList", "Partition", "Reason", "JobName", "SubmitLine")
"""For `sacct -p -o`, in the order that `parse_sacct` reads."""

_HEAD = re.compile(
    r"^JobId=(\d+) (?:ArrayJobId=(\d+) (?:ArrayTaskId=(\S+) )?(?:ArrayTaskThrottle=\d+ )?)?"
    r"(?:HetJobId=(\d+) HetJobOffset=(\d+) )?JobName=(.*)(?:\n   HetJobIdSet=\S+)?\n   UserId=",
    re.M,
)
_LINES = {
    "user": re.compile(r"^   (UserId)=", re.M),
    "state": re.compile(r"^   JobState=(\S+) Reason=(\S*) ", re.M),
    "exit": re.compile(r"^   Requeue=\d+ Restarts=(\d+) .*\bExitCode=(\d+:\d+)", re.M),
    "limit": re.compile(r"^   RunTime=\S+ TimeLimit=(\S+) ", re.M),
    "start": re.compile(r"^   StartTime=(\S+) EndTime=", re.M),
    "partition": re.compile(r"^   Partition=(\S+) AllocNode", re.M),
    "required": re.compile(r"^   ReqNodeList=(\S*) ExcNodeList=", re.M),
    "nodes": re.compile(r"^   NodeList=(\S*)\s*$", re.M),
    "count": re.compile(r"^   NumNodes=(\S+) ", re.M),
    "script": re.compile(r"^   Command=(.*)$", re.M),
}


def parse_job(text: str) -> Job | None:
    """The job of `scontrol show job ID` (several lines, not `-o`), or None where the text does not prove which fields are Slurm's.

    Each of Slurm's lines must be there exactly once. They are not when the text holds several jobs (an array, a heterogeneous job), and
    when a job's name, comment or argument holds line breaks and forges one: then the caller asks squeue, with separators of its own.
    Raises ParseError (`scontrol show job:1`) where it is no job at all.
    **Source:** scontrol(1), "show job"; seen with Slurm 21.08 to 26.05.
    """
    if not re.match(r"JobId=\d+ ", text):
        raise ParseError("scontrol show job:1", text, "JobId=…")
    heads = _HEAD.findall(text)
    found = {key: pattern.findall(text) for key, pattern in _LINES.items()}
    if len(heads) != 1 or any(len(values) != 1 for values in found.values()):
        return None
    raw, array, task, het, offset, name = heads[0]
    where = "scontrol show job"
    (state, reason), (restarts, code) = found["state"][0], found["exit"][0]
    exit_code, exit_signal = exit_of(code, where)
    return Job(
        id=f"{array}_{task}" if array and task.isdigit() else f"{het}+{offset}" if het else array or raw,
        state=state,
        reason="" if reason == "None" else reason,
        name=re.sub(r" SLUID=\S+$", "", name),
        partition=found["partition"][0],
        time_limit_s=limit_s(found["limit"][0], where),
        node_count=count_or_none(found["count"][0], where),
        nodes=text_of(found["nodes"][0]),
        required_nodes=text_of(found["required"][0]),
        exit_code=exit_code,
        exit_signal=exit_signal,
        restarts=int(restarts),
        start_s=moment_s(found["start"][0], where),
        script=text_of(found["script"][0]),
    )


def parse_squeue(text: str, mark: str) -> tuple[Job, ...]:
    """The rows of `squeue -O` with SQUEUE_FIELDS, each field ended by `mark`, in squeue's order.

    The mark is made for one call, so no name can hold it. Raises ParseError (`squeue:ROW`) where the fields do not come out even.
    **Source:** squeue(1), `--Format`; seen with Slurm 22.05 (exit_code is there the status of wait(2): 1792 for exit code 7).
    """
    jobs: list[Job] = []
    for row, values in _rows(text, mark, len(SQUEUE_FIELDS), "squeue"):
        where = f"squeue:{row}"
        identity, state, status, restarts, start, limit, count, nodes, required, reason, partition, name, script = values
        exit_code, exit_signal = _status(status, where)
        jobs.append(
            Job(
                id=identity,
                state=state,
                reason="" if reason == "None" else reason.replace(" ", "_"),
                name=name,
                partition=partition,
                time_limit_s=limit_s(limit, where),
                node_count=count_or_none(count, where),
                nodes=text_of(nodes),
                required_nodes=text_of(required),
                exit_code=exit_code,
                exit_signal=exit_signal,
                restarts=count_or_none(restarts, where) or 0,
                start_s=moment_s(start, where),
                script=text_of(script),
            )
        )
    return tuple(jobs)


def parse_occupations(text: str, mark: str) -> tuple[Occupation, ...]:
    """The rows of `squeue -O` with OCCUPATION_FIELDS, each field followed by the mark. Raises ParseError (`squeue:ROW`)."""
    rows = _rows(text, mark, len(OCCUPATION_FIELDS), "squeue")
    return tuple(Occupation(tuple(expand(nodes)), moment_s(end, f"squeue:{row}")) for row, (nodes, end) in rows if text_of(nodes))


def parse_test_only(text: str) -> tuple[tuple[str, ...], int | None] | None:
    """(nodes, start in seconds since the epoch) of what `sbatch --test-only` says; None where it names none.

    **Source:** seen with Slurm 22.05 (`Job 12 to start at … using 8 processors on nodes n[1-8] in partition gpu`).
    """
    match = re.search(r"to start at (\S+)(?: a)? using \d+ processors on nodes (\S+) in partition", text)
    return None if match is None else (tuple(expand(match[2])), moment_s(match[1], "sbatch --test-only"))


def parse_sacct(text: str, mark: str) -> tuple[Job, ...]:
    """The rows of `sacct -X -n -p --delimiter=MARK -o` with SACCT_FIELDS; `script` is the line that was typed (SubmitLine).

    Raises ParseError (`sacct:ROW`). **Source:** sacct(1); seen with Slurm 22.05.
    """
    jobs: list[Job] = []
    for row, values in _rows(text, mark, len(SACCT_FIELDS), "sacct"):
        where = f"sacct:{row}"
        identity, state, code, start, limit, count, nodes, partition, reason, name, line = values
        exit_code, exit_signal = exit_of(code, where)
        jobs.append(
            Job(
                id=identity,
                state=state.split(" ", 1)[0].rstrip("+"),
                reason=text_of(reason),
                name=name,
                partition=partition,
                time_limit_s=limit_s(limit, where),
                node_count=count_or_none(count, where),
                nodes="" if nodes == "None assigned" else text_of(nodes),
                exit_code=exit_code,
                exit_signal=exit_signal,
                start_s=moment_s(start, where),
                script=line,
            )
        )
    return tuple(jobs)


def _rows(text: str, mark: str, width: int, command: str) -> Iterator[tuple[int, list[str]]]:
    lines = text.split("\n", 1)
    if lines[0].startswith("CLUSTER: "):
        text = lines[1] if len(lines) > 1 else ""
    values = text.split(mark)
    if values.pop().strip() or len(values) % width:
        raise ParseError(f"{command}:1", text, f"rows of {width} fields")
    for row in range(len(values) // width):
        fields = values[row * width : (row + 1) * width]
        if row:
            if not fields[0].startswith("\n"):
                raise ParseError(f"{command}:{row + 1}", fields[0], "a new line before each row")
            fields[0] = fields[0][1:]
        yield row + 1, fields


def _status(value: str, where: str) -> tuple[int, int]:
    if ":" in value or not value.isdigit():
        return exit_of(value, where)
    status = int(value)
    return status >> 8, status & 0x7F
