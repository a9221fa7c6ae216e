"""`make bench`: how long `glaunch topo audit` takes for a made-up week of 100,000 jobs on 16,384 nodes of 1,024 leaves.

The whole command in a fresh Python, from a file of sacct's: reading, counting, the page. Bound: 10 s. Exit code 1 when it is broken.
"""

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "launcher")]

from glaunch.fabric import synthetic  # noqa: E402
from glaunch.hostlist import fold  # noqa: E402
from glaunch.parsers.past_jobs import FIELDS  # noqa: E402
from glaunch.writers.slurm_topology import write_tree  # noqa: E402

SHAPE = "core:1 pod:32 leaf:32 node:16"
JOBS, BOUND_S = 100_000, 10.0


def week() -> str:
    """Jobs of 1 to 64 nodes: most of them side by side, the others anywhere."""
    chance = random.Random(7)
    nodes = list(synthetic(SHAPE).leaf_of)
    rows = ["|".join(FIELDS)]
    for number in range(JOBS):
        size = chance.choice((1, 1, 2, 4, 4, 8, 8, 16, 32, 64))
        first = chance.randrange(len(nodes) - size)
        chosen = nodes[first : first + size] if chance.random() < 0.6 else sorted(chance.sample(nodes, size))
        rows.append(f"{number}|gpu|{size}|{fold(chosen)}|0{chance.randrange(10)}:00:00|COMPLETED|ada")
    return "\n".join(rows) + "\n"


def main() -> int:
    """Print the time; 1 when the bound is broken."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "week.txt").write_text(week())
        (folder / "topology.conf").write_text(write_tree(synthetic(SHAPE)))
        argv = [sys.executable, "-m", "glaunch", "topo", "audit", "--from", "week.txt", "--fabric", "topology.conf"]
        spans = []
        for _ in range(3):
            begin = time.perf_counter()
            done = subprocess.run(
                argv,
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(ROOT / "launcher")},
                capture_output=True,
                text=True,
                timeout=120,
                check=True,
            )
            spans.append(time.perf_counter() - begin)
    if not done.stdout.startswith(f"{JOBS:,} jobs"):
        sys.exit(done.stdout)
    print(f"\n{JOBS:,} past jobs on {SHAPE}")
    print(f"  {'glaunch topo audit --from week.txt':<46} {min(spans):9.1f} s    (bound {BOUND_S:.0f} s)")
    return int(min(spans) > BOUND_S)


if __name__ == "__main__":
    sys.exit(main())
