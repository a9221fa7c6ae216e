"""The site's fabric, put together: what files say, what was saved, what Slurm says."""

from collections.abc import Iterable
from pathlib import Path

from glaunch.errors import UsageError
from glaunch.fabric import Fabric
from glaunch.fabric_files import read_lfts, read_sources
from glaunch.merge import beside_slurm, merge
from glaunch.parsers.slurm_topology import parse_topology
from glaunch.pipeline import World


def fabric_of_files(paths: Iterable[Path], names: Path | None = None) -> Fabric:
    """One fabric of these files. Raises what reading and merging raise, and UsageError where the files hold no fabric at all."""
    chosen = tuple(paths)
    sources = read_sources(chosen, names)
    if not sources:
        raise UsageError(f"{', '.join(map(str, chosen)) or 'no file'}: there is no fabric in it", hint="glaunch topo import FILE…")
    return merge(sources)


def site_fabric(world: World) -> Fabric:
    """What the site has: the saved fabric with its network, beside Slurm's topology. Raises UsageError where there is neither."""
    named = world.settings.text("fabric.topology") if not world.captured else ""
    slurm = parse_topology(world.slurm.answer("topology"), where="scontrol show topology")
    if named:
        saved = fabric_of_files([Path(named)])
        return saved if slurm is None else beside_slurm(saved, slurm)
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
