"""What `glaunch check` found: whether Slurm answers, through what, how quickly, and what it showed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from glaunch.cluster import Cluster
from glaunch.document import to_document
from glaunch.fabric import Fabric
from glaunch.report.text import clean, wrapped
from glaunch.slurm_versions import version_text
from glaunch.units import plural


@dataclass(frozen=True, slots=True)
class Contact:
    """One answer of Slurm to all that a plan asks, nothing kept."""

    slurm_version: str
    cluster: str
    gateway: str
    """pyslurm, commands or capture."""
    why: str
    submission: str
    """sbatch or pyslurm."""
    by_commands: Mapping[str, str]
    """What goes through Slurm's commands all the same, and why; empty where all does."""
    nodes: int
    nodes_hidden: bool
    partitions: int
    reservations: int
    topology: str
    took_s: float


def contact_of(
    cluster: Cluster, fabric: Fabric, *, gateway: str, why: str, submission: str, by_commands: Mapping[str, str], took_s: float
) -> Contact:
    """What there is to tell."""
    places = f"{plural(len(fabric.leaves), 'leaf', 'leaves')} on {plural(fabric.tiers, 'tier')}" if not fabric.flat else "one flat switch"
    return Contact(
        slurm_version=version_text(cluster.slurm_version),
        cluster=cluster.name,
        gateway=gateway,
        why=why,
        submission=submission,
        by_commands=by_commands,
        nodes=len(cluster.nodes),
        nodes_hidden=cluster.nodes.hidden,
        partitions=len(cluster.partitions),
        reservations=len(cluster.reservations),
        topology=f"{fabric.source}: {places}",
        took_s=took_s,
    )


def contact_text(contact: Contact, width: int = 80) -> str:
    """One line a fact."""
    return "".join(f"{line}\n" for name, words in _facts(contact) for line in wrapped(f"{name:<12}{clean(words)}", width, rest=" " * 12))


def _facts(contact: Contact) -> Iterator[tuple[str, str]]:
    yield "Slurm", f"{contact.slurm_version}, cluster {contact.cluster or '?'}"
    yield "asked by", f"{contact.gateway} ({contact.why})"
    hidden = ", which only administrators may see (PrivateData=nodes)" if contact.nodes_hidden else ""
    counts = f"{plural(contact.partitions, 'partition')}, {plural(contact.reservations, 'reservation')}"
    yield "it shows", f"{plural(contact.nodes, 'node')}{hidden}, {counts}"
    yield "topology", contact.topology
    yield "answered in", f"{contact.took_s:.2f} s, all that a plan asks and nothing kept from before"
    yield "submits by", contact.submission + ("" if contact.submission == "sbatch" else ": cli_filter plugins and SPANK do not see the job")
    if contact.by_commands:
        yield "by commands", f"{'; '.join(contact.by_commands)} (why: docs/gateway.md, or --json)"


def contact_document(contact: Contact) -> dict[str, Any]:
    """Schema glaunch.contact/1."""
    return to_document("contact", 1, contact)
