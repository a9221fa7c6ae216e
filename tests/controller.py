"""A real slurmctld of any size with no slurmd behind it, in a network and a mount namespace of its own: what Slurm itself would choose.

Its nodes are State=CLOUD, which slurmctld believes without ever having seen them; Slurm 22.05 shows such nodes with PrivateData=cloud.
Nothing listens outside; all of it ends with `close`.
"""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from glaunch.fabric import Fabric
from glaunch.hostlist import expand, fold
from glaunch.writers.slurm_topology import write_tree

CONF = """\
ClusterName=alone
SlurmctldHost=localhost
SlurmUser=root
AuthType=auth/none
CredType=cred/none
SlurmctldPort=7817
SlurmdPort=7818
StateSaveLocation={dir}/state
SlurmctldPidFile={dir}/slurmctld.pid
SlurmctldLogFile={dir}/slurmctld.log
SlurmdSpoolDir={dir}/spool
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MailProg=/bin/true
TopologyPlugin=topology/tree
SchedulerType=sched/backfill
PrivateData=cloud
ResumeProgram=/bin/true
SuspendProgram=/bin/true
SuspendTime=INFINITE
ResumeTimeout=65000
ReturnToService=2
MaxArraySize=2
NodeName=DEFAULT CPUs=8 RealMemory=1000 State=CLOUD
NodeName={nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=EXCLUSIVE
"""


def missing() -> str:
    """What this machine lacks for it; "" if nothing."""
    if os.geteuid() != 0:
        return "not root"
    return next((f"no {name}" for name in ("slurmctld", "sbatch", "unshare", "nsenter", "ip") if not shutil.which(name)), "")


class Controller:
    """slurmctld over `fabric`, its files below `folder`."""

    def __init__(self, folder: Path, fabric: Fabric) -> None:
        self.folder, self.fabric = folder, fabric
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "state").mkdir(exist_ok=True)
        nodes = [node for switch in fabric.switches for node in switch.nodes]
        (folder / "slurm.conf").write_text(CONF.format(dir=folder, nodes=fold(nodes)))
        (folder / "topology.conf").write_text(write_tree(fabric))
        # Without an address beside the loopback glibc finds none to listen on (AI_ADDRCONFIG).
        link = "ip link set lo up && ip link add lan type bridge && ip address add 10.99.0.1/24 dev lan && ip link set lan up"
        start = f'{link} && exec slurmctld -D -f "$0/slurm.conf"'
        self.process = subprocess.Popen(
            ["unshare", "--net", "--pid", "--fork", "--kill-child", "sh", "-c", start, str(folder)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "SLURM_CONF": str(folder / "slurm.conf")},
        )
        try:
            self._wait()
        except RuntimeError:
            self.close()
            raise

    def _wait(self, timeout_s: float = 120) -> None:
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                break
            children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
            if children:
                self.pid = int(children[0])
                if "UP" in self.run("scontrol", "ping").stdout:
                    return
            time.sleep(0.2)
        log = self.folder / "slurmctld.log"
        raise RuntimeError("slurmctld does not answer: " + (log.read_text()[-1000:] if log.exists() else "no log"))

    def run(self, *words: str, env: Mapping[str, str] | None = None, timeout_s: float = 120) -> "subprocess.CompletedProcess[str]":
        """A command beside the controller."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "SBATCH_", "GLAUNCH_"))}
        return subprocess.run(
            ["nsenter", f"--net=/proc/{self.pid}/ns/net", *words],
            capture_output=True,
            text=True,
            timeout=timeout_s,
            env={**clean, "SLURM_CONF": str(self.folder / "slurm.conf"), **(env or {})},
        )

    def occupy(self, nodes: Sequence[str]) -> None:
        """One job that has these nodes for ever."""
        listed = self.folder / "busy.txt"
        listed.write_text("".join(f"{node}\n" for node in nodes))
        done = self.run("sbatch", f"-w{listed}", f"-N{len(nodes)}", "--output=/dev/null", "--wrap=sleep 99999")
        if done.returncode:
            raise RuntimeError(done.stderr)
        deadline = time.monotonic() + 60
        while "PD" in self.run("squeue", "-h", "-o", "%t").stdout:
            if time.monotonic() > deadline:
                raise RuntimeError(self.run("squeue").stdout)
            time.sleep(0.2)

    @property
    def version(self) -> tuple[int, int]:
        """(22, 5) for Slurm 22.05."""
        year, month, *_ = re.findall(r"\d+", self.run("sinfo", "--version").stdout)
        return int(year), int(month)

    def choice(self, n: int, *words: str) -> tuple[str, ...]:
        """The nodes that Slurm would give a job of n nodes now; () when it would have to wait."""
        done = self.run("sbatch", "--test-only", f"-N{n}", "--time=10", *words, "--wrap=true")
        found = re.search(r" on nodes (\S+)", done.stderr)
        if not found:
            raise RuntimeError(done.stderr)
        return expand(found[1])

    def close(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait(timeout=30)
