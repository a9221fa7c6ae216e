"""Which ranks form a group: from --tp, --pp, --dp, --ep and --segment to nodes that should stay together."""

from dataclasses import dataclass

from glaunch.errors import UsageError
from glaunch.fabric import Fabric
from glaunch.placement.layout import RankLayout
from glaunch.placement.objective import NO_GROUPS, Groups
from glaunch.request import Request
from glaunch.units import plural


@dataclass(frozen=True, slots=True)
class Together:
    """Which nodes should stay together, and in words why."""

    groups: Groups
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Ranks in each kind of group; tp × dp × pp are all ranks, and ep divides dp."""

    tp: int
    ep: int
    dp: int
    pp: int


def together(request: Request, layout: RankLayout, fabric: Fabric) -> Together:
    """The groups of a request on its nodes.

    Ranks are numbered with tensor parallelism fastest, then expert and data parallelism, and the pipeline slowest, so that each group is a
    run of neighbours: a tensor-parallel group has tp ranks, an expert-parallel one tp × ep, a stage of the pipeline tp × dp. A
    tensor-parallel group that spans nodes should stay in one leaf (or block). The largest of the others that is smaller than the job, or
    `--segment`, should stay in one pod; in one leaf where the fabric has no more than one pod an island, or where leaves are blocks and one
    can hold it.
    Where only --dp is given, what it leaves over counts as tensor parallelism.

    Raises UsageError for sizes that do not multiply to the ranks, and for a segment that does not divide the nodes.
    **Source:** Megatron-LM, parallel_state.initialize_model_parallel (order "tp-cp-ep-dp-pp"); sbatch(1), --segment.
    """
    notes: list[str] = []
    tensor = pod = 1
    sizes = _sizes(request, layout.tasks)
    if sizes is not None:
        tensor = _nodes("tensor-parallel", sizes.tp, layout, notes)
        larger = {"stage of the pipeline": sizes.tp * sizes.dp, "expert-parallel": sizes.tp * sizes.ep}
        what, ranks = next(((what, ranks) for what, ranks in larger.items() if ranks < layout.tasks), ("tensor-parallel", sizes.tp))
        pod = tensor if ranks == sizes.tp else _nodes(what, ranks, layout, notes)
    if request.segment is not None:
        pod = _segment(request.segment, layout.nodes)
    if tensor > 1 and pod % tensor:
        raise UsageError(
            f"groups of {pod} nodes cannot hold whole tensor-parallel groups of {tensor} nodes",
            hint=f"--segment {pod * tensor}, or another --tp",
        )
    if pod > 1 and fabric.blocks_alone and pod <= max(len(block.nodes) for block in fabric.blocks):
        return Together(Groups(pod if tensor == 1 or request.segment else tensor, pod), tuple(notes))
    if pod > 1 and not _has_pods(fabric):
        return Together(Groups(tensor if tensor > 1 else pod, pod), tuple(notes))
    groups = Groups(tensor, pod)
    return Together(groups if groups != NO_GROUPS else NO_GROUPS, tuple(notes))


def _segment(segment: int, nodes: int) -> int:
    if segment < 1 or nodes % segment:
        fitting = max(size for size in range(1, min(max(segment, 1), nodes) + 1) if nodes % size == 0)
        raise UsageError(
            f"--segment {segment} does not divide {plural(nodes, 'node')}", hint=f"--segment {fitting} does; or ask for other nodes"
        )
    return segment


def _sizes(request: Request, ranks: int) -> _Sizes | None:
    given = {"--tp": request.tp, "--ep": request.ep, "--dp": request.dp, "--pp": request.pp}
    said = " ".join(f"{name} {size}" for name, size in given.items() if size is not None)
    if not said:
        return None
    if any(size is not None and size < 1 for size in given.values()):
        raise UsageError(f"{said}: each must be at least 1")
    pp, ep = request.pp or 1, request.ep or 1
    known = pp * (request.tp or 1) * (request.dp or 1)
    rest = ranks // known if ranks % known == 0 else 0
    if not rest or (rest > 1 and request.tp is not None and request.dp is not None):
        raise UsageError(
            f"{said} do not make {ranks} ranks",
            hint=f"tp × dp × pp must be the number of ranks, {ranks}, and {known} does not divide it"
            if ranks % known
            else f"tp × dp × pp must be the number of ranks: {known} here",
        )
    dp = request.dp or rest
    tp = request.tp or (rest if request.dp is not None else 1)
    if dp % ep:
        raise UsageError(f"{said}: {dp} data-parallel ranks hold no whole expert-parallel groups of {ep}", hint="ep must divide dp")
    return _Sizes(tp, ep, dp, pp)


def _nodes(what: str, ranks: int, layout: RankLayout, notes: list[str]) -> int:
    """How many nodes a group of so many ranks fills; 1 where it fits into a node, or where its borders lie inside nodes."""
    per_node = layout.tasks_per_node
    if ranks % per_node and per_node % ranks:
        notes.append(f"groups of {ranks} ranks ({what}) begin and end inside nodes of {per_node} ranks: they cannot be kept together")
        return 1
    nodes = max(1, ranks // per_node)
    return nodes if layout.nodes % nodes == 0 else 1


def _has_pods(fabric: Fabric) -> bool:
    """Whether any island has more than one pod."""
    pods: dict[str, str] = {}
    for leaf in fabric.leaves:
        root = fabric.path_of_leaf(leaf)[-1]
        if pods.setdefault(root, fabric.pod_of_leaf(leaf)) != fabric.pod_of_leaf(leaf):
            return True
    return False
