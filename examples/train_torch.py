#!/usr/bin/env python3
"""The training loop of train.py with PyTorch's DistributedDataParallel: NCCL where there are GPUs, gloo where there are none.

    glaunch examples/train_torch.py -n 64 --lr 1e-3

Reads RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT; without them it trains alone. Needs a Python with torch.
"""

from __future__ import annotations

import argparse
import datetime
import os
import statistics
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
try:
    import torch
    import torch.distributed as dist
except ImportError as error:
    sys.exit(f"train_torch.py needs torch in the Python that runs it, {sys.executable}: {error}")

SAMPLES, INPUTS, OUTPUTS, BATCH = 4096, 32, 8, 1024


def data() -> tuple[torch.Tensor, torch.Tensor]:
    """The same samples on every rank: a smooth function of 32 numbers with a little noise."""
    random = torch.Generator().manual_seed(11)
    inputs = torch.randn(SAMPLES, INPUTS, generator=random)
    mixed = inputs @ torch.randn(INPUTS, OUTPUTS, generator=random) / INPUTS**0.5
    return inputs, torch.sin(mixed) + 0.01 * torch.randn(SAMPLES, OUTPUTS, generator=random)


def device_of(local_rank: int) -> torch.device:
    """The GPU of this rank, or the CPU. A rank that is bound to one GPU sees that one only, as number 0."""
    if not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device("cuda", local_rank % torch.cuda.device_count())


def same_everywhere(model: torch.nn.Module, size: int) -> bool:
    """True when the largest and the smallest of every weight over all ranks are the same."""
    high = torch.cat([weight.detach().reshape(-1) for weight in model.parameters()])
    low = high.clone()
    if size > 1:
        dist.all_reduce(high, op=dist.ReduceOp.MAX)
        dist.all_reduce(low, op=dist.ReduceOp.MIN)
    return bool(torch.equal(high, low))


def train(options: argparse.Namespace, rank: int, size: int, device: torch.device) -> bool:
    """All steps; rank 0 tells the loss and the speed. True when all ranks end with the same weights."""
    torch.manual_seed(7)
    model: torch.nn.Module = torch.nn.Sequential(
        torch.nn.Linear(INPUTS, options.hidden), torch.nn.Tanh(), torch.nn.Linear(options.hidden, OUTPUTS)
    ).to(device)
    if size > 1:
        model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[device.index] if device.type == "cuda" else None)
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr)
    inputs, targets = (part.to(device) for part in data())
    spans_s, first, loss = [], None, float("nan")
    for step in range(options.steps):
        begin = time.monotonic()
        offset = step * BATCH % SAMPLES
        mine = slice(offset + BATCH * rank // size, offset + BATCH * (rank + 1) // size)
        error = torch.sum((model(inputs[mine]) - targets[mine]) ** 2)
        optimizer.zero_grad()
        (error * size / (2 * BATCH)).backward()  # DDP averages over ranks; the loss is a mean over the whole batch
        optimizer.step()
        total = error.detach().clone()
        if size > 1:
            dist.all_reduce(total)
        loss = total.item() / (BATCH * OUTPUTS)
        first = loss if first is None else first
        spans_s.append(time.monotonic() - begin)
        if rank == 0 and (step % max(1, options.steps // 10) == 0 or step + 1 == options.steps):
            print(f"step {step:3d}  loss {loss:.6f}  {spans_s[-1] * 1e3:.1f} ms", flush=True)
    same = same_everywhere(model, size)
    if rank == 0:
        ranks = "1 rank" if size == 1 else f"{size} ranks"
        words = "same weights on all" if same else "THE RANKS DO NOT HOLD THE SAME WEIGHTS"
        print(f"trained {options.steps} steps on {ranks}: loss {first:.6f} -> {loss:.6f}; {words}")
        if size > 1:
            print(bandwidth(options, device, size), flush=True)
    elif size > 1:
        bandwidth(options, device, size)
    return same


def bandwidth(options: argparse.Namespace, device: torch.device, size: int) -> str:
    """The bus bandwidth of ten all-reduces of --megabytes each, in words; every rank must call it."""
    vector = torch.ones(options.megabytes * 250_000, device=device)
    spans_s = []
    for _ in range(11):
        begin = time.monotonic()
        dist.all_reduce(vector, op=dist.ReduceOp.MAX)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        spans_s.append(time.monotonic() - begin)
    middle_s = statistics.median(spans_s[1:])  # the first one also makes the connections
    rate = 2 * (size - 1) / size * vector.numel() * 4 / middle_s / 1e6
    return f"all-reduce of {options.megabytes} MB ({dist.get_backend()}): median {middle_s * 1e3:.1f} ms, bus bandwidth {rate:.1f} MB/s"


def main() -> int:
    """Join the group, train, leave it; 0 when all ranks agree."""
    parser = argparse.ArgumentParser(description="data-parallel training with PyTorch DDP")
    parser.add_argument("--steps", type=int, default=20, help="training steps (default 20)")
    parser.add_argument("--lr", type=float, default=0.01, help="learning rate (default 0.01)")
    parser.add_argument("--hidden", type=int, default=1024, help="hidden units (default 1024)")
    parser.add_argument("--megabytes", type=int, default=4, help="size of the all-reduce that is measured (default 4)")
    parser.add_argument("--timeout", type=float, default=120, help="give up on a silent rank after this many seconds")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rank, size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    device = device_of(int(os.environ.get("LOCAL_RANK", "0")))
    if size > 1:
        if device.type == "cuda":
            torch.cuda.set_device(device)
        span = datetime.timedelta(seconds=options.timeout)
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=span)
    try:
        return 0 if train(options, rank, size, device) else 1
    finally:
        if size > 1:
            dist.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main())
