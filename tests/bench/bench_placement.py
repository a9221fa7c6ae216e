"""What glaunch's placement gains over others, and what it costs: `python tests/bench/bench_placement.py [--quick]`.

All choose from the same free nodes in one process, so that ratios mean something on any machine. Occupancy is made up and seeded: `jobs`
fills the machine with neighbouring runs of nodes of heavy-tailed length, as a scheduler leaves it behind; `holes` takes each node by
itself, the worst case for any placement. The last tables ask a real slurmctld with 10,240 nodes and no slurmd (as root).

Exits with 1 when a target is missed: hops 1.000 in hops, spread 1.000 in pods, everywhere with a certificate; no group split where none
need be; on 102,400 nodes with n = 4,096 a median of 50 ms and at worst 150 ms of CPU.
"""

import random
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "launcher"))

from tests.bench.beside_slurm import beside_slurm
from tests.bench.occupancy import OCCUPANCIES, SHAPES, SIZES, occupied

from glaunch.fabric import Fabric, synthetic
from glaunch.placement.cost import cost_of
from glaunch.placement.objective import Groups
from glaunch.placement.order import fabric_order
from glaunch.placement.place import Candidates, best_possible, place
from glaunch.placement.placement import Placement

SEEDS = (1, 2, 3)
MEDIAN_MS, WORST_MS = 50, 150


@dataclass(frozen=True)
class Case:
    """One question: n of the free nodes of a fabric."""

    nodes: int
    fabric: Fabric
    kind: str
    share: float
    seed: int
    free: tuple[str, ...]
    n: int

    @property
    def candidates(self) -> Candidates:
        """The free nodes, none preferred."""
        return Candidates(self.free, (1,) * len(self.free))


def cases(quick: bool) -> Iterator[Case]:
    """All questions that have an answer."""
    for nodes, shape in SHAPES.items():
        fabric = synthetic(shape)
        fabric_order(fabric, fabric.leaf_of)  # what is made once for a fabric is not timed
        best_possible(fabric, fabric.leaf_of, 2)
        for kind, share in OCCUPANCIES:
            for seed in SEEDS[:1] if quick else SEEDS:
                free = occupied(fabric, kind, share, seed)
                yield from (Case(nodes, fabric, kind, share, seed, free, n) for n in SIZES if n <= len(free))


def best_fit(case: Case) -> list[str]:
    """As Kueue does: the lowest level with one domain that fits, of these the tightest; below it the largest children first, the last one
    the tightest that fits; the children of all that were chosen are one pool."""
    room: Counter[str] = Counter()
    per_leaf: defaultdict[str, list[str]] = defaultdict(list)
    for node in case.free:
        per_leaf[case.fabric.leaf_of[node]].append(node)
    for leaf, nodes in per_leaf.items():
        for switch in case.fabric.path_of_leaf(leaf):
            room[switch] += len(nodes)
    fits = [switch for switch in case.fabric.switches if room[switch.name] >= case.n]
    chosen = [min(fits, key=lambda switch: (switch.tier, room[switch.name], switch.name)).name]
    while case.fabric.children[chosen[0]]:
        pool = sorted((child for name in chosen for child in case.fabric.children[name]), key=lambda name: -room[name])
        chosen = [name for name, _ in filled(pool, room, case.n)]
    return [node for leaf, count in filled(chosen, room, case.n) for node in per_leaf[leaf][:count]]


def filled(pool: Sequence[str], room: Counter[str], n: int) -> list[tuple[str, int]]:
    """Of a pool, largest first: whole ones while none fits the rest, then the tightest that does."""
    rest = n
    taken: list[tuple[str, int]] = []
    for index, name in enumerate(pool):
        if room[name] >= rest:
            tightest = min((other for other in pool[index:] if room[other] >= rest), key=lambda other: (room[other], pool.index(other)))
            return [*taken, (tightest, rest)]
        taken.append((name, room[name]))
        rest -= room[name]
    return taken


def first_fit(case: Case) -> list[str]:
    """The first run of neighbouring free indexes that is long enough; where none is, the longest runs one after the other."""
    row = {node: index for index, node in enumerate(node for switch in case.fabric.switches for node in switch.nodes)}
    runs = [[node for _, node in run] for _, run in groupby(enumerate(case.free), key=lambda pair: row[pair[1]] - pair[0])]
    found = next((run for run in runs if len(run) >= case.n), None)
    if found is not None:
        return found[: case.n]
    return [node for run in sorted(runs, key=len, reverse=True) for node in run][: case.n]


def alphabetical(case: Case) -> list[str]:
    """The first n names."""
    return sorted(case.free)[: case.n]


def at_random(case: Case) -> list[str]:
    """Any n."""
    return random.Random(case.seed).sample(case.free, case.n)


OTHERS: dict[str, Callable[[Case], list[str]]] = {
    "best fit (Kueue)": best_fit,
    "first fit": first_fit,
    "alphabetical": alphabetical,
    "random": at_random,
}


def cpu_ms(call: Callable[[], Placement | None]) -> tuple[float, Placement]:
    """CPU time of one call, and its answer."""
    start = time.process_time()
    found = call()
    took = (time.process_time() - start) * 1e3
    if found is None or not found.optimal:
        sys.exit(f"no certificate: {found}")
    return took, found


@dataclass
class Seen:
    """What all cases of one fabric and one n gave: algorithm → ratios to the proven least, and the times."""

    hops: defaultdict[str, list[float]]
    pods: defaultdict[str, list[float]]
    ms: defaultdict[str, list[float]]


def compare(case: Case, seen: Seen) -> None:
    """Put one question to all."""
    answers = {}
    for objective in ("hops", "spread"):
        took, answers[objective] = cpu_ms(lambda: place(case.fabric, case.candidates, case.n, objective))  # noqa: B023
        seen.ms[objective].append(took)
    least_hops, least_pods = answers["hops"].cost.hops, answers["spread"].cost.pods
    costs = {f"glaunch {name}": answer.cost for name, answer in answers.items()}
    for name, choose in OTHERS.items():
        cost = cost_of(case.fabric, chosen := choose(case))
        if cost is None or len(set(chosen)) != case.n:
            sys.exit(f"{name} chose {len(set(chosen))} of {case.n} nodes")
        costs[name] = cost
    for name, cost in costs.items():
        if cost.hops < least_hops or cost.pods < least_pods:
            sys.exit(f"{name} beats a proven optimum: {case.nodes}, {case.kind} {case.share}, n={case.n}, seed {case.seed}: {cost}")
        seen.hops[name].append(cost.hops / least_hops)
        seen.pods[name].append(cost.pods / least_pods)


def show(seen: dict[tuple[int, int], Seen]) -> None:
    """The first two tables."""
    print("ratio to the proven optimum, median and (worst): hops | pods\n")
    for (nodes, n), one in seen.items():
        print(f"{nodes:,} nodes, n = {n:,}, {len(one.ms['hops'])} cases")
        for name, ratios in one.hops.items():
            pods = one.pods[name]
            print(f"  {name:<18} {statistics.median(ratios):6.3f} ({max(ratios):.3f})  |  {statistics.median(pods):6.2f} ({max(pods):.2f})")
    print("\nplanning, ms of CPU, median and (worst)\n")
    print(f"{'nodes':>8} {'n':>6} {'hops':>16} {'spread':>16}")
    for (nodes, n), one in seen.items():
        cells = [f"{statistics.median(one.ms[name]):7.1f} ({max(one.ms[name]):.0f})" for name in ("hops", "spread")]
        print(f"{nodes:>8,} {n:>6,} {cells[0]:>16} {cells[1]:>16}")


def groups(quick: bool) -> int:
    """The third table: groups that had to be split, and how many of those were. Returns the splits that need not have been."""
    print(
        "\ngroups of d nodes that should not span two pods: cases, those in which no group need be split, and groups split there;\n"
        "then the splits of fewest hops without groups, the price in hops, ms of CPU\n"
    )
    needless = 0
    for d in (8, 64, 256):
        possible, count, without, price, ms = 0, 0, [], [], []
        for case in cases(quick):
            if case.nodes == 1024 or case.n <= d:
                continue
            count += 1
            took, found = cpu_ms(lambda: place(case.fabric, case.candidates, case.n, "hops", Groups(1, d)))  # noqa: B023
            ms.append(took)
            free = Counter(case.fabric.pod_of(node) for node in case.free)
            if sum(room // d for room in free.values()) >= case.n // d:
                possible += 1
                needless += found.cost.pod_splits
                usual = place(case.fabric, case.candidates, case.n)
                plain = usual and cost_of(case.fabric, usual.nodes, groups=Groups(1, d))
                if plain:
                    without.append(plain.pod_splits / (case.n // d))
                    price.append(found.cost.hops / plain.hops)
        print(
            f"  d = {d:>3}: {count} cases, {possible} need no split, {needless} split; without groups {statistics.mean(without):.0%} split;"
            f" hops {statistics.median(price):.3f}x (worst {max(price):.3f}x); {statistics.median(ms):.0f} ms (worst {max(ms):.0f})"
        )
    return needless


def main() -> None:
    """Prints the tables; exits with 1 when a target is missed."""
    quick = "--quick" in sys.argv[1:]
    seen: dict[tuple[int, int], Seen] = {}
    for case in cases(quick):
        compare(case, seen.setdefault((case.nodes, case.n), Seen(defaultdict(list), defaultdict(list), defaultdict(list))))
    show(seen)
    missed = [f"{n_of} hops" for n_of, one in seen.items() if max(one.hops["glaunch hops"]) > 1]
    missed += [f"{n_of} pods" for n_of, one in seen.items() if max(one.pods["glaunch spread"]) > 1]
    if groups(quick):
        missed.append("a group was split without need")
    missed += beside_slurm(quick)
    ms = seen[102400, 4096].ms["hops"]
    if statistics.median(ms) > MEDIAN_MS or max(ms) > WORST_MS:
        missed.append(f"102,400 nodes, n = 4,096: median {statistics.median(ms):.0f} ms, worst {max(ms):.0f} ms of CPU")
    print("\n" + ("; ".join(missed) + ": missed" if missed else "all targets held"))
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
