"""The site's fabric, put together: what files say, what was saved, what Slurm says."""

from collections.abc import Iterable
from pathlib import Path

from glaunch.errors import ParseError, UsageError
from glaunch.examination import topology_files
from glaunch.fabric import Fabric
from glaunch.fabric_files import read_lfts, read_sources
from glaunch.merge import beside_slurm, merge
from glaunch.parsers.slurm_config import parse_version
from glaunch.parsers.slurm_topology import SLURMS_OWN, parse_topology
from glaunch.parsers.topology_yaml import parse_topology_yaml
from glaunch.pipeline import World
from glaunch.placement.partition import named_partition
from glaunch.slurm_versions import TOPOLOGY_YAML, version_text
from glaunch.topologies import NO_NAMES, Topologies, topologies_of


def fabric_of_files(paths: Iterable[Path], names: Path | None = None, topology: str = "") -> Fabric:
    """One fabric of these files; of a topology.yaml that one topology, where it is named. Raises what reading and merging raise, and
    UsageError where the files hold no fabric at all."""
    chosen = tuple(paths)
    sources = read_sources(chosen, names, topology)
    if not sources:
        raise UsageError(f"{', '.join(map(str, chosen)) or 'no file'}: there is no fabric in it", hint="glaunch topo import FILE…")
    return merge(sources)


def choose_topology(world: World, name: str | None, partition: str | None, capture: Path | None) -> Topologies:
    """Of Slurm's topologies the one of this name, or of this partition, else the default one, and which others are known: scontrol lists
    none, so they are those that partitions name, and those of a topology.yaml that can be read here. 1 RPC, one more for an unknown name.

    Raises UsageError for a partition or a topology that is not there, and for a name where Slurm has no names yet.
    """
    if name is not None and partition is not None:
        raise UsageError("--name and --partition both say which topology", hint="leave one out")
    if not TOPOLOGY_YAML.there(version := parse_version(world.slurm.answer("version"))):
        if name is not None:
            raise UsageError(
                f"--name {name}: Slurm {version_text(version)} has one topology (several: from {TOPOLOGY_YAML.span} on)",
                hint="leave it out",
            )
        if partition is None:
            return NO_NAMES
    partitions = world.slurm.partitions_by_command()
    chosen = named_partition(partition, partitions).topology if partition is not None else name or ""
    named, default = names_beside(capture)
    known = topologies_of(partitions, named, default)
    if chosen and chosen not in known and (world.captured or not world.slurm.answer("topology", chosen)):
        raise UsageError(
            f"Slurm shows no topology that is called {chosen!r}", hint=f"there are: {', '.join(filter(None, known)) or 'none with a name'}"
        )
    return Topologies(chosen or default, known, default)


def names_beside(capture: Path | None = None) -> tuple[tuple[str, ...], str]:
    """(all names of the topology.yaml beside slurm.conf, or in a capture, the default one's); ((), "") where none can be read."""
    path = topology_files(Path(), capture).get("topology.yaml")
    if path is None:
        return (), ""
    try:
        found = parse_topology_yaml(path.read_text(encoding="utf-8", errors="surrogateescape"), where=str(path))
    except (ParseError, OSError):
        return (), ""
    return tuple(one.name for one in found), next(one.name for one in found if one.default)


def site_fabric(world: World, topology: str = "") -> Fabric:
    """What the site has: the saved fabric with its network, beside Slurm's topology (of several the one of this name, else the default
    one). Raises UsageError where there is neither."""
    named = world.settings.text("fabric.topology") if not world.captured else ""
    where = f"{SLURMS_OWN} {topology}".rstrip()
    slurm = parse_topology(world.slurm.answer("topology", topology), where=where)
    if named:
        saved = fabric_of_files([Path(named)])
        return saved if slurm is None else beside_slurm(saved, slurm)
    if slurm is None and topology:
        raise UsageError(f"Slurm's topology {topology} has no switches and no blocks", hint="another --name, or --from FILE")
    if slurm is None:
        raise UsageError(
            "Slurm has no topology here, and fabric.topology names no saved one", hint="glaunch topo import FILE…, or --from FILE"
        )
    return slurm


def routed(fabric: Fabric, one: str, two: str, lfts: Path) -> dict[int, tuple[str, ...] | None]:
    """The switches between two nodes, rail by rail, as a subnet manager's tables lead. Raises UsageError where no network is known."""
    network = fabric.network
    if network is None:
        raise UsageError("--lfts needs the cables as well", hint="--from a dump of ibnetdiscover")
    routes = read_lfts(lfts)
    found: dict[int, tuple[str, ...] | None] = {}
    for rail, (near, far) in enumerate(zip(network.hosts[one], network.hosts[two], strict=False)):
        path = routes.path(network, near.id, far.id)
        found[rail] = None if path is None else tuple(network.label[switch] for switch in path)
    return found
