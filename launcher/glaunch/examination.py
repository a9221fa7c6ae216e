"""What `glaunch topo check` and `audit` look at: the sources of a fabric, Slurm's own view, past jobs; each read once."""

import os
import time
from collections.abc import Iterable
from pathlib import Path

from glaunch.caller import user_name
from glaunch.doctor.checkup import Checkup, Unread
from glaunch.errors import ParseError, UsageError
from glaunch.fabric import Fabric
from glaunch.fabric_files import read_sources, read_text
from glaunch.gateways.capture import TOPOLOGY_FILES
from glaunch.gateways.kept import CONFIGURATIONS, read_cluster
from glaunch.network import Network
from glaunch.parsers.past_jobs import parse_past_jobs
from glaunch.parsers.slurm_answers import read_config
from glaunch.parsers.slurm_topology import parse_topology
from glaunch.past_jobs import PastJobs
from glaunch.pipeline import World
from glaunch.slurm_versions import TOPOLOGY_YAML

SCONTROL = "scontrol show topology"


def checkup_of_files(paths: Iterable[Path], names: Path | None = None) -> Checkup:
    """The files alone, and nobody is asked. Raises GlaunchError for a file that cannot be opened; one that is in no format is data."""
    sources: list[Network | Fabric] = []
    unread: list[Unread] = []
    texts: dict[str, tuple[str, ...]] = {}
    for path in paths:
        texts[str(path)] = tuple(read_text(path).splitlines())
        try:
            sources += read_sources([path], names)
        except ParseError as bad:
            unread.append(Unread(bad.where, bad.seen, bad.expected, bad.hint))
    return Checkup(tuple(sources), texts=texts, unread=tuple(unread))


def checkup_of_site(world: World, paths: Iterable[Path], names: Path | None = None, *, capture: Path | None = None) -> Checkup:
    """The files beside Slurm's own view, as it is now.

    Without files: the site's saved fabric and the topology files that lie beside slurm.conf and can be read (of a capture: those in it).
    Raises what asking Slurm raises.
    """
    now_s = time.time() if world.captured_at_s is None else world.captured_at_s
    cluster, text = read_cluster(world.slurm, now_s)
    beside = topology_files(Path(cluster.config.get("SLURM_CONF", "")), capture)
    chosen = tuple(paths)
    if not chosen:
        saved = world.settings.text("fabric.topology")
        chosen = (
            *([Path(saved)] if saved and capture is None else []),
            *(beside[name] for name in _counting(beside, cluster.slurm_version)),
        )
    files = checkup_of_files(chosen, names)
    unread, slurm = list(files.unread), None
    try:
        slurm = parse_topology(text, where=SCONTROL)
    except ParseError as bad:
        unread.append(Unread(bad.where, bad.seen, bad.expected, bad.hint))
    texts = {**files.texts, SCONTROL: tuple(text.splitlines())}
    return Checkup(files.sources, slurm, cluster, texts, {name: str(path) for name, path in beside.items()}, tuple(unread))


def topology_files(conf: Path, capture: Path | None) -> dict[str, Path]:
    """Topology file → its path, of those that lie beside slurm.conf (in a capture: in its folder of that name) and can be read."""
    if capture is not None:
        folder = capture / "topology"
    elif conf.name:
        folder = conf.parent
    else:
        folder = Path(os.environ.get("SLURM_CONF", CONFIGURATIONS[0])).parent
    return {name: folder / name for name in TOPOLOGY_FILES if os.access(folder / name, os.R_OK)}


def _counting(beside: dict[str, Path], version: tuple[int, ...]) -> tuple[str, ...]:
    """The one of the files that Slurm reads."""
    order = ("topology.yaml", "topology.conf") if TOPOLOGY_YAML.there(version) else ("topology.conf",)
    return tuple(name for name in order if name in beside)[:1]


def past_jobs_of_file(path: Path) -> PastJobs:
    """The jobs of a file that sacct wrote. Raises ParseError with FILE:LINE."""
    return parse_past_jobs(read_text(path), where=str(path))


def past_jobs_of_site(world: World, age_s: int) -> tuple[PastJobs, tuple[str, ...]]:
    """(all jobs of the last `age_s` seconds that this user may see, what could not be seen). Raises UsageError without accounting."""
    jobs = world.slurm.past_jobs(age_s)
    if jobs is None:
        raise UsageError("this cluster keeps no accounting: its past jobs are not known", hint="glaunch topo audit --from FILE")
    if os.geteuid() == 0 or set(jobs.users) - {user_name()}:
        return jobs, ()
    private = read_config(world.slurm.answer("config")).get("PrivateData", "")
    if "jobs" in private:
        return jobs, (f"PrivateData={private}: only your own jobs are seen; an operator or root sees all",)
    return jobs, ("all of these jobs are your own: others either did not run, or slurmdbd.conf hides them (PrivateData=jobs)",)
