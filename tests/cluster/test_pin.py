"""The pin is a loan: taken when the set is free, given back when the job does not start on it."""

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.cluster.conftest import User, job_id_of, until

pytestmark = pytest.mark.slurm


def test_ten_launches_in_five_seconds_get_ten_disjoint_sets_all_pinned_all_started(ada: User) -> None:
    began = time.monotonic()
    running = [ada.box.popen(["glaunch", "./prog.sh", "-N", "1", "--env", "SLEEP=400", "--detach"], "ada") for _ in range(10)]
    out = [launch.communicate(timeout=200) for launch in running]
    took_s = time.monotonic() - began
    ids = [stdout.decode().strip() for stdout, _ in out]
    plans = [json.loads((ada.folder(job_id) / "plan.json").read_text()) for job_id in ids]
    assert [plan["mode"] for plan in plans] == ["pin"] * 10
    pinned = [plan["placement"]["nodes"][0] for plan in plans]
    assert len(set(pinned)) == 10
    for job_id, node in zip(ids, pinned, strict=True):
        job = ada.wait_for(job_id, "RUNNING")
        assert job["NodeList"] == node
    assert took_s < 300  # what is measured is in the report of `make bench`; here only that nobody waited for anybody's job


def test_a_pin_whose_nodes_were_taken_is_lifted_at_the_first_look(ada: User) -> None:
    # Between glaunch's look and its sbatch another job takes all nodes: this sbatch is where that happens.
    ada.write(
        "bin/sbatch",
        "#!/bin/sh\nif [ ! -e $HOME/taken ]; then\n"
        'id=$(/usr/bin/sbatch --parsable -N16 --exclusive -o /dev/null --wrap "until [ -e $HOME/gate ]; do sleep 0.1; done")\n'
        'until [ "$(squeue -h -j "$id" -t R -o %i)" ]; do sleep 0.1; done; : >$HOME/taken; fi\nexec /usr/bin/sbatch "$@"\n',
    )
    gate = ada.gate()

    def lifted() -> bool:
        waiting = ada.run("squeue", "-h", "-t", "PD", "-o", "%i").stdout.split()
        return launch.done() or any(ada.job(job_id).get("ReqNodeList") == "(null)" for job_id in waiting)

    with ThreadPoolExecutor(1) as beside:
        launch = beside.submit(ada.glaunch, "./prog.sh", "-n", "8", env={"PATH": "/home/ada/bin:/usr/local/bin:/usr/bin:/bin"})
        until(lambda: (ada.home / "taken").exists(), 60, "the nodes are taken")
        until(lifted, 60, "the pin is lifted")
        gate.touch()
        done = launch.result()
    (ada.home / "taken").unlink()
    assert done.code == 0, done.stderr
    assert "did not start on its nodes (Resources): the pin is lifted" in done.stderr
    assert ada.job(job_id_of(done))["ReqNodeList"] == "(null)"


def test_a_pin_is_lifted_at_the_end_of_its_patience(ada: User) -> None:
    ada.box.exec(["scontrol", "update", "PartitionName=gpu", "State=DOWN"])
    done = ada.glaunch("./prog.sh", "-n", "8", "--detach", env={"GLAUNCH_PIN_PATIENCE_S": "4"})
    assert done.code == 0, done.stderr
    assert "the pin is lifted" in done.stderr
    job_id = done.stdout.strip()
    assert ada.job(job_id)["ReqNodeList"] == "(null)"
    ada.box.exec(["scontrol", "update", "PartitionName=gpu", "State=UP"])
    ada.wait_for(job_id, "COMPLETED")


def test_a_pin_left_by_a_killed_glaunch_is_lifted_by_the_next_command(ada: User) -> None:
    ada.box.exec(["scontrol", "update", "PartitionName=gpu", "State=DOWN"])
    env = {"GLAUNCH_PIN_PATIENCE_S": "3"}  # of the next command; this one would wait for 30 s
    launch = ada.box.popen(["sh", "-c", "echo $$ >$HOME/pid; exec glaunch ./prog.sh -n 8"], "ada")
    until(lambda: "PENDING" in ada.run("squeue", "-h", "-o", "%T").stdout, 60, "submitted")
    time.sleep(0.5)
    ada.box.exec(["kill", "-9", (ada.home / "pid").read_text().strip()])
    launch.communicate(timeout=30)
    job_id = ada.run("squeue", "-h", "-o", "%i").stdout.strip()
    assert ada.job(job_id)["ReqNodeList"] != "(null)"
    until(lambda: "lifted" in ada.glaunch("status", env=env).stderr, 60, "the next command lifts it")
    assert ada.job(job_id)["ReqNodeList"] == "(null)"


def test_what_waits_for_other_reasons_is_not_pinned_and_says_why(ada: User) -> None:
    first = ada.glaunch("./prog.sh", "-n", "8", "--env", "SLEEP=3", "--detach").stdout.strip()
    done = ada.glaunch("./prog.sh", "-n", "8", "-d", f"afterok:{first}")
    assert done.code == 0, done.stderr
    assert "Slurm chooses the nodes, glaunch orders the ranks (it waits for other jobs" in done.stderr


def test_a_default_launch_keeps_the_bounds_on_rpcs(ada: User) -> None:
    def calls(*words: str) -> tuple[dict[str, int], int]:
        """(kind of RPC → how many, how many of those lifted a pin: on a busy machine the job may begin too late for it)."""
        ada.box.exec(["sdiag", "-r"])
        done = ada.glaunch(*words)
        assert done.code == 0, done.stderr
        text = ada.box.exec(["sdiag"]).stdout.split("Remote Procedure Call statistics by message type")[1].split("statistics by user")[0]
        counts = {name: int(count) for name, count in re.findall(r"(\w+)\s+\(\s*\d+\)\s+count:(\d+)", text)}
        theirs = ("STEP", "HET_JOB", "STATS_INFO", "COMPLETE", "EPILOG", "REGISTRATION")  # the job's own steps, the nodes', and this test's
        lifting = 3 * done.stderr.count("the pin is lifted")
        return {name: count for name, count in counts.items() if not any(word in name for word in theirs)}, lifting

    ada.run("rm", "-rf", ".local/state/glaunch/kept")
    cold, lifting = calls("./prog.sh", "-n", "8", "--env", "SLEEP=20", "--detach")
    config, one_job = {"REQUEST_BUILD_INFO", "REQUEST_PING"}, "REQUEST_JOB_INFO_SINGLE"
    # A job is asked for by the read-back, by the attempt (its own time limit), and by at most four looks at the pin, until it runs.
    assert sum(count for name, count in cold.items() if name not in {*config, one_job}) <= 7 - 1 + lifting, cold
    assert all(cold.get(name, 0) <= 1 for name in config)
    warm, lifting = calls("./prog.sh", "-n", "8", "--env", "SLEEP=20", "--detach")
    assert sum(count for name, count in warm.items() if name != one_job) <= 5 - 1 + lifting, warm
    assert max(cold[one_job], warm[one_job]) <= 1 + 1 + 4
    assert not {"REQUEST_JOB_INFO", "REQUEST_JOB_WILL_RUN", *config} & set(warm)
