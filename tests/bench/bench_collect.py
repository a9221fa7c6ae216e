"""`make bench-collect`: collecting beside `scp -r`, 64 hosts on loopback, in one run.

In a network namespace of its own (root) one sshd answers on 127.0.0.1 to 127.0.0.64; every host has one log of 2 MB and ten of 100 KB.
Both sides take 16 hosts at a time: `xargs -P16 scp -r`, and `glaunch.collect` in a fresh Python, which also walks and hashes every file.
Rounds are interleaved; the figures are medians. Client CPU counts what the client's processes used. Exit code 1 when collecting takes
longer than scp, or more than 0.6 of its CPU.
"""

import argparse
import json
import os
import pwd
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LAUNCHER = Path(__file__).resolve().parents[2] / "launcher"
PORT, WIDTH = 2222, 16
WALL_BOUND, CPU_BOUND = 1.0, 0.6

PROGRAM = """
import pathlib, pwd, os, sys
from glaunch.collect import collect
from glaunch.gateways.ssh import SshSettings

folder, count, attempt = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3])
attempt.mkdir()
hosts = [f"h{number:03d}" for number in range(1, count + 1)]
name = pwd.getpwuid(os.getuid()).pw_name
settings = SshSettings(name, (f"{folder}/known_hosts",), (f"{folder}/key",), port=int(sys.argv[4]), fan_out=int(sys.argv[5]))
addresses = {host: f"127.0.0.{int(host[1:])}" for host in hosts}
bundle = collect(attempt, hosts, addresses, f"{folder}/node", settings=settings)
assert not bundle.missing, bundle.missing[:3]
assert all(len(host.files) == 11 for host in bundle.hosts)
"""


def keygen(path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True, timeout=10)


def fill(folder: Path) -> None:
    """Logs as NCCL writes them: much alike, and no two lines the same."""
    folder.mkdir()
    line = "n{0:03d}:{1}:{1} [{2}] NCCL INFO Channel {3:02d}/0 : {2}[{2}] -> {4}[{4}] [send] via NET/IB/{5}/GDRDMA at {6}\n"
    for number in range(11):
        size, text, count = (2_000_000 if number == 0 else 100_000), [], 0
        while size > 0:
            text.append(
                line.format(number, 70_000 + count % 977, count % 8, count % 32, (count * 7) % 64, count % 5, count * 7919 % 1_000_003)
            )
            size -= len(text[-1])
            count += 1
        (folder / f"comm.{number}.log").write_text("".join(text))


def start_sshd(folder: Path) -> "subprocess.Popen[bytes]":
    for name in ("host_key", "key"):
        keygen(folder / name)
    shutil.copy(folder / "key.pub", folder / "authorized_keys")
    (folder / "config").write_text(
        f"Port {PORT}\nListenAddress 0.0.0.0\nHostKey {folder}/host_key\n"
        f"AuthorizedKeysFile {folder}/authorized_keys\nPidFile none\nStrictModes no\nUsePAM no\nPermitRootLogin yes\nMaxStartups 4000\n"
        "Subsystem sftp /usr/lib/openssh/sftp-server\n"
    )
    Path("/run/sshd").mkdir(exist_ok=True)
    program = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin") or sys.exit("no sshd: apt-get install openssh-server")
    process = subprocess.Popen([program, "-D", "-e", "-f", str(folder / "config")], stderr=subprocess.DEVNULL)
    end = time.monotonic() + 10
    while time.monotonic() < end:
        with socket.socket() as sock:
            if sock.connect_ex(("127.0.0.1", PORT)) == 0:
                return process
        time.sleep(0.02)
    sys.exit("sshd does not answer")


def measured(argv: list[str], stdin: str = "") -> tuple[float, float]:
    """(wall, CPU of it and its children) in seconds."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(argv, input=stdin, text=True, capture_output=True, timeout=300, env={**os.environ, "PYTHONPATH": str(LAUNCHER)})
    wall_s, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"{argv[:3]} ended with {done.returncode}: {done.stderr[-2000:]}")
    return wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--hosts", type=int, default=64)
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("bench-collect needs root: it makes a network namespace of its own")
    if not os.environ.get("GLAUNCH_BENCH_INSIDE"):
        return subprocess.run(["unshare", "--net", sys.executable, *sys.argv], env={**os.environ, "GLAUNCH_BENCH_INSIDE": "1"}).returncode
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True, timeout=10)
    with tempfile.TemporaryDirectory(prefix="glaunch-bench-") as name:
        folder = Path(name)
        fill(folder / "node")
        sshd = start_sshd(folder)
        try:
            return compare(folder, options.hosts, options.rounds)
        finally:
            sshd.terminate()
            sshd.wait(10)


def compare(folder: Path, hosts: int, rounds: int) -> int:
    key = " ".join((folder / "host_key.pub").read_text().split()[:2])
    (folder / "known_hosts").write_text("".join(f"[127.0.0.{number}]:{PORT} {key}\n" for number in range(1, hosts + 1)))
    user = pwd.getpwuid(os.getuid()).pw_name
    words: tuple[str, ...] = (
        "-r",
        "-q",
        "-B",
        "-P",
        str(PORT),
        "-i",
        str(folder / "key"),
        "-o",
        f"UserKnownHostsFile={folder}/known_hosts",
        "-F",
        "none",
    )
    words += ("-o", "KexAlgorithms=curve25519-sha256")  # as the other side has it; OpenSSH's own default costs three times as much
    figures: dict[str, list[tuple[float, float]]] = {"scp -r": [], "collect": []}
    for turn in range(rounds + 1):
        home = folder / f"round{turn}"
        home.mkdir()
        numbers = "\n".join(map(str, range(1, hosts + 1)))
        scp = ["xargs", f"-P{WIDTH}", "-I{}", "scp", *words, f"{user}@127.0.0.{{}}:{folder}/node", f"{home}/scp.{{}}"]
        one = measured(scp, numbers)
        two = measured([sys.executable, "-c", PROGRAM, str(folder), str(hosts), str(home / "collect"), str(PORT), str(WIDTH)])
        if turn:  # the first round warms up
            figures["scp -r"].append(one)
            figures["collect"].append(two)
        shutil.rmtree(home)
    wall = {name: statistics.median(one for one, _ in rows) for name, rows in figures.items()}
    cpu = {name: statistics.median(one for _, one in rows) for name, rows in figures.items()}
    for name in figures:
        print(f"{name:8}  {wall[name]:6.2f} s   client CPU {cpu[name] / hosts * 1000:6.1f} ms a host")
    ratios = {"wall": wall["collect"] / wall["scp -r"], "cpu": cpu["collect"] / cpu["scp -r"]}
    print(f"ratio     {ratios['wall']:6.2f}     client CPU {ratios['cpu']:6.2f}   (at most {WALL_BOUND} and {CPU_BOUND}; {hosts} hosts)")
    print(
        json.dumps(
            {"schema": "glaunch.bench/1", "bench": "collect", "hosts": hosts, "wall_ratio": ratios["wall"], "cpu_ratio": ratios["cpu"]}
        )
    )
    return int(ratios["wall"] > WALL_BOUND or ratios["cpu"] > CPU_BOUND)


if __name__ == "__main__":
    sys.exit(main())
