"""Small part-filled fabrics on which a greedy choice of nodes goes wrong, put between busy nodes of any larger one.

tests/placement/test_place.py holds the optimum of each; tests/cluster/test_choice.py and `make bench-placement` ask a real slurmctld too.
Of those with a later `since` Slurm 22.05 is as good as the optimum by luck; 24.11.5 took three pods for two on both.
"""

from dataclasses import dataclass

from glaunch.fabric import Fabric, synthetic

OLDEST, NEWER = (0, 0), (24, 5)


@dataclass(frozen=True)
class CounterExample:
    """A job of n nodes, and the free nodes of each leaf, pod by pod; Slurm goes wrong there from the release `since` on."""

    pods: list[list[int]]
    n: int
    since: tuple[int, int] = OLDEST


COUNTER_EXAMPLES = {
    "leaves-its-pod": CounterExample([[4, 1, 1], [2, 2, 1]], 5),  # for one leaf elsewhere that fits the rest, as its own pod does
    "pod-after-pod": CounterExample([[3, 0], [2, 2], [4, 4]], 11, NEWER),  # when nothing fits the rest, near is no better than far
    "one-after-one": CounterExample([[1, 0], [1, 1], [1, 1]], 4, NEWER),  # the smallest of these
    "tightest-pod": CounterExample([[1, 1], [2, 0]], 3),  # the pod that fits most tightly is the most scattered one
    "lowest-switch": CounterExample([[1] * 16, [15], [1]], 16),  # the lowest switch above enough nodes is the wrong one
}


def just_large_enough(pods: list[list[int]]) -> Fabric:
    """A regular fabric in which every leaf has a node more than is free there."""
    return synthetic(f"core:1 spine:{len(pods)} leaf:{max(map(len, pods))} node:{1 + max(map(max, pods))}")


def free_in(fabric: Fabric, pods: list[list[int]]) -> tuple[str, ...]:
    """The free nodes when the first pods of a fabric have these, and nothing else is free."""
    spines = list(dict.fromkeys(fabric.pod_of_leaf(leaf) for leaf in fabric.leaves))
    nodes_of = {switch.name: switch.nodes for switch in fabric.switches}
    return tuple(
        node
        for spine, leaves in zip(spines, pods, strict=False)
        for leaf, free in zip(fabric.children[spine], leaves, strict=False)
        for node in nodes_of[leaf][:free]
    )
