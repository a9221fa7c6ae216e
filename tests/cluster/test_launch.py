"""The main job, and what can go wrong with a launch, on a real Slurm as a plain user."""

import contextlib
import json
import os
import pty
import re
import signal
import tarfile
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.cluster.conftest import User, job_id_of, until

from glaunch.slurm_versions import REFUSES_TOO_MANY_NODES

pytestmark = pytest.mark.slurm


def test_64_ranks_run_in_the_planned_order_on_the_fewest_leaves(ada: User) -> None:
    done = ada.glaunch("./prog.sh", "-n", "64", "--env", "SLEEP=0", "a b", "$HOME")
    assert done.code == 0, done.stderr
    job_id = job_id_of(done)
    (attempt,) = ada.attempts(job_id)
    plan = json.loads((ada.folder(job_id) / "plan.json").read_text())
    assert plan["mode"] == "pin"
    planned = plan["placement"]["nodes"]
    assert list(attempt.hosts) == planned
    assert [(place.rank, place.host, place.local_rank) for place in attempt.ranks] == [
        (rank, planned[rank // 8], rank % 8) for rank in range(64)
    ]
    assert plan["placement"]["cost"]["leaves"] == 2
    assert plan["placement"]["cost"]["hops"] == plan["placement"]["bound"]["hops"]
    assert "all 64 ranks ran where the plan's order puts them" in done.stderr
    assert len(re.findall(r"^\d+: rank \d+ of 64 on n001, .*args: a b \$HOME$", done.stdout, re.M)) == 8
    assert (attempt.path / "report.html").read_text().startswith("<!doctype html>")


def test_each_hosts_archive_holds_that_hosts_files_and_no_others(ada: User) -> None:
    done = ada.glaunch("./prog.sh", "-n", "24")
    (attempt,) = ada.attempts(job_id_of(done))
    for host in attempt.hosts:
        with tarfile.open(attempt.path / "logs" / f"{host}.tar.gz") as archive:
            names = {member.name.removeprefix("./") for member in archive if member.isfile()}
        assert names == {f"{place.host}-{place.rank}.log" for place in attempt.ranks if place.host == host}
    assert "(3 gathered by the job)" in done.stderr


def test_logs_come_home_over_ssh_while_the_job_lives(ada: User) -> None:
    job_id = ada.glaunch("./prog.sh", "-n", "64", "--env", "SLEEP=300", "--detach").stdout.strip()
    until(lambda: len(ada.attempts(job_id)[0].ranks) == 64, 60, "all ranks running")
    done = ada.glaunch("collect", job_id)
    assert done.code == 0, done.stderr
    assert "all home (8 fetched over SSH)" in done.stdout
    (attempt,) = ada.attempts(job_id)
    for host in attempt.hosts:
        with tarfile.open(attempt.path / "logs" / f"{host}.tar.gz") as archive:
            names = {member.name.removeprefix("./") for member in archive if member.isfile()}
        assert names == {f"{place.host}-{place.rank}.log" for place in attempt.ranks if place.host == host}
    assert ada.glaunch("cancel", job_id).code == 0
    assert ada.wait_for(job_id)["JobState"] == "CANCELLED"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["./prog.sh", "-n", "999"], 1, "partition gpu has 16 such nodes"),
        (["./prog.sh", "-n", "8", "-p", "gpus"], 2, "no partition 'gpus'\n  did you mean -p gpu?"),
        (["trian.py", "-n", "8"], 2, "there is no script 'trian.py'"),
        (["./prog.sh"], 2, "say it with -n (ranks) or -N (nodes): glaunch -n 64 ./prog.sh"),
        (["-n", "8", "./prog.sh", "-t"], 0, "./prog.sh gets: -t"),
        (["./prog.sh", "-n"], 2, "-n needs a value"),
        (["./prog.sh", "-n", "8", "-w", "n999"], 2, "no node 'n999'"),
        (["./prog.sh", "-n", "8", "--sbatch", "wrap=x"], 2, "--sbatch wrap: glaunch decides this itself"),
        (["./prog.sh", "-n", "8", "-J", "a\nb"], 2, "job-name"),
    ],
)
def test_bad_input_is_one_clear_line_and_nothing_is_submitted(ada: User, words: list[str], code: int, said: str) -> None:
    done = ada.glaunch(*words)
    assert said in done.stderr
    assert done.code == code
    if code:
        assert "submitted" not in done.stderr
        assert ada.run("squeue", "-h").stdout == ""


def test_force_hands_the_impossible_to_slurm_and_says_what_comes_of_it(ada: User, slurm_version: tuple[int, int]) -> None:
    done = ada.glaunch("./prog.sh", "-n", "999", "--force", "--detach")
    assert "warning: Slurm will refuse this or never run it: 999 ranks need 125 nodes" in done.stderr
    if REFUSES_TOO_MANY_NODES.there(slurm_version):
        assert done.code == 1, done.stderr
        assert "Slurm refused the job: Requested node configuration is not available" in done.stderr
        assert ada.run("squeue", "-h").stdout == ""
    else:
        assert done.code == 0, done.stderr
        assert "waits" in ada.glaunch("status").stdout


def test_a_dead_controller_is_one_clear_line_and_exit_code_5(ada: User) -> None:
    ada.box.exec(["scontrol", "shutdown", "slurmctld"])
    until(lambda: ada.box.exec(["pgrep", "-x", "slurmctld"]).code != 0, 60, "slurmctld is gone")
    try:
        done = ada.glaunch("./prog.sh", "-n", "8", env={"GLAUNCH_SLURM_TIMEOUT_S": "3"})
        assert done.code == 5, done.stderr
        assert "submitted" not in done.stderr
        assert "Traceback" not in done.stderr
    finally:
        ada.box.exec(["slurmctld"])
        until(lambda: "UP" in ada.run("scontrol", "ping").stdout, 60, "slurmctld answers again")


def test_more_ranks_than_are_free_are_submitted_unpinned_and_the_exit_code_is_the_jobs(ada: User) -> None:
    gate = ada.gate()
    first = ada.glaunch("./prog.sh", "-N", "14", "--env", "GATE=/home/ada/gate", "--detach").stdout.strip()
    with ThreadPoolExecutor(1) as beside:
        launch = beside.submit(ada.glaunch, "./prog.sh", "-n", "64", "--env", "FAIL=63", "--env", "CODE=7")
        until(lambda: launch.done() or "PENDING" in ada.run("squeue", "-h", "-o", "%T").stdout, 60, "the second waits")
        gate.touch()
        done = launch.result()
    assert done.code == 7, done.stderr
    assert "what would start sooner: -n 16 (2 nodes)" in done.stderr
    assert "not enough nodes are free now" in done.stderr
    assert "rank 63 on" in done.stderr
    assert ada.job(job_id_of(done))["ReqNodeList"] == "(null)"
    assert ada.job(first)["JobState"] == "COMPLETED"


def test_a_refusal_that_other_nodes_would_not_cure_is_told_once(ada: User) -> None:
    done = ada.glaunch("./prog.sh", "-n", "8", "--sbatch", "nosuch=1")
    assert done.code == 1
    assert "asked once more" not in done.stderr
    assert done.stderr.count("unrecognized option") == 1


def test_a_program_that_is_not_there_is_one_clear_line_a_node(ada: User) -> None:
    ada.write("broken.sh", "#!/opt/nowhere/interpreter\n")
    done = ada.glaunch("./broken.sh", "-n", "16")
    assert done.code == 127
    assert "/opt/nowhere/interpreter: not found" in done.stderr + done.stdout


def test_status_logs_and_report_speak_of_the_last_job(ada: User) -> None:
    job_id = job_id_of(ada.glaunch("./prog.sh", "-n", "16", "--env", "FAIL=9", "--env", "CODE=3"))
    assert re.search(rf"^{job_id} .*ended with exit code 3", ada.glaunch("status").stdout, re.M)
    assert ada.glaunch("logs", "--rank", "9").stdout.startswith("rank 9 of 16 on n002, local 1, node 1")
    report = json.loads(ada.glaunch("report", "--json").stdout)
    assert report["schema"] == "glaunch.report/1"
    assert [finding["rank"] for finding in report["findings"] if finding["severity"] == "error"] == [9]


def test_inside_an_allocation_it_runs_there_and_submits_nothing(ada: User) -> None:
    done = ada.run("salloc", "-N2", "--gres=gpu:h100:8", "--ntasks-per-node=8", "glaunch", "./prog.sh", "--here", "-n", "16")
    assert done.code == 0, done.stderr
    assert "0: rank 0 of 16 on n001" in done.stdout
    assert "all 16 ranks ran" in done.stderr
    assert ada.run("squeue", "-h", "-t", "all", "-o", "%i").stdout.split().count("submitted") == 0
    assert "submitted" not in done.stderr
    small = ada.run("salloc", "-N1", "--gres=gpu:h100:8", "--ntasks-per-node=8", "glaunch", "./prog.sh", "--here", "-N", "2", timeout_s=60)
    assert "16 ranks need 2 nodes, and this allocation has 1" in small.stderr
    assert "  -N 1, or a larger allocation" in small.stderr, small.stderr
    one_fails = ("glaunch", "--here", "-n", "8", "--env", "FAIL=5", "--env", "CODE=3", "./prog.sh")
    bad = ada.run("salloc", "-N1", "--gres=gpu:h100:8", "--ntasks-per-node=8", *one_fails, timeout_s=60)
    assert bad.code == 3
    assert re.search(r"^srun: error: n\d+: task 5: Exited with exit code 3$", bad.stdout, re.M), bad
    assert re.search(r"GL201  rank 5 on n\d+ exited with code 3", bad.stderr), bad.stderr


def test_ctrl_c_inside_an_allocation_ends_the_ranks_in_order_and_their_logs_come_home(ada: User) -> None:
    line = ["salloc", "-N2", "--gres=gpu:h100:8", "--ntasks-per-node=8", "glaunch", "--here", "-J", "broken-off", "-n", "16"]
    line += ["--env", "SLEEP=300", "./prog.sh"]
    argv = ada.box.argv(line, "ada")
    process, terminal = pty.fork()
    if process == 0:
        # ^C is for glaunch, which has it back; the end of what enters the sandbox would add a TERM
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.execvp(argv[0], argv)  # noqa: S606 (an argv, no shell)
    jobs = ada.home / "glaunch-jobs"
    until(lambda: any(len(path.read_text().splitlines()) == 16 for path in jobs.glob("broken-off-*/*/ranks.tsv")), 60, "all ranks running")
    os.write(terminal, b"\x03")
    seen = b""
    with contextlib.suppress(OSError):  # a terminal whose last program ended reads as an error on Linux
        while more := os.read(terminal, 4096):
            seen += more
    os.close(terminal)
    os.waitpid(process, 0)
    (end,) = jobs.glob("broken-off-*/*/exit.json")
    assert json.loads(end.read_text())["told"] == "INT"
    assert b"of 2 hosts: all home (2 gathered by the job)" in seen, seen
    until(lambda: ada.run("squeue", "-h").stdout == "", 60, "no allocation left")


def test_a_partition_that_is_newer_than_what_is_kept_is_known(ada: User) -> None:
    assert ada.glaunch("plan", "./prog.sh", "-n", "8").code == 0
    assert ada.box.exec(["scontrol", "create", "PartitionName=newer", "Nodes=n[001-002]", "State=UP"]).code == 0
    try:
        plan = ada.glaunch("plan", "./prog.sh", "-n", "8", "-p", "newer")
        assert plan.code == 0, plan.stderr
        unknown = ada.glaunch("plan", "./prog.sh", "-n", "8", "-p", "newest")
        assert "no partition 'newest'" in unknown.stderr
    finally:
        ada.box.exec(["scontrol", "delete", "PartitionName=newer"])
