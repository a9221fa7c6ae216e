"""`make bench`: how long glaunch takes before anything happens, each figure beside what it should be compared with, in one run.

Start-up beside a Python that imports the same packages; `glaunch plan` on a real Slurm of 128 nodes (a sandbox; root) beside that Python
and beside `sbatch --test-only`; the parsers on 10,240 nodes beside Python's own `str.split` on the same text. Times are medians, runs are
interleaved, and ratios are what counts: a busy machine slows both sides. Exit code 1 when planning breaks its bound (2 x the sum).
"""

import argparse
import compileall
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

LAUNCHER = Path(__file__).resolve().parents[2] / "launcher"
sys.path.insert(0, str(LAUNCHER))

from glaunch.parsers.slurm_nodes import parse_nodes  # noqa: E402
from glaunch.parsers.slurm_topology import parse_topology  # noqa: E402
from glaunch.sandbox.box import Sandbox  # noqa: E402
from glaunch.sandbox.options import SandboxOptions  # noqa: E402
from glaunch.sandbox.up import up  # noqa: E402

PACKAGES = ("click", "jinja2", "numpy", "paramiko", "rich", "yaml")
BOUND = 2.0
NODE = (
    "NodeName=n{0:05d} Arch=x86_64 CoresPerSocket=32 CPUAlloc={1} CPUEfctv=64 CPUTot=64 CPULoad=0.02 AvailableFeatures=(null)"
    " ActiveFeatures=(null) Gres=gpu:h100:8(S:0-1) GresDrain=N/A GresUsed=gpu:h100:{2}(IDX:{3}) NodeAddr=n{0:05d}"
    " NodeHostName=n{0:05d} Version=22.05.8 OS=Linux RealMemory=500000 AllocMem=0 FreeMem=400000 Sockets=2 Boards=1 State={4}"
    " ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A Partitions=gpu BootTime=2026-01-01T00:00:00"
    " CfgTRES=cpu=64,mem=500000M,billing=64,gres/gpu=8 AllocTRES="
)


CPU_S: dict[str, float] = {}
"""The median of the processor time (user and system, all its processes) of each case of the last `medians`."""


def medians(cases: dict[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """The median of each case over so many rounds, the cases taken in turn (one round before, not counted)."""
    times: dict[str, list[float]] = {name: [] for name in cases}
    cpu: dict[str, list[float]] = {name: [] for name in cases}
    for turn in range(rounds + 1):
        for name, case in cases.items():
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            span_s = case()
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            if turn:
                times[name].append(span_s)
                cpu[name].append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    CPU_S.clear()
    CPU_S.update({name: statistics.median(spans) for name, spans in cpu.items()})
    return {name: statistics.median(spans) for name, spans in times.items()}


def started(argv: list[str], env: dict[str, str] | None = None) -> Callable[[], float]:
    """A case: run this to its end; it must succeed."""

    def case() -> float:
        begin = time.perf_counter()
        done = subprocess.run(argv, capture_output=True, text=True, env=env, timeout=60)
        span_s = time.perf_counter() - begin
        if done.returncode != 0:
            sys.exit(f"{' '.join(argv)} ended with {done.returncode}: {done.stderr}")
        return span_s

    return case


def table(title: str, rows: list[tuple[str, float, str]]) -> None:
    """One block of the answer."""
    print(f"\n{title}")
    for name, span_s, beside in rows:
        print(f"  {name:<58} {span_s * 1e3:9.1f} ms   {beside}")


def start_up(rounds: int) -> None:
    """`glaunch --help` beside the Python it runs on."""
    env = dict(os.environ, PYTHONPATH=str(LAUNCHER))
    run = [sys.executable, "-m", "glaunch"]
    found = medians(
        {
            "python -c pass": started([sys.executable, "-c", "pass"]),
            "python, import click": started([sys.executable, "-c", "import click"]),
            "glaunch --version": started([*run, "--version"], env),
            "glaunch --help": started([*run, "--help"], env),
        },
        rounds,
    )
    base_s = found["python, import click"]
    table("start-up", [(name, span_s, f"{span_s / base_s:.2f} x import click") for name, span_s in found.items()])


def imported_by(box: Sandbox, argv: list[str]) -> tuple[str, ...]:
    """Which of the heavy packages this command of glaunch imports, as Python itself tells it."""
    done = box.exec(argv, user="ada", env={"PYTHONPROFILEIMPORTTIME": "1"}, timeout_s=60)
    names = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    return tuple(name for name in PACKAGES if name in names)


def planning(rounds: int, nodes: int) -> bool:
    """`glaunch plan` on a real Slurm beside a Python with the same imports and beside `sbatch --test-only`; whether the bound holds."""
    if os.geteuid() != 0:
        print("\nplanning on a real Slurm: needs root, left out")
        return True
    with tempfile.TemporaryDirectory(prefix="glaunch-bench-", dir="/var/tmp") as folder:
        box = up(SandboxOptions(dir=Path(folder) / "box", nodes=nodes))
        try:
            (box.home("ada") / "train.py").write_text("print('here')\n")
            plan = ["glaunch", "plan", "train.py", "-n", "64"]
            packages = imported_by(box, plan)
            imports = [sys.executable, "-c", f"import {', '.join(packages)}"]
            test_only = ["sbatch", "--test-only", "-N8", "--ntasks-per-node=8", "--gres=gpu:h100:8", "--wrap", "true"]
            names = {"plan": plan, "python": imports, "sbatch": test_only}
            counted = medians({name: started(box.argv(argv, "ada")) for name, argv in names.items()}, rounds)
        finally:
            box.down()
    total_s = counted["python"] + counted["sbatch"]
    ratio = counted["plan"] / total_s
    busy = CPU_S["plan"] / (CPU_S["python"] + CPU_S["sbatch"])
    table(
        f"planning 64 ranks on a real Slurm of {nodes} nodes",
        [
            (f"python, import {' '.join(packages)}", counted["python"], ""),
            ("sbatch --test-only", counted["sbatch"], ""),
            ("glaunch plan", counted["plan"], f"{ratio:.2f} x their sum (bound {BOUND:.0f}); {busy:.2f} x in processor time"),
        ],
    )
    return ratio <= BOUND


def parsing(rounds: int, nodes: int) -> None:
    """The parsers on a made-up cluster beside `str.split` on the same text."""
    states = (("0", "0", "N/A", "IDLE"), ("64", "8", "0-7", "ALLOCATED"), ("8", "1", "3", "MIXED"))
    text = "\n".join(NODE.format(number, *states[number * 7 % 3]) for number in range(1, nodes + 1)) + "\n"
    leaves = "".join(
        f"SwitchName=leaf{leaf} Level=0 LinkSpeed=1 Nodes=n[{leaf * 16 + 1:05d}-{leaf * 16 + 16:05d}]\n" for leaf in range(nodes // 16)
    )
    top = f"SwitchName=core Level=1 LinkSpeed=1 Nodes=n[00001-{nodes:05d}] Switches=leaf[0-{nodes // 16 - 1}]\n"

    def timed(act: Callable[[], object]) -> Callable[[], float]:
        def case() -> float:
            begin = time.perf_counter()
            act()
            return time.perf_counter() - begin

        return case

    found = medians(
        {
            "split nodes": timed(lambda: [line.split() for line in text.splitlines()]),
            "nodes": timed(lambda: parse_nodes(text)),
            "topology": timed(lambda: parse_topology(leaves + top, where="bench")),
        },
        max(3, rounds // 3),
    )
    if len(parse_nodes(text)) != nodes:
        sys.exit("the parser lost nodes")
    size = f"{len(text) / 1e6:.1f} MB"
    beside = found["nodes"] / found["split nodes"]
    table(
        f"parsing {nodes:,} nodes",
        [
            (f"str.split of `scontrol show node`, {size}", found["split nodes"], ""),
            ("parse_nodes, the same text", found["nodes"], f"{beside:.2f} x split, {found['nodes'] / nodes * 1e6:.1f} us a node"),
            (f"parse_topology, {nodes // 16} leaves", found["topology"], ""),
        ],
    )


def main() -> int:
    """Print the tables; 1 when the planning bound is broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--nodes", type=int, default=128, help="nodes of the sandbox")
    parser.add_argument("--parse-nodes", type=int, default=10_240)
    options = parser.parse_args()
    compileall.compile_dir(str(LAUNCHER), quiet=1)  # as an installer does; the sandbox's users could not write the bytecode
    start_up(options.rounds)
    parsing(options.rounds, options.parse_nodes)
    return 0 if planning(options.rounds, options.nodes) else 1


if __name__ == "__main__":
    sys.exit(main())
