"""Which nodes could run a job now, as Slurm would see them; which could ever; and why the others not."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from glaunch.cluster import Cluster, Partition
from glaunch.errors import UsageError
from glaunch.hostlist import expand
from glaunch.placement.kinds import MIXED, Kind, as_one_kind, free_gpus, kind_of, kinds_of, mixture_of
from glaunch.placement.layout import RankLayout, asked_gpus, layout
from glaunch.placement.partition import member_rows
from glaunch.placement.restrictions import SLURM_DECIDES, features, reservations
from glaunch.placement.share import Share, share_of
from glaunch.placement.standing import FREE, PART, STARTABLE, standing
from glaunch.request import Request
from glaunch.units import MIB, format_size, plural

HIDDEN_NODES = "Slurm does not show its nodes here (PrivateData): which are free, only Slurm knows"
OTHER_GPUS = "with other GPUs"
AHEAD = "reserved before the job would end"


@dataclass(frozen=True, slots=True)
class Eligible:
    """The nodes of one kind (one GPU type, one number of GPUs per node) that a request can use in a partition; all in Slurm's order."""

    layout: RankLayout
    exclusive: bool
    """True when the job has its nodes alone (asked for, or the partition gives whole nodes only)."""
    share: Share
    """What each node must have free: the job's share of a shared node."""
    nodes: tuple[str, ...]
    """Free now."""
    startable: tuple[str, ...]
    """Powered down or not yet in the cloud: would be free, but must start first."""
    could_ever: tuple[str, ...]
    """Nodes that fit, were they free and up."""
    weights: tuple[int, ...]
    """Slurm's weight of each of `nodes`."""
    startable_weights: tuple[int, ...]
    """The same of `startable`."""
    left_out: tuple[tuple[str, int], ...]
    """(why, how many) over the partition's other nodes, most first: ("drained", 3). With `nodes` and `startable` they add up to all."""
    never: tuple[tuple[str, int], ...]
    """The part of `left_out` that could not run the job even if it were free: ("with other GPUs", 4)."""
    soonest_limit_s: int | None
    """Where too few nodes are free only because of reservations ahead: the longest time limit with which enough are; else None."""
    notes: tuple[str, ...]
    decided: bool
    """False when the request has something that only Slurm can judge: then the nodes are a guess, and no pin is right."""
    mixture: tuple[tuple[str, int, int], ...] = ()
    """(GPU type, GPUs per node, nodes) of the kinds of GPU nodes in it: more than one only with --mixed."""


@dataclass(frozen=True, slots=True)
class _Ask:
    """The request against this cluster and moment: what does not change from node to node."""

    request: Request
    cluster: Cluster
    partition: Partition
    excluded: frozenset[str]
    refused: frozenset[str]
    wanted: frozenset[str]
    has_features: Callable[[frozenset[str]], bool]
    held: Mapping[str, str]
    inside: frozenset[str] | None
    ahead: Mapping[str, int]
    """Node → start of the first reservation ahead that begins before the job would end."""
    now_s: float


def eligible(
    request: Request,
    cluster: Cluster,
    partition: Partition,
    *,
    now_s: float,
    time_limit_s: int | None,
    excluded: frozenset[str] = frozenset(),
    beside: frozenset[str] = frozenset(),
) -> Eligible:
    """The nodes that the request could use in `partition` at `now_s`, for a job of `time_limit_s` (None: no end).

    Nodes of two GPU types or GPU counts are never mixed: of the kinds that fit, the one with enough free nodes is taken, then the one
    with enough nodes at all, then the one with more GPUs per node, then more nodes. With `--mixed` all kinds are one where no single one
    has enough free nodes: each node then carries as many ranks as the least of them has GPUs.
    `excluded`: nodes that the user's own launches have taken and Slurm does not show yet. `beside`: nodes of the job's other components.
    What is not understood (a state, a constraint) never reads as free.
    Raises UsageError (numbers that cannot be meant, unknown nodes in -w or -x, an unknown reservation).
    """
    ask = _prepare(request, cluster, partition, now_s, time_limit_s, excluded, beside)
    rows = member_rows(cluster, partition)
    answers = [_tried(ask, kind, rows) for kind in kinds_of(request, cluster, rows)]
    usable = [answer for answer in answers if isinstance(answer, Eligible)]
    if request.mixed and not any(len(answer.nodes) >= answer.layout.nodes for answer in usable):
        mixed = _tried(ask, _mixed_kind(ask, rows), rows)
        usable = [mixed] if isinstance(mixed, Eligible) and len(mixed.mixture) > 1 else usable
    if usable:
        return max(usable, key=_preference)
    raise next((answer for answer in answers if isinstance(answer, UsageError)), None) or UsageError(
        f"partition {partition.name} has no nodes", hint="see the others: sinfo -s"
    )


def _tried(ask: _Ask, kind: Kind, rows: Sequence[int]) -> Eligible | UsageError:
    """The answer for nodes of one kind; the error where the request's numbers cannot be meant on them (they may be on another kind)."""
    try:
        return _of_kind(ask, kind, rows)
    except UsageError as unusable:
        return unusable


def _preference(answer: Eligible) -> tuple[bool, bool, bool, bool, int, int, str]:
    layout = answer.layout
    return (
        "," not in layout.gpu_type,
        len(answer.nodes) >= layout.nodes,
        len(answer.nodes) + len(answer.startable) >= layout.nodes,
        len(answer.could_ever) >= layout.nodes,
        layout.gpus_per_node,
        len(answer.could_ever),
        layout.gpu_type,
    )


def _prepare(
    request: Request,
    cluster: Cluster,
    partition: Partition,
    now_s: float,
    time_limit_s: int | None,
    excluded: frozenset[str],
    beside: frozenset[str],
) -> _Ask:
    known = cluster.nodes.row
    sets: dict[str, tuple[str, ...]] = {"-w": expand(request.nodelist or ""), "-x": expand(request.exclude or "")}
    for option, names in sets.items():
        strange = [name for name in names if name not in known]
        if strange:
            raise UsageError(
                f"{option}: no node {strange[0]!r}" + (f" (and {len(strange) - 1} more)" if strange[1:] else ""), hint="see them: sinfo -N"
            )
    held, inside, ahead = reservations(request, cluster, now_s, time_limit_s)
    return _Ask(
        request=request,
        cluster=cluster,
        partition=partition,
        excluded=excluded,
        refused=frozenset(sets["-x"]),
        wanted=frozenset(sets["-w"]),
        has_features=features(request.constraint) or (lambda _: True),
        held={**held, **dict.fromkeys(beside, "for the components before it")},
        inside=inside,
        ahead=ahead,
        now_s=now_s,
    )


def _mixed_kind(ask: _Ask, rows: Sequence[int]) -> Kind:
    """All nodes with GPUs that nothing else keeps out as one kind: its number of GPUs is the least of theirs, or what was asked."""
    asked = asked_gpus(ask.request)
    gpus = [kind_of(ask.cluster, row, asked)[1] for row in rows if not _never(ask, row, Share(0, 0, 0), 0, bool(ask.wanted))]
    least = min((count for count in gpus if count >= (asked[1] if asked else 1)), default=0)
    return MIXED, asked[1] if asked else least


def _of_kind(ask: _Ask, kind: Kind, rows: Sequence[int]) -> Eligible:
    request, cluster = ask.request, ask.cluster
    nodes, asked = cluster.nodes, asked_gpus(request)
    is_mixed, most = kind[0] == MIXED, kind[1]
    if is_mixed:
        kind, members, most = as_one_kind(cluster, kind[1], rows, asked)
    else:
        members = [row for row in rows if kind[1] == 0 or kind_of(cluster, row, asked) == kind]
    lay = layout(request, node_gpus=kind[1], gpu_type=kind[0], node_cpus=int(min(nodes.cpus_total[row] for row in members)))
    exclusive, share = share_of(request, cluster, ask.partition, lay, members, most)
    restricted = len(ask.wanted) >= lay.nodes
    never: Counter[str] = Counter({OTHER_GPUS: len(rows) - len(members)} if len(rows) > len(members) else {})
    busy: Counter[str] = Counter()
    sets: dict[str, list[int]] = {FREE: [], STARTABLE: [], "ever": [], AHEAD: []}
    for row in members:
        why = _never(ask, row, share, kind[1], restricted)
        if why:
            never[why] += 1
            continue
        if not nodes.states[row].startswith("FUTURE"):
            sets["ever"].append(row)
        where, why = _now(ask, row, share, exclusive, free_gpus(cluster, row, kind, asked))
        sets[where].append(row) if where else busy.update((why,))
        busy.update((AHEAD,) if where == AHEAD else ())
    notes = _notes(ask, kind)
    mixture = mixture_of(cluster, members, asked) if is_mixed else ()

    def names(what: str) -> tuple[str, ...]:
        return tuple(nodes.names[row] for row in sets[what])

    def weights(what: str) -> tuple[int, ...]:
        return tuple(int(nodes.weights[row]) for row in sets[what])

    return Eligible(
        layout=lay,
        exclusive=exclusive,
        share=share,
        nodes=names(FREE),
        startable=names(STARTABLE),
        could_ever=names("ever"),
        weights=weights(FREE),
        startable_weights=weights(STARTABLE),
        left_out=_counted(never + busy),
        never=_counted(never),
        soonest_limit_s=_soonest(ask, lay.nodes - len(sets[FREE]) - len(sets[STARTABLE]), names(AHEAD)),
        notes=notes,
        decided=not notes,
        mixture=mixture,
    )


def _counted(counts: Counter[str]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _soonest(ask: _Ask, missing: int, ahead: Sequence[str]) -> int | None:
    """The longest limit, in whole minutes, with which `missing` of the nodes with a reservation ahead are free long enough."""
    if not 0 < missing <= len(ahead):
        return None
    start_s = sorted((ask.ahead[name] for name in ahead), reverse=True)[missing - 1]
    minutes = int(start_s - ask.now_s) // 60
    return minutes * 60 if minutes else None


def _never(ask: _Ask, row: int, share: Share, gpus: int, restricted: bool) -> str:
    """Why the node could not run the job even if it were free, or ""."""
    nodes = ask.cluster.nodes
    name = nodes.names[row]
    if name in ask.refused:
        return "excluded with -x"
    if restricted and ask.wanted and name not in ask.wanted:
        return "not in -w"
    if ask.inside is not None and name not in ask.inside:
        return "not in the reservation"
    if nodes.hidden:
        return ""
    if not ask.has_features(nodes.features[row]):
        return f"without {ask.request.constraint}"
    if share.gpus > gpus:
        kind = (asked_gpus(ask.request) or ("", 0))[0]
        has = nodes.gpu_types[row] or (plural(int(nodes.gpus_total[row]), "GPU") if nodes.gpus_total[row] else "CPUs alone")
        return f"with {has} and no {kind}" if kind and not gpus else f"with fewer than {plural(share.gpus, 'GPU')}"
    if share.cpus > nodes.cpus_total[row]:
        return f"with fewer than {plural(share.cpus, 'CPU')}"
    return f"with less than {format_size(share.memory_mib * MIB)} of memory" if share.memory_mib > nodes.memory_total_mib[row] else ""


def _now(ask: _Ask, row: int, share: Share, exclusive: bool, free_gpus: int) -> tuple[str, str]:
    """(FREE, STARTABLE or AHEAD, "") for a node without a job in the way; ("", why) for the others."""
    nodes = ask.cluster.nodes
    name = nodes.names[row]
    where, why = standing(nodes.states[row], ask.inside is not None and name in ask.inside)
    if not where:
        return "", why
    if name in ask.excluded:
        return "", "asked for by your own launches"
    if name in ask.held:
        return "", ask.held[name]
    if where == PART and exclusive:
        return "", "busy"
    if where != STARTABLE and not (
        share.gpus <= free_gpus
        and share.cpus <= nodes.cpus_total[row] - nodes.cpus_allocated[row]
        and share.memory_mib <= nodes.memory_total_mib[row] - nodes.memory_allocated_mib[row]
    ):
        return "", "busy"
    if name in ask.ahead:
        return AHEAD, ""
    return (STARTABLE if where == STARTABLE else FREE), ""


def _notes(ask: _Ask, kind: Kind) -> tuple[str, ...]:
    notes = [HIDDEN_NODES] if ask.cluster.nodes.hidden else []
    if ask.request.constraint and features(ask.request.constraint) is None:
        notes.append(f"--constraint {ask.request.constraint}: only Slurm can tell which nodes these are")
    notes += [f"--{name}: only Slurm can tell which nodes fit" for name, _ in ask.request.sbatch if name in SLURM_DECIDES]
    if "," in kind[0]:
        notes.append(f"these nodes mix GPU types ({kind[0]}); name one with --gpus-per-node TYPE:NUMBER")
    return tuple(notes)
