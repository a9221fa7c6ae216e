#!/usr/bin/env python3
"""One rank of a timed all-reduce: `bench_network.py` starts it on every node.

The ring is that of `examples/train.py`; with `--torch` it is gloo's. Every turn begins together (a small all-reduce of its own).
Rank 0 prints one line, `RESULT {...}`: the nodes in rank order (their numbers), the seconds of each turn, the bytes, and whether every
rank held the right sum.
"""

import argparse
import json
import os
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float32]
TIMEOUT_S = 60.0


@contextmanager
def ring(rank: int, size: int) -> Iterator[Callable[[Vector], None]]:
    """The example's all-reduce."""
    import train  # type: ignore[import-not-found]  # beside this file, where `bench_network.py` puts it

    joined = train.Ring(rank, size, os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), TIMEOUT_S)

    def reduce(vector: Vector) -> None:
        joined.all_reduce(vector)

    yield reduce


@contextmanager
def gloo(rank: int, size: int) -> Iterator[Callable[[Vector], None]]:
    """PyTorch's, without GPUs."""
    import torch  # type: ignore[import-not-found]
    import torch.distributed as dist  # type: ignore[import-not-found]

    dist.init_process_group("gloo", rank=rank, world_size=size)

    def reduce(vector: Vector) -> None:
        dist.all_reduce(torch.from_numpy(vector))

    yield reduce
    dist.barrier()
    dist.destroy_process_group()


def timed(reduce: Callable[[Vector], None], rank: int, size: int, kib: int, turns: int) -> dict[str, object]:
    """Reduce `turns` times; what rank 0 prints."""
    hosts = np.zeros(size, dtype=np.float32)
    hosts[rank] = int(re.sub(r"\D", "", socket.gethostname()))
    reduce(hosts)
    spans_s, right = [], True
    for _ in range(turns):
        vector = np.full(kib * 256, rank + 1, dtype=np.float32)
        reduce(np.zeros(size, dtype=np.float32))
        began = time.monotonic()
        reduce(vector)
        spans_s.append(time.monotonic() - began)
        right = right and bool((vector == size * (size + 1) // 2).all())
    wrong = np.full(size, not right, dtype=np.float32)
    reduce(wrong)
    return {"hosts": hosts.astype(int).tolist(), "spans_s": spans_s, "bytes": kib * 1024, "right": not wrong[0]}


def main() -> None:
    """Join, reduce `--turns` times, say how long each took."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kib", type=int, default=1024)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--torch", action="store_true")
    options = parser.parse_args()
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    with (gloo if options.torch else ring)(rank, size) as reduce:
        found = timed(reduce, rank, size, options.kib, options.turns)
    if rank == 0:
        print(f"RESULT {json.dumps(found)}", flush=True)


if __name__ == "__main__":
    main()
