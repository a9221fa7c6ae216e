"""What a placement is worth on a network: a real all-reduce over real, rate-limited links, timed for several choices in one run (root).

    python tests/bench/bench_network.py

A sandbox of 48 nodes is built as its fabric says: a bridge for each switch, every link of the same rate, so that four nodes share one
uplink of their leaf and four leaves one of their pod. On a part-filled cluster the same all-reduce (the ring of `examples/train.py`;
once also gloo's where torch is installed) then runs on the nodes and in the order of

* glaunch: `glaunch ./all_reduce`, pinned to the set that it chose;
* Slurm, glaunch's order: `glaunch --place order`;
* Slurm: `srun`, its own choice, ranks in the order of names;
* random: any free nodes in any order.

Twice: with names that follow the cables, and with names that do not (as where racks are numbered across). The last case has a neighbour
whose all-reduce runs all the time over the core: there the set matters, not only the order.

The prediction beside them is that of `glaunch plan`, for a ring alone on this network; of a neighbour it knows nothing. Rates are so low
that the processor should not be the limit, and the best of some turns counts; how busy the processors were is printed. It takes two
minutes, three with torch, on two idle cores. Exits with 1 when a sum is wrong, or glaunch's bandwidth more than a tenth below another's.
"""

import importlib.util
import json
import random
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "launcher"))

from glaunch.errors import GlaunchError
from glaunch.fabric import Fabric, synthetic
from glaunch.network_model import Network, Parameter
from glaunch.placement.cost import cost_of
from glaunch.placement.predict import predict
from glaunch.sandbox.box import Sandbox
from glaunch.sandbox.options import Gpus, SandboxOptions
from glaunch.sandbox.up import check_machine, up
from glaunch.writers.slurm_topology import write_tree

ROOT = Path(__file__).resolve().parents[2]
SHAPE = "core:1 spine:3 leaf:4 node:4"
RATE_MBIT = 20
KIB, TURNS = 1024, 3
WORSE = 0.9
NETWORK = Network(rails=1, rate_gbps=RATE_MBIT, leaf_oversubscription=4, pod_oversubscription=4)
"""A thousandth of it: the model counts in Gbit/s and GB/s, this network in Mbit/s and MB/s."""


def _known(value: float) -> Parameter:
    return Parameter(value, value, value, "this network")


MODEL = {
    "efficiency": _known(0.95),  # what Ethernet, IP and TCP headers leave
    "ring_step_us": _known(0),
    "tree_step_us": _known(0),
    "tree_factor": _known(1e-6),  # it is a ring that runs here, never a tree
    "message_mib": _known(KIB / 1024 * 1000),
}
RANK = """\
#!/bin/sh
# One rank of a job that Slurm placed: ranks in the order of its list of nodes, unless FIRST says which one begins.
export RANK="$SLURM_PROCID" WORLD_SIZE="$SLURM_NTASKS" MASTER_PORT=29511
export MASTER_ADDR="${FIRST:-$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)}"
exec ./all_reduce "$@"
"""


@dataclass(frozen=True)
class Case:
    """A part-filled cluster, and a job of n nodes on it."""

    what: str
    fabric: Fabric
    busy: tuple[str, ...]
    n: int
    neighbour: tuple[str, ...] = ()
    """Some of the busy nodes, whose job talks."""

    @property
    def free(self) -> tuple[str, ...]:
        """In the order of the cables."""
        return tuple(node for switch in self.fabric.switches for node in switch.nodes if node not in self.busy)


@dataclass(frozen=True)
class Seen:
    """What one run gave."""

    hosts: tuple[str, ...]
    bus_mb_s: float


def across(fabric: Fabric) -> Fabric:
    """The same fabric with nodes numbered slot by slot over all leaves: neighbours by name are on different leaves."""
    leaves = [switch for switch in fabric.switches if switch.nodes]
    names = sorted(node for leaf in leaves for node in leaf.nodes)
    renamed = {leaf.name: tuple(names[number :: len(leaves)]) for number, leaf in enumerate(leaves)}
    return replace(fabric, switches=tuple(replace(switch, nodes=renamed.get(switch.name, ())) for switch in fabric.switches))


def cases(fabric: Fabric) -> tuple[Case, ...]:
    """One that is filled at random, and one with a talking neighbour where a greedy choice spans two pods although one has room."""
    leaves = [switch.nodes for switch in fabric.switches if switch.nodes]
    nodes = [node for leaf in leaves for node in leaf]
    half = tuple(random.Random(5).sample(nodes, len(nodes) // 2))
    free = (4, 1, 1, 0, 2, 2, 1, 0, 0, 0, 0, 0)
    others = tuple(node for leaf, count in zip(leaves, free, strict=True) for node in leaf[count:])
    return (
        Case("half of the nodes in use, here and there", fabric, half, 12),
        Case("beside a job that talks over the core", fabric, others, 5, (*leaves[3], *leaves[7])),
    )


class Bench:
    """A sandbox with the network of a fabric, and what runs on it as ada."""

    def __init__(self, box: Sandbox) -> None:
        self.box = box
        home = box.home("ada")
        here = Path(__file__).resolve().parent
        program = (here / "all_reduce.py").read_text().split("\n", 1)[1]
        texts = {
            "all_reduce": f"#!{sys.executable}\n{program}",
            "train.py": (ROOT / "examples" / "train.py").read_text(),
            "rank.sh": RANK,
        }
        for name, text in texts.items():
            (home / name).write_text(text)
            (home / name).chmod(0o755)
        self.must("chown", "-R", "ada:", "/home/ada", user="root")

    def must(self, *words: str, user: str = "ada", timeout_s: float = 120) -> str:
        """Run it inside; what it said."""
        done = self.box.exec(words, user, timeout_s=timeout_s)
        if done.code != 0:
            raise GlaunchError(f"{shlex.join(words)}: {done.code}: {done.stdout}{done.stderr}")
        return done.stdout

    def wait_idle(self, nodes: int) -> None:
        """Until so many nodes are free again."""
        deadline = time.monotonic() + 60
        while self.must("sinfo", "-h", "-t", "idle", "-o", "%D").strip() != str(nodes):
            if time.monotonic() > deadline:
                raise GlaunchError(self.must("sinfo"))
            time.sleep(0.1)

    @contextmanager
    def filled(self, case: Case) -> Iterator[None]:
        """Others' jobs on the busy nodes, and the neighbour's traffic."""
        silent = [node for node in case.busy if node not in case.neighbour]
        everything = len(case.free) + len(case.busy)
        self.must("sbatch", "-w", ",".join(silent), f"-N{len(silent)}", "--exclusive", "-o/dev/null", "--wrap=sleep 9999", user="root")
        self.wait_idle(everything - len(silent))
        talker = None
        if case.neighbour:
            talker = self.box.popen(
                self._srun(case.neighbour, "--turns=100000"), "ada", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            self.wait_idle(len(case.free))
        try:
            yield
            if talker is not None and talker.poll() is not None:
                raise GlaunchError(f"the neighbour's job ended by itself with {talker.returncode}: nothing was measured")
        finally:
            self.must("scancel", *self.must("squeue", "-h", "-o", "%i").split(), user="root")
            if talker is not None:
                talker.terminate()
                talker.wait(timeout=30)
            self.wait_idle(everything)

    def _srun(self, order: Sequence[str], *words: str) -> list[str]:
        """srun on these nodes in this order."""
        (self.box.home("ada") / "order").write_text("".join(f"{node}\n" for node in order))
        arbitrary = ("-m", "arbitrary", f"-N{len(order)}", f"-n{len(order)}", "--exclusive", "--quiet")
        return ["env", "SLURM_HOSTFILE=/home/ada/order", f"FIRST={order[0]}", "srun", *arbitrary, "./rank.sh", *words]

    def run(self, how: str, case: Case, *, torch: bool) -> Seen:
        """The all-reduce with one choice and order."""
        n = case.n
        words = (f"--kib={KIB}", f"--turns={TURNS}", *(("--torch",) if torch else ()))
        lines = {
            "glaunch": ("glaunch", "--place", "pin", "-N", str(n), "--ntasks-per-node", "1", "./all_reduce", *words),
            "Slurm, glaunch's order": ("glaunch", "--place", "order", "-N", str(n), "--ntasks-per-node", "1", "./all_reduce", *words),
            "Slurm": ("srun", f"-N{n}", "--ntasks-per-node=1", "--exclusive", "--quiet", "./rank.sh", *words),
        }
        line = lines[how] if how in lines else self._srun(random.Random(3).sample(case.free, n), *words)
        said = self.must(*line)
        found = re.search(r"RESULT (\{.*\})", said)
        if found is None:
            raise GlaunchError(f"{how}: no result in {said!r}")
        result = json.loads(found[1])
        if not result["right"]:
            raise GlaunchError(f"{how}: a wrong sum")
        self.wait_idle(len(case.free))
        hosts = tuple(f"n{number:03d}" for number in result["hosts"])
        return Seen(hosts, 2 * (n - 1) / n * result["bytes"] / min(result["spans_s"]) / 1e6)


HOW = ("glaunch", "Slurm, glaunch's order", "Slurm", "random")
SHORTER = ("glaunch", "Slurm", "random")
"""With torch, which takes long to start."""


def show(case: Case, seen: dict[str, Seen]) -> bool:
    """A table of one case; whether glaunch's was (nearly) the fastest."""
    first = seen["glaunch"].bus_mb_s
    best: float | None = None
    for how, one in seen.items():
        cost = cost_of(case.fabric, one.hosts)
        look = predict(case.fabric, one.hosts, case.n, NETWORK, MODEL)
        if cost is None or look is None or look.bandwidth is None:
            raise GlaunchError(f"{how}: nodes that the fabric does not join: {one.hosts}")
        expected = look.bandwidth.expected_gb_s
        best = best or expected
        print(
            f"    {how:<24} {cost.pods:>4} {cost.leaves:>6} {look.ring.leaf:>8} {look.ring.pod:>4} {one.bus_mb_s:>9.2f}"
            f" {one.bus_mb_s / first:>6.2f}x {expected:>9.1f} {expected / best:>6.2f}x"
        )
    return all(first >= WORSE * one.bus_mb_s for one in seen.values())


def busy_s() -> tuple[float, float]:
    """(ticks in use, ticks in all) of all processors since the start."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


def measure(fabric: Fabric, folder: Path, *, gloo: bool) -> bool:
    """All cases of one fabric, the first also with gloo; whether glaunch was never clearly slower."""
    topology = folder / "topology.conf"
    topology.write_text(write_tree(fabric))
    rate = f"{RATE_MBIT}mbit"
    box = up(SandboxOptions(dir=folder / "box", topology=topology, gpus=(Gpus("h100", 0),), rate=rate, uplink=rate))
    good = True
    try:
        bench = Bench(box)
        for case in cases(fabric):
            for torch in (False, True) if gloo and not case.neighbour else (False,):
                print(f"\n  {case.what}: {case.n} nodes, {'gloo' if torch else 'numpy ring'}")
                print(f"    {'':<24} {'':>4} {'':>6}   ring leaves          bus bandwidth, MB/s")
                print(f"    {'':<24} {'pods':>4} {'leaves':>6} {'leaf':>8} {'pod':>4} {'measured':>17} {'predicted':>17}", flush=True)
                with bench.filled(case):
                    before = busy_s()
                    seen = {how: bench.run(how, case, torch=torch) for how in (SHORTER if torch else HOW)}
                    after = busy_s()
                good = show(case, seen) and good
                print(f"    processors {(after[0] - before[0]) / (after[1] - before[1]):.0%} busy")
    finally:
        box.down()
    return good


def main() -> None:
    """Prints the tables; exits with 1 when glaunch's choice was slower."""
    try:
        check_machine()
    except GlaunchError as reason:
        sys.exit(f"no sandbox here: {reason}")
    print(f"all-reduce of {KIB} KiB, the best of {TURNS}; every link carries {RATE_MBIT} Mbit/s = {RATE_MBIT / 8:.1f} MB/s")
    fabric = synthetic(SHAPE)
    good = True
    with_torch = importlib.util.find_spec("torch") is not None
    for names, one, gloo in (("along", fabric, False), ("across", across(fabric), with_torch)):
        print(f"\nnames {names} the cables")
        with tempfile.TemporaryDirectory(prefix="glaunch-bench-", dir="/var/tmp") as folder:
            good = measure(one, Path(folder), gloo=gloo) and good
    print("\nglaunch's was never clearly slower" if good else f"\nglaunch's reached less than {WORSE} of another's: missed")
    sys.exit(not good)


if __name__ == "__main__":
    main()
