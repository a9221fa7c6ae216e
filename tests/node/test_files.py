"""The node files one by one, with no Slurm: order, guard, port, probe, task, ranks, gather, limit, watch."""

import itertools
import json
import os
import random
import shutil
import socket
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plans import TEMPLATES

from glaunch.bundle import read_rows
from glaunch.fabric import synthetic
from glaunch.placement.cost import cost_of
from glaunch.placement.objective import Groups
from glaunch.placement.order import arranged, fabric_order

NODE = TEMPLATES / "node"
HOSTILE = "with 'blank' \"$(id)\" %j b\\n ü x=1"


def sh(
    name: str,
    *words: object,
    env: Mapping[str, str] | None = None,
    shell: tuple[str, ...] = ("dash",),
    cwd: Path | None = None,
    given: str = "",
) -> "subprocess.CompletedProcess[str]":
    """Run a node file as the job does."""
    command = [*shell, str(NODE / name), *map(str, words)]
    return subprocess.run(command, env={**os.environ, **(env or {})}, capture_output=True, text=True, timeout=60, cwd=cwd, input=given)


def programs(folder: Path, **texts: str) -> dict[str, str]:
    """Stand-ins for foreign programs, first on PATH."""
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


@pytest.fixture(params=["plain", HOSTILE], ids=["plain", "hostile"])
def attempt(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """An attempt's folder, also with a name that bites."""
    folder: Path = tmp_path / str(request.param) / "7.0.0"
    for part in ("out", "logs", "ranks.d", "node"):
        (folder / part).mkdir(parents=True)
    shutil.copy(NODE / "form-srun.sh", folder / "node" / "form.sh")
    shutil.copy(NODE / "in-order.sh", folder / "node")
    return folder


# --- order.sh


def order(attempt: Path, table: list[tuple[str, int]], granted: list[str], nodes: int, tasks: int, per_node: int) -> tuple[int, str]:
    (attempt / "granted").write_text("".join(f"{node}\n" for node in granted), encoding="utf-8")
    (attempt / "order.tsv").write_text("".join(f"{node}\t{at}\tleaf\tpod\n" for node, at in table), encoding="utf-8")
    done = sh("order.sh", attempt, attempt / "order.tsv", nodes, tasks, per_node)
    return done.returncode, done.stderr


names = st.lists(st.from_regex(r"[a-z]{1,3}[0-9]{1,3}", fullmatch=True), min_size=1, max_size=12, unique=True)


def test_order_is_that_of_the_table(tmp_path_factory: pytest.TempPathFactory) -> None:
    base, count = tmp_path_factory.mktemp("order"), itertools.count()

    @settings(max_examples=40)
    @given(names, names, st.integers(1, 4), st.data())
    def holds(known: list[str], granted: list[str], per_node: int, data: st.DataObject) -> None:
        attempt = base / str(next(count))
        attempt.mkdir()
        nodes = data.draw(st.integers(1, len(granted)))
        tasks = data.draw(st.integers(1, nodes * per_node))
        table = {node: at for at, node in enumerate(data.draw(st.permutations(known)))}
        code, said = order(attempt, list(table.items()), granted, nodes, tasks, per_node)
        expected = sorted(granted, key=lambda node: (table.get(node, 10**9), granted.index(node)))[:nodes]
        assert code == 0
        assert (attempt / "ordered").read_text().split() == expected
        lines = (attempt / "hosts").read_text().split()
        if tasks > per_node * (nodes - 1):
            assert lines == [node for node in expected for _ in range(per_node)][:tasks]
        else:  # evenly
            counts = [lines.count(node) for node in expected]
            assert lines == [node for node, count_here in zip(expected, counts, strict=True) for _ in range(count_here)]
            assert len(lines) == tasks
            assert counts == sorted(counts, reverse=True)
            assert max(counts) - min(counts) <= 1
        assert bool(said) == any(node not in table for node in expected)

    holds()


def test_order_keeps_the_same_groups_together_as_the_plan(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whatever Slurm grants, on fabrics of every depth: the shell gives the order that Python gives."""
    base, count, r = tmp_path_factory.mktemp("groups"), itertools.count(), random.Random(11)
    split = 0
    for shape in ("core:1 spine:3 leaf:3 node:6", "core:1 leaf:5 node:7", "top:1 hall:2 spine:2 leaf:3 node:4", "leaf:1 node:30") * 8:
        fabric = synthetic(shape)
        rows = fabric_order(fabric, fabric.leaf_of)
        leaf = r.choice((1, 2, 3))
        groups = Groups(leaf, r.choice((1, leaf, 2 * leaf, 4 * leaf)))
        granted = r.sample(sorted(fabric.leaf_of), r.randint(1, 24)) + ["x9", "x10"][: r.randint(0, 2)]
        r.shuffle(granted)
        attempt = base / str(next(count))
        attempt.mkdir()
        (attempt / "granted").write_text("".join(f"{node}\n" for node in granted))
        (attempt / "order.tsv").write_text("".join(f"{row.node}\t{row.position}\t{row.leaf}\t{row.pod}\n" for row in rows))
        done = sh("order.sh", attempt, attempt / "order.tsv", len(granted), len(granted), 1, groups.leaf, groups.pod)
        known = [node for node in granted if node in fabric.leaf_of]
        expected = [*arranged(fabric, known, groups), *(node for node in granted if node not in fabric.leaf_of)]
        assert done.returncode == 0, done.stderr
        assert (attempt / "ordered").read_text().split() == expected, f"{shape}, {groups}"
        split += expected[: len(known)] != list(arranged(fabric, known))
    assert split > 8, "groups must change the order now and then"


def test_order_says_which_nodes_it_does_not_know(attempt: Path) -> None:
    code, said = order(attempt, [("n2", 0), ("n1", 1)], ["n1", "n2", "n9"], 3, 6, 2)
    assert code == 0
    assert said == "glaunch: 1 of the granted nodes are not in the plan's order; they come last\n"
    assert (attempt / "ordered").read_text().split() == ["n2", "n1", "n9"]


@pytest.mark.parametrize("table", [[], [("n1", 0)]])
def test_no_order_leaves_no_host_file(attempt: Path, table: list[tuple[str, int]]) -> None:
    code, said = order(attempt, table, ["n1"], 1, 3, 2)
    assert code == 1
    assert said.endswith("the ranks follow Slurm's own\n")
    assert not (attempt / "hosts").exists()
    assert not (attempt / "ordered").exists()


# --- placed.sh


def test_the_job_counts_pods_leaves_and_hops_as_the_plan_does(tmp_path: Path) -> None:
    """On fabrics of every depth, with nodes that nobody knows: awk counts what Python counts."""
    r = random.Random(5)
    shapes = (
        "core:1 spine:3 leaf:3 node:6",
        "core:1 leaf:5 node:7",
        "top:1 hall:2 spine:2 leaf:3 node:4",
        "leaf:1 node:30",
        "spine:2 leaf:2 node:5",
    )
    for shape in shapes * 5:
        fabric = synthetic(shape)
        order = "".join(f"{row.node}\t{row.position}\t{row.leaf}\t{row.pod}\n" for row in fabric_order(fabric, fabric.leaf_of))
        (tmp_path / "order.tsv").write_text(order)
        (tmp_path / "switches.tsv").write_text("".join("\t".join(fabric.path_of_leaf(leaf)) + "\n" for leaf in fabric.leaves))
        known = r.sample(sorted(fabric.leaf_of), r.randint(1, 20))
        strange = ["x9", "x10"][: r.choice((0, 0, 1, 2))]
        (tmp_path / "ordered").write_text("".join(f"{node}\n" for node in (*known, *strange)))
        done = sh("placed.sh", tmp_path, tmp_path / "order.tsv", tmp_path / "switches.tsv")
        assert (done.returncode, done.stderr) == (0, "")
        leaves = {fabric.leaf_of[node] for node in known}
        cost = cost_of(fabric, (*known, *strange))
        hops = -1 if cost is None else cost.hops
        assert done.stdout == f"{len(set(map(fabric.pod_of_leaf, leaves)))} {len(leaves)} {hops} {len(strange)}\n"


# --- guard.sh


def guard(folder: Path, job: int, env: Mapping[str, str]) -> "subprocess.Popen[str]":
    command = ["dash", str(NODE / "guard.sh"), str(folder)]
    return subprocess.Popen(
        command, env={**os.environ, **env, "SLURM_JOB_ID": str(job), "GLAUNCH_GUARD_PAUSE_S": "0"}, stderr=subprocess.PIPE, text=True
    )


def guarded(folder: Path, job: int, env: Mapping[str, str]) -> tuple[int, str]:
    process = guard(folder, job, env)
    said = process.communicate(timeout=30)[1]
    return process.returncode, said


RUNNING = "for o; do :; done; echo '7 RUNNING'; echo '8 RUNNING'; echo '9 RUNNING'; echo '10 RUNNING'; echo '11 RUNNING'"


def test_guard_of_four_at_once_lets_one_through(attempt: Path, tmp_path: Path) -> None:
    env = programs(tmp_path / "bin", squeue=RUNNING)
    processes = [guard(attempt, job, env) for job in (8, 9, 10, 11)]
    said = [process.communicate(timeout=30)[1] for process in processes]
    assert sorted(process.returncode for process in processes) == [0, 1, 1, 1]
    assert sum("runs the same submission and is not over" in text for text in said) == 3


def test_guard_of_four_heirs_lets_one_through(attempt: Path, tmp_path: Path) -> None:
    env = programs(tmp_path / "bin", squeue="echo '7 COMPLETED'; echo '8 RUNNING'; echo '9 RUNNING'; echo '10 RUNNING'; echo '11 RUNNING'")
    assert guarded(attempt, 7, env) == (0, "")
    processes = [guard(attempt, job, env) for job in (8, 9, 10, 11)]
    for process in processes:
        process.communicate(timeout=30)
    assert sorted(process.returncode for process in processes) == [0, 1, 1, 1]


@pytest.mark.parametrize("state", ["PENDING", "REQUEUED", "COMPLETING", "SUSPENDED"])
def test_guard_stops_a_second_job(attempt: Path, tmp_path: Path, state: str) -> None:
    env = programs(tmp_path / "bin", squeue=f"echo '7 {state}'")
    assert guarded(attempt, 7, env) == (0, "")
    assert guarded(attempt, 7, env) == (0, ""), "the same job, requeued"
    assert guarded(attempt, 7, {**env, "SLURM_ARRAY_TASK_ID": "2"}) == (0, ""), "another task of an array"
    code, said = guarded(attempt, 8, env)
    assert code == 1
    assert said == "glaunch: job 7 runs the same submission and is not over; job 8 stops here (scancel 7, or wait)\n"


@pytest.mark.parametrize(
    ("squeue", "said"),
    [
        ("echo '7 FAILED'", ""),
        ("echo '3 RUNNING'; echo '7 TIMEOUT'", ""),
        ("", ""),
        ("echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1", ""),
        ("echo 'Unable to contact slurm controller' >&2; exit 1", "glaunch: Slurm does not say whether job 7 is over; going on\n"),
    ],
)
def test_guard_lets_the_next_one_through(attempt: Path, tmp_path: Path, squeue: str, said: str) -> None:
    env = programs(tmp_path / "bin", squeue=squeue)
    assert guarded(attempt, 7, env) == (0, "")
    assert guarded(attempt, 8, env) == (0, said)


def test_guard_in_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    code, said = guarded(tmp_path / "gone", 7, {})
    assert (code, said) == (1, f"glaunch: cannot write in {tmp_path / 'gone'}\n")


# --- port.sh


def test_port_is_free_and_differs_by_seed() -> None:
    found = [sh("port.sh", seed, env={"SLURMD_NODENAME": os.uname().nodename}).stdout.split() for seed in (1, 2, 3)]
    assert len({port for port, _ in found}) == 3
    for port, name in found:
        assert name == os.uname().nodename
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", int(port)))


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_port_leaves_one_that_is_taken(family: socket.AddressFamily) -> None:
    port = int(sh("port.sh", 5).stdout.split()[0])
    with socket.socket(family) as listener:
        listener.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", port))
        listener.listen()
        assert int(sh("port.sh", 5).stdout.split()[0]) != port


def test_port_tells_the_hosts_own_name_where_slurm_calls_it_otherwise() -> None:
    name = sh("port.sh", 5, env={"SLURMD_NODENAME": "cloud-node-7"}).stdout.split()[1]
    assert name == os.uname().nodename


# --- probe.sh and task.sh


def command(folder: Path, *words: str, work_dir: str = "/") -> None:
    quoted = " ".join("'" + word.replace("'", "'\"'\"'") + "'" for word in words)
    (folder / "command.sh").write_text(f"gl_work_dir='{work_dir}'\nset -- {quoted}\n", encoding="utf-8")


@pytest.mark.parametrize("shell", [("dash",), ("bash", "--posix")], ids=["dash", "bash"])
@pytest.mark.parametrize(
    ("first_line", "mode", "code", "said"),
    [
        ("#!/bin/sh", 0o755, 0, ""),
        ("#!/usr/bin/env sh", 0o755, 0, ""),
        ("#! /bin/sh -e", 0o755, 0, ""),
        ("#!/opt/none/python3", 0o755, 127, "/opt/none/python3: not found, and PROGRAM is run by it"),
        ("#!/usr/bin/env no-such-thing", 0o755, 127, "no-such-thing: not found, and PROGRAM is run by it"),
        ("#!/bin/sh", 0o644, (126, 127), "PROGRAM: may not be executed | PROGRAM: not found"),
        (None, 0, 127, "PROGRAM: not found"),
    ],
)
def test_probe_finds_a_program_that_cannot_run(
    attempt: Path, shell: tuple[str, ...], first_line: str | None, mode: int, code: int | tuple[int, int], said: str
) -> None:
    program = attempt / "program"
    if first_line is not None:
        program.write_text(first_line + "\n")
        program.chmod(mode)
    command(attempt, str(program))
    done = sh("probe.sh", attempt, attempt, env={"SLURMD_NODENAME": "n003"}, shell=shell)
    assert done.returncode in (code if isinstance(code, tuple) else (code,))
    assert done.stderr in [f"glaunch: n003: {text}\n".replace("PROGRAM", str(program)) if text else "" for text in said.split(" | ")]
    assert (attempt / "out" / "n003.log").read_text() == ""


def test_probe_says_what_else_is_missing(attempt: Path) -> None:
    env = {"SLURMD_NODENAME": "n003"}
    command(attempt, "sh", work_dir="/no/such/folder")
    done = sh("probe.sh", attempt, attempt, env=env)
    assert (done.returncode, done.stderr) == (72, "glaunch: n003: the working folder /no/such/folder is not there\n")
    (attempt / "out").rename(attempt / "elsewhere")
    done = sh("probe.sh", attempt, attempt, env=env)
    assert (done.returncode, done.stderr) == (73, f"glaunch: n003: cannot write {attempt}/out/n003.log\n")


def rank(
    attempt: Path, number: int, *, shape: str = "2(x2),1", shell: tuple[str, ...] = ("dash",), **env: str
) -> "subprocess.CompletedProcess[str]":
    (attempt / "ordered").write_text("n003\nn002\nn001\n")
    host = ("n003", "n003", "n002", "n002", "n001")[number]
    values = {
        "SLURM_PROCID": str(number),
        "SLURM_LOCALID": str(number % 2),
        "SLURM_NODEID": str(("n001", "n002", "n003").index(host)),
        "SLURM_STEP_NUM_TASKS": "5",
        "SLURM_STEP_TASKS_PER_NODE": shape,
        "SLURMD_NODENAME": host,
        **env,
    }
    return sh("task.sh", attempt, attempt, env=values, shell=shell)


SHOW = "echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $NODE_RANK"


@pytest.mark.parametrize("shell", [("dash",), ("bash", "--posix")], ids=["dash", "bash"])
def test_task_knows_who_it_is(attempt: Path, shell: tuple[str, ...]) -> None:
    command(attempt, "sh", "-c", SHOW)
    assert rank(attempt, 1, shape="1,2(x2)", shell=shell).stdout == "1 5 1 2 0\n"
    assert rank(attempt, 4, shape="1,2(x2)", shell=shell).stdout == "4 5 0 1 2\n"
    assert [line.split("\t")[:3] for line in (attempt / "ranks.d" / "n003").read_text().splitlines()] == [["1", "n003", "1"]]


@pytest.mark.parametrize("shell", [("dash",), ("bash", "--posix")], ids=["dash", "bash"])
def test_task_gives_back_what_shells_do_not_hand_on(attempt: Path, shell: tuple[str, ...]) -> None:
    words = """'BASH_FUNC_say%%=() {  echo "it'"'"'s $1"\n}' 'a.b=$(id) "c"'"""
    command(attempt, "bash", "-c", 'say "$1"; printenv a.b; env | grep -c ^gl_', "bash", "a  b")
    assert rank(attempt, 0, shell=shell, gl_functions=words).stdout == 'it\'s a  b\n$(id) "c"\n0\n'
    program = attempt / "a=b"
    program.write_text("#!/bin/sh\necho runs\n")
    program.chmod(0o755)
    command(attempt, str(program))
    assert rank(attempt, 0, shell=shell, gl_functions=words).stdout == "runs\n"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("10.1.0.3 n003", ""),
        ("127.0.1.1 n003", "takes MASTER_ADDR n003, the host of rank 0, for itself: its name leads to a loopback address here"),
        ("::1             n003", "takes MASTER_ADDR n003, the host of rank 0, for itself: its name leads to a loopback address here"),
        ("", "does not know MASTER_ADDR n003, the host of rank 0"),
    ],
)
def test_task_says_when_the_name_of_rank_0s_host_does_not_lead_there(attempt: Path, tmp_path: Path, answer: str, said: str) -> None:
    command(attempt, "true")
    env = {**programs(tmp_path / "bin", getent=f"echo '{answer}'" if answer else "exit 2"), "MASTER_ADDR": "n003"}
    shell = ("dash",)
    assert rank(attempt, 2, shell=shell, **env).stderr == (f"glaunch: n002: {said}\n" if said else "")
    assert rank(attempt, 3, shell=shell, **env).stderr == "", "one speaks for the node"
    assert rank(attempt, 0, shell=shell, **env).stderr == "", "on the host itself it may be one"


def test_task_makes_a_log_folder_that_is_closed_to_others(attempt: Path, tmp_path: Path) -> None:
    logs = tmp_path / "logs of mine"
    command(attempt, "sh", "-c", 'umask; ls -ld "$GLAUNCH_LOG_DIR"')
    for number in (0, 1):
        done = rank(attempt, number, GLAUNCH_LOG_DIR=str(logs))
        mask, line = done.stdout.splitlines()
        assert int(mask, 8) == os.umask(0o22)
        assert line.startswith("drwx------")
        assert done.stderr == ""


@pytest.mark.parametrize("what", ["open", "link", "no place"])
def test_task_refuses_a_log_folder_that_is_not_ours(attempt: Path, tmp_path: Path, what: str) -> None:
    logs = tmp_path / "logs"
    if what == "open":
        logs.mkdir(mode=0o755)
    elif what == "link":
        logs.symlink_to("/tmp")
    else:
        logs = tmp_path / "none" / "logs"
    command(attempt, "sh", "-c", 'echo "[${GLAUNCH_LOG_DIR-none}]"')
    first, second = rank(attempt, 0, GLAUNCH_LOG_DIR=str(logs)), rank(attempt, 1, GLAUNCH_LOG_DIR=str(logs))
    assert first.stdout == second.stdout == "[none]\n"
    assert first.stderr.startswith("glaunch: n003: ")
    assert first.stderr.endswith("the ranks here run without GLAUNCH_LOG_DIR\n")
    assert second.stderr == "", "once a node"


# --- ranks.sh


def test_ranks_are_put_together_when_all_have_spoken(attempt: Path) -> None:
    (attempt / "ordered").write_text("n002\nn001\n")
    (attempt / "ranks.d" / "n002").write_text("1\tn002\t1\t11\n0\tn002\t0\t10\n")
    assert sh("ranks.sh", attempt, 3, "all").returncode == 1
    assert not (attempt / "ranks.tsv").exists()
    (attempt / "ranks.d" / "n001").write_text("2\tn001\t0\t12\n")
    assert sh("ranks.sh", attempt, 3, "all").returncode == 0
    assert (attempt / "ranks.tsv").read_text() == "0\tn002\t0\t10\n1\tn002\t1\t11\n2\tn001\t0\t12\n"
    assert sorted(path.name for path in attempt.iterdir()) == ["logs", "node", "ordered", "out", "ranks.tsv"]


def test_at_the_end_ranks_are_taken_as_they_are(attempt: Path) -> None:
    (attempt / "ordered").write_text("n002\nn001\n")
    assert sh("ranks.sh", attempt, 3).returncode == 1
    (attempt / "ranks.d" / "n001").write_text("2\tn001\t0\t12\n")
    assert sh("ranks.sh", attempt, 3).returncode == 0
    assert (attempt / "ranks.tsv").read_text() == "2\tn001\t0\t12\n"


# --- gather.sh


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "node" / "logs 'of' mine \\n"
    folder.parent.mkdir()
    folder.mkdir(mode=0o700)
    return folder


def gather(attempt: Path, logs: Path | str, cap: int = 10**6, *more: str) -> dict[str, object]:
    done = sh("gather.sh", attempt, cap, *more, env={"GLAUNCH_LOG_DIR": str(logs), "SLURMD_NODENAME": "n003"})
    assert (done.returncode, done.stderr) == (0, "")
    (attempt / "manifest.jsonl").write_text(done.stdout)
    assert len(read_rows(attempt)) == 1
    line: dict[str, object] = json.loads(done.stdout)
    left = [path.name for path in (attempt / "logs").iterdir()]
    assert left in ([], ["n003.tar.gz"]), "nothing half done stays"
    return line


def archived(attempt: Path) -> dict[str, bytes]:
    with tarfile.open(attempt / "logs" / "n003.tar.gz") as archive:
        files = {member.name.removeprefix("./"): archive.extractfile(member) for member in archive if member.isreg()}
        return {name: file.read() for name, file in files.items() if file is not None}


def test_gather_brings_all_home(attempt: Path, logs: Path) -> None:
    (logs / "a b").mkdir()
    (logs / "a b" / "rank 0.log").write_bytes(b"zero\n")
    (logs / "-x\nü").write_bytes(b"odd\n")
    line = gather(attempt, logs)
    assert (line["host"], line["archive"], line["reason"]) == ("n003", "logs/n003.tar.gz", "")
    assert line["size_bytes"] == (attempt / "logs" / "n003.tar.gz").stat().st_size
    assert archived(attempt) == {"a b/rank 0.log": b"zero\n", "-x\nü": b"odd\n"}
    assert logs.exists(), "the job goes on"


def test_gather_at_the_end_leaves_nothing_on_the_node(attempt: Path, logs: Path) -> None:
    (logs / "a").write_bytes(b"1")
    assert gather(attempt, logs, 10**6, "last")["reason"] == ""
    assert archived(attempt) == {"a": b"1"}
    assert not logs.exists()


def test_gather_keeps_to_its_cap(attempt: Path, logs: Path) -> None:
    for age in range(12):
        path = logs / f"rank{age:02d}.log"
        path.write_bytes(bytes([65 + age]) * 10_000)
        os.utime(path, (10**9 - age, 10**9 - age))
    big = logs / "deep" / "big.log"
    big.parent.mkdir()
    big.write_bytes(b"<head" + b"." * 500_000 + b"tail>")
    (logs / "newline\n").write_bytes(b"x")
    line = gather(attempt, logs, 80_000, "last")
    assert line["reason"] == "too-large"
    detail = str(line["detail"])
    assert "at most 80000 are gathered; cut to head and tail: ./deep/big.log; left out, oldest first:" in detail
    files = archived(attempt)
    assert sum(map(len, files.values())) <= 80_200
    assert files["deep/big.log"].startswith(b"<head")
    assert files["deep/big.log"].endswith(b"tail>")
    kept = sorted(name for name in files if name.startswith("rank"))
    assert kept == [f"rank{age:02d}.log" for age in range(len(kept))], "the newest are kept"
    assert 4 <= len(kept) < 12
    assert logs.exists(), "what was not taken stays"


@pytest.mark.parametrize(
    ("what", "detail"),
    [("missing", "is not there: no rank made it"), ("open", "is not this user's own"), ("unset", "GLAUNCH_LOG_DIR is not set")],
)
def test_gather_of_no_logs_says_why(attempt: Path, logs: Path, what: str, detail: str) -> None:
    if what == "open":
        logs.chmod(0o755)
    line = gather(attempt, "" if what == "unset" else logs.with_name("none") if what == "missing" else logs)
    assert (line["archive"], line["reason"]) == ("", "no-logs")
    assert str(line["detail"]).endswith(detail)


def test_gather_that_cannot_write_says_so(attempt: Path, logs: Path) -> None:
    (logs / "a").write_bytes(b"1")
    (attempt / "logs").rmdir()
    (attempt / "logs").write_text("no folder")
    done = sh("gather.sh", attempt, 1000, "last", env={"GLAUNCH_LOG_DIR": str(logs), "SLURMD_NODENAME": "n003"})
    assert json.loads(done.stdout)["reason"] == "broken"
    assert (logs / "a").exists()


# --- limit.sh and watch.sh


def test_limit_returns_before_the_end_and_sees_a_raised_one(tmp_path: Path) -> None:
    env = programs(
        tmp_path / "bin",
        scontrol="""n=$(cat "$COUNT" 2>/dev/null || echo 0); echo $((n + 1)) >"$COUNT"
        [ "$n" -gt 0 ] && left=3 || left=5; [ "$n" -gt 1 ] && left=1
        echo "JobId=7 JobName=x EndTime=2001-01-01T00:00:00"
        echo "   StartTime=2020-01-01T00:00:00 EndTime=$(date -d "+$left seconds" +%Y-%m-%dT%H:%M:%S) Deadline=N/A\"""",
    )
    done = sh("limit.sh", 3, env={**env, "COUNT": str(tmp_path / "count"), "SLURM_JOB_ID": "7"})
    assert done.returncode == 0
    assert (tmp_path / "count").read_text().strip() == "3"


def test_limit_of_several_components_is_the_first_of_theirs(tmp_path: Path) -> None:
    env = programs(
        tmp_path / "bin",
        scontrol="""for left in 900 0 600; do
            echo "JobId=7 HetJobId=7 HetJobOffset=0 JobName=x"
            echo "   StartTime=2020-01-01T00:00:00 EndTime=$(date -d "+$left seconds" +%Y-%m-%dT%H:%M:%S) Deadline=N/A"
        done""",
    )
    assert sh("limit.sh", 60, env={**env, "SLURM_JOB_ID": "7"}).returncode == 0


def test_limit_asks_for_its_own_task_of_an_array(tmp_path: Path) -> None:
    env = programs(tmp_path / "bin", scontrol=f'printf "%s\\n" "$*" >{tmp_path}/asked')
    sh("limit.sh", 3, env={**env, "SLURM_JOB_ID": "12", "SLURM_ARRAY_JOB_ID": "12", "SLURM_ARRAY_TASK_ID": "3"})
    assert (tmp_path / "asked").read_text() == "--local show job 12_3\n"


@pytest.mark.parametrize("end", ["Unknown", ""])
def test_limit_that_does_not_exist(tmp_path: Path, end: str) -> None:
    env = programs(tmp_path / "bin", scontrol=f"echo '   StartTime=2020-01-01T00:00:00 EndTime={end} Deadline=N/A'")
    assert sh("limit.sh", 3, env={**env, "SLURM_JOB_ID": "7"}).returncode == 1


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("0: OSError: [Errno 98] Address already in use\n", 0),
        ("0: [E] code: -98, name: EADDRINUSE, message: address already in use\n", 0),
        ("0: [E] port: 29500, code: -98, name: EADDRINUSE, message: address already in use\n", 0),
        ("0: [E] port: 6006, code: -98, name: EADDRINUSE, message: address already in use\n", 1),
        ("7: OSError: [Errno 98] Address already in use\n", 1),
        ("0: fine\n", 1),
        ("", 1),
    ],
)
def test_watch_reads_rank_0_only(attempt: Path, text: str, code: int) -> None:
    (attempt / "out" / "n003.log").write_text("0: Address already in use\n" + text)
    done = sh("watch.sh", attempt, 8, "n003", len("0: Address already in use\n"), env={"MASTER_PORT": "29500"})
    assert done.returncode == code


GLOG = "E20261130 15:45:59.620658 28458 socket.cpp:462] [c10d]"
NODE_JS = """node:events:497
Error: listen EADDRINUSE: address already in use :::3000
    at Server.setupListenHandle [as _listen2] (node:net:1817:16) {
  code: 'EADDRINUSE',
  errno: -98,
  address: '::',
  port: 3000
}
"""
IN_USE = {
    # PORT is MASTER_PORT in one reading of each, another port in the other
    f"{GLOG} The server socket has failed to bind to [::]:PORT (errno: 98 - Address already in use).": "torch 1.13",
    "RuntimeError: The server socket has failed to listen on any local network address. The server socket has failed to bind to [::]:PORT "
    "(errno: 98 - Address already in use). The server socket has failed to bind to ?UNKNOWN? (errno: 98).": "torch 1.10",
    "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: PORT, useIpv6: false, "
    "code: -98, name: EADDRINUSE, message: address already in use": "torch 2",
    "OSError: [Errno 98] error while attempting to bind on address ('0.0.0.0', PORT): address already in use": "asyncio",
    "OSError: [Errno 98] error while attempting to bind on address ('::', PORT, 0, 0): address already in use": "asyncio, IPv6",
    "zmq.error.ZMQError: Address already in use (addr='tcp://*:PORT')": "zmq",
    "2026-11-30 12:34:56 listen tcp :PORT: bind: address already in use": "Go",
    "(98)Address already in use: AH00072: make_sock: could not bind to address [::]:PORT": "Apache",
    "[1664696788.765202] [n001:13461:0] sock.c:305  UCX  ERROR bind(fd=17 addr=0.0.0.0:PORT) failed: Address already in use": "UCX",
    "n001:1025:1277 [3] NCCL WARN bind on 10.0.0.1<PORT> failed: Address already in use": "NCCL",
    "Address already in use\nPort PORT is in use by another program. Either identify and stop that program": "Flask",
    "Cannot bind address 192.168.0.240 port PORT: ERR=Address already in use.": "port N",
    NODE_JS.replace("3000", "PORT"): "node",
}
UNNAMED = (
    "OSError: [Errno 98] Address already in use",
    "RuntimeError: Address already in use",
    "2026-11-30 12:34:56,789 ERROR serve.py:1234 rank:12 [Errno 98] Address already in use",
    "RuntimeError: [/tmp/third_party/gloo/gloo/transport/tcp/pair.cc:1176] bind: Address already in use",
    "[n001:12345] bind failed: Address already in use (errno:98)",
    "[rank0]:[W1130 12:34:56.789 socket.cpp:1752] Address already in use, 99999999 transports 3",
    'thread main panicked: Os { code: 98, kind: AddrInUse, message: "Address already in use" }',
)


@pytest.mark.parametrize(("text", "who"), IN_USE.items(), ids=IN_USE.values())
def test_a_port_that_is_named_must_be_the_one_of_the_ranks(text: str, who: str) -> None:
    for port, code in (("29500", 0), ("6006", 1), ("29501", 1), ("2950", 1), ("50051", 1)):
        done = sh("taken.sh", "29500", given=f"Traceback 29500\n{text.replace('PORT', port)}\n")
        assert (done.returncode, done.stderr) == (code, ""), (who, port)


@pytest.mark.parametrize("text", UNNAMED)
def test_where_no_port_is_named_it_may_be_the_one_of_the_ranks(text: str) -> None:
    assert sh("taken.sh", "29500", given=f"starts\n{text}\n").returncode == 0
    assert sh("taken.sh", "29500", given=f"{text}\nEADDRINUSE 0.0.0.0:6006\n").returncode == 1
    assert sh("taken.sh", "29500", given=f"{text}\nEADDRINUSE 0.0.0.0:6006\nEADDRINUSE 0.0.0.0:29500\n").returncode == 0
    assert sh("taken.sh", "29500", given="port 29500: fine\n").returncode == 1


@pytest.mark.parametrize("first", ["sleep", "scontrol"])
def test_a_job_that_slurm_takes_back_says_so_whatever_slurm_ends_first(tmp_path: Path, first: str) -> None:
    slept = f"[ -e {tmp_path}/once ] && exec /bin/sleep $1; : >{tmp_path}/once; exit 143"
    env = programs(tmp_path / "bin", scontrol="kill -s TERM $$" if first == "scontrol" else ":", sleep=slept)
    script = f"""
        . {NODE}/batch-order.sh
        say() {{ echo "$@"; }}
        write_placement() {{ echo "did: $1"; }}
        trap 'echo ended; exit 0' TERM
        (/bin/sleep 1; kill -s TERM $$) &
        back_to_queue job
        write_placement ''
    """
    done = subprocess.run(["sh", "-c", script], env={**env, "SLURM_JOB_ID": "7"}, capture_output=True, text=True, timeout=100)
    assert done.stdout.splitlines() == ["did: requeued", "placement: Slurm is asked to take the job back, this once", "ended"], done
