#!/usr/bin/env python3
"""A data-parallel training loop whose gradients go round a ring: numpy, TCP sockets and nothing else.

    python3 examples/train.py                     one rank, no variables needed
    glaunch examples/train.py -n 64 --lr 1e-3     64 ranks, as glaunch places them

Every rank reads RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT, and nothing of Slurm or glaunch. Rank 0 listens at
MASTER_ADDR:MASTER_PORT until it knows where all others listen; then each rank joins hands with its two neighbours and no other.
An all-reduce is a reduce-scatter and an all-gather round that ring (2 x (N - 1) exchanges of 1/N of the gradients), so its speed
depends on which node sits beside which: it is the traffic that glaunch orders ranks for.

Where GLAUNCH_LOG_DIR is set, each rank writes what it sent, received and waited there, one line a step (`rank-003.log`).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import select
import socket
import statistics
import sys
import time
from typing import TextIO

# One thread a rank: 64 ranks may share two cores here, and numpy reads this only once.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
try:
    import numpy as np
except ImportError as error:
    sys.exit(f"train.py needs numpy in the Python that runs it, {sys.executable}: {error} (Debian: apt-get install python3-numpy)")

SAMPLES, INPUTS, OUTPUTS, BATCH = 4096, 32, 8, 1024


class RingError(Exception):
    """A neighbour or the rendezvous failed; the message says which rank and where."""


class Ring:
    """This rank's two connections: it sends to the right neighbour (rank + 1) and receives from the left one (rank - 1)."""

    def __init__(self, rank: int, size: int, address: str, port: int, timeout_s: float) -> None:
        self.rank, self.size, self.timeout_s = rank, size, timeout_s
        self.sent_bytes = self.received_bytes = 0
        self.left_name = self.right_name = "nobody"
        if size == 1:
            return
        deadline_s = time.monotonic() + timeout_s
        table, listener = meet(rank, size, address, port, deadline_s)
        self.right_name = f"rank {(rank + 1) % size} at {table[(rank + 1) % size][0]}"
        self.left_name = f"rank {(rank - 1) % size} at {table[(rank - 1) % size][0]}"
        with listener:
            self.right = connect(*table[(rank + 1) % size], deadline_s, self.right_name)
            send_line(self.right, {"rank": rank})
            self.left = accept(listener, deadline_s, f"rank {rank}: {self.left_name} did not come")
        hello = receive_line(self.left, deadline_s, self.left_name)
        if hello.get("rank") != (rank - 1) % size:
            raise RingError(f"rank {rank}: expected {self.left_name} at my left, got {hello}")
        for side in (self.left, self.right):
            side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            side.setblocking(False)

    def exchange(self, outgoing: memoryview, incoming: memoryview) -> None:
        """Send all of `outgoing` to the right while `incoming` fills from the left: both at once, so that no ring can lock up."""
        self.sent_bytes += len(outgoing)
        self.received_bytes += len(incoming)
        while outgoing or incoming:
            readable, writable, _ = select.select([self.left] if incoming else [], [self.right] if outgoing else [], [], self.timeout_s)
            if not readable and not writable:
                who = self.left_name if incoming else self.right_name
                raise RingError(f"rank {self.rank}: nothing moved for {self.timeout_s:.0f} s, waiting for {who}")
            if readable:
                count = self._move(self.left.recv_into, incoming, self.left_name)
                incoming = incoming[count:]
            if writable:
                count = self._move(self.right.send, outgoing, self.right_name)
                outgoing = outgoing[count:]

    def _move(self, act, data: memoryview, who: str) -> int:
        try:
            count = act(data)
        except OSError as error:
            raise RingError(f"rank {self.rank}: lost {who}: {error.strerror}") from error
        if not count:
            raise RingError(f"rank {self.rank}: {who} closed the connection")
        return count

    def all_reduce(self, vector: np.ndarray) -> None:
        """Replace the float32 `vector` by its sum over all ranks, the same bits on each of them."""
        edges = [len(vector) * part // self.size for part in range(self.size + 1)]
        parts = [vector[edges[part] : edges[part + 1]] for part in range(self.size)]
        scratch = np.empty(max(len(part) for part in parts), dtype=vector.dtype)
        for turn in range(self.size - 1):  # reduce-scatter: afterwards rank r holds the whole sum of part r + 1
            outgoing, incoming = parts[(self.rank - turn) % self.size], parts[(self.rank - turn - 1) % self.size]
            self.exchange(raw(outgoing), raw(scratch[: len(incoming)]))
            incoming += scratch[: len(incoming)]
        for turn in range(self.size - 1):  # all-gather: the finished parts go once round
            outgoing, incoming = parts[(self.rank + 1 - turn) % self.size], parts[(self.rank - turn) % self.size]
            self.exchange(raw(outgoing), raw(incoming))

    def agree(self, digest: bytes) -> bool:
        """True on every rank when all hold the same digest: each compares with its left neighbour, and the misses are added up."""
        if self.size == 1:
            return True
        theirs = bytearray(len(digest))
        self.exchange(memoryview(digest), memoryview(theirs))
        misses = np.array([theirs != digest], dtype=np.float32)
        self.all_reduce(misses)
        return not misses[0]


def raw(array: np.ndarray) -> memoryview:
    """The bytes of a contiguous array, in place."""
    return memoryview(array).cast("B") if len(array) else memoryview(b"")


def send_line(side: socket.socket, message: dict) -> None:
    """Send one JSON line."""
    side.sendall(json.dumps(message).encode() + b"\n")


def receive_line(side: socket.socket, deadline_s: float, who: str) -> dict:
    """One JSON line, byte by byte so that nothing after it is taken."""
    line = b""
    while not line.endswith(b"\n"):
        side.settimeout(max(0.01, deadline_s - time.monotonic()))
        try:
            byte = side.recv(1)
        except OSError as error:
            raise RingError(f"{who} said nothing during the rendezvous: {error}") from error
        if not byte:
            raise RingError(f"{who} left during the rendezvous")
        line += byte
    return json.loads(line)


def accept(listener: socket.socket, deadline_s: float, complaint: str) -> socket.socket:
    """The next caller, or RingError with the complaint."""
    listener.settimeout(max(0.01, deadline_s - time.monotonic()))
    try:
        return listener.accept()[0]
    except TimeoutError:
        raise RingError(complaint) from None


def connect(address: str, port: int, deadline_s: float, who: str) -> socket.socket:
    """A connection to a rank that may not listen yet: tried until the deadline."""
    while True:
        left_s = max(0.01, deadline_s - time.monotonic())
        try:
            return socket.create_connection((address, port), timeout=left_s)
        except OSError as error:
            if left_s <= 0.01:
                raise RingError(f"cannot reach {who}, port {port}: {error}") from error
            time.sleep(0.05)


def listen(address: str, port: int, backlog: int) -> socket.socket:
    """A listening socket at this address and no other."""
    family, kind, proto, _, where = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, proto)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(where)
    except OSError as error:
        raise RingError(f"rank 0 cannot listen at {address}, port {port}: {error.strerror}") from error
    listener.listen(backlog)
    return listener


def meet(rank: int, size: int, address: str, port: int, deadline_s: float) -> tuple[list[tuple[str, int]], socket.socket]:
    """Where each rank listens, by rank, and this rank's own listener. Each listens at the address by which it reaches rank 0."""
    if rank:
        with connect(address, port, deadline_s, f"rank 0 at {address}") as master:
            own = listen(master.getsockname()[0], 0, 1)
            send_line(master, {"rank": rank, "address": own.getsockname()[0], "port": own.getsockname()[1]})
            table = receive_line(master, deadline_s, f"rank 0 at {address}")["table"]
            table[0][0] = master.getpeername()[0]
        return [(str(host), int(at)) for host, at in table], own
    with listen(address, port, size) as door:
        own = listen(door.getsockname()[0], 0, 1)
        table = [["", own.getsockname()[1]]] + [["", 0]] * (size - 1)
        callers = []
        while len(callers) < size - 1:
            missing = [other for other in range(1, size) if not table[other][1]]
            caller = accept(door, deadline_s, f"rank 0: {len(missing)} of {size} ranks did not come, the first is rank {missing[0]}")
            hello = receive_line(caller, deadline_s, "a caller")
            table[hello["rank"]] = [hello["address"], hello["port"]]
            callers.append(caller)
    loopback = [host.startswith("127.") or host == "::1" for host, _ in table[1:]]
    if any(loopback) and not all(loopback):
        raise RingError(f"MASTER_ADDR {address} is a loopback address on rank 0's node: other nodes cannot join its ring")
    for caller in callers:
        send_line(caller, {"table": table})
        caller.close()
    table[0][0] = own.getsockname()[0]
    return [(str(host), int(at)) for host, at in table], own


class Model:
    """One hidden layer, all weights in one float32 vector so that one all-reduce carries all gradients (and the loss and a flag)."""

    def __init__(self, hidden: int) -> None:
        self.shapes = [(INPUTS, hidden), (hidden,), (hidden, OUTPUTS), (OUTPUTS,)]
        random = np.random.default_rng(7)
        start = [random.standard_normal(shape) / shape[0] ** 0.5 if len(shape) == 2 else np.zeros(shape) for shape in self.shapes]
        self.weights = np.concatenate([part.ravel() for part in start]).astype(np.float32)

    def parts(self, vector: np.ndarray) -> list[np.ndarray]:
        """Views of the vector in the four shapes."""
        views, at = [], 0
        for shape in self.shapes:
            count = int(np.prod(shape))
            views.append(vector[at : at + count].reshape(shape))
            at += count
        return views

    def gradient(self, inputs: np.ndarray, targets: np.ndarray, into: np.ndarray) -> float:
        """Write the gradient of the summed squared error over these samples into the vector; return that error."""
        first, first_bias, second, second_bias = self.parts(self.weights)
        hidden = np.tanh(inputs @ first + first_bias)
        error = hidden @ second + second_bias - targets
        to_hidden = (error @ second.T) * (1 - hidden * hidden)
        for view, value in zip(self.parts(into), (inputs.T @ to_hidden, to_hidden.sum(0), hidden.T @ error, error.sum(0)), strict=True):
            view[...] = value
        return float((error * error).sum())


def data() -> tuple[np.ndarray, np.ndarray]:
    """The same samples on every rank: a smooth function of 32 numbers with a little noise."""
    random = np.random.default_rng(11)
    inputs = random.standard_normal((SAMPLES, INPUTS)).astype(np.float32)
    mixed = inputs @ random.standard_normal((INPUTS, OUTPUTS)).astype(np.float32) / INPUTS**0.5
    return inputs, np.sin(mixed) + 0.01 * random.standard_normal((SAMPLES, OUTPUTS)).astype(np.float32)


def train(options: argparse.Namespace, ring: Ring, log: TextIO | None) -> None:
    """All steps; rank 0 tells the loss, everybody checks at the end that all hold the same weights."""
    inputs, targets = data()
    model = Model(options.hidden)
    shared = np.zeros(len(model.weights) + 2, dtype=np.float32)  # gradients, the loss, and rank 0's "go on"
    size_bytes, spans_s, step, started_s, first = shared.nbytes, [], 0, time.monotonic(), None
    while True:
        begin = time.monotonic()
        offset = step * BATCH % SAMPLES
        mine = slice(offset + BATCH * ring.rank // ring.size, offset + BATCH * (ring.rank + 1) // ring.size)
        shared[-2] = model.gradient(inputs[mine], targets[mine], shared[:-2])
        more = step + 1 < options.steps or time.monotonic() - started_s < options.seconds
        shared[-1] = float(more and ring.rank == 0)
        computed = time.monotonic()
        ring.all_reduce(shared)
        reduced = time.monotonic()
        spans_s.append(reduced - computed)
        loss = float(shared[-2]) / (BATCH * OUTPUTS)
        first = loss if first is None else first
        model.weights -= options.lr * shared[:-2] / BATCH
        if log:
            spans = f"{computed - begin:.6f}\t{reduced - computed:.6f}"
            print(f"{step}\t{ring.sent_bytes}\t{ring.received_bytes}\t{spans}\t{loss:.6f}", file=log, flush=True)
        if ring.rank == 0 and (step % max(1, options.steps // 10) == 0 or not shared[-1]):
            speed = f"  all-reduce {spans_s[-1] * 1e3:.1f} ms, bus {bus_mb_per_s(size_bytes, ring.size, spans_s[-1]):.1f} MB/s"
            print(f"step {step:3d}  loss {loss:.6f}{speed if ring.size > 1 else ''}", flush=True)
        step += 1
        if not shared[-1]:
            break
        if step >= options.steps:
            time.sleep(0.2)  # only --seconds keeps it going: at an easy pace
    digest = hashlib.sha256(model.weights.tobytes()).digest()
    if not ring.agree(digest):
        raise RingError(f"rank {ring.rank}: the ranks do not hold the same weights after {step} steps (mine: {digest.hex()[:12]})")
    if ring.rank == 0:
        ranks = "1 rank" if ring.size == 1 else f"{ring.size} ranks"
        print(f"trained {step} steps on {ranks}: loss {first:.6f} -> {loss:.6f}; same weights on all ({digest.hex()[:12]})")
    if ring.rank == 0 and ring.size > 1:
        middle_s = statistics.median(spans_s)
        rate = bus_mb_per_s(size_bytes, ring.size, middle_s)
        print(f"all-reduce of {size_bytes} bytes: median {middle_s * 1e3:.1f} ms, bus bandwidth {rate:.1f} MB/s")


def bus_mb_per_s(size_bytes: int, ranks: int, time_s: float) -> float:
    """What each link of the ring carried, 2 x (N - 1) / N of the vector, per second; 0 for one rank."""
    return 2 * (ranks - 1) / ranks * size_bytes / max(time_s, 1e-9) / 1e6


def open_log(rank: int, size: int, ring: Ring) -> TextIO | None:
    """This rank's communication log in $GLAUNCH_LOG_DIR, with its head line; None where the variable is not set."""
    folder = os.environ.get("GLAUNCH_LOG_DIR")
    if not folder:
        return None
    log = open(os.path.join(folder, f"rank-{rank:03d}.log"), "w", encoding="utf-8")  # noqa: SIM115 (open until the program ends)
    local = os.environ.get("LOCAL_RANK", "0")
    print(f"# rank {rank} of {size}, local rank {local}, host {socket.gethostname()}, pid {os.getpid()}", file=log)
    print(f"# sends to {ring.right_name}, receives from {ring.left_name}", file=log)
    print("# step\tsent_bytes\treceived_bytes\tcompute_s\tall_reduce_s\tloss", file=log, flush=True)
    return log


def main() -> int:
    """Join the ring, train, say how fast it went; 0 when all is well."""
    parser = argparse.ArgumentParser(description="data-parallel training with a ring all-reduce over TCP")
    parser.add_argument("--steps", type=int, default=20, help="training steps (default 20)")
    parser.add_argument("--lr", type=float, default=0.01, help="learning rate (default 0.01)")
    parser.add_argument("--hidden", type=int, default=1024, help="hidden units (default 1024: 164 KiB of gradients)")
    parser.add_argument("--seconds", type=float, default=0, help="go on, slowly, until this much time has passed")
    parser.add_argument("--timeout", type=float, default=60, help="give up on a silent neighbour after this many seconds")
    options = parser.parse_args()
    rank, size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    address, port = os.environ.get("MASTER_ADDR", "127.0.0.1"), int(os.environ.get("MASTER_PORT", "29500"))
    log = None
    try:
        ring = Ring(rank, size, address, port, options.timeout)
        log = open_log(rank, size, ring)
        train(options, ring, log)
    except (RingError, OSError) as error:
        print(f"train.py: {error}", file=sys.stderr, flush=True)
        if log:
            print(f"# failed: {error}", file=log, flush=True)
        return 1
    if log:
        print("# done", file=log, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
