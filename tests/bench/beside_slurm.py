"""The last tables of `bench_placement.py`: a real slurmctld with 10,240 nodes and no slurmd (as root), its choice beside glaunch's."""

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench.occupancy import OCCUPANCIES, SHAPES, SIZES, occupied
from tests.controller import Controller, missing
from tests.greedy import COUNTER_EXAMPLES, free_in

from glaunch.fabric import Fabric, synthetic
from glaunch.placement.cost import cost_of
from glaunch.placement.place import Candidates, place
from glaunch.placement.placement import Cost

HEAD = f"{'n':>5} {'hops Slurm / glaunch':>22} {'pods Slurm':>11} {'hops':>5} {'spread':>7} {'ms Slurm':>9} {'ms here':>8}"


@dataclass(frozen=True)
class Answers:
    """What three choices among the same free nodes cost."""

    slurm: Cost
    hops: Cost
    spread: Cost
    slurm_ms: float
    """Wall time of `sbatch --test-only`."""
    hops_ms: float
    """CPU time here."""

    @property
    def worse(self) -> bool:
        """Whether Slurm's own choice beats glaunch's in what was asked for."""
        return self.hops.hops > self.slurm.hops or self.spread.pods > self.slurm.pods

    def row(self, n: int) -> str:
        """Below HEAD."""
        ratio = self.slurm.hops / self.hops.hops
        pods = f"{self.slurm.pods:>11} {self.hops.pods:>5} {self.spread.pods:>7}"
        return f"{n:>5,} {ratio:>21.3f}x {pods} {self.slurm_ms:>9.0f} {self.hops_ms:>8.0f}"


@contextmanager
def filled(fabric: Fabric, free: Sequence[str]) -> Iterator[Controller]:
    """A slurmctld on which one job has everything that is not free."""
    known = set(free)
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        slurm = Controller(Path(folder), fabric)
        try:
            slurm.occupy([node for node in fabric.leaf_of if node not in known])
            yield slurm
        finally:
            slurm.close()


def ask(slurm: Controller, free: Sequence[str], n: int) -> Answers:
    """The same question to both."""
    began = time.monotonic()
    theirs = cost_of(slurm.fabric, slurm.choice(n))
    slurm_ms = (time.monotonic() - began) * 1e3
    candidates = Candidates(tuple(free), (1,) * len(free))
    began = time.process_time()
    hops = place(slurm.fabric, candidates, n)
    hops_ms = (time.process_time() - began) * 1e3
    spread = place(slurm.fabric, candidates, n, "spread")
    if theirs is None or hops is None or spread is None or not hops.optimal or not spread.optimal:
        sys.exit(f"no answer, or none with a certificate: n={n}, {theirs}, {hops}, {spread}")
    return Answers(theirs, hops.cost, spread.cost, slurm_ms, hops_ms)


def beside_slurm(quick: bool) -> list[str]:
    """Prints two tables; returns the targets that were missed."""
    if lacking := missing():
        print(f"\nreal slurmctld: left out ({lacking})")
        return []
    missed = []
    fabric = synthetic(SHAPES[10240])
    print("\nreal slurmctld, 10,240 nodes part-filled with jobs: the choice of sbatch --test-only beside glaunch's\n")
    print(f"{'in use':<16} {HEAD}")
    for kind, share in OCCUPANCIES[::3] if quick else OCCUPANCIES:
        free = occupied(fabric, kind, share, 1)
        with filled(fabric, free) as slurm:
            for n in (size for size in SIZES if size <= len(free)):
                found = ask(slurm, free, n)
                print(f"{kind + format(share, ' >4.0%'):<16} {found.row(n)}")
                if found.worse:
                    missed.append(f"Slurm's own choice was better: {kind} {share}, n={n}")
    print("\nthe same cluster, nothing free but where a greedy choice goes wrong\n")
    print(f"{'example':<16} {HEAD}")
    for name, example in COUNTER_EXAMPLES.items():
        free = free_in(fabric, example.pods)
        with filled(fabric, free) as slurm:
            found = ask(slurm, free, example.n)
            print(f"{name:<16} {found.row(example.n)}")
            if found.worse or (slurm.version >= example.since and found.hops.hops >= found.slurm.hops):
                missed.append(f"not fewer hops than Slurm: {name}")
    return missed
