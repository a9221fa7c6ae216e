"""Logs fetched over SSH from the nodes of a real Slurm, as a plain user; some hosts are cut off, refuse, freeze or show another key."""

import json
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from glaunch.sandbox.box import Sandbox

pytestmark = pytest.mark.slurm

NODES = tuple(f"n{number:03d}" for number in range(1, 9))
ATTEMPT, LOG_DIR = "12.0.0", "/tmp/glaunch-ada-12.0.0"
LAUNCHER = Path(__file__).resolve().parents[2] / "launcher"

PROGRAM = """
import json, os, pathlib, sys, threading, time
from glaunch.collect import collect
from glaunch.gateways.ssh import SshSettings

user, attempt, log_dir, addresses = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4])
connect_s, banner_s = map(float, sys.argv[5:])
attempt.mkdir(mode=0o700, exist_ok=True)
home = pathlib.Path.home()
files = (f"{home}/.ssh/known_hosts",), (f"{home}/.ssh/id_ed25519",)
settings = SshSettings(user, *files, connect_s=connect_s, banner_s=banner_s, auth_s=60.0, total_s=120.0)
start = time.monotonic()
bundle = collect(attempt, tuple(addresses), addresses, log_dir, settings=settings)
spent = time.monotonic() - start
end = time.monotonic() + 60
while threading.active_count() > 1 and time.monotonic() < end:
    time.sleep(0.02)
hosts = [[one.host, one.how, one.archive, one.reason, one.detail, [file.name for file in one.files]] for one in bundle.hosts]
print(json.dumps({"hosts": hosts, "spent_s": spent, "threads": threading.active_count()}))
"""


@pytest.fixture(scope="module")
def box(sandboxes: Callable[..., Sandbox]) -> Sandbox:
    """Eight nodes on which ranks of a real job left their logs; not the shared ones, since the last test leaves hosts broken."""
    one = sandboxes("collect", nodes=8)
    write = f'mkdir -pm 700 {LOG_DIR} && echo "rank $SLURM_PROCID on $SLURMD_NODENAME" > {LOG_DIR}/comm.$SLURM_PROCID.log'
    done = one.exec(["srun", "-N8", "-n64", "--ntasks-per-node=8", "sh", "-c", write], user="ada")
    assert done.code == 0, done.stderr
    return one


def addresses(box: Sandbox) -> dict[str, str]:
    answer = box.exec(["sinfo", "-h", "-N", "-o", "%N %o"]).stdout
    return dict(line.split() for line in answer.splitlines())


def program(box: Sandbox, user: str, attempt: str, connect_s: float, banner_s: float) -> list[str]:
    words = [user, f"/home/{user}/{attempt}", LOG_DIR, json.dumps(addresses(box)), str(connect_s), str(banner_s)]
    return [sys.executable, "-c", PROGRAM, *words]


def fetched(box: Sandbox, user: str = "ada", attempt: str = ATTEMPT, connect_s: float = 60, banner_s: float = 60) -> dict[str, Any]:
    argv = program(box, user, attempt, connect_s, banner_s)
    done = box.exec(argv, user=user, env={"PYTHONPATH": str(LAUNCHER), "PYTHONDONTWRITEBYTECODE": "1"}, timeout_s=180)
    assert done.code == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["threads"] == 1
    return found


def test_each_archive_holds_its_hosts_files_and_no_others(box: Sandbox) -> None:
    found = fetched(box)
    assert [(host, how, reason) for host, how, _, reason, _, _ in found["hosts"]] == [(node, "ssh", "") for node in NODES]
    for index, (host, _, name, _, _, files) in enumerate(found["hosts"]):
        with tarfile.open(box.home("ada") / ATTEMPT / name) as archive:
            inside = {os.path.normpath(one.name): archive.extractfile(one).read().decode() for one in archive if one.isreg()}  # type: ignore[union-attr]
        ranks = range(index * 8, index * 8 + 8)
        assert inside == {f"comm.{rank}.log": f"rank {rank} on {host}\n" for rank in ranks}
        assert sorted(files) == sorted(inside)


def on(box: Sandbox, node: str, script: str) -> None:
    done = box.exec(["sh", "-ec", script], node=node)
    assert done.code == 0, (node, script, done.stderr)


def test_a_user_whom_the_nodes_do_not_let_in(box: Sandbox) -> None:
    (box.home("bob") / ".ssh" / "authorized_keys").unlink()
    hosts = fetched(box, user="bob")["hosts"]
    assert [(host, reason) for host, _, _, reason, _, _ in hosts] == [(node, "auth") for node in NODES]
    assert all("permission denied for bob" in detail and "id_ed25519" in detail for _, _, _, _, detail, _ in hosts)


def test_ctrl_c_in_a_terminal_leaves_whole_archives_and_no_process(box: Sandbox) -> None:
    on(box, "n007", "kill -STOP $(pgrep -o -x sshd)")
    argv = program(box, "ada", "14.0.0", 100, 100)  # so long it would wait for n007
    process = box.popen(argv, user="ada", env={"PYTHONPATH": str(LAUNCHER), "PYTHONDONTWRITEBYTECODE": "1"}, stdout=subprocess.DEVNULL)
    logs = box.home("ada") / "14.0.0" / "logs"
    end = time.monotonic() + 60
    try:
        while not list(logs.glob("n00[4-6].tar.gz")) and time.monotonic() < end:
            time.sleep(0.02)
        interrupt = ["pkill", "-INT", "-u", "ada", "-f", "14.0.0"]
        assert box.exec(interrupt).code == 0
        start = time.monotonic()
        _, words = process.communicate(timeout=60)
        assert time.monotonic() - start < 50
    finally:
        process.kill()
        on(box, "n007", "kill -CONT $(pgrep -o -x sshd)")
    assert b"KeyboardInterrupt" in words
    rows = [json.loads(line) for line in (logs.parent / "manifest.jsonl").read_text().splitlines()]
    assert {row["host"] for row in rows if row["reason"] == "not-attempted"} >= {"n007"}
    assert all(path.name.endswith(".tar.gz") for path in logs.iterdir())


# the last one: it leaves hosts without a link and without an sshd
def test_hosts_that_fail_are_each_told_apart_and_the_others_come_home(box: Sandbox) -> None:
    known = box.home("ada") / ".ssh" / "known_hosts"
    before = known.read_text()
    lines = before.splitlines()
    changed = [line.replace(line.split()[2], lines[7].split()[2]) if line.startswith("n004") else line for line in lines]
    known.write_text("\n".join(line for line in changed if not line.startswith("n005")) + "\n")
    # the daemon itself, not the sessions below it
    listener = "p=$(pgrep -o -x sshd)"
    on(box, "n001", "ip link set eth0 down")
    on(box, "n002", f"{listener}; kill -STOP $p")
    on(box, "n003", f"{listener}; kill $p; while kill -0 $p 2>/dev/null; do sleep 0.02; done")
    on(box, "n006", f"mv {LOG_DIR} {LOG_DIR}.gone")
    try:
        found = fetched(box, attempt="13.0.0", connect_s=2, banner_s=10)
    finally:
        known.write_text(before)
        on(box, "n002", f"{listener}; kill -CONT $p")
        on(box, "n006", f"mv {LOG_DIR}.gone {LOG_DIR}")
    assert {host: reason for host, _, _, reason, _, _ in found["hosts"]} == {
        "n001": "unreachable",
        "n002": "timeout",
        "n003": "refused",
        "n004": "changed-host-key",
        "n005": "unknown-host-key",
        "n006": "no-logs",
        "n007": "",
        "n008": "",
    }, found
    assert found["spent_s"] < 60  # the limits of single steps, not that of the whole
    home = sorted(path.name for path in (box.home("ada") / "13.0.0" / "logs").iterdir())
    assert home == ["n007.tar.gz", "n008.tar.gz"]
