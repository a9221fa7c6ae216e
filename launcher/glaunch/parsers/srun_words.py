"""What srun says of a task that ended badly.

**Source:** seen on 22.05 to 26.05: `srun: error: n006: task 17: Exited with exit code 5`, `srun: error: n[1-2]: tasks 0-7: Killed`.
"""

import re
from dataclasses import dataclass

_TASK = re.compile(r"srun: error: (?P<hosts>[^\s:]+): tasks? (?P<tasks>[\d,-]+): (?P<what>.+)$")


@dataclass(frozen=True, slots=True)
class TaskEnd:
    """Tasks that ended with one result: `hosts` and `tasks` as srun lists them (`n[1-2]`, `0-7`), `what` in its words."""

    hosts: str
    tasks: str
    what: str


def bad_end(line: str) -> TaskEnd | None:
    """What one line of srun's says of tasks that ended badly; None for every other line."""
    found = _TASK.match(line)
    return TaskEnd(found["hosts"], found["tasks"], found["what"]) if found and found["what"] != "Exited with exit code 0" else None
