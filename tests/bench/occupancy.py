"""Seeded occupied fabrics for benchmarks."""

import random

from glaunch.fabric import Fabric

SHAPES = {
    1024: "core:1 leaf:32 node:32",
    10240: "core:1 spine:20 leaf:16 node:32",
    102400: "core:1 spine:100 leaf:32 node:32",
}
SIZES = (8, 64, 256, 1024, 4096)
OCCUPANCIES = (("jobs", 0.5), ("jobs", 0.7), ("jobs", 0.85), ("jobs", 0.95), ("holes", 0.5), ("holes", 0.7), ("holes", 0.95))


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
