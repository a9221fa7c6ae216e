"""Killed, requeued, hung up, run by hand: nothing is lost and nothing runs twice."""

import contextlib
import os
import pty
import re
import select
import signal
from pathlib import Path

import pytest
from tests.cluster.conftest import GATEWAY, User, job_id_of, until

pytestmark = pytest.mark.slurm
SLOW_SBATCH = """\
#!/bin/sh
# sbatch whose answer is late: the job is there, and nobody knows its id until the file gate is there
answer=$(/usr/bin/sbatch "$@"); code=$?
: >$HOME/submitted
until [ -e $HOME/gate ]; do sleep 0.1; done
printf '%s\\n' "$answer"
exit $code
"""


def test_killed_between_submit_and_record_the_next_status_finds_the_job(ada: User) -> None:
    ada.write("bin/sbatch", SLOW_SBATCH)
    gate = ada.gate()
    (ada.home / "submitted").unlink(missing_ok=True)
    env = {"PATH": "/home/ada/bin:/usr/local/bin:/usr/bin:/bin"}
    launch = ada.box.popen(["sh", "-c", "echo $$ >$HOME/pid; exec glaunch ./prog.sh -n 8 --env SLEEP=300"], "ada", env=env)
    until(lambda: (ada.home / "submitted").exists(), 60, "sbatch has submitted")
    ada.box.exec(["kill", "-9", (ada.home / "pid").read_text().strip()])
    gate.touch()
    launch.communicate(timeout=60)
    queue = ada.run("squeue", "-h", "-o", "%i %T %o").stdout
    assert len(queue.splitlines()) == 1, queue
    job_id = queue.split()[0]
    found = ada.glaunch("status")
    assert f"was submitted as job {job_id}" in found.stderr
    assert re.search(rf"^{job_id} .*(waits|prepared|runs)", found.stdout, re.M)
    assert ada.run("squeue", "-h", "-o", "%i").stdout.split() == [job_id]


def test_killed_before_submit_nothing_runs_and_status_says_so(ada: User) -> None:
    ada.write("bin/sbatch", "#!/bin/sh\n: >$HOME/asked\nsleep 20\nexit 1\n")
    (ada.home / "asked").unlink(missing_ok=True)
    env = {"PATH": "/home/ada/bin:/usr/local/bin:/usr/bin:/bin"}
    launch = ada.box.popen(["sh", "-c", "echo $$ >$HOME/pid; exec glaunch ./prog.sh -n 8"], "ada", env=env)
    until(lambda: (ada.home / "asked").exists(), 60, "sbatch was called")
    ada.box.exec(["kill", "-9", (ada.home / "pid").read_text().strip()])
    launch.communicate(timeout=60)
    found = ada.glaunch("status")
    assert "Slurm has not said yet" in found.stdout
    assert ada.run("squeue", "-h").stdout == ""


def test_a_requeued_job_runs_again_in_the_planned_order_and_the_guard_lets_it(ada: User) -> None:
    gate = ada.gate()
    launch = ada.box.popen(["glaunch", "./prog.sh", "-n", "16", "--requeue", "--env", "GATE=/home/ada/gate"], "ada")
    until(lambda: ada.run("squeue", "-h", "-t", "R", "-o", "%i").stdout.strip() != "", 60, "running")
    job_id = ada.run("squeue", "-h", "-o", "%i").stdout.strip()
    until(lambda: len(ada.attempts(job_id)) == 1 and len(ada.attempts(job_id)[0].ranks) == 16, 60, "ranks run")
    assert ada.run("scontrol", "requeue", job_id).code == 0
    ada.run_again(job_id, 1)
    until(lambda: len(ada.attempts(job_id)) == 2 and len(ada.attempts(job_id)[1].ranks) == 16, 60, "ranks run again")
    gate.touch()
    _, stderr = launch.communicate(timeout=90)
    assert launch.returncode == 0, stderr.decode()
    assert "is back in the queue" in stderr.decode()
    first, second = ada.attempts(job_id)
    assert (first.restart, second.restart) == (0, 1)
    assert second.end is not None
    assert second.end.code == 0
    assert [place.host for place in second.ranks] == [host for host in second.hosts for _ in range(8)]
    assert "Terminated" not in stderr.decode().split("runs again")[1]  # what ended the first run is no finding about the second


def test_a_cancelled_job_whose_program_ends_with_0_is_not_done(ada: User) -> None:
    ada.write("saves.sh", "#!/bin/sh\ntrap 'echo saved; exit 0' TERM\necho ready\nwhile :; do sleep 0.1; done\n")
    launch = ada.box.popen(["glaunch", "./saves.sh", "-n", "2", "-N", "2"], "ada", env=GATEWAY)
    until(lambda: ada.run("squeue", "-h", "-t", "R", "-o", "%i").stdout.strip() != "", 60, "running")
    job_id = ada.run("squeue", "-h", "-o", "%i").stdout.strip()
    until(lambda: sum("ready" in log.read_text() for log in ada.folder(job_id).glob("*/out/*.log")) == 2, 60, "ranks run")
    assert ada.run("scancel", job_id).code == 0
    _, stderr = launch.communicate(timeout=60)
    assert launch.returncode == 143, stderr.decode()
    assert f"job {job_id} was cancelled, and its program said 0: exit code 143" in stderr.decode()
    assert re.search(rf"^{job_id} .*was cancelled", ada.glaunch("status").stdout, re.M)
    (attempt,) = ada.attempts(job_id)
    assert attempt.end is not None
    assert attempt.end.code == 0


def test_a_three_task_array_runs_each_task_once(ada: User) -> None:
    done = ada.glaunch("./prog.sh", "-n", "16", "--array=1-3")
    assert done.code == 0, done.stderr
    found = ada.attempts(job_id_of(done))
    assert [attempt.task for attempt in found] == [1, 2, 3]
    for attempt in found:
        assert [place.host for place in attempt.ranks] == [host for host in attempt.hosts for _ in range(8)]
    assert "3 of 3 array tasks ended well" in done.stderr
    assert f"job {job_id_of(done)}_3 (prog) is done" in done.stderr, "the report is about the task whose folder it shows"
    assert f"job {job_id_of(done)}_1 (prog) is done" in ada.glaunch("report", f"{job_id_of(done)}_1").stdout
    assert len(re.findall(r"^\[2\] \d+: rank", done.stdout, re.M)) == 8


def test_by_hand_twice_in_a_row_both_run_and_neither_is_pinned_or_stopped(ada: User) -> None:
    job_id = job_id_of(ada.glaunch("./prog.sh", "-n", "16"))
    script = ada.job(job_id)["Command"].split(" ")[0]
    again = [ada.run("sbatch", "--parsable", script).stdout.strip() for _ in range(2)]
    for one in again:
        assert ada.wait_for(one)["JobState"] == "COMPLETED"
        assert ada.job(one)["ReqNodeList"] == "(null)"
    assert [attempt.job_id for attempt in ada.attempts(job_id)] == [job_id, *again]
    assert all(attempt.end is not None and attempt.end.code == 0 for attempt in ada.attempts(job_id))


def test_a_folder_that_the_nodes_cannot_see_is_warned_of_and_explained(ada: User) -> None:
    done = ada.run("sh", "-c", "mkdir -p /tmp/work && cd /tmp/work && cp ~/prog.sh . && exec glaunch ./prog.sh -n 8", timeout_s=90)
    assert done.code == 1
    assert "warning: /tmp/work/glaunch-jobs/" in done.stderr
    assert "never ran: its first node cannot see /tmp/work/glaunch-jobs/" in done.stderr


def test_a_job_on_nodes_without_any_python(no_python: User) -> None:
    assert no_python.box.exec(["sh", "-c", "command -v python3"], "ada", node="n001").code != 0
    done = no_python.glaunch("./prog.sh", "-n", "16")
    assert done.code == 0, done.stderr
    assert "all 16 ranks ran where the plan's order puts them" in done.stderr
    assert "(2 gathered by the job)" in done.stderr


@pytest.mark.parametrize("how", ["interrupt", "hang-up"])
def test_a_terminal_that_goes_away_detaches_and_the_job_goes_on(ada: User, how: str, tmp_path: Path) -> None:
    gate = ada.gate()
    argv = ada.box.argv(["glaunch", "./prog.sh", "-n", "8", "--env", "GATE=/home/ada/gate"], "ada")
    process, terminal = pty.fork()
    if process == 0:
        # ^C is for glaunch, which has it back; the end of what enters the sandbox would add a TERM
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup all that it starts ignores a hang-up, glaunch too
        os.execvp(argv[0], argv)  # noqa: S606 (an argv, no shell)
    until(lambda: ada.run("squeue", "-h", "-t", "R", "-o", "%i").stdout.strip() != "", 60, "running")
    job_id = ada.run("squeue", "-h", "-o", "%i").stdout.strip()
    seen = b""
    while b"rank 0 of 8" not in seen:  # it follows
        assert select.select([terminal], [], [], 60)[0], seen
        seen += os.read(terminal, 4096)
    if how == "interrupt":
        os.write(terminal, b"\x03")
        with contextlib.suppress(OSError):  # a terminal whose last program ended reads as an error on Linux
            while more := os.read(terminal, 4096):
                seen += more
        assert f"back: glaunch logs -f {job_id}".encode() in seen
    os.close(terminal)
    os.waitpid(process, 0)
    assert ada.job(job_id)["JobState"] == "RUNNING"
    gate.touch()
    done = ada.glaunch("logs", "-f", job_id)
    assert done.code == 0, done.stderr
    assert "rank 0 of 8" in done.stdout
    assert ada.job(job_id)["JobState"] == "COMPLETED"


@pytest.mark.parametrize("name", ["INT", "HUP", "TERM"])
def test_a_signal_while_sbatch_is_asked_leaves_a_job_without_a_pin(ada: User, name: str) -> None:
    ada.box.exec(["scontrol", "update", "PartitionName=gpu", "State=DOWN"])
    ada.write("bin/sbatch", SLOW_SBATCH)
    gate = ada.gate()
    (ada.home / "submitted").unlink(missing_ok=True)
    env = {"PATH": "/home/ada/bin:/usr/local/bin:/usr/bin:/bin"}
    begins = ["env", "--default-signal=HUP", "sh", "-c"]  # which would be ignored under nohup
    launch = ada.box.popen([*begins, "echo $$ >$HOME/pid; exec glaunch ./prog.sh -n 8"], "ada", env=env)
    until(lambda: (ada.home / "submitted").exists(), 60, "sbatch has submitted")
    ada.box.exec(["kill", f"-{name}", (ada.home / "pid").read_text().strip()])
    gate.touch()
    _, stderr = launch.communicate(timeout=60)
    (job_id,) = ada.run("squeue", "-h", "-o", "%i").stdout.split()
    assert launch.returncode == 130
    assert f"back: glaunch logs -f {job_id}" in stderr.decode()
    assert ada.job(job_id)["ReqNodeList"] == "(null)"


def test_under_nohup_a_hang_up_is_nothing(ada: User) -> None:
    gate = ada.gate()
    line = "echo $$ >$HOME/pid; exec nohup glaunch ./prog.sh -n 8 --env GATE=/home/ada/gate --env FAIL=1 --env CODE=7"
    launch = ada.box.popen(["sh", "-c", line], "ada")
    until(lambda: ada.run("squeue", "-h", "-t", "R", "-o", "%i").stdout.strip() != "", 60, "running")
    assert ada.box.exec(["kill", "-HUP", (ada.home / "pid").read_text().strip()]).code == 0
    gate.touch()
    launch.communicate(timeout=60)
    assert launch.returncode == 7
