"""What a fabric's examination looks at, and how a finding about it is written."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

from glaunch.cluster import Cluster, parameters
from glaunch.diagnosis.finding import Finding
from glaunch.fabric import Fabric
from glaunch.hierarchy import fabric_of
from glaunch.hostlist import fold, natural_key
from glaunch.merge import join_networks, merge
from glaunch.network import Network

EVIDENCE_MAX = 200
"""Letters of a line that a finding quotes; a leaf's line can be 100 KB long."""


@dataclass(frozen=True, slots=True)
class Unread:
    """A text that is not in its format: FILE:LINE, the line, and what should stand there."""

    where: str
    seen: str
    expected: str
    hint: str = ""


@dataclass(frozen=True)
class Checkup:
    """All that is known about a fabric, source by source. Nothing here is asked of anybody: it was all read before."""

    sources: tuple[Network | Fabric, ...]
    """What files say, in the order in which they were named."""
    slurm: Fabric | None = None
    """What `scontrol show topology` says; None where Slurm has none, or was not asked."""
    cluster: Cluster | None = None
    """None where only files are examined."""
    texts: Mapping[str, Sequence[str]] = field(default_factory=lambda: MappingProxyType({}))
    """Source → its lines, so that a finding can quote the one it is about."""
    beside: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Name of a topology file that lies beside slurm.conf → its path."""
    unread: tuple[Unread, ...] = ()

    @cached_property
    def networks(self) -> tuple[Network, ...]:
        """The sources with cables, also those that a saved fabric brings along."""
        found = (source if isinstance(source, Network) else source.network for source in self.sources)
        return tuple(network for network in found if network is not None)

    @cached_property
    def network(self) -> Network | None:
        """All cables of all sources; None where none knows any."""
        return join_networks(self.networks)[0] if self.networks else None

    @cached_property
    def cabled(self) -> Fabric | None:
        """The fabric as it is cabled; None where no source knows cables."""
        return fabric_of(self.network) if self.network is not None else None

    @cached_property
    def written(self) -> tuple[Fabric, ...]:
        """The topologies that somebody wrote down, files first; Slurm's own answer only where no file says just the same."""
        files = tuple(source for source in self.sources if isinstance(source, Fabric) and source.network is None and not source.flat)
        slurm = self.slurm
        if slurm is None or slurm.flat or any(_same(slurm, one) for one in files):
            return files
        return (*files, slurm)

    @cached_property
    def merged(self) -> Fabric | None:
        """All sources and Slurm's answer as one fabric, with what they do not agree on; None where there is none."""
        known = [*self.sources, *([] if self.slurm is None or self.slurm.flat else [self.slurm])]
        return merge(known) if known else None

    def line(self, where: str, otherwise: str) -> str:
        """The line that `where` (FILE:LINE) names, cut to a length that can be read; `otherwise` where it is not at hand."""
        source, _, number = where.rpartition(":")
        lines = self.texts.get(source)
        if lines is None or not number.isdigit() or not 0 < int(number) <= len(lines):
            return _cut(otherwise)
        return _cut(" ".join(lines[int(number) - 1].split()))

    def finding(self, code: str, severity: str, title: str, where: str, otherwise: str, advice: str, host: str = "") -> Finding:
        """A finding whose evidence is the line at `where`, else `otherwise`."""
        return Finding(code, severity, title, host, None, where, self.line(where, otherwise), advice)

    def config(self, key: str) -> str:
        """A value of Slurm's configuration; "" where it is not known."""
        return "" if self.cluster is None else self.cluster.config.get(key, "")

    def parameters(self, key: str) -> frozenset[str]:
        """The names in a comma list of Slurm's configuration, in small letters."""
        return frozenset() if self.cluster is None else frozenset(parameters(self.cluster.config, key))


def _same(one: Fabric, two: Fabric) -> bool:
    """True where two topologies say the same, in whatever order."""
    return one.block_sizes == two.block_sizes and _shape(one) == _shape(two)


def _shape(fabric: Fabric) -> Mapping[str, object]:
    return {switch.name: (switch.tier, switch.parent, frozenset(switch.nodes)) for switch in fabric.switches}


def _cut(text: str) -> str:
    return text if len(text) <= EVIDENCE_MAX else f"{text[: EVIDENCE_MAX - 1]}…"


def some(names: Iterable[str], most: int = 120) -> str:
    """Names as a hostlist in natural order; of a long one its beginning."""
    text = fold(sorted(names, key=natural_key))
    return text if len(text) <= most else f"{text[: most - 1]}…"
