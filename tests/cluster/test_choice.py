"""glaunch's choice beside Slurm's own, on real controllers of any fabric: never worse, and better where greed goes wrong."""

import json
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cluster.conftest import User, job_id_of, until
from tests.controller import Controller, missing
from tests.greedy import COUNTER_EXAMPLES, free_in, just_large_enough

from glaunch.fabric import Fabric, synthetic
from glaunch.hostlist import expand
from glaunch.placement.cost import cost_of
from glaunch.placement.place import Candidates, place

pytestmark = pytest.mark.slurm

LAUNCHER = Path(__file__).resolve().parents[2] / "launcher"


@pytest.fixture
def controller(tmp_path: Path) -> Iterator[Callable[[Fabric], Controller]]:
    """Starts a controller over a fabric; it ends with the test."""
    if lacking := missing():
        pytest.skip(lacking)
    made: list[Controller] = []

    def start(fabric: Fabric) -> Controller:
        made.append(Controller(tmp_path / str(len(made)), fabric))
        return made[-1]

    yield start
    for one in made:
        one.close()


def plan(slurm: Controller, n: int, objective: str, home: Path) -> dict[str, object]:
    """What `glaunch plan` says there. Nodes that were never seen are powered down for Slurm: the site calls them free."""
    env = {"PYTHONPATH": str(LAUNCHER), "GLAUNCH_PLACEMENT_POWERED_DOWN": "free", "HOME": str(home)}
    done = slurm.run(sys.executable, "-m", "glaunch", "plan", "--json", "-N", str(n), "--objective", objective, "/bin/true", env=env)
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)["placement"]
    return found


@pytest.mark.parametrize("name", COUNTER_EXAMPLES)
def test_fewer_hops_than_slurm_where_greed_goes_wrong(controller: Callable[[Fabric], Controller], name: str, tmp_path: Path) -> None:
    example = COUNTER_EXAMPLES[name]
    fabric = just_large_enough(example.pods)
    free = free_in(fabric, example.pods)
    assert len(free) == sum(map(sum, example.pods))
    slurm = controller(fabric)
    slurm.occupy([node for node in fabric.leaf_of if node not in free])
    theirs = cost_of(fabric, slurm.choice(example.n))
    hops, spread = (plan(slurm, example.n, objective, tmp_path)["cost"] for objective in ("hops", "spread"))
    assert theirs is not None
    assert isinstance(hops, dict)
    assert isinstance(spread, dict)
    assert hops["hops"] < theirs.hops + (slurm.version < example.since)
    assert spread["pods"] <= theirs.pods


def test_never_more_hops_and_never_more_pods_than_slurm(controller: Callable[[Fabric], Controller], tmp_path: Path) -> None:
    fabric = synthetic("core:1 spine:5 leaf:4 node:6")
    slurm, r = controller(fabric), random.Random(4)
    busy = r.sample(sorted(fabric.leaf_of), 60)
    slurm.occupy(busy)
    free = tuple(node for node in fabric.leaf_of if node not in busy)
    candidates = Candidates(free, (1,) * len(free))
    fewer = [0, 0]
    for n in range(2, 40):
        theirs = cost_of(fabric, slurm.choice(n))
        hops, spread = place(fabric, candidates, n), place(fabric, candidates, n, "spread")
        assert theirs is not None
        assert hops is not None
        assert spread is not None
        assert hops.cost.hops <= theirs.hops, n
        assert spread.cost.pods <= theirs.pods, n
        fewer[0] += hops.cost.hops < theirs.hops
        fewer[1] += spread.cost.pods < theirs.pods
        if n in {5, 20}:
            assert plan(slurm, n, "hops", tmp_path)["nodes"] == list(hops.nodes)
            assert plan(slurm, n, "spread", tmp_path)["nodes"] == list(spread.nodes)
    assert fewer[0] > 5


def test_groups_stay_together_on_whatever_slurm_grants(ada: User) -> None:
    """Two pods of 8 nodes with two busy in each: of three groups of 4 two can be whole, and the order of the names would split two."""
    ada.box.exec(["sbatch", "-w", "n001,n007,n009,n016", "-N4", "--exclusive", "-o", "/dev/null", "--wrap", "sleep 900"])
    until(lambda: "R" in ada.box.exec(["squeue", "-h", "-o", "%t"]).stdout, 60, "the busy nodes are busy")
    ada.run("rm", "-rf", ".local/state/glaunch/kept")  # a plan may be made from what was seen a minute ago
    launch = ("./prog.sh", "-N", "12", "--ntasks-per-node", "1", "--segment", "4")
    try:
        plan = json.loads(ada.glaunch("plan", *launch, "--json").stdout)
        done = ada.glaunch(*launch, "--place", "order")
        granted = ada.attempts(job_id_of(done))[-1].hosts
    finally:
        ada.box.exec(["scancel", "--user=root"])
    assert done.code == 0, done.stderr
    assert "3 groups of 4 nodes, 1 of them over two pods or more, and no set has fewer" in done.stderr
    assert plan["groups"] == {"leaf": 1, "pod": 4}
    assert granted == tuple(plan["placement"]["nodes"]), "there are no other free nodes, and the job's order is the plan's"
    pods: dict[str, set[str]] = {}
    for row in plan["order"]:
        pods.setdefault(row["pod"], set()).update(expand(row["nodes"]))
    for group in (granted[:4], granted[4:8]):
        assert any(set(group) <= nodes for nodes in pods.values()), granted
