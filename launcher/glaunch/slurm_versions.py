"""What differs between Slurm's versions and matters to a launch, in one table: since when, what, what glaunch does, who says so.

The code asks the row itself, `SEGMENTS.there(cluster.slurm_version)`, so that no second list of versions exists. A row that no code asks is
here because glaunch does the same on all versions for its sake. `docs/slurm-versions.md` shows the table.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Change:
    """One change in Slurm."""

    since: tuple[int, int]
    """The first version that has it, or the oldest on which it was seen: (24, 5) is Slurm 24.05."""
    what: str
    """What Slurm does from then on."""
    then: str
    """What glaunch does about it."""
    source: str
    """Slurm's own page, or the version on which it was tried."""
    until: tuple[int, ...] = ()
    """The first version that has it no more; () where it stayed."""

    def there(self, version: Sequence[int]) -> bool:
        """Whether Slurm of that version has it; an unknown version, (), has nothing."""
        return tuple(version) >= self.since and not (self.until and tuple(version) >= self.until)

    @property
    def span(self) -> str:
        """Since when, and until when if it is over: `24.05`, `24.11, before 25.11.2`."""
        return version_text(self.since) + (f", before {version_text(self.until)}" if self.until else "")


def version_text(version: Sequence[int]) -> str:
    """`22.05.8` of (22, 5, 8), as Slurm writes it."""
    return ".".join(f"{part:02d}" if place == 1 else str(part) for place, part in enumerate(version))


OLDEST, NEWEST = (22, 5), (26, 5)
"""The versions that glaunch is tried on, from and to."""

STEPS_APART = Change(
    (20, 11),
    "a step shares nothing with the others of its job unless it says --overlap",
    "every step beside the ranks (look, gather, watch) says it, and asks for no GPU and no memory of its own",
    "srun(1), --overlap; llnl/LaunchMON#58",
)
CPUS_NOT_INHERITED = Change(
    (22, 5),
    "srun does not read SLURM_CPUS_PER_TASK: ranks would have a core each, and starve their data loaders",
    "the ranks' step says --cpus-per-task itself, on every version",
    "CHANGELOG/slurm-22.05.md and slurm-23.11.md",
    until=(23, 11),
)
LISTS_SPARES = Change(
    (23, 2),
    "--nodelist may name more nodes than the job takes: it then gets some of them",
    "before: --place prefer asks with --switches; from then on with the best set and spare nodes beside it",
    "tried: 22.05.8 refuses such a list, 24.11.5 takes it",
)
SWITCH_AS_NODE_RANK = Change(
    (23, 2),
    "TopologyParam=SwitchAsNodeRank makes a job's nodes follow the leaf switches",
    "topo check recommends it where nodes and leaves are not in the same order (GL431); glaunch orders its own ranks on every version",
    "slurm.conf(5), TopologyParam; CHANGELOG/slurm-23.02.md",
)
NODES_OR_HOST_FILE = Change(
    (23, 11),
    "--nodes beside --distribution=arbitrary is refused, by srun and by an sbatch that finds SLURM_HOSTFILE",
    "a step in the plan's order says no --nodes, and SLURM_HOSTFILE reaches neither sbatch nor any other step",
    "tried: 22.05.8 takes it, 24.11.5 and 26.05.5 refuse it; CHANGELOG/slurm-23.11.md",
)
SEGMENTS = Change(
    (24, 5),
    "topology/block knows --segment: groups of nodes that lie in one block each",
    "asked for with --segment, or where groups should stay in a block; before: those groups are kept together in the order of ranks alone",
    "sbatch(1) of 24.05; tried on 24.11.5 and 26.05.5",
)
REFUSES_TOO_MANY_NODES = Change(
    (24, 11),
    "sbatch refuses a job of more nodes than its partition has, even with EnforcePartLimits=NO; otherwise it waits for ever",
    "without --force it is not submitted at all; with --force the refusal is told in Slurm's words",
    "tried: 22.05.8 takes it, 24.11.5 refuses it; CHANGELOG/slurm-25.11.md, 25.11.2",
    until=(25, 11, 2),
)
MAKES_OUTPUT_FOLDERS = Change(
    (24, 11),
    "slurmd makes the folder of the output on the node, so that a script starts where its node does not see that folder",
    "job.sbatch looks for its own files first and ends with 73, which is told as before: its first node cannot see the folder (GL207)",
    "tried: 22.05.8 ends such a job with 0:53, 24.11.5 starts it",
)
SHOWS_SCRIPTS_ALONE = Change(
    (24, 11),
    "squeue and scontrol show the path of a job's script without its arguments",
    "a submission is found again by the path alone, which no two share",
    "tried: 22.05.8 shows them, 24.11.5 does not",
)
NO_GRES_PER_TASK = Change(
    (24, 11),
    "select/linear refuses GPUs that are asked for by task",
    "GPUs are asked for by node, on every version; so all ranks of a node see each other's",
    "CHANGELOG/slurm-24.11.md",
)
TOPOLOGY_YAML = Change(
    (25, 5),
    "topology.yaml is read: several topologies, one a partition; topology.conf beside it does not count any more",
    "topo check reads the file that counts and tells of the other one (GL432)",
    "topology.yaml(5); CHANGELOG/slurm-25.05.md",
)
TOPOLOGIES_BY_NAME = Change(
    (25, 5),
    "the word after `scontrol show topology` names a topology, no node or switch; for an unknown one nothing is printed, with exit code 0",
    "it is asked for all of the topology, on every version",
    "tried: 24.11.5 takes a node's name, 26.05.5 node=NAME; scontrol(1) of 25.05",
)
UNFILLED_BLOCKS = Change(
    (25, 5),
    "topology/block takes blocks that are smaller than the base block size",
    "topo check tells of them on older versions, where slurmctld does not start with them (GL433)",
    "tried: slurmctld of 24.11.5 and 25.11",
)
LARGE_SEGMENTS = Change(
    (25, 5),
    "topology/block takes segments larger than its base block, over neighbouring blocks where one has too few nodes",
    "before: refused with the reason, also where a block has more nodes than its size says; groups of that size become no segment",
    "tried: 24.11.5 refuses them, 26.05.5 takes them; on 25.05 and 25.11 Slurm is left to say no",
)
LISTS_SEGMENTS = Change(
    (25, 11),
    "topology/block takes --nodelist beside --segment: exactly the job's nodes, whole segments in each block",
    "before: a job with segments is pinned only where it is one segment; --place prefer needs a spare node",
    "CHANGELOG/slurm-25.11.md; tried: 24.11.5 refuses such a list, 26.05.5 takes it",
)
SEGMENTS_APART = Change(
    (25, 11),
    "--spread-segments and --consolidate-segments say where segments lie",
    "not asked for; --sbatch spread-segments does, and then leaves the choice to Slurm",
    "CHANGELOG/slurm-25.11.md; tried on 26.05.5",
)
RANKS_FOLLOW_SWITCHES = Change(
    (26, 5),
    "the tasks of a step with --distribution=block follow the topology, without SwitchAsNodeRank; before, the nodes' names",
    "topo check does not recommend it any more (GL431); a job whose ranks stand in Slurm's own order asks a step for that order",
    "tried on 26.05.5; CHANGELOG/slurm-26.05.md",
)
NO_ARBITRARY_IN_BLOCKS = Change(
    (26, 5),
    "topology/block refuses a job with --distribution=arbitrary; a step in a job may still have it",
    "nothing: on every version the step alone is asked for the order of the ranks",
    "tried on 24.11.5 and 26.05.5",
)
EXCLUSIVE_APART = Change(
    (26, 5),
    "scontrol writes a partition of whole nodes as Exclusive=NODE (or TOPO) OverSubscribe=NO; before: OverSubscribe=EXCLUSIVE",
    "both are read as a partition of whole nodes",
    "tried on 26.05.5",
)

CHANGES = (
    STEPS_APART,
    CPUS_NOT_INHERITED,
    LISTS_SPARES,
    SWITCH_AS_NODE_RANK,
    NODES_OR_HOST_FILE,
    SEGMENTS,
    REFUSES_TOO_MANY_NODES,
    MAKES_OUTPUT_FOLDERS,
    SHOWS_SCRIPTS_ALONE,
    NO_GRES_PER_TASK,
    TOPOLOGY_YAML,
    TOPOLOGIES_BY_NAME,
    UNFILLED_BLOCKS,
    LARGE_SEGMENTS,
    LISTS_SEGMENTS,
    SEGMENTS_APART,
    RANKS_FOLLOW_SWITCHES,
    NO_ARBITRARY_IN_BLOCKS,
    EXCLUSIVE_APART,
)
"""By version."""
