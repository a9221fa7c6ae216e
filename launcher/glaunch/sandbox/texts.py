"""The files that hosts of the sandbox find in /etc, as text."""

import re
from collections.abc import Iterable, Mapping, Sequence

from glaunch.errors import UsageError
from glaunch.hostlist import expand, fold
from glaunch.sandbox.network import CONTROLLER, Host
from glaunch.sandbox.options import USERS, Gpus

FIRST_UID = 2001
_REPEATED = {"nodename", "partitionname", "nodeset", "downnodes", "frontendname"}

_SLURM = {
    "ClusterName": "sandbox",
    "SlurmctldHost": "ctl",
    "SlurmUser": "slurm",
    "StateSaveLocation": "/srv/state",
    "SlurmdSpoolDir": "/run/slurmd",
    "SlurmctldPidFile": "/run/slurmctld.pid",
    "SlurmdPidFile": "/run/slurmd.pid",
    "SlurmctldLogFile": "/srv/log/slurmctld",
    "SlurmdLogFile": "/srv/log/slurmd-%n",
    "SelectType": "select/cons_tres",
    "SelectTypeParameters": "CR_Core",
    "ProctrackType": "proctrack/linuxproc",
    "TaskPlugin": "task/none",
    "MpiDefault": "none",
    "MailProg": "/bin/true",
    "SlurmdParameters": "config_overrides",
    "ReturnToService": "2",
}
_ACCOUNTING = {
    "AccountingStorageType": "accounting_storage/slurmdbd",
    "AccountingStorageHost": "ctl",
    "AccountingStorageEnforce": "associations,limits,qos",
    "JobAcctGatherType": "jobacct_gather/linux",
    "PriorityType": "priority/multifactor",
    "PriorityWeightQOS": "1000",
    "PreemptType": "preempt/qos",
    "PreemptMode": "REQUEUE",
}


def slurm_conf(nodes: Sequence[str], gpus: Mapping[str, Gpus], plugin: str, asked: Iterable[str], accounting: bool) -> str:
    """slurm.conf: one partition `gpu` of all nodes, 64 cores and 500,000 MiB each. `asked` lines replace ours of the same key."""
    settings = {**_SLURM, "TopologyPlugin": plugin}
    if any(each.count for each in gpus.values()):
        settings["GresTypes"] = "gpu"
    if accounting:
        settings.update(_ACCOUNTING)
        if "GresTypes" in settings:
            settings["AccountingStorageTRES"] = "gres/gpu"
    more: list[str] = []
    for line in asked:
        key = line.partition("=")[0].strip().lower()
        if key not in _REPEATED:
            settings = {name: value for name, value in settings.items() if name.lower() != key}
        more.append(line)
    lines = [f"{key}={value}" for key, value in settings.items()]
    lines.append("NodeName=DEFAULT CPUs=64 Boards=1 SocketsPerBoard=2 CoresPerSocket=32 ThreadsPerCore=1 RealMemory=500000")
    for gpu, names in _by_gpus(nodes, gpus):
        lines.append(f"NodeName={fold(names)}" + (f" Gres=gpu:{gpu.kind}:{gpu.count}" if gpu.count else ""))
    lines.append("PartitionName=gpu Nodes=ALL Default=YES MaxTime=INFINITE State=UP")
    return "".join(line + "\n" for line in (*lines, *more))


def gres_conf(nodes: Sequence[str], gpus: Mapping[str, Gpus]) -> str:
    """gres.conf: GPU devices are twins of /dev/null beside it, since slurmd wants to see a file for each."""
    return "".join(
        f"NodeName={fold(names)} Name=gpu Type={gpu.kind} File=/etc/slurm/gpu[0-{gpu.count - 1}]\n".replace("[0-0]", "0")
        for gpu, names in _by_gpus(nodes, gpus)
        if gpu.count
    )


def _by_gpus(nodes: Sequence[str], gpus: Mapping[str, Gpus]) -> list[tuple[Gpus, list[str]]]:
    groups: dict[tuple[str, int], list[str]] = {}
    for name in nodes:
        groups.setdefault((gpus[name].kind, gpus[name].count), []).append(name)
    return [(Gpus(kind, count), names) for (kind, count), names in groups.items()]


def gpus_of(nodes: Sequence[str], asked: Iterable[Gpus]) -> dict[str, Gpus]:
    """Node → its GPUs: an entry that names nodes goes before one that names none; none at all means no GPUs.

    Raises UsageError when an entry names a node that is not there.
    """
    entries = list(asked)
    rest = next((entry for entry in reversed(entries) if not entry.nodes), Gpus("", 0))
    found = dict.fromkeys(nodes, rest)
    for entry in entries:
        for name in expand(entry.nodes):
            if name not in found:
                raise UsageError(f"--gpus names {name}, which is no node of this sandbox", hint=f"its nodes are {fold(nodes)}")
            found[name] = entry
    return found


def slurmdbd_conf(asked: Iterable[str]) -> str:
    """slurmdbd.conf; PrivateData holds for both daemons."""
    private = [line for line in asked if line.lower().startswith("privatedata")]
    lines = ["DbdHost=ctl", "SlurmUser=slurm", "StorageType=accounting_storage/mysql", "StorageHost=localhost", "StorageUser=slurm"]
    lines += ["StorageLoc=slurm_acct_db", "LogFile=/srv/log/slurmdbd", "PidFile=/run/slurmdbd.pid", *private]
    return "".join(line + "\n" for line in lines)


def hosts(network: Iterable[Host]) -> str:
    """/etc/hosts: all of the sandbox, nothing of the machine's."""
    lines = ["127.0.0.1 localhost", f"{CONTROLLER} ctl", *(f"{host.address} {host.name}" for host in network)]
    return "".join(line + "\n" for line in lines)


def accounts(passwd: str, group: str) -> dict[str, str]:
    """passwd, group and shadow: the machine's system users, and in place of its people ours.

    Ids above 59999 stay too: Debian's slurm is 64030. Everybody's password is `*`: the machine may have root locked (`!`), and then
    sshd refuses root's key.
    """

    def system(text: str, dropped: set[str]) -> list[str]:
        rows = [line for line in text.splitlines() if re.match(r"[^:+\-#][^:]*:[^:]*:\d+:", line)]
        return [row for row in rows if row.split(":")[0] not in dropped and not 1000 <= int(row.split(":")[2]) <= 59999]

    people = [(name, FIRST_UID + number) for number, name in enumerate(USERS)]
    users = ["root:*:0:0:root:/home/root:/bin/bash", *(f"{name}:*:{uid}:{uid}::/home/{name}:/bin/bash" for name, uid in people)]
    users += system(passwd, {"root", *USERS})
    groups = [*system(group, set(USERS)), *(f"{name}:x:{uid}:" for name, uid in people)]
    shadow = [f"{row.split(':')[0]}:*:19000::::::" for row in users]
    return {name: "".join(row + "\n" for row in rows) for name, rows in (("passwd", users), ("group", groups), ("shadow", shadow))}


def sshd_config(users: Iterable[str]) -> str:
    """sshd_config: keys only."""
    lines = ["PidFile /run/sshd.pid", "UsePAM no", "PermitRootLogin yes", "PasswordAuthentication no", "KbdInteractiveAuthentication no"]
    lines += ["PrintLastLog no", "UseDNS no", f"AllowUsers {' '.join(users)}", "Subsystem sftp internal-sftp"]
    return "".join(line + "\n" for line in lines)


NSSWITCH = "".join(f"{base}: files\n" for base in ("passwd", "group", "shadow", "gshadow", "hosts", "networks", "protocols", "services"))
"""Files only: no directory service of the machine's, no name server to wait for."""
SITE = "# Written by `glaunch sandbox up`: every host of the sandbox sees the homes.\nrundir:\n  shared: [/home]\n"
