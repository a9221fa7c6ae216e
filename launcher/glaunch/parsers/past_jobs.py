"""A list of past jobs, as `sacct -X -P -o …` prints it."""

from collections.abc import Iterable

from glaunch.errors import ParseError, UsageError
from glaunch.past_jobs import PastJobs
from glaunch.units import parse_time_s

FIELDS = ("JobID", "Partition", "NNodes", "NodeList", "Elapsed", "State", "User")
"""What is asked of `sacct -o`, and read; a text without a heading has just these, in this order."""
COMMAND = f"sacct -a -X -P -S now-7days -o {','.join(FIELDS)}"


def parse_past_jobs(text: str, *, where: str) -> PastJobs:
    """The jobs of a text whose fields stand apart by `|`. Its heading says which is which: others may stand between them.

    Steps (`12.batch`, where `-X` was left out) and jobs that never had a node are no rows. `State` loses what follows (`CANCELLED by 0`).
    Raises ParseError (FILE:LINE) for a heading without one of FIELDS but NNodes, a row of another width, a time that is none.
    **Source:** sacct(1), `--parsable2`, `--format`; seen with Slurm 22.05.
    """
    lines = text.splitlines()
    places, width, first = _places(lines[0] if lines else "", where)
    rows: list[tuple[str, str, str, int, str, str]] = []
    spans: dict[str, int] = {}
    never_ran = 0
    for number, line in enumerate(lines[first:], first + 1):
        values = line.split("|")
        if len(values) not in (width, width + 1) or (len(values) > width and values[-1]):
            raise ParseError(f"{where}:{number}", line, f"{width} fields apart by |", hint=f"{COMMAND} > FILE")
        identity, partition, nodes, elapsed, state, user = (values[place].strip() for place in places)
        if "." in identity:
            continue
        if nodes in {"", "None assigned"}:
            never_ran += 1
            continue
        if elapsed not in spans:
            spans[elapsed] = _seconds(elapsed, f"{where}:{number}")
        rows.append((identity, partition, nodes, spans[elapsed], state.partition(" ")[0].rstrip("+"), user))
    return _table(rows, never_ran)


def _table(rows: Iterable[tuple[str, str, str, int, str, str]], never_ran: int) -> PastJobs:
    ids, partitions, nodes, elapsed_s, states, users = tuple(zip(*rows, strict=True)) or ((),) * 6
    return PastJobs(ids, partitions, nodes, elapsed_s, states, users, never_ran)


def _places(heading: str, where: str) -> tuple[tuple[int, ...], int, int]:
    """(where id, partition, nodes, time, state and user stand, the width of a row, the number of lines before the first one)."""
    names = [name.strip().lower() for name in heading.rstrip("|").split("|")]
    wanted = [name.lower() for name in FIELDS if name != "NNodes"]
    if "jobid" not in names:
        if len(names) != len(FIELDS) and heading:
            raise ParseError(f"{where}:1", heading, "|".join(FIELDS), hint=f"{COMMAND} > FILE")
        return tuple(FIELDS.index(name) for name in FIELDS if name != "NNodes"), len(FIELDS), 0
    missing = [name for name in FIELDS if name != "NNodes" and name.lower() not in names]
    if missing:
        raise ParseError(f"{where}:1", heading, f"a field {missing[0]}", hint=f"{COMMAND} > FILE")
    return tuple(names.index(name) for name in wanted), len(names), 1


def _seconds(text: str, where: str) -> int:
    try:
        span = parse_time_s(text)
    except UsageError as bad:
        raise ParseError(where, text, "a time such as 1-02:03:04") from bad
    if span is None:
        raise ParseError(where, text, "a time such as 1-02:03:04")
    return span
