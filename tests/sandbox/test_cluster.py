"""A sandbox as its users and its machine see it: real Slurm, real sshd, real links, and nothing left outside."""

import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from glaunch.errors import GlaunchError, UsageError
from glaunch.fabric import synthetic
from glaunch.parsers.slurm_topology import parse_topology
from glaunch.sandbox.box import MARK, Sandbox, identity
from glaunch.sandbox.fault import Slowness, fault
from glaunch.sandbox.options import SandboxOptions, parse_gpus

pytestmark = pytest.mark.slurm

ROOT = Path(__file__).resolve().parents[2]
MODULES = str(Path(pytest.__file__).resolve().parents[1])
PATIENCE_S = 60
"""For what comes about at once on a machine that has nothing else to do."""
NAMESPACES = ("net", "uts", "ipc", "mnt", "pid")
Make = Callable[..., Sandbox]


def answer(box: Sandbox, *words: str, user: str = "ada", node: str = "", timeout_s: float = 120) -> str:
    """What a command that must succeed prints."""
    done = box.exec(words, user, node, timeout_s=timeout_s)
    assert done.code == 0, (done.code, done.stdout, done.stderr)
    return done.stdout.strip()


def inmates(folder: Path) -> dict[int, str]:
    """The processes that live in the sandbox of that folder (its mounts show it) or stand beside it, with their command lines."""
    found, name = {}, "/".join(folder.parts[-2:])  # mounts show it from the root of its file system on, which may be /var/tmp
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (entry / "cmdline").read_bytes().decode(errors="replace")
            if name in words or name in (entry / "mountinfo").read_text(errors="replace"):
                found[int(entry.name)] = words.replace("\0", " ")
    found.pop(os.getpid(), None)
    return found


def until(what: Callable[[], object], timeout_s: float = PATIENCE_S) -> None:
    """Wait for something that comes about by and by."""
    deadline = time.monotonic() + timeout_s
    while not what():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.02)


def await_nothing(folder: Path, timeout_s: float = PATIENCE_S) -> None:
    """The kernel takes a moment to end what a namespace held."""
    deadline = time.monotonic() + timeout_s
    while (left := inmates(folder)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert left == {}


def await_state(box: Sandbox, node: str, state: str, timeout_s: float = PATIENCE_S) -> str:
    """Wait until `sinfo` shows that state for the node (`idle`, `down*`, …); the state seen last."""
    deadline = time.monotonic() + timeout_s
    seen = ""
    while seen != state and time.monotonic() < deadline:
        seen = box.exec(["sinfo", "-h", "-n", node, "-o", "%t"], timeout_s=PATIENCE_S).stdout.strip()
        time.sleep(0.1)
    return seen


def cli(*words: str, python: str = sys.executable, modules: str = str(ROOT / "launcher")) -> list[str]:
    """The command line of glaunch from this checkout."""
    return ["env", f"PYTHONPATH={modules}", python, "-m", "glaunch", "sandbox", *words]


@pytest.fixture
def folder(sandboxes: Make) -> Iterator[Path]:
    """A folder for one sandbox, that none is left in."""
    path = Path(tempfile.mkdtemp(prefix="glaunch-test-", dir="/var/tmp"))
    yield path / "box"
    Sandbox(path / "box").down()
    path.rmdir()


# -- as its users see it


def test_sixteen_nodes_are_hosts_of_their_own(cluster: Sandbox) -> None:
    assert answer(cluster, "id", "-un") == "ada"
    assert answer(cluster, "hostname") == "ctl"
    assert answer(cluster, "pwd") == "/home/ada"
    lines = answer(cluster, "srun", "-N16", "-n16", "--ntasks-per-node=1", "hostname").split()
    assert sorted(lines) == list(cluster.nodes)
    assert answer(cluster, "hostname", "-i", node="n016") == "10.77.1.16"
    assert answer(cluster, "sinfo", "-h", "-o", "%G").split() == ["gpu:h100:8"]
    assert answer(cluster, "srun", "--gres=gpu:h100:8", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES") == "0,1,2,3,4,5,6,7"


def test_the_topology_is_the_shape(cluster: Sandbox) -> None:
    seen = parse_topology(answer(cluster, "scontrol", "show", "topology"), where="scontrol")
    wanted = synthetic("core:1 spine:2 leaf:2 node:4")
    assert seen is not None
    assert {switch.name: switch for switch in seen.switches} == {switch.name: switch for switch in wanted.switches}


@pytest.mark.parametrize("place", ["/tmp", "/var/tmp", "/run", "/dev/shm", "/etc", "/opt"])
def test_a_nodes_files_are_its_own(cluster: Sandbox, place: str) -> None:
    name = f"{place}/written-by-n002"
    answer(cluster, "touch", name, user="root", node="n002")
    assert answer(cluster, "ls", name, user="root", node="n002") == name
    for elsewhere in ("n003", ""):
        assert cluster.exec(["ls", name], node=elsewhere).code == 2
    assert not Path(name).exists()
    answer(cluster, "rm", name, user="root", node="n002")


def test_homes_are_everywhere_and_the_machines_own_are_not(cluster: Sandbox) -> None:
    answer(cluster, "sh", "-c", "echo hello >here")
    assert answer(cluster, "cat", "here", node="n009") == "hello"
    assert (cluster.home("ada") / "here").read_text() == "hello\n"
    assert cluster.exec(["cat", "/home/ada/here"], "bob").code == 1
    assert sorted(answer(cluster, "ls", "/home").split()) == ["ada", "bob", "root"]
    assert cluster.exec(["ls", "/.sandbox"], "ada").code == 2


def test_a_node_shows_its_own_processes_only(cluster: Sandbox) -> None:

    def listed() -> list[str]:
        return answer(cluster, "ps", "-e", "-o", "comm=", user="root", node="n004").split()

    until(lambda: listed().count("slurmd") == 1)  # one that has just forked is there twice
    assert "slurmctld" not in listed()
    assert answer(cluster, "sh", "-c", "ls /sys/class/net", node="n004").split() == ["eth0", "lo"]


def test_ssh_knows_every_node_and_takes_no_other_key(cluster: Sandbox) -> None:
    for user, node in (("ada", "n001"), ("bob", "n016"), ("root", "n007")):
        assert answer(
            cluster, "ssh", "-o", "StrictHostKeyChecking=yes", "-o", "BatchMode=yes", node, "hostname; id -un", user=user
        ).split() == [node, user]
    assert answer(cluster, "ssh", "n003", "ssh n004 hostname") == "n004"
    known = answer(cluster, "cat", ".ssh/known_hosts")
    swapped = known.replace("n003,", "n900,").replace("n004,", "n003,")
    wrong = cluster.exec(
        ["sh", "-c", "cat >k; ssh -o UserKnownHostsFile=k -o StrictHostKeyChecking=yes n003 hostname"], "ada", stdin=swapped
    )
    assert wrong.code == 255
    assert "REMOTE HOST IDENTIFICATION HAS CHANGED" in wrong.stderr


def test_codes_input_output_and_the_environment_pass_through(cluster: Sandbox) -> None:
    done = cluster.exec(["sh", "-c", "cat; echo err >&2; echo $X-$HOME-$SECRET; exit 7"], "bob", "n002", stdin="in\n", env={"X": "a b"})
    assert (done.code, done.stdout, done.stderr) == (7, "in\na b-/home/bob-\n", "err\n")
    assert cluster.exec(["no-such-program"], "ada").code == 127
    with pytest.raises(UsageError, match="n999"):
        cluster.exec(["true"], node="n999")
    with pytest.raises(UsageError, match="carol"):
        cluster.exec(["true"], "carol")


def test_a_command_that_is_given_up_ends(cluster: Sandbox) -> None:
    began = cluster.home("ada") / "began-4711"
    for timeout_s in (2, 10, 30):  # so long as it takes to begin
        assert cluster.exec(["sh", "-c", "echo >began-4711; exec sleep 4711"], "ada", "n005", timeout_s=timeout_s).code is None
        if began.exists():
            break
    assert began.exists()
    until(lambda: cluster.exec(["pgrep", "-f", "sleep 4711"], node="n005").code == 1)


def test_control_c_reaches_the_command_once_and_is_no_end_of_it(cluster: Sandbox) -> None:
    waits = 'for ((i = 0; i < 600; i++)); do [ -z "$got" ] || break; sleep 0.1; done; sleep 0.5'
    program = f"trap 'got=1; echo got-int' INT; trap 'echo got-term' TERM; echo ready; {waits}; echo end; exit 9"
    pid, terminal = pty.fork()
    if pid == 0:
        words = cli("exec", "--dir", str(cluster.dir), "--user", "ada", "--", "bash", "-c", program)
        os.execvp(words[0], words)  # noqa: S606
    seen, pressed = "", False
    while "end" not in seen and select.select([terminal], [], [], 2 * PATIENCE_S)[0]:
        try:
            seen += os.read(terminal, 1000).decode()
        except OSError:
            break
        if "ready" in seen and not pressed:
            pressed = os.write(terminal, b"\x03") == 1
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
    os.close(terminal)
    assert (seen.count("got-int"), seen.count("got-term")) == (1, 0), seen


def test_the_short_way_in_does_the_same(cluster: Sandbox) -> None:
    short = str(cluster.dir / "exec")
    done = subprocess.run(
        [short, "-u", "bob", "-n", "n003", "sh", "-c", "cat; hostname; pwd; exit 5"], input="x\n", capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (5, "x\nn003\n/home/bob\n")


def test_glaunch_runs_inside_as_a_plain_user(cluster: Sandbox) -> None:
    from glaunch import __version__

    assert answer(cluster, "glaunch", "--version") == f"glaunch {__version__}"
    origin = answer(cluster, "glaunch", "config", "show", "--origin")
    assert re.search(r"rundir\.shared.*/home.*/etc/glaunch/sandbox\.yaml", origin), origin


# -- as its machine sees it


def test_nothing_is_outside(cluster: Sandbox) -> None:
    people = {
        pid: words for pid, words in inmates(cluster.dir).items() if "glaunch-sandbox" not in words and "unshare" not in words.split()[0]
    }
    assert sum("slurmd" in words for words in people.values()) >= 16
    here = {name: os.readlink(f"/proc/self/ns/{name}") for name in NAMESPACES}
    for pid, words in people.items():
        for name in NAMESPACES:
            try:
                there = os.readlink(f"/proc/{pid}/ns/{name}")
            except OSError:  # noqa: PERF203  (it has just ended)
                until(lambda pid=pid: not identity(pid))  # type: ignore[misc]
            else:
                assert there != here[name], (name, words)
    listening = subprocess.run(["ss", "-ltnupH"], capture_output=True, text=True, timeout=2 * PATIENCE_S).stdout
    assert not [pid for pid in inmates(cluster.dir) if f"pid={pid}," in listening]
    assert str(cluster.dir) not in Path("/proc/self/mountinfo").read_text()
    links = {
        line.split(":")[1].strip().split("@")[0]
        for line in subprocess.run(["ip", "-o", "link"], capture_output=True, text=True).stdout.splitlines()
    }
    assert not links & {"br0", "leaf1", "v-n001", "up-leaf1"}


def test_the_machines_files_cannot_be_written_from_inside(cluster: Sandbox) -> None:
    before = {path: path.read_bytes() for path in map(Path, ("/etc/hosts", "/etc/passwd", "/etc/group"))}
    script = "for f in /etc/hosts /etc/passwd /etc/group /usr/local/bin/new /new; do echo broken >>$f; done; ls /usr/local/bin/new /new"
    assert answer(cluster, "sh", "-c", script, user="root", node="n016").split() == ["/new", "/usr/local/bin/new"]
    assert {path: path.read_bytes() for path in before} == before
    assert not Path("/new").exists()
    assert cluster.exec(["sh", "-c", "echo x >/.sandbox/base/new-file"]).code != 0
    fault(cluster, "power-off", ("n016",))
    fault(cluster, "power-off", ("n016",), undo=True)
    assert cluster.exec(["ls", "/new"], node="n016").code == 2
    assert await_state(cluster, "n016", "idle") == "idle"


def test_two_stand_side_by_side(cluster: Sandbox, sandboxes: Make) -> None:
    other = sandboxes("small", nodes=2, slurm_conf=("SlurmdTimeout=77", "MaxJobCount=77"))
    job = answer(other, "sbatch", "--parsable", "-w", "n001", "-J", "side-by-side", "--wrap", "sleep 600")
    assert answer(other, "srun", "-w", "n002", "hostname", user="bob") == "n002"
    assert (answer(other, "squeue", "-h", "-o", "%j", "-u", "ada"), job) == ("side-by-side", "1")
    assert "side-by-side" not in answer(cluster, "squeue", "-h", "-t", "all", "-o", "%j")
    answer(other, "sh", "-c", "echo mine >/tmp/side", node="n001")
    assert cluster.exec(["ls", "/tmp/side"], node="n001").code == 2
    assert "MaxJobCount             = 77" in answer(other, "scontrol", "show", "config")
    answer(other, "scancel", job)


def test_up_and_down_leave_the_machine_as_it_was(folder: Path) -> None:
    done = subprocess.run(cli("up", "--dir", str(folder), "--nodes", "4"), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "up after" in done.stderr
    assert inmates(folder)
    assert subprocess.run([*cli("exec", "--dir", str(folder), "--user", "ada", "--"), "false"], timeout=PATIENCE_S).returncode == 1
    status = subprocess.run(cli("status", "--dir", str(folder)), capture_output=True, text=True, timeout=PATIENCE_S)
    assert (status.returncode, "4 idle" in status.stdout) == (0, True)
    every = json.loads(subprocess.run(cli("status", "--json"), capture_output=True, text=True, timeout=2 * PATIENCE_S).stdout)
    (mine,) = [one for one in every["sandboxes"] if one["dir"] == str(folder)]
    assert (mine["up"], mine["nodes"], mine["states"], mine["homes"]["bob"]) == (True, 4, {"idle": 4}, f"{folder}/home/bob")
    again = subprocess.run(cli("up", "--dir", str(folder)), capture_output=True, text=True, timeout=PATIENCE_S)
    assert (again.returncode, "a sandbox stands in" in again.stderr) == (2, True)
    assert subprocess.run(cli("down", "--dir", str(folder)), capture_output=True, timeout=PATIENCE_S).returncode == 0
    assert not folder.exists()
    await_nothing(folder)
    assert subprocess.run(cli("status", "--dir", str(folder)), capture_output=True, timeout=PATIENCE_S).returncode == 2


def test_one_that_goes_while_all_are_asked_is_passed_over(tmp_path: Path) -> None:
    """Its first process still runs and its folder is half gone."""
    (tmp_path / MARK).write_text("{")
    words = ["bash", "-c", "read -r _", "glaunch-sandbox", str(tmp_path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE) as going:
        try:
            done = subprocess.run(cli("status", "--json"), capture_output=True, text=True, timeout=2 * PATIENCE_S)
            alone = subprocess.run(cli("status", "--dir", str(tmp_path)), capture_output=True, text=True, timeout=PATIENCE_S)
        finally:
            going.kill()
    assert done.returncode in {0, 1}, done.stderr
    assert str(tmp_path) not in {one["dir"] for one in json.loads(done.stdout)["sandboxes"]}
    assert (alone.returncode, "is no sandbox" in alone.stderr) == (2, True)


@pytest.mark.parametrize("after_s", [0.0, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.7])
def test_killed_at_any_moment_of_up_nothing_runs_on_and_down_removes_the_rest(folder: Path, after_s: float) -> None:
    up = subprocess.Popen(cli("up", "--dir", str(folder), "--nodes", "8"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(after_s)
    up.kill()
    up.wait()
    kept = folder / "srv" / "kept"
    until(lambda: kept.exists() or not inmates(folder))  # the word that it is kept may just be on its way
    Sandbox(folder).down()
    assert not folder.exists()
    await_nothing(folder)


def test_down_in_the_middle_of_up_ends_it(folder: Path) -> None:
    up = subprocess.Popen(cli("up", "--dir", str(folder), "--nodes", "16"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    until((folder / "init").exists)
    Sandbox(folder).down()
    assert "did not come up" in up.communicate(timeout=PATIENCE_S)[1]
    assert up.returncode == 1
    assert not folder.exists()
    await_nothing(folder)


def test_interrupted_up_takes_all_of_it_along(folder: Path) -> None:
    up = subprocess.Popen(cli("up", "--dir", str(folder)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until((folder / "init").exists)
    up.send_signal(signal.SIGINT)
    assert up.wait(timeout=PATIENCE_S) == 130
    assert not folder.exists()
    await_nothing(folder)


def test_its_init_is_its_end(folder: Path, sandboxes: Make) -> None:
    from glaunch.sandbox.up import up

    box = up(SandboxOptions(dir=folder, nodes=2))
    init = box.init
    assert init is not None
    os.kill(init, signal.SIGKILL)
    await_nothing(folder)
    assert not box.up
    assert (folder / "srv" / "log" / "slurmctld").exists()
    with pytest.raises(GlaunchError, match="not up"):
        box.exec(["true"])
    box.down()
    assert not folder.exists()


def test_a_cluster_that_cannot_come_up_says_why_and_is_gone(folder: Path, sandboxes: Make) -> None:
    from glaunch.sandbox.up import up

    with pytest.raises(GlaunchError, match=r"unrecognized key: NoSuchKey"):
        up(SandboxOptions(dir=folder, nodes=2, slurm_conf=("NoSuchKey=1",)))
    assert not folder.exists()
    await_nothing(folder)


def test_a_folder_of_somebody_elses_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(UsageError, match="nothing was removed"):
        Sandbox(tmp_path).down()
    assert (tmp_path / "thesis.tex").exists()
    done = subprocess.run(cli("up", "--dir", str(tmp_path)), capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.returncode, "is not an empty folder of yours" in done.stderr) == (2, True)
    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_a_folder_with_blanks_commas_and_much_depth(folder: Path, sandboxes: Make) -> None:
    from glaunch.sandbox.up import up

    deep = folder / "a b,c:d" / ("x" * 120)
    box = up(SandboxOptions(dir=deep, nodes=2))
    assert answer(box, "srun", "-N2", "hostname").split() != []
    box.down()
    shutil.rmtree(folder)


# -- faults


def reaches(box: Sandbox, node: str, within_s: int = PATIENCE_S) -> bool:
    """Whether the node's sshd answers the login host. A busy one takes its time; `within_s` is for one that should not."""
    return box.exec(["timeout", str(within_s), "bash", "-c", f"head -c 3 </dev/tcp/{node}/22"], "ada", timeout_s=90).stdout == "SSH"


@pytest.fixture(scope="module")
def faulty(sandboxes: Make) -> Sandbox:
    return sandboxes("faulty", nodes=4, rate="200mbit", disk_mib=64, slurm_conf=("MessageTimeout=5",))


def test_a_link_is_cut_and_mended(faulty: Sandbox) -> None:
    assert fault(faulty, "cut-link", ("n002",)) == ("n002 has no link",)
    assert (reaches(faulty, "n002", 2), reaches(faulty, "n003")) == (False, True)
    fault(faulty, "cut-link", ("n002",), undo=True)
    assert reaches(faulty, "n002")


def test_a_link_is_slow_and_fast_again(faulty: Sandbox) -> None:
    copy = ["bash", "-c", "time -p head -c 500000 /dev/zero | ssh n003 'cat >/dev/null'"]  # 4 s at 1 Mbit/s

    def seconds() -> float:
        return float(re.search(r"real ([\d.]+)", faulty.exec(copy, "ada", timeout_s=120).stderr)[1])  # type: ignore[index]

    fault(faulty, "slow-link", ("n003",), slowness=Slowness(rate="1mbit"))
    assert seconds() > 2
    fault(faulty, "slow-link", ("n003",), undo=True)
    assert any(seconds() < 2 for _ in range(9))  # ssh's own start takes long on a busy machine
    assert "rate 200Mbit" in answer(faulty, "tc", "qdisc", "show", "dev", "eth0", user="root", node="n003")


def test_a_disk_is_full_and_has_room_again(faulty: Sandbox) -> None:
    for turn in ("1", "2"):
        write = ["sh", "-c", f"echo some text >/tmp/file{turn} && cat /tmp/file{turn}"]
        fault(faulty, "fill-disk", ("n001",))
        assert faulty.exec(write, "ada", "n001").code != 0
        assert faulty.exec(["sh", "-c", f"echo 1 >/opt/{turn}"], "root", "n001").code != 0
        assert answer(faulty, *write, node="n002") == "some text"
        fault(faulty, "fill-disk", ("n001",), undo=True)
        assert answer(faulty, *write, node="n001") == "some text"
    # its disk, of 64 MiB, can also be filled by its users, and only its own
    fill = "head -c 80000000 /dev/zero >/tmp/big; code=$?; rm /tmp/big; exit $code"
    assert faulty.exec(["sh", "-c", fill], "ada", "n001").code == 1
    assert faulty.exec(["sh", "-c", "head -c 30000000 /dev/zero >/tmp/big && rm /tmp/big"], "ada", "n001").code == 0


def test_a_node_is_drained_and_resumed(faulty: Sandbox) -> None:
    fault(faulty, "drain", ("n002",))
    assert await_state(faulty, "n002", "drain") == "drain"
    fault(faulty, "drain", ("n002",), undo=True)
    assert await_state(faulty, "n002", "idle") == "idle"


def test_a_node_loses_its_power_and_boots(faulty: Sandbox) -> None:
    with faulty.popen(["sleep", "4712"], "ada", "n004") as program:
        until(lambda: faulty.exec(["pgrep", "-f", "sleep 4712"], node="n004").code == 0)
        answer(faulty, "touch", "/tmp/before", node="n004")
        assert fault(faulty, "power-off", ("n004",)) == ("n004 has no power: all in it ended at once",)
        assert program.wait(timeout=PATIENCE_S) != 0
    with pytest.raises(GlaunchError, match="n004 has no power"):
        faulty.exec(["true"], node="n004")
    assert not reaches(faulty, "n004", 2)
    fault(faulty, "power-off", ("n004",), undo=True)
    assert answer(faulty, "ssh", "n004", "hostname") == "n004"
    assert faulty.exec(["ls", "/tmp/before"], node="n004").code == 2
    assert await_state(faulty, "n004", "idle") == "idle"
    assert answer(faulty, "srun", "-w", "n004", "hostname") == "n004"


def test_slurmd_and_slurmctld_stop_and_start(faulty: Sandbox) -> None:
    fault(faulty, "stop-slurmd", ("n003",))
    assert faulty.exec(["pgrep", "-x", "slurmd"], node="n003").code == 1
    fault(faulty, "stop-slurmd", ("n003",), undo=True)
    assert faulty.exec(["pgrep", "-x", "slurmd"], node="n003").code == 0
    for kind in ("stop-slurmctld", "hang-slurmctld"):
        fault(faulty, kind)
        assert faulty.exec(["scontrol", "ping"], timeout_s=PATIENCE_S).stdout.count("DOWN") == 1
        fault(faulty, kind, undo=True)
        assert "UP" in answer(faulty, "scontrol", "ping")
    for node in faulty.nodes:
        assert await_state(faulty, node, "idle") == "idle"


def test_a_fault_of_nothing_is_refused(faulty: Sandbox) -> None:
    with pytest.raises(UsageError, match="n077"):
        fault(faulty, "cut-link", ("n001", "n077"))
    assert reaches(faulty, "n001")
    with pytest.raises(UsageError, match="needs the nodes"):
        fault(faulty, "drain")
    with pytest.raises(UsageError, match="about the controller"):
        fault(faulty, "stop-slurmctld", ("n001",))


# -- options


def test_accounting(sandboxes: Make) -> None:
    box = sandboxes("accounting", nodes=8, accounting=True)
    job = answer(box, "srun", "-N2", "-n2", "sh", "-c", "echo $SLURM_JOB_ID", user="bob").split()[0]
    told = ["sacct", "-nXP", "-j", job, "-o", "State,Account,User"]
    until(lambda: answer(box, *told, user="bob") == "COMPLETED|blue|bob")  # the database learns it by and by
    assert "red|ada" in answer(box, "sacctmgr", "-nP", "show", "assoc", "format=account,user")
    answer(box, "sbatch", "-q", "small", "-N5", "--wrap", "true", user="bob")
    until(lambda: "QOSMaxNodePerJobLimit" in answer(box, "squeue", "-h", "-o", "%r"))
    refused = box.exec(["sbatch", "-A", "red", "--wrap", "true"], "bob")
    assert (refused.code, "Invalid account" in refused.stderr) == (1, True)
    assert box.exec(["sacctmgr", "-i", "add", "account", "green"], "bob").code == 1


def test_nodes_without_python(sandboxes: Make) -> None:
    box = sandboxes("no-python", nodes=4, no_python=True)
    for name in ("python3", "/usr/bin/python3", "/bin/python3", sys.executable, os.path.realpath(sys.executable)):
        assert box.exec([name, "-c", "1"], "ada", "n002").code == 127, name
    assert answer(box, "ssh", "n003", "command -v python python3 pypy3; command -v sh") in {"/usr/bin/sh", "/bin/sh"}
    assert answer(box, "glaunch", "--version").startswith("glaunch ")


def test_a_topology_of_ones_own_with_names_of_ones_own(sandboxes: Make, tmp_path: Path) -> None:
    file = tmp_path / "topology.conf"
    file.write_text(
        "SwitchName=a-leaf-with-a-long-name Nodes=gpu-a[01-02]\nSwitchName=l2 Nodes=a-node-with-a-long-name7\n"
        "SwitchName=top Switches=l2,a-leaf-with-a-long-name\n"
    )
    box = sandboxes("topology", topology=file, gpus=(parse_gpus("a100:4"), parse_gpus("gpu-a02=mi300x:2")))
    assert box.nodes == ("gpu-a01", "gpu-a02", "a-node-with-a-long-name7")
    assert sorted(answer(box, "srun", "-N3", "hostname").split()) == sorted(box.nodes)
    shown = answer(box, "scontrol", "-o", "show", "topology")
    assert re.search(r"^SwitchName=a-leaf-with-a-long-name Level=0 .*Nodes=gpu-a\[01-02\]", shown, re.M), shown
    assert answer(box, "sinfo", "-h", "-N", "-o", "%N %G").split("\n")[2] == "gpu-a02 gpu:mi300x:2"
    assert answer(box, "ssh", "a-node-with-a-long-name7", "hostname") == "a-node-with-a-long-name7"


def test_traffic_crosses_the_switches_on_its_path(sandboxes: Make) -> None:
    box = sandboxes("shaped", shape="core:1 spine:2 leaf:1 node:2", rate="400mbit", uplink="200mbit")

    def crossed(link: str) -> int:
        return int(answer(box, "cat", f"/sys/class/net/{link}/statistics/tx_bytes"))

    def send(target: str) -> dict[str, int]:
        before = {link: crossed(link) for link in ("up-leaf1", "up-spine1", "dn-leaf2")}
        answer(box, "sh", "-c", f"head -c 2000000 /dev/zero | ssh {target} 'cat >/dev/null'", node="n001")
        return {link: crossed(link) - sent for link, sent in before.items()}

    assert max(send("n002").values()) < 100_000
    assert min(send("n003").values()) > 2_000_000
    assert "rate 200Mbit" in answer(box, "tc", "qdisc", "show", "dev", "up-leaf1")


def test_the_interpreter_may_lie_where_plain_users_see_nothing(folder: Path, tmp_path: Path) -> None:
    """A checkout and a venv below /tmp or /root, folders that are hidden inside."""
    place = tmp_path / "a place"
    shutil.copytree(ROOT / "launcher", place / "checkout" / "launcher", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("site", "templates", "setup.cfg"):
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, place / "checkout" / name)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place / "venv")], check=True, timeout=2 * PATIENCE_S)
    python = str(place / "venv" / "bin" / "python")
    modules = f"{place}/checkout/launcher:{MODULES}"
    done = subprocess.run(
        cli("up", "--dir", str(folder), "--nodes", "2", python=python, modules=modules),
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    box = Sandbox(folder)
    assert answer(box, "glaunch", "--version").startswith("glaunch ")
    assert answer(box, "srun", "-N1", python, "-c", "import sys; print(sys.prefix)") == str(place / "venv")
    assert box.exec(["ls", str(tmp_path.parent)], "ada").stdout.split() == [tmp_path.name]
    assert box.exec(["touch", f"{place}/checkout/x"], "root").code == 1


def test_file_systems_that_the_machine_mounts_below_usr_are_seen_inside(folder: Path) -> None:
    """A machine whose /usr/share is a file system of its own, with a program's data in it."""
    inside = 'mount -t tmpfs own /usr/share/doc && echo hello >/usr/share/doc/there && exec "$@"'
    words = ["unshare", "--mount", "sh", "-c", inside, "sh", *cli("up", "--dir", str(folder), "--nodes", "2")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=2 * PATIENCE_S)
    assert done.returncode == 0, done.stderr
    assert answer(Sandbox(folder), "cat", "/usr/share/doc/there", node="n002") == "hello"
    answer(Sandbox(folder), "sh", "-c", "echo mine >/usr/share/doc/there", node="n002", user="root")
    assert answer(Sandbox(folder), "cat", "/usr/share/doc/there", node="n001") == "hello"


def test_another_root_file_system_is_used_and_not_changed(folder: Path, tmp_path: Path) -> None:
    """With the same Slurm, so that it is quick: the machine's root, with a file more."""
    lines = ['cd "$0"', "mount -t tmpfs other .", 'cd "$0"', "mkdir upper work root"]
    lines += ["mount -t overlay overlay -o lowerdir=/,upperdir=upper,workdir=work root", "echo other >root/etc/which-root"]
    lines += ['"$@" --slurm-root "$0/root"', "find upper -type f"]
    place = tmp_path / "r"
    place.mkdir()
    words = ["unshare", "--mount", "sh", "-euc", "\n".join(lines), str(place), *cli("up", "--dir", str(folder), "--nodes", "2")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=2 * PATIENCE_S)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["upper/etc/which-root"]
    box = Sandbox(folder)
    assert answer(box, "srun", "-N2", "-n2", "cat", "/etc/which-root").split() == ["other", "other"]
    assert box.facts["slurm_root"] == f"{place}/root"


def test_a_site_file_and_a_folder_of_ones_own(sandboxes: Make, tmp_path: Path) -> None:
    site = tmp_path / "centre.yaml"
    site.write_text("min_version: 0.1\n")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "set").write_text("numbers")
    box = sandboxes("site", nodes=2, site_files=(site,), binds=(tmp_path / "data",), ssh_users=("root", "ada"))
    assert answer(box, "cat", "/etc/glaunch/centre.yaml") == "min_version: 0.1"
    assert answer(box, "cat", f"{tmp_path}/data/set", node="n002") == "numbers"
    assert "Permission denied" in box.exec(["ssh", "-o", "BatchMode=yes", "n001", "true"], "bob").stderr


def test_packages_that_are_missing_are_named(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "etc").mkdir()
    for name in ("passwd", "group"):
        (tmp_path / "etc" / name).write_text("")
    done = subprocess.run(
        cli("up", "--dir", str(folder), "--slurm-root", str(tmp_path)), capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 1
    assert f"{tmp_path} lacks slurmctld, slurmd," in done.stderr
    assert "--install" in done.stderr
    assert not folder.exists()


def test_down_takes_it_well_when_a_process_goes_just_before_it_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first process inside goes with the one that guards it, at a moment of the kernel's choice."""
    folder = tmp_path / "box"
    folder.mkdir()
    (folder / MARK).write_text("{}")
    both = [subprocess.Popen(["sleep", "60"], start_new_session=True) for _ in range(2)]
    for process, name in zip(both, ("guard", "init"), strict=True):
        (folder / name).write_text(identity(process.pid))

    def gone_before(ended: Callable[[int, int], None]) -> Callable[[int, int], None]:
        def end(pid: int, number: int) -> None:
            (process,) = (one for one in both if one.pid == pid)
            if process.poll() is None:
                ended(pid, number)
                process.wait(20)
            ended(pid, number)

        return end

    monkeypatch.setattr(os, "killpg", gone_before(os.killpg))
    monkeypatch.setattr(os, "kill", gone_before(os.kill))
    Sandbox(folder).down()
    assert not folder.exists()
