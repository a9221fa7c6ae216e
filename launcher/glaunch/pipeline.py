"""The whole of glaunch in order; read this first.

request → plan → script → job → bundle → findings → report. This is the first part of the way, up to plan and script; `launch` goes on from
there to the job, `aftermath` to the report. Nothing is decided in these three: each line hands the answer of one part to the next.
"""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from glaunch import __version__
from glaunch.caller import caller_of, here_folder, home_folder, login_host, state_folder
from glaunch.cluster import Cluster
from glaunch.components import decide_all
from glaunch.config import Options, load, load_model, load_rules
from glaunch.decide import Ground, completed, network_of, partition_of
from glaunch.dependency import Known, names_in, with_ids
from glaunch.errors import NeverFits, ParseError, UsageError
from glaunch.fabric import Fabric, flat_fabric
from glaunch.gateways.allowance import with_accounting
from glaunch.gateways.choose import choose
from glaunch.gateways.kept import Kept, read_cluster, read_topology
from glaunch.gateways.slurm import SlurmCommands
from glaunch.history import History, Submission, failed_jobs, held_nodes
from glaunch.inherited import with_inherited
from glaunch.network_model import Model
from glaunch.parsers.slurm_topology import SLURMS_OWN, parse_topology
from glaunch.placement.cost import cost_of
from glaunch.plan import Later, Plan, SlurmChoice
from glaunch.request import Caller, Request
from glaunch.rule import Rule
from glaunch.settings import Settings
from glaunch.shipped import shipped
from glaunch.talk import talk
from glaunch.units import MIB
from glaunch.withheld import without_secrets

if TYPE_CHECKING:
    from glaunch.gateways.capture import Asker
    from glaunch.report.contact import Contact
    from glaunch.script import Script

PLAN_MAX_AGE_S = 60.0
"""How old the nodes' states may be for `plan`, which says so; a launch always asks anew."""


@dataclass(frozen=True)
class World:
    """What a command line may touch: the cluster (or a capture of one), the settings, this user's history."""

    slurm: SlurmCommands
    settings: Settings
    rules: tuple[Rule, ...]
    model: Model
    """What predicts bandwidth."""
    history: History
    kept: Kept | None
    captured_at_s: float | None = None
    """When the capture was taken: the "now" of a plan made from it, so that its reservations mean what they meant. None: no capture."""
    asker: "Asker | None" = None
    """Who the capture's answers were given to: a plan from it is made for them."""
    gateway_why: str = ""
    """Why Slurm is asked this way (pyslurm, its commands, a capture)."""

    def on(self, cluster: str) -> "World":
        """The same, but Slurm is asked on another cluster ("": this host's own)."""
        return replace(self, slurm=self.slurm.on(cluster))

    def submissions(self) -> tuple[Submission, ...]:
        """What this user launched on the cluster that is asked, oldest first."""
        return tuple(one for one in self.history.submissions() if one.cluster == self.slurm.cluster)

    @property
    def captured(self) -> bool:
        """Whether answers come from a capture."""
        return self.captured_at_s is not None


def open_world(snapshot: str | None = None, options: Options | None = None, cluster: str | None = None) -> World:
    """Settings, gateway and history of this user, here; with `snapshot` the answers of that capture instead of a cluster's.

    `cluster`: the one that is asked for by name; else the one of SBATCH_CLUSTERS, of SLURM_CLUSTERS, of this host.
    """
    settings = load(home=home_folder(), cwd=here_folder(), environ=os.environ, options=options or {})
    timeout_s = float(settings.number("slurm.timeout_s"))
    state = state_folder(os.environ)
    history = History(state, login_host())
    if snapshot is None:
        cluster = cluster or os.environ.get("SBATCH_CLUSTERS")
        chosen = choose(settings, state / "kept", {**os.environ, **({"SLURM_CLUSTERS": cluster} if cluster else {})})
        for note in chosen.notes:
            talk(note)
        return World(chosen.gateway, settings, load_rules(), load_model(), history, chosen.kept, gateway_why=chosen.why)
    from glaunch.gateways.capture import asker_of, replay, taken_at_s

    slurm = SlurmCommands(replay(Path(snapshot)), timeout_s=timeout_s)
    at_s, why = taken_at_s(Path(snapshot)), f"a capture: {snapshot}"
    return World(slurm, settings, load_rules(), load_model(), history, None, at_s, asker_of(Path(snapshot)), why)


def see(world: World, request: Request | None = None, *, max_age_s: float, topology: str = "") -> tuple[Cluster, Fabric]:
    """The cluster as it is now (`max_age_s` 0) or was a moment ago, and its fabric: the site's saved one together with Slurm's.

    Without either it is one flat switch, which says so. Of several topologies that of the partition of `request` counts, else the one
    that `topology` names, else the default one. A capture brings its own topology, and the site here has no say in it.
    Where an answer cannot be read, or the partition that is asked for was not there when it was kept, nothing is kept of any, and all are
    asked for anew: once. Raises ParseError for what Slurm says now.
    """
    try:
        cluster, slurm = _seen(world, request, max_age_s, topology)
        stale = request is not None and _misses_a_partition(request, world.settings, cluster)
    except ParseError:
        if world.kept is None:
            raise
        stale = True
    if stale and world.kept is not None:
        world.kept.forget()
        cluster, slurm = _seen(world, request, max_age_s, topology)
    cluster = replace(cluster, topology=slurm)
    if world.captured or not world.settings.text("fabric.topology"):
        return cluster, slurm
    from glaunch.fabric_files import saved_fabric
    from glaunch.merge import beside_slurm

    return cluster, beside_slurm(saved_fabric(world.settings), slurm)


def _seen(world: World, request: Request | None, max_age_s: float, named: str) -> tuple[Cluster, Fabric]:
    """The cluster and the fabric as Slurm tells them."""
    now_s = time.time() if world.captured_at_s is None else world.captured_at_s
    cluster, topology = read_cluster(world.slurm, now_s, world.kept, nodes_max_age_s=max_age_s)
    where, none = SLURMS_OWN, "no topology known"
    name = _topology_name(world, request, cluster) or named
    if name:
        topology = read_topology(world.slurm, name, now_s, world.kept)
        where, none = f"{where} {name}", f"Slurm's topology {name} has no switches"
    return cluster, parse_topology(topology, where=where) or flat_fabric(cluster.nodes.names, none)


def _misses_a_partition(request: Request, settings: Settings, cluster: Cluster) -> bool:
    asked = [completed(with_inherited(one, os.environ), settings)[0].partition for one in (request, *request.components)]
    there = {partition.name for partition in cluster.partitions}
    return any(name not in there for names in asked if names for name in names.split(","))


def _topology_name(world: World, request: Request | None, cluster: Cluster) -> str:
    """The topology of the partition that the request will go to; "" for the default one."""
    if request is None or not any(partition.topology for partition in cluster.partitions):
        return ""
    asked = with_inherited(request, os.environ)
    return partition_of(asked, world.settings, cluster, _caller(world, asked)).topology


def _caller(world: World, request: Request) -> Caller:
    """Who asks; from a capture, the user whose answers it holds."""
    caller = caller_of(request, world.settings, os.environ, must_exist=not world.captured)
    return caller if world.asker is None else replace(caller, user=world.asker.user, groups=world.asker.groups)


def contact(world: World) -> "Contact":
    """All that a plan asks, asked anew, and how that went: `glaunch check`. Raises what asking Slurm raises."""
    from glaunch.gateways.slurm_native import SlurmNative, by_commands
    from glaunch.report.contact import contact_of

    began_s = time.perf_counter()
    cluster, fabric = see(replace(world, kept=None), max_age_s=0)
    took_s = time.perf_counter() - began_s
    native = isinstance(world.slurm, SlurmNative)
    return contact_of(
        cluster,
        fabric,
        gateway="capture" if world.captured else "pyslurm" if native else "commands",
        why=world.gateway_why,
        submission="pyslurm" if native and world.settings.text("slurm.submit") == "pyslurm" else "sbatch",
        by_commands=by_commands(cluster.config) if native else {},
        took_s=took_s,
    )


def plan(world: World, request: Request, *, when: bool = False, compare: bool = False) -> Plan:
    """The plan of `glaunch plan`: the same decision as `launch`, one step before the world is touched.

    `when` reads the running jobs too and says what waiting would buy; `compare` asks Slurm what it would choose itself.
    """
    if world.captured and (when or compare):
        raise UsageError(
            f"--{'when' if when else 'compare'} asks a living Slurm, and this is a capture", hint="leave it out, or --snapshot"
        )
    if request.components and (when or compare):
        raise UsageError(
            f"--{'when' if when else 'compare'} looks at one set of nodes, and this job has {len(request.components) + 1} components",
            hint="ask for one component alone",
        )
    cluster, fabric = see(world, request, max_age_s=0 if when or compare else PLAN_MAX_AGE_S)
    decided = _decide(world, request, cluster, fabric)[0]
    if when:
        decided = replace(decided, later=_later(world, decided, cluster, fabric))
    return replace(decided, slurm_choice=_slurm_choice(world, decided, cluster, fabric)) if compare else decided


def _later(world: World, decided: Plan, cluster: Cluster, fabric: Fabric) -> Later | None:
    from glaunch.ahead import Sight, look_ahead

    partition = cluster.partition(decided.partition)
    settings = world.settings.for_partition(decided.partition)
    if partition is None:
        return None
    held = held_nodes(world.submissions(), time.time())
    sight = Sight(cluster, fabric, partition, world.slurm.occupations(), held, network_of(settings), world.model)
    return look_ahead(decided, settings.text("placement.objective"), sight)


def _slurm_choice(world: World, decided: Plan, cluster: Cluster, fabric: Fabric) -> SlurmChoice:
    told = [option for option in decided.directives if option.name not in {"output", "open-mode"}]
    options = [f"--{option.name}" if option.value is None else f"--{option.name}={option.value}" for option in told]
    answer = world.slurm.would_start(options, folder=decided.launch.work_dir)
    if isinstance(answer, str):
        return SlurmChoice((), None, None, answer)
    nodes, starts_s = answer
    weights = dict(zip(cluster.nodes.names, cluster.nodes.weights.tolist(), strict=True))
    return SlurmChoice(nodes, cost_of(fabric, nodes, weights, decided.groups), starts_s, "")


def decide_on(world: World, request: Request, cluster: Cluster, fabric: Fabric) -> tuple[Plan, "Script", Mapping[str, str]]:
    """(plan, its texts, the values of its secrets) for this cluster as it was seen."""
    decided, hidden = _decide(world, request, cluster, fabric)
    return decided, script_of(world, decided), hidden


def _decide(world: World, request: Request, cluster: Cluster, fabric: Fabric) -> tuple[Plan, Mapping[str, str]]:
    """(plan, the values of its secrets, which travel by sbatch's environment and are written nowhere)."""
    request = _with_ids(world, with_inherited(replace(request, clusters=request.clusters or world.slurm.cluster or None), os.environ))
    callers = [_caller(world, one) for one in (request, *request.components)]
    caller = callers[0]
    submission_id = os.urandom(4).hex()

    past = () if world.captured else world.submissions()
    ground = Ground(
        settings=world.settings,
        rules=world.rules,
        cluster=cluster,
        fabric=fabric,
        submission_id=submission_id,
        folder=_folder(caller.work_dir, world.settings, request.name or caller.job_name, submission_id),
        now_s=cluster.taken_at_s,
        held=held_nodes(past, time.time()),
        model=world.model,
        failed=failed_jobs(past, time.time()),
    )
    anew = False
    while True:
        seen = with_accounting(cluster, world.slurm, caller.user, time.time(), world.kept, anew=anew)
        try:
            programs = [one.program for one in callers[1:]]
            return without_secrets(decide_all(request, caller, replace(ground, cluster=seen), programs=programs))
        except NeverFits:
            if anew or world.captured or seen.accounting is None:
                raise
            anew = True  # nobody is refused by a limit that was kept, and may have changed since


def _with_ids(world: World, request: Request) -> Request:
    """The request with the ids of the jobs that its dependency names; only then Slurm is asked for this user's jobs (2 RPCs)."""
    asked = request.dependency
    if not asked or not names_in(asked):
        return request
    if world.captured:
        raise UsageError(f"-d {asked} names a job, and a capture has no jobs", hint="name it by an id: -d afterok:12")
    submissions = [one for one in world.submissions() if one.job_id]
    launches: dict[str, list[str]] = {}
    for one in submissions:
        launches.setdefault(one.launch or one.id, []).append(one.job_id)
    known = Known(
        world.slurm.own_jobs(),
        {one.job_id: tuple(launches[one.launch]) for one in submissions if one.launch},
        {one.name: _remembered(one) for one in submissions},
    )
    return replace(request, dependency=with_ids(asked, known, force=request.force), named_dependency=asked)


def _remembered(one: Submission) -> str:
    return f"{one.job_id} ({one.detail})" if one.detail else one.job_id


def _folder(work_dir: str, settings: Settings, name: str, submission_id: str) -> str:
    safe = "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in name).strip(".") or "job"
    return os.path.normpath(os.path.join(work_dir, settings.text("rundir.path"), f"{safe[:80]}-{submission_id}"))


def script_of(world: World, decided: Plan) -> "Script":
    """The plan as text."""
    from glaunch.script import Gathering, render

    settings = world.settings.for_partition(decided.partition)
    folder = shipped("templates")
    texts = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.suffix in {".j2", ".sh"}}
    return render(
        decided,
        texts,
        version=__version__,
        gathering=Gathering(
            before_limit_s=settings.number("gather.before_limit_s"),
            timeout_s=settings.number("gather.timeout_s"),
            cap_bytes=settings.number("logs.max_host_mib") * MIB,
            node_dir=settings.text("logs.node_dir"),
        ),
    )
