"""agent.sh and what belongs to it, with no Slurm: the launcher of a node (a stand-in, since it is a program of others) and its ranks."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tests.node.test_files import NODE, command, sh

LAUNCHER = r"""
printf '%s\n' "$@" >"$SEEN"
while [ "$1" != --no_python ]; do shift; done
shift
for local in 0 1; do
    RANK=$((2 + local)) WORLD_SIZE=4 LOCAL_RANK=$local LOCAL_WORLD_SIZE=2 "$@" &
    eval "rank_$local=\$!"
done
wait "$rank_0"
wait "$rank_1" || {
    echo "Failures:"; echo "  rank      : 2 (local_rank: 0)"; echo "  exitcode  : -15 (pid: 1)  (SIGTERM)"
    echo "Root Cause (first observed failure):"; echo "  rank      : 3 (local_rank: 1)"; echo "  exitcode  : $WORD (pid: 2)"
    exit 1
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A job's folder with one attempt in it, on the second of two nodes."""
    shutil.copytree(NODE, tmp_path / "job" / "node")
    attempt = tmp_path / "job" / "7.0.0"
    for part in ("out", "ranks.d"):
        (attempt / part).mkdir(parents=True)
    (attempt / "ordered").write_text("n002\nn001\n")
    (attempt / "hosts").write_text("n002\nn002\nn001\nn001\n")
    launcher = tmp_path / "launcher"
    launcher.write_text(f"#!/bin/sh\n{LAUNCHER}")
    launcher.chmod(0o755)
    return tmp_path / "job"


def start(folder: Path, form: str, program: tuple[str, ...], *options: str, host: str = "n001", **more: str) -> "subprocess.Popen[str]":
    shutil.copy(NODE / f"form-{form}.sh", folder / "node" / "form.sh")
    command(folder, *program)
    words = " ".join(f"'{word}'" for word in (str(folder.parent / "launcher"), *options))
    (folder / "starter.sh").write_text(f"set -- {words}\n")
    seen = str(folder.parent / "seen")
    env = {
        "SLURMD_NODENAME": host,
        "MASTER_ADDR": "192.0.2.2",
        "MASTER_PORT": "23456",
        "SEEN": seen,
        "WORD": "7",
        "HOME": str(folder.parent),
    }
    argv = ["dash", str(folder / "node" / "agent.sh"), str(folder / "7.0.0"), str(folder)]
    with (folder / "7.0.0" / "out" / f"{host}.log").open("a") as out:
        return subprocess.Popen(argv, env={**os.environ, **env, **more}, stdout=out, stderr=out, text=True)


def output(folder: Path, host: str = "n001") -> list[str]:
    return (folder / "7.0.0" / "out" / f"{host}.log").read_text().splitlines()


def test_torchrun_is_told_its_place_and_never_sees_the_programs_words(folder: Path) -> None:
    agent = start(folder, "torchrun", ("sh", "-c", 'echo "$RANK $NODE_RANK $1"', "sh", "--nnodes=9"), "--max_restarts=3")
    assert agent.wait(20) == 0
    assert (folder.parent / "seen").read_text().splitlines() == [
        *("--max_restarts=3", "--nnodes=2", "--node_rank=1", "--nproc_per_node=2", "--rdzv_backend=static"),
        *("--master_addr=192.0.2.2", "--master_port=23456", "--no_python", "sh", f"{folder}/node/task.sh", f"{folder}/7.0.0", str(folder)),
    ]
    assert sorted(output(folder)) == ["2: 2 1 --nnodes=9", "3: 3 1 --nnodes=9"]
    notes = [line.split("\t")[:3] for line in (folder / "7.0.0" / "ranks.d" / "n001").read_text().splitlines()]
    assert sorted(notes) == [["2", "n001", "0"], ["3", "n001", "1"]]


@pytest.mark.parametrize(
    ("options", "config", "kind"),
    [((), False, True), (("--use_fsdp",), False, False), (("--config_file", "mine.yaml"), False, False), ((), True, False)],
)
def test_accelerate_is_told_the_kind_of_job_only_where_nothing_else_says_it(
    folder: Path, options: tuple[str, ...], config: bool, kind: bool
) -> None:
    cache = folder.parent / ".cache" / "huggingface" / "accelerate"
    if config:
        cache.mkdir(parents=True)
        (cache / "default_config.yaml").touch()
    unset = {"HF_HOME": "", "XDG_CACHE_HOME": ""}
    assert start(folder, "accelerate", ("true",), *options, **unset).wait(20) == 0
    assert (folder.parent / "seen").read_text().splitlines() == [
        *options,
        *(["--multi_gpu"] if kind else []),
        *("--num_machines=2", "--machine_rank=1", "--num_processes=4", "--rdzv_backend=static", "--same_network"),
        *("--main_process_ip=192.0.2.2", "--main_process_port=23456", "--deepspeed_multinode_launcher=standard"),
        *("--no_python", "sh", f"{folder}/node/task.sh", f"{folder}/7.0.0", str(folder)),
    ]


@pytest.mark.parametrize(("word", "code"), [("7", 7), ("-9", 137)])
def test_the_code_is_that_of_the_rank_which_failed_first_and_the_last_words_are_there(folder: Path, word: str, code: int) -> None:
    long = "x" * 2500
    program = ("sh", "-c", f"[ $RANK = 3 ] || exit 0; echo {long}; seq 2000; printf 'last word'; exit 1")
    assert start(folder, "torchrun", program, WORD=word).wait(20) == code
    lines = [line.removeprefix("3: ") for line in output(folder) if line.startswith("3: ")]
    assert [len(line) for line in lines[:3]] == [1024, 1024, 452], "pieces as slurmstepd cuts them"
    assert lines[3:] == [*map(str, range(1, 2001)), "last word"]
    assert os.readlink(folder / "7.0.0" / "failed") == str(code)
    assert not (folder / "7.0.0" / "port-taken").exists()


@pytest.mark.parametrize(
    ("words", "ours"), [("Address already in use", True), ("port: 23456, EADDRINUSE", True), ("port: 6006, EADDRINUSE", False)]
)
def test_a_port_that_is_taken_is_told_by_the_first_node_only(folder: Path, words: str, ours: bool) -> None:
    (folder.parent / "launcher").write_text(f"#!/bin/sh\necho 'RuntimeError: {words}'; exit 1\n")
    for host, taken in (("n001", False), ("n002", ours)):
        assert start(folder, "torchrun", ("true",), host=host).wait(20) == 1
        assert (folder / "7.0.0" / "port-taken").exists() == taken


def test_the_last_words_of_a_rank_are_there_where_mpirun_kills_its_group_at_its_end(folder: Path) -> None:
    """At a cancel its helper kills what was started with a rank as soon as that has ended."""
    shutil.copy(NODE / "form-mpi.sh", folder / "node" / "form.sh")
    command(folder, "seq", "9000")  # fits into a pipe
    place = {"RANK": "3", "SIZE": "4", "LOCAL_RANK": "1", "LOCAL_SIZE": "2"}
    env = {f"OMPI_COMM_WORLD_{name}": at for name, at in place.items()}
    env |= {"SLURMD_NODENAME": "n001", "gl_mpi": "mpirun", "TMPDIR": str(folder)}
    argv = ["dash", str(folder / "node" / "task.sh"), str(folder / "7.0.0"), str(folder)]
    rank = subprocess.Popen(argv, env={**os.environ, **env}, start_new_session=True)
    assert os.waitid(os.P_PID, rank.pid, os.WEXITED | os.WNOWAIT)
    os.killpg(rank.pid, signal.SIGKILL)
    assert rank.wait(20) == 0
    wait_for(folder, 1, "3: 9000")
    assert output(folder) == [f"3: {number}" for number in range(1, 9001)]
    deadline = time.monotonic() + 20
    while [*folder.glob("glaunch-rank.*")]:
        assert time.monotonic() < deadline, "its pipe stays"
        time.sleep(0.05)


def wait_for(folder: Path, count: int, text: str) -> None:
    deadline = time.monotonic() + 20
    while sum(text in line for line in output(folder)) < count:
        assert time.monotonic() < deadline, output(folder)
        time.sleep(0.05)


LISTENS = "trap 'echo told' USR1; trap 'echo ended; exit 3' TERM; echo ready; while :; do sleep 0.1; done"


@pytest.mark.parametrize(
    ("to_all", "late_s"), [(False, 0), (True, 0), (True, 0.25)], ids=["to the task", "to all below it", "to all below it on a busy node"]
)
def test_a_signal_reaches_each_rank_once_and_no_starter_whoever_got_it(folder: Path, to_all: bool, late_s: float) -> None:
    """proctrack/cgroup signals a step's task alone, linuxproc all that is below it."""
    agent = start(folder, "torchrun", ("sh", "-c", LISTENS))
    wait_for(folder, 2, "ready")
    for number, text in ((signal.SIGUSR1, "told"), (signal.SIGTERM, "ended")):
        below = [agent.pid]
        for pid in below if to_all else ():
            with contextlib.suppress(OSError):  # the program's own "sleep 0.1" comes and goes
                below += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        for pid in below:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
            time.sleep(late_s if pid == agent.pid else 0)
        if number == signal.SIGUSR1:
            wait_for(folder, 2, text)
            time.sleep(1)
            assert agent.poll() is None
    if not to_all:  # the stand-in dies of it, as torchrun does not: its ranks are then not told
        for line in (folder / "7.0.0" / "ranks.d" / "n001").read_text().splitlines():
            os.kill(int(line.split("\t")[3]), signal.SIGTERM)
    assert agent.wait(20) == 143
    lines = [line for line in output(folder) if line[:3] in {"2: ", "3: "} and "ser defined" not in line and "erminated" not in line]
    assert sorted(lines) == ["2: ended", "2: ready", "2: told", "3: ended", "3: ready", "3: told"]
    assert not (folder / "7.0.0" / "failed").is_symlink()


def test_the_other_agents_are_ended_some_time_after_one_has_failed(tmp_path: Path) -> None:
    main = subprocess.Popen(["sleep", "60"])
    began = time.monotonic()
    (tmp_path / "failed").symlink_to("7")
    assert sh("ended.sh", tmp_path, main.pid, 2).returncode == 0
    assert main.wait(5) == -signal.SIGTERM
    assert 1.5 < time.monotonic() - began < 20
    assert sh("ended.sh", tmp_path, main.pid, 60).returncode == 0, "it ends with srun"


@pytest.mark.parametrize(
    ("tasks", "per_node", "hosts"), [(4, 2, "aabb"), (3, 2, "aab"), (2, 2, "ab"), (5, 3, "aaabb")], ids=lambda value: str(value)
)
def test_spread(tmp_path: Path, tasks: int, per_node: int, hosts: str) -> None:
    (tmp_path / "ordered").write_text("a\nb\n")
    assert sh("spread.sh", tmp_path / "ordered", tasks, per_node).stdout.split() == list(hosts)


def test_a_signal_at_the_end_leaves_nothing_behind(folder: Path) -> None:
    """The starter is gone, and what it left still holds its output: the agent waits for that, and is told something then."""
    (folder.parent / "launcher").write_text('#!/bin/sh\nsleep 3 &\n: >"$SEEN"\n')
    agent = start(folder, "torchrun", ("true",))
    end_s = time.monotonic() + 30
    while not (folder.parent / "seen").exists() and time.monotonic() < end_s:
        time.sleep(0.05)
    time.sleep(0.5)
    agent.send_signal(signal.SIGUSR1)
    assert agent.wait(30) == 0
    mine = f"SEEN={folder.parent}/seen".encode()
    left = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mine in (process / "environ").read_bytes().split(b"\0"):
                left.append((process / "cmdline").read_bytes().replace(b"\0", b" "))
    assert b"sleep 2000000 " not in left
