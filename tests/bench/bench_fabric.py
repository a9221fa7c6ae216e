"""`make bench`: how long it takes to read a fabric, and how much memory.

A 3-tier fabric of 102,400 nodes from a topology.conf (bounds: 1 s, 400 MB for the whole process, Python and all), and dumps of
ibnetdiscover of rail-optimised fabrics of 2,560, 5,120 and 10,240 nodes of 8 rails, read and turned into the tree: time must grow no faster
than the text (bound: 1.5 x linear, the least of so many rounds each, taken in turn). Exit code 1 when a bound is broken.
"""

import argparse
import resource
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "launcher"), str(ROOT)]

from glaunch.fabric import synthetic  # noqa: E402
from glaunch.hierarchy import fabric_of  # noqa: E402
from glaunch.parsers.ibnetdiscover import parse_ibnetdiscover  # noqa: E402
from glaunch.parsers.slurm_topology import parse_topology_conf  # noqa: E402
from glaunch.writers.slurm_topology import write_tree  # noqa: E402

SHAPE = "core:1 spine:50 leaf:64 node:32"
NODES = 102_400
BOUND_S, BOUND_MB, BOUND_GROWTH = 1.0, 400.0, 1.5
PER_UNIT, RAILS, UNITS_PER_POD = 32, 8, 20


def timed_conf(path: Path) -> tuple[float, float]:
    """(seconds, peak MB of the process) of one fresh Python that reads the file."""
    done = subprocess.run([sys.executable, __file__, "--only-conf", str(path)], capture_output=True, text=True, timeout=120, check=True)
    span_s, peak_mb = done.stdout.split()
    return float(span_s), float(peak_mb)


def only_conf(path: Path) -> None:
    """Read the file, count its nodes, print seconds and peak memory."""
    text = path.read_text()
    begin = time.perf_counter()
    fabric = parse_topology_conf(text, where=str(path))
    count, tiers = len(fabric.leaf_of), fabric.tiers
    span_s = time.perf_counter() - begin
    if (count, tiers) != (NODES, 3):
        sys.exit(f"read {count} nodes on {tiers} tiers")
    print(span_s, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def dump(nodes: int) -> str:
    """What ibnetdiscover says of so many nodes of 8 rails: a leaf a rail and unit, pods of 20 units, a spine plane a rail."""
    units = nodes // PER_UNIT
    pods = -(-units // UNITS_PER_POD)
    places = [(pod, rail, n) for pod in range(pods) for rail in range(RAILS) for n in range(4)]
    spines = [f"{0x900000 + pod * 0x100 + rail * 0x10 + n:016x}" for pod, rail, n in places]
    below: dict[str, list[str]] = {spine: [] for spine in spines}
    out: list[str] = ["#", "# Topology file: generated on Mon Nov 30 03:44:21 2026", "#"]
    for unit in range(units):
        for rail in range(RAILS):
            leaf = f"{0x200000 + unit * RAILS + rail:016x}"
            rows = []
            for place in range(PER_UNIT):
                node = unit * PER_UNIT + place
                own = 0x10000000 + node * 16 + rail
                rows.append(f'[{place + 1}]\t"H-{own:016x}"[1]({own:x}) \t\t# "n{node + 1:05d} mlx5_{rail}" lid 7 4xNDR')
                out += ["", "vendid=0x2c9", "devid=0x1021", f"sysimgguid=0x{own:x}", f"caguid=0x{own:x}"]
                out.append(f'Ca\t1 "H-{own:016x}"\t\t# "n{node + 1:05d} mlx5_{rail}"')
                out.append(f'[1]({own:x}) \t"S-{leaf}"[{place + 1}]\t\t# lid 7 lmc 0 "leaf{unit}-{rail}" lid 3 4xNDR')
            first = unit // UNITS_PER_POD * RAILS * 4 + rail * 4
            for number, spine in enumerate(spines[first : first + 4]):
                port = unit % UNITS_PER_POD + 1
                rows.append(f'[{PER_UNIT + number + 1}]\t"S-{spine}"[{port}]\t\t# "spine{first + number}" lid 4 4xNDR')
                below[spine].append(f'[{port}]\t"S-{leaf}"[{PER_UNIT + number + 1}]\t\t# "leaf{unit}-{rail}" lid 3 4xNDR')
            out += ["", "vendid=0x2c9", "devid=0xd2f2", f"switchguid=0x{int(leaf, 16):x}({int(leaf, 16):x})"]
            out += [f'Switch\t64 "S-{leaf}"\t\t# "leaf{unit}-{rail}" enhanced port 0 lid 3 lmc 0', *rows]
    for number, (spine, rows) in enumerate(below.items()):
        for core in range(2):
            top = f"{0xC00000 + number % (RAILS * 4) * 2 + core:016x}"
            rows.append(f'[{60 + core}]\t"S-{top}"[{number // (RAILS * 4) + 1}]\t\t# "core" lid 5 4xNDR')
        out += ["", "vendid=0x2c9", "devid=0xd2f2", f"switchguid=0x{int(spine, 16):x}({int(spine, 16):x})"]
        out += [f'Switch\t64 "S-{spine}"\t\t# "spine{number}" base port 0 lid 4 lmc 0', *rows]
    return "\n".join(out) + "\n"


def timed_dump(text: str, nodes: int) -> tuple[float, float]:
    """(seconds to read, seconds to the tree)."""
    begin = time.perf_counter()
    network = parse_ibnetdiscover(text, where="dump")
    read_s = time.perf_counter() - begin
    begin = time.perf_counter()
    fabric = fabric_of(network)
    tree_s = time.perf_counter() - begin
    if len(fabric.leaf_of) != nodes or len(fabric.leaves) != nodes // PER_UNIT or len(fabric.leaves[0]) == 0:
        sys.exit(f"{len(fabric.leaf_of)} nodes in {len(fabric.leaves)} units were read out of a dump of {nodes}")
    return read_s, tree_s


def main() -> int:
    """Print the tables; 1 when a bound is broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only-conf", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only_conf:
        only_conf(options.only_conf)
        return 0
    import tempfile

    with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
        file.write(write_tree(synthetic(SHAPE)))
        file.flush()
        found = [timed_conf(Path(file.name)) for _ in range(options.rounds)]
    span_s, peak_mb = min(found)
    print(f"\ntopology.conf of {NODES:,} nodes on three tiers")
    print(f"  {'read, to the leaf of every node':<46} {span_s * 1e3:9.0f} ms   (bound {BOUND_S:.0f} s)")
    print(f"  {'peak memory of that Python':<46} {peak_mb:9.0f} MB   (bound {BOUND_MB:.0f} MB)")
    sizes = (2_560, 5_120, 10_240)
    texts = {nodes: dump(nodes) for nodes in sizes}
    rounds = [{nodes: timed_dump(text, nodes) for nodes, text in texts.items()} for _ in range(options.rounds)]
    print(f"\nibnetdiscover, {RAILS} rails")
    least = {}
    for nodes, text in texts.items():
        read_s, tree_s = (min(turn[nodes][part] for turn in rounds) for part in (0, 1))
        least[nodes] = read_s + tree_s
        per = least[nodes] / least[sizes[0]]
        size = f"{nodes:,} nodes, {len(text) / 1e6:.0f} MB"
        print(f"  {size:<46} read {read_s:6.2f} s   tree {tree_s:5.2f} s   {per:4.1f} x the smallest ({nodes / sizes[0]:.0f} x the nodes)")
    growth = least[sizes[-1]] / least[sizes[0]] / (sizes[-1] / sizes[0])
    print(f"  growth beside linear: {growth:.2f}   (bound {BOUND_GROWTH})")
    return 1 if span_s > BOUND_S or peak_mb > BOUND_MB or growth > BOUND_GROWTH else 0


if __name__ == "__main__":
    sys.exit(main())
