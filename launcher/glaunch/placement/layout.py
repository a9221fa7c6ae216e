"""How many ranks on how many nodes: from what was asked and what one node has."""

import re
import shlex
from dataclasses import dataclass

from glaunch.errors import UsageError
from glaunch.request import Request
from glaunch.units import plural


@dataclass(frozen=True, slots=True)
class RankLayout:
    """How ranks lie on nodes: every node carries `tasks_per_node`, the last one in order what is left."""

    tasks: int
    nodes: int
    tasks_per_node: int
    gpus_per_node: int
    gpu_type: str

    @property
    def last_node_tasks(self) -> int:
        """Ranks on the last node of the order."""
        return self.tasks - self.tasks_per_node * (self.nodes - 1)


def asked_gpus(request: Request) -> tuple[str, int] | None:
    """(type, number) of `--gpus-per-node`: `8` → ("", 8), `h100:4` → ("h100", 4), `h100` → ("h100", 1); None when it was not given.

    Raises UsageError. **Source:** sbatch(1), `--gpus-per-node`.
    """
    if request.gpus_per_node is None:
        return None
    kind, colon, number = request.gpus_per_node.rpartition(":")
    if not colon and not number.isdigit():
        kind, number = number, "1"
    if not number.isdigit() or (colon and not kind):
        raise UsageError(f"--gpus-per-node {request.gpus_per_node!r} is no number of GPUs", hint="write it as Slurm does: 8 or h100:8")
    return kind, int(number)


def as_asked(request: Request, layout: RankLayout, nodes: int, *, counted: bool = False) -> str:
    """So many full nodes in the options that the line has: `-N 2`, `-n 16`, or both. For a hint.

    `counted`: with the number of nodes behind it where no option says it, `-n 16 (2 nodes)`.
    """
    parts = (
        f"-N {nodes}" if request.nodes is not None else "",
        f"-n {nodes * layout.tasks_per_node}" if request.nodes is None or request.tasks is not None else "",
        f"({plural(nodes, 'node')})" if counted and request.nodes is None else "",
    )
    return " ".join(part for part in parts if part)


def layout(request: Request, *, node_gpus: int, gpu_type: str, node_cpus: int) -> RankLayout:
    """The layout of a request on nodes that have `node_gpus` GPUs (0: none) and `node_cpus` CPUs each.

    One rank per GPU, unless --ntasks-per-node says otherwise; on nodes without GPUs one per --cpus-per-task CPUs. A rank gets one GPU;
    ranks that are more than the GPUs share all of them. `-n` alone gives the fewest nodes; `-N` alone fills them.
    Raises UsageError where neither was given, or where the numbers cannot be meant.
    """
    tasks, nodes, per_node = request.tasks, request.nodes, request.tasks_per_node
    for option, number in (("-n", tasks), ("-N", nodes), ("--ntasks-per-node", per_node), ("--cpus-per-task", request.cpus_per_task)):
        if number is not None and number < 1:
            raise UsageError(f"{option} {number}: there must be at least one")
    if tasks is None and nodes is None:
        raise UsageError("how many ranks?", hint=_how_to_say(request, 8 * max(node_gpus, 1)))
    asked = asked_gpus(request)
    room = asked[1] if asked else node_gpus
    room = room or node_cpus // (request.cpus_per_task or 1) or 1
    if nodes is None:
        nodes_needed = -(-(tasks or 0) // (per_node or room))
        return _checked(tasks or 0, nodes_needed, per_node or min(room, tasks or 0), asked, node_gpus, gpu_type)
    if tasks is None:
        return _checked(nodes * (per_node or room), nodes, per_node or room, asked, node_gpus, gpu_type)
    return _checked(tasks, nodes, per_node or _even(tasks, nodes, room), asked, node_gpus, gpu_type)


def _how_to_say(request: Request, ranks: int) -> str:
    """The line with a number of ranks. Where one stands behind the program already, an option before it made that the program's word."""
    script, *others = request.command
    for at, word in enumerate(others):
        match = re.fullmatch(r"(-n|-N|--ntasks|--nodes)(?:=?(\d+))?", word)
        number = match and (match[2] or (others[at + 1] if at + 1 < len(others) else ""))
        if match and number and number.isdigit():
            said = f"{match[1]} {number}"
            return f"{said} went to {script}; for glaunch it must stand before it: glaunch … {said} {script}"
    return f"say it with -n (ranks) or -N (nodes): glaunch -n {ranks} {shlex.join(request.command)}"


def _even(tasks: int, nodes: int, room: int) -> int:
    """Ranks on each node when both numbers were given: the same on all, less on the last."""
    per_node = -(-tasks // nodes)
    if per_node > room:
        raise UsageError(
            f"{tasks} ranks on {nodes} nodes are {per_node} on each, and a node has room for {room}, one a GPU",
            hint=f"-n {tasks} alone takes {-(-tasks // room)} nodes; --ntasks-per-node {per_node} says that they share",
        )
    return per_node


def _checked(tasks: int, nodes: int, per_node: int, asked: tuple[str, int] | None, node_gpus: int, gpu_type: str) -> RankLayout:
    if not (nodes - 1) * per_node < tasks <= nodes * per_node:
        fitting = -(-tasks // per_node)
        raise UsageError(
            f"{tasks} ranks, {per_node} on each node, do not make {nodes} nodes",
            hint=f"-n {tasks} -N {fitting}, or -n {nodes * per_node} -N {nodes}",
        )
    gpus = asked[1] if asked else min(per_node, node_gpus)
    return RankLayout(tasks, nodes, per_node, gpus, (asked and asked[0]) or gpu_type if gpus else "")
