"""`make bench`: a snapshot of 10,240 nodes through each gateway, from a real slurmctld of that size to the nouns that a plan is made of.

slurmctld stands alone (tests/controller.py), in a network of its own; the other side of the table is what Slurm's own command takes to
print the same nodes to nobody. The pyslurm side runs where pyslurm is installed for this Python, and says so where it is not. Exit code 1
when a snapshot takes longer than BOUND_S, or the two gateways do not tell the same.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "launcher"), str(ROOT)]

from tests.bench.bench_start import medians, table  # noqa: E402
from tests.controller import Controller, missing  # noqa: E402

from glaunch.cluster import Cluster  # noqa: E402
from glaunch.fabric import synthetic  # noqa: E402
from glaunch.gateways.kept import read_cluster  # noqa: E402
from glaunch.gateways.process import Completed, Run, Surroundings, within  # noqa: E402
from glaunch.gateways.slurm import SlurmCommands  # noqa: E402
from glaunch.gateways.slurm_native import PROGRAM, SlurmNative  # noqa: E402

BOUND_S = 2.0


def main() -> int:
    """Print the table; 1 where a bound is broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--leaves", type=int, default=640, help="of 16 nodes each")
    options = parser.parse_args()
    if why := missing():
        print(f"\na snapshot from a slurmctld of {options.leaves * 16:,} nodes: {why}, left out")
        return 0
    with tempfile.TemporaryDirectory(prefix="glaunch-bench-", dir="/var/tmp") as folder:
        controller = Controller(Path(folder) / "ctl", synthetic(f"core:1 spine:{options.leaves // 32} leaf:32 node:16"))
        try:
            return measure(controller, options.rounds)
        finally:
            controller.close()


def measure(controller: Controller, rounds: int) -> int:
    """The table of one controller."""
    beside = ("nsenter", f"--net=/proc/{controller.pid}/ns/net")
    environ = {"PATH": os.environ["PATH"], "SLURM_CONF": str(controller.folder / "slurm.conf")}
    last: dict[str, Cluster] = {}

    def surround(surroundings: Surroundings) -> Run:
        def run(argv: Sequence[str], stdin: str, timeout_s: float) -> Completed:
            return within(surroundings)((*beside, *argv), stdin, timeout_s)

        return run

    def snapshot(name: str, gateway: Callable[[], SlurmCommands]) -> Callable[[], float]:
        def case() -> float:
            one = gateway()  # a new one each time, as a new glaunch command has it
            began = time.perf_counter()
            last[name] = read_cluster(one, 0.0)[0]
            return time.perf_counter() - began

        return case

    def printed() -> float:
        began = time.perf_counter()
        controller.run("scontrol", "-a", "-d", "-o", "show", "node")
        return time.perf_counter() - began

    def native() -> SlurmCommands:
        program = (*beside, sys.executable, str(PROGRAM))
        return SlurmNative(fall_back=False, say=print, program=program, environ=environ, surround=surround)

    cases = {
        "scontrol -d -o show node": printed,
        "through Slurm's commands": snapshot("commands", lambda: SlurmCommands(environ=environ, surround=surround)),
    }
    if find_spec("pyslurm") is not None:
        cases["through pyslurm"] = snapshot("pyslurm", native)
    found = medians(cases, rounds)
    base_s = found["scontrol -d -o show node"]
    rows = [(name, span_s, f"{span_s / base_s:.2f} x scontrol's own; bound {BOUND_S:.0f} s") for name, span_s in found.items()]
    version = ".".join(map(str, last["commands"].slurm_version))
    nodes = len(last["commands"].nodes)
    table(f"a snapshot of {nodes:,} nodes (nodes, partitions, reservations, configuration, topology), Slurm {version}", rows)
    if "pyslurm" not in last:
        print("  through pyslurm: not installed for this Python, left out (make test-versions has it beside Slurm 26.05)")
    elif last["pyslurm"].nodes != last["commands"].nodes or last["pyslurm"].partitions != last["commands"].partitions:
        print("  the two gateways do not tell the same")
        return 1
    return int(max(found.values()) > BOUND_S)


if __name__ == "__main__":
    sys.exit(main())
