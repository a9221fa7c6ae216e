"""Every settings key: what it takes, what it is without a word from anybody, what it means. This table makes the docs."""

from dataclasses import dataclass
from types import MappingProxyType

from glaunch.settings import Value

FABRIC_CLASSES = ("none", "infiniband", "roce", "slingshot", "efa", "gib", "tcpx", "fastrak", "ethernet")
LAUNCH_FORMS = ("srun", "torchrun", "mpi", "accelerate", "exec")

TAKES = MappingProxyType(
    {
        "text": "a text",
        "number": "a whole number",
        "flag": "true or false",
        "words": "a list of texts, e.g. [a, b]",
        "time": "a time as Slurm writes it, e.g. 90 (minutes), 1:30:00, 2-12",
        "folder": "an absolute path as nodes see it, letters, digits and / . _ - only",
        "path": "a path (~ and $NAME are filled in)",
        "paths": "a list of paths (~ and $NAME are filled in)",
        "lines": "a list of lines of bash, each a whole command",
        "table": "names and texts, e.g. {NAME: value}",
        "version": "a version, e.g. 0.3",
    }
)
"""Kind of a key → what it takes, in words."""


@dataclass(frozen=True, slots=True)
class Key:
    """One settings key."""

    name: str
    kind: str
    default: Value
    meaning: str
    choices: tuple[str, ...] = ()
    """The only texts that it takes; () = any."""
    least: int = 0
    most: int | None = None
    site_only: bool = False
    """True: only files of the site may set it."""
    per_partition: bool = True
    """False: it is needed before the partition is known, or by commands that know of none, so a partition's section cannot hold it."""

    @property
    def takes(self) -> str:
        """What it takes, in words."""
        if self.kind in {"text", "words"} and self.choices:
            kind = "one of " if self.kind == "text" else "a list of "
            return kind + ", ".join(choice or "''" for choice in self.choices)
        if self.kind == "number":
            return f"a whole number from {self.least}" + ("" if self.most is None else f" to {self.most}")
        return TAKES[self.kind]


_EMPTY: MappingProxyType[str, str] = MappingProxyType({})
_LOCAL = ("/tmp", "/var/tmp", "/dev/shm", "/run")  # noqa: S108

# fmt: off
_KEYS = (
    Key("min_version", "version", "", "The oldest glaunch that may be used here; an older one stops and says so.",
        site_only=True, per_partition=False),
    Key("trust", "words", (), "Users whose ./glaunch.yaml is read too (one folder for a whole project); root's and your own always are.",
        per_partition=False),
    Key("partition", "text", "", "Partition without `-p`; empty: the default one if it has GPUs, else the only one that has.",
        per_partition=False),
    Key("account", "text", "", "Account without `-A`; empty: Slurm's own default for the user."),
    Key("qos", "text", "", "QOS without `-q`; empty: Slurm's own default."),
    Key("time", "time", "", "Time limit without `-t`; empty: the partition's own default, which the plan names."),
    Key("gpus_per_node", "text", "", "GPUs per node when not asked for, `8` or `h100:8`; empty: what the partition's nodes have."),
    Key("python", "path", "python3", "What runs a .py file: a name that the caller's PATH finds, or a path that every node has.",
        per_partition=False),
    Key("sbatch", "table", _EMPTY, "More sbatch options for every job: long name without dashes, value (empty for a switch)."),
    Key("launch.form", "text", "srun",
        "What starts the ranks: srun, torchrun or accelerate (one a node), mpi (one MPI job), or exec (the program itself; it runs once).",
        LAUNCH_FORMS),
    Key("launch.mpi", "text", "auto",
        "For mpi: a type of `srun --mpi=list` (pmix, pmi2, cray_shasta, …), mpirun (Open MPI's), or auto: pmix where srun has it, "
        "else mpirun, else pmi2."),
    Key("launch.options", "words", (),
        "More options for what starts the ranks (srun, torchrun, mpirun or accelerate), word by word: [--cpu-bind=cores]."),
    Key("launch.max_restarts", "number", 0, "For torchrun: how often ranks are started again after one of them failed.", most=1000),
    Key("launch.modules", "words", (), "Modules (Lmod, environment-modules) that every job loads before its ranks; --module adds one."),
    Key("launch.setup", "lines", (),
        "Lines of bash that every job runs after its modules, in the batch shell, before its ranks start; --setup adds one."),
    Key("container.image", "text", "",
        "The container that ranks start in: a file, an image of a registry, or a name of container.images; empty or none: no container."),
    Key("container.runtime", "text", "auto",
        "pyxis (srun's own options), apptainer (or its forerunner singularity), or auto: pyxis where srun has it, else the other.",
        ("auto", "pyxis", "apptainer")),
    Key("container.mounts", "words", (), "SRC[:DST[:ro]] that every container shows; --container-mounts adds to it."),
    Key("container.workdir", "text", "", "Where ranks start inside; empty: the folder of the submission, which is shown at its own path."),
    Key("container.env", "words", (),
        "Variables whose value in the job wins over the image's; those that glaunch sets are among them anyway."),
    Key("container.options", "words", (), "More words for the runtime: options of srun for pyxis, of `apptainer exec` for the other."),
    Key("container.images", "table", _EMPTY, "The site's own names: `NAME: /apps/images/pytorch-24.05.sqsh`."),
    Key("container.mirrors", "table", _EMPTY,
        "Registry → the mirror that nodes reach: `docker.io: registry.example.org/hub`; images are fetched from there."),
    Key("container.import_timeout_s", "number", 1800, "How long bringing an image onto the nodes may take.", least=10, most=86400),
    Key("container.node_dir", "folder", "/tmp", "Folder on each node that holds an image which Apptainer fetched, until the job's end."),  # noqa: S108
    Key("rundir.path", "path", "glaunch-jobs", "Where the folders of jobs are made; relative: below the submit folder. Nodes must see it.",
        per_partition=False),
    Key("rundir.shared", "paths", (), "Paths that every node sees: no warning below them.",
        per_partition=False),
    Key("rundir.local", "paths", _LOCAL, "Paths that nodes do not share: a job folder below them is warned of.",
        per_partition=False),
    Key("placement.mode", "text", "auto",
        "auto (a pin where it costs no waiting, else order), pin, prefer (the best nodes or as good ones), or order (Slurm picks).",
        ("auto", "pin", "prefer", "order")),
    Key("placement.allowed", "words", ("pin", "prefer", "order"),
        "Which ways of placing may be used; `[order]` switches asking for nodes off.",
        ("pin", "prefer", "order")),
    Key("placement.pin_max_nodes", "number", 0, "The largest job that is pinned, in nodes; 0: any.", most=1 << 20),
    Key("placement.prefer_max_nodes", "number", 0, "The largest job for which nodes are preferred; 0: any.", most=1 << 20),
    Key("placement.powered_down", "text", "last",
        "Nodes that must be powered up first: last (only when the others do not suffice) or free.",
        ("last", "free")),
    Key("placement.objective", "text", "hops",
        "What makes nodes good: hops (near each other, pair by pair), ring (neighbours in a ring), spread (fewest pods, then leaves).",
        ("hops", "ring", "spread")),
    Key("placement.penalties", "table", _EMPTY,
        "Nodes to leave alone among equals: `HOSTLIST: points`, or `HOSTLIST: {value: points, reason: …}`; null takes a line back."),
    Key("placement.on_bad", "text", "warn",
        "What a job does in more pods than its size needs: warn, fail, or requeue (back to the queue, once, unless pinned).",
        ("warn", "fail", "requeue")),
    Key("network.rails", "number", 0, "Adapters of a node that a job uses at once; 0: not known, then no bandwidth is predicted.", most=64),
    Key("network.rate_gbps", "number", 0, "What one adapter carries each way, in Gbit/s; 0: not known.", most=100000),
    Key("network.leaf_oversubscription", "number", 0, "Links down per link up of a leaf, 1: none; 0: not known.", most=1000),
    Key("network.pod_oversubscription", "number", 0, "The same for what is above the leaves of a pod.", most=1000),
    Key("pin.patience_s", "number", 30, "How long a pinned job may wait before its pin is lifted.", least=1, most=3600,
        per_partition=False),
    Key("fabric.class", "text", "", "The network that jobs use; it chooses the rules of environment.md. Empty or none: nothing is set.",
        ("", *FABRIC_CLASSES)),
    Key("fabric.fail_fast", "flag", False,
        "On InfiniBand and RoCE: a job without working RDMA stops at its start instead of falling back to TCP."),
    Key("fabric.topology", "path", "",
        "The site's own fabric, as `glaunch topo import FILE` saved it: it counts beside Slurm's topology. Empty: Slurm's alone.",
        per_partition=False),
    Key("environment.set", "table", _EMPTY,
        "Variables for every job: `NAME: value`, or `NAME: {value: …, reason: …}`; null takes a name back."),
    Key("environment.debug", "flag", False, "NCCL tells at its start what it found and chose (NCCL_DEBUG=INFO), not warnings only."),
    Key("logs.node_dir", "folder", "/tmp", "Folder on each node in which `$GLAUNCH_LOG_DIR` is made."),  # noqa: S108
    Key("logs.max_host_mib", "number", 256, "The most that is brought home from one node; the rest is left there, and that is said.",
        least=1, most=1 << 20),
    Key("gather.timeout_s", "number", 10, "How long the job's own gathering of logs at its end may take.", least=1, most=600),
    Key("gather.before_limit_s", "number", 60, "How long before its time limit the job gathers its logs; 0: not before the limit.",
        most=3600),
    Key("ssh.enabled", "flag", True, "false: logs come home by the job's own gathering alone, never over SSH."),
    Key("ssh.port", "number", 22, "Port of sshd on the nodes.", least=1, most=65535),
    Key("ssh.fanout", "number", 16, "How many nodes are asked at once.", least=1, most=256),
    Key("ssh.connect_timeout_s", "number", 10, "How long one node may take to answer.", least=1, most=600),
    Key("ssh.deadline_s", "number", 120, "How long one node may take in all, from connecting to its last byte.", least=1, most=86400),
    Key("ssh.known_hosts", "paths", ("~/.ssh/known_hosts", "/etc/ssh/ssh_known_hosts"),
        "Files that hold the nodes' host keys, in this order."),
    Key("follow.poll_s", "number", 10, "How often Slurm is asked about a job that is followed, at first.", least=2, most=3600),
    Key("follow.max_poll_s", "number", 60, "The longest pause between two questions, after backing off.", least=10, most=3600),
    Key("slurm.timeout_s", "number", 20, "How long one Slurm command may take.", least=1, most=600, per_partition=False),
    Key("slurm.gateway", "text", "auto",
        "auto (pyslurm where it is installed and made for this Slurm, else Slurm's commands), pyslurm or commands; see gateway.md.",
        ("auto", "pyslurm", "commands"), per_partition=False),
    Key("slurm.submit", "text", "sbatch",
        "sbatch, or pyslurm: then cli_filter plugins and SPANK options do not see the job, and each submission says so.",
        ("sbatch", "pyslurm"), per_partition=False),
    Key("slurm.keep_s", "number", 3600, "How long answers about configuration, partitions and topology are kept; never node states.",
        most=86400, per_partition=False),
)
# fmt: on

KEYS = MappingProxyType({key.name: key for key in _KEYS})
"""Dotted name → key, in the order of the docs."""

SECTIONS = frozenset(name.rpartition(".")[0] for name in KEYS if "." in name)
"""`rundir`, `placement`, …: names that hold keys and no value."""


OWN_KEYS = MappingProxyType(
    {"partition": "partition", "account": "account", "qos": "qos", "time": "time", "gpus-per-node": "gpus_per_node"}
)
"""sbatch's long option → the key that is its default."""


def variable_of(name: str) -> str:
    """The environment variable that sets a key: `ssh.port` → `GLAUNCH_SSH_PORT`."""
    return "GLAUNCH_" + name.upper().replace(".", "_")
