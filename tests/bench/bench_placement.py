"""How long the exact placement takes, and what it gains over the usual greedy one: `python tests/bench/bench_placement.py`.

Both run in one process on the same free nodes, so that their ratio means something on any machine. Occupancy is made up: `jobs` fills
the machine with neighbouring runs of nodes of heavy-tailed length, as a scheduler leaves it behind; `holes` takes each node
by itself, the worst case for any placement.
"""

import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "launcher"))

from glaunch.fabric import Fabric, synthetic
from glaunch.placement.cost import cost_of
from glaunch.placement.order import fabric_order
from glaunch.placement.place import Candidates, best_possible, place

SHAPES = {
    "1,024 (2 tiers)": "core:1 leaf:32 node:32",
    "10,240 (3 tiers)": "core:1 spine:20 leaf:16 node:32",
    "102,400 (3 tiers)": "core:1 spine:100 leaf:32 node:32",
    "102,400 (4 tiers)": "top:1 hall:4 spine:25 leaf:32 node:32",
}
SIZES = (8, 64, 256, 1024, 4096)
SEEDS = (1, 2, 3)


def greedy(fabric: Fabric, free: tuple[str, ...], n: int) -> list[str]:
    """The lowest switch with n free nodes below it (of several the fullest), then its leaves from the emptiest on, the last by best fit."""
    per_leaf: dict[str, list[str]] = {}
    for node in free:
        per_leaf.setdefault(fabric.leaf_of[node], []).append(node)
    room: Counter[str] = Counter()
    for leaf, nodes in per_leaf.items():
        for switch in fabric.path_of_leaf(leaf):
            room[switch] += len(nodes)
    fits = [switch for switch in fabric.switches if room[switch.name] >= n]
    top = min(fits, key=lambda switch: (switch.tier, room[switch.name])).name
    below = [leaf for leaf in per_leaf if top in fabric.path_of_leaf(leaf)]
    below.sort(key=lambda leaf: -len(per_leaf[leaf]))
    chosen: list[str] = []
    while len(chosen) < n:
        rest = n - len(chosen)
        fitting = [leaf for leaf in below if len(per_leaf[leaf]) >= rest]
        leaf = fitting[-1] if fitting else below[0]
        below.remove(leaf)
        chosen += per_leaf[leaf][:rest]
    return chosen


def occupied(fabric: Fabric, kind: str, share: float, seed: int) -> tuple[str, ...]:
    """The free nodes when `share` of all is taken."""
    r = random.Random(seed)
    nodes = [node for switch in fabric.switches for node in switch.nodes]
    if kind == "holes":
        return tuple(node for node in nodes if r.random() > share)
    free = [True] * len(nodes)
    left = len(nodes)
    while left > (1 - share) * len(nodes):
        start, length = r.randrange(len(nodes)), int(r.lognormvariate(3, 1.5)) + 1
        for index in range(start, min(start + length, len(nodes))):
            left -= free[index]
            free[index] = False
    return tuple(node for node, is_free in zip(nodes, free, strict=True) if is_free)


def cpu_ms(call: Callable[[], object]) -> float:
    """CPU time of one call."""
    start = time.process_time()
    call()
    return (time.process_time() - start) * 1e3


def main() -> None:
    """Prints the table; exits with 1 when an answer is not proven optimal or the greedy one beats it."""
    print(f"{'nodes':<18} {'in use':<9} {'n':>5} {'exact ms':>9} {'greedy ms':>9} {'time':>6} {'hops':>7} {'pods':>11}")
    worst = 0.0
    for label, shape in SHAPES.items():
        fabric = synthetic(shape)
        ms = cpu_ms(lambda fabric=fabric: fabric_order(fabric, fabric.leaf_of))  # type: ignore[misc]
        print(f"{label:<18} order of all nodes, first use of the fabric: {ms:.0f} ms")
        best_possible(fabric, fabric.leaf_of, 2)  # so that no first call is timed below
        for kind, share in (("jobs", 0.5), ("jobs", 0.85), ("holes", 0.5), ("holes", 0.95)):
            for n in SIZES:
                times, greedy_times, ratios, pods, greedy_pods = [], [], [], [], []
                for seed in SEEDS:
                    free = occupied(fabric, kind, share, seed)
                    if len(free) < n:
                        continue
                    candidates = Candidates(free, (1,) * len(free))
                    times.append(cpu_ms(lambda: place(fabric, candidates, n)))  # noqa: B023
                    greedy_times.append(cpu_ms(lambda: greedy(fabric, free, n)))  # noqa: B023
                    best, usual = place(fabric, candidates, n), cost_of(fabric, greedy(fabric, free, n))
                    if best is None or usual is None or not best.optimal or best.cost.hops > usual.hops:
                        sys.exit(f"{label}, {kind} {share}, n={n}, seed {seed}: {best} is worse than {usual}")
                    ratios.append(usual.hops / best.cost.hops)
                    pods.append(best.cost.pods)
                    greedy_pods.append(usual.pods)
                if times:
                    ours, theirs = statistics.median(times), statistics.median(greedy_times)
                    worst = max(worst, *times)
                    print(
                        f"{label:<18} {kind:<5} {share:>3.0%} {n:>5} {ours:>9.1f} {theirs:>9.1f} {ours / theirs:>5.2f}x"
                        f" {statistics.median(ratios):>6.3f}x {statistics.median(greedy_pods):>4.0f} to {statistics.median(pods):.0f}"
                    )
    print(f"\nhops, pods: greedy over (to) exact, medians of {len(SEEDS)} occupancies; slowest exact placement {worst:.0f} ms of CPU")


if __name__ == "__main__":
    main()
