"""The examples do what they say: eight ranks train what one rank trains, and a rank that dies is named, not waited for."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.conftest import free_port

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
QUIET = {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1"}


def start(
    script: str, rank: int, size: int, port: int, *words: str, logs: Path | None = None, address: str = "127.0.0.1"
) -> subprocess.Popen[str]:
    """One rank, with the variables that glaunch gives it."""
    env = QUIET | {"RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank), "MASTER_ADDR": address, "MASTER_PORT": str(port)}
    if logs is not None:
        env["GLAUNCH_LOG_DIR"] = str(logs)
    argv = [sys.executable, str(EXAMPLES / script), *words]
    return subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run_ranks(script: str, size: int, *words: str, logs: Path | None = None) -> list[tuple[int, str, str]]:
    """Exit code, stdout and stderr of each rank."""
    port = free_port()
    ranks = [start(script, rank, size, port, *words, logs=logs) for rank in range(size)]
    try:
        return [(rank.wait(200), *rank.communicate(timeout=90)) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()


def losses(text: str) -> list[float]:
    """What rank 0 said after `loss`, in order."""
    return [float(found) for found in re.findall(r"^step +\d+  loss ([\d.]+)", text, re.MULTILINE)]


def alone(script: str, *words: str) -> str:
    """The output of one rank that has none of the variables."""
    done = subprocess.run([sys.executable, str(EXAMPLES / script), *words], env=QUIET, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_eight_ranks_train_what_one_rank_trains(tmp_path: Path) -> None:
    one = alone("train.py", "--lr", "1e-3")
    ranks = run_ranks("train.py", 8, "--lr", "1e-3", logs=tmp_path)
    assert [code for code, _, _ in ranks] == [0] * 8, ranks
    assert losses(ranks[0][1]) == pytest.approx(losses(one), rel=1e-4)
    assert losses(one)[-1] < 0.75 * losses(one)[0]
    assert "same weights on all" in ranks[0][1]
    assert re.search(r"bus bandwidth [1-9][\d.]* MB/s", ranks[0][1])
    assert [text for _, text, _ in ranks[1:]] == [""] * 7
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"rank-{rank:03d}.log" for rank in range(8)]


def test_a_communication_log_counts_what_crossed_the_ring(tmp_path: Path) -> None:
    size, steps, hidden = 3, 4, 10  # parts of unequal length: 428 numbers on 3 ranks
    assert [code for code, _, _ in run_ranks("train.py", size, "--steps", str(steps), "--hidden", str(hidden), logs=tmp_path)] == [0] * size
    vector_bytes = 4 * (32 * hidden + hidden + hidden * 8 + 8 + 2)
    total = 0
    for rank in range(size):
        head, peers, _, *rows, last = (tmp_path / f"rank-{rank:03d}.log").read_text().splitlines()
        assert head.startswith(f"# rank {rank} of {size}, local rank {rank}, host ")
        assert peers == f"# sends to rank {(rank + 1) % size} at 127.0.0.1, receives from rank {(rank - 1) % size} at 127.0.0.1"
        assert [row.split("\t")[0] for row in rows] == [str(step) for step in range(steps)]
        assert last == "# done"
        total += int(rows[-1].split("\t")[1])
    # A ring all-reduce moves 2 (N - 1) times the vector in all, whatever the parts' lengths.
    assert total == steps * 2 * (size - 1) * vector_bytes


def test_seconds_keeps_all_ranks_running_together() -> None:
    begin = time.monotonic()
    ranks = run_ranks("train.py", 2, "--steps", "2", "--seconds", "1.2")
    assert [code for code, _, _ in ranks] == [0, 0], ranks
    assert time.monotonic() - begin > 1.2
    assert int(re.findall(r"trained (\d+) steps on 2 ranks", ranks[0][1])[0]) > 2


def test_a_rank_that_dies_is_named_by_its_neighbour_and_ends_the_rest() -> None:
    port = free_port()
    ranks = [start("train.py", rank, 4, port, "--seconds", "60") for rank in range(4)]
    try:
        assert ranks[0].stdout is not None
        assert "loss" in ranks[0].stdout.readline()
        ranks[2].send_signal(signal.SIGKILL)
        begin = time.monotonic()
        texts = [rank.communicate(timeout=120)[1] for rank in ranks]
        assert time.monotonic() - begin < 50  # nobody waits for the 60 s after which a silent neighbour is given up
        assert [rank.returncode for rank in ranks] == [1, 1, -9, 1]
        assert re.search(r"train\.py: rank (1|3): .*rank 2 at 127\.0\.0\.1", texts[1] + texts[3])
        assert "Traceback" not in "".join(texts)
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()


def test_ranks_that_never_come_are_named() -> None:
    rank = start("train.py", 0, 3, free_port(), "--timeout", "0.5")
    _, error = rank.communicate(timeout=120)
    assert rank.returncode == 1
    assert error == "train.py: rank 0: 2 of 3 ranks did not come, the first is rank 1\n"


def test_a_port_that_is_taken_is_said_so() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        rank = start("train.py", 0, 2, port, "--timeout", "5")
        _, error = rank.communicate(timeout=120)
    assert rank.returncode == 1
    assert error == f"train.py: rank 0 cannot listen at 127.0.0.1, port {port}: Address already in use\n"


def torch_python() -> str | None:
    """A Python here that has torch: this one, or the system's."""
    for python in (sys.executable, "/usr/bin/python3"):
        if Path(python).exists() and subprocess.run([python, "-c", "import torch"], capture_output=True, timeout=120).returncode == 0:
            return python
    return None


def test_torch_ddp_trains_what_one_rank_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    python = torch_python()
    if python is None:
        pytest.skip("torch is not installed here, and no test ever downloads it (Debian: apt-get install python3-torch)")
    monkeypatch.setattr(sys, "executable", python)
    one = alone("train_torch.py", "--steps", "5")
    ranks = run_ranks("train_torch.py", 2, "--steps", "5")
    assert [code for code, _, _ in ranks] == [0, 0], ranks
    assert losses(ranks[0][1]) == pytest.approx(losses(one), rel=1e-3)
    assert "same weights on all" in ranks[0][1]
    assert re.search(r"bus bandwidth [1-9][\d.]* MB/s", ranks[0][1])
