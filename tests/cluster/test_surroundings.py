"""What lies around a launch: odd folders, the user's own Slurm variables, a home that takes no more."""

import json
import re
from collections.abc import Callable

import pytest
from tests.cluster.conftest import PROGRAM, User, job_id_of

from glaunch.sandbox.box import Sandbox

pytestmark = pytest.mark.slurm


@pytest.mark.parametrize("folder", ["100% %j %N", 'it\'s "a" $(b) ü', "-" * 240])
def test_a_folder_of_any_name(ada: User, folder: str) -> None:
    done = ada.run("sh", "-c", 'mkdir -p -- "$1" && cd -- "$1" && cp ~/prog.sh . && exec glaunch ./prog.sh -n 8', "sh", folder)
    assert done.code == 0, done.stderr
    assert re.search(r"^0: rank 0 of 8", done.stdout, re.M)


def test_what_sbatchs_variables_ask_for_is_in_the_plan_and_said(ada: User) -> None:
    env = {"SBATCH_TIMELIMIT": "3", "SBATCH_JOB_NAME": "mine", "SBATCH_EXPORT": "NONE", "SBATCH_GRES": "gpu:4", "SBATCH_QOS": "none"}
    done = ada.glaunch("-n", "8", "-J", "typed", "./prog.sh", env={**env, "SBATCH_OUTPUT": "/tmp/mine", "SBATCH_WAIT": "1"})
    assert done.code == 0, done.stderr
    job_id = job_id_of(done)
    said = done.stderr
    assert "typed: 2 nodes × 4 GPUs (h100) = 8 ranks, partition gpu, limit 00:03:00" in said
    assert "asked for by your environment: SBATCH_EXPORT=NONE, SBATCH_GRES=gpu:4, SBATCH_QOS=none, SBATCH_TIMELIMIT=3" in said
    assert "as it contradicts the plan: SBATCH_OUTPUT=/tmp/mine, SBATCH_WAIT=1" in said
    assert ada.job(job_id)["TimeLimit"] == "00:03:00"
    assert ada.job(job_id)["JobName"] == "typed"
    assert json.loads((ada.folder(job_id) / "plan.json").read_text())["time_limit_s"] == 180


def test_what_would_bend_the_steps_of_the_job_does_not_travel(ada: User) -> None:
    env = {"SLURM_WORKING_DIR": "/tmp", "SLURM_NO_KILL": "1", "SRUN_CPUS_PER_TASK": "3", "SLURM_HOSTFILE": "/etc/passwd"}
    done = ada.glaunch("./prog.sh", "-n", "16", env=env)
    assert done.code == 0, done.stderr
    assert len(re.findall(r"^\d+: rank \d+ of 16", done.stdout, re.M)) == 8
    assert "SLURM_HOSTFILE=/etc/passwd, SLURM_NO_KILL=1, SLURM_WORKING_DIR=/tmp, SRUN_CPUS_PER_TASK=3" in done.stderr


@pytest.mark.parametrize("state", ["/proc/none", "/etc"])
def test_a_state_folder_that_cannot_be_written_is_told_and_nothing_is_submitted(ada: User, state: str) -> None:
    done = ada.glaunch("./prog.sh", "-n", "8", env={"XDG_STATE_HOME": state})
    assert done.code == 1
    assert f"{state}/glaunch/" in done.stderr
    assert "cannot remember what is launched" in done.stderr
    assert ada.run("squeue", "-h").stdout == ""


def test_numbers_in_a_sites_banner_are_no_job_of_ours(ada: User) -> None:
    """After the id: that of a job there is, then one of nobody's."""
    other = ada.run("sbatch", "--parsable", "--hold", "-o", "/dev/null", "--wrap", "true").stdout.strip()
    for number in (other, "4000000"):
        ada.write("bin/sbatch", f'#!/bin/sh\n/usr/bin/sbatch "$@" && echo "CPU hours left:" && echo {number}\n')
        done = ada.glaunch("-n", "8", "--parsable", "./prog.sh", env={"PATH": "/home/ada/bin:/usr/local/bin:/usr/bin:/bin"})
        assert done.code == 0, done.stderr
        assert f"sbatch's answer names job {number}, which is another one" in done.stderr
        assert job_id_of(done) == done.stdout.strip() != number
        assert ada.wait_for(done.stdout.strip())["JobState"] == "COMPLETED"
    ada.run("scancel", other)


def test_a_caller_without_any_environment(ada: User) -> None:
    done = ada.run("env", "-i", "/usr/local/bin/glaunch", "-n", "8", "./prog.sh")
    assert done.code == 0, done.stderr
    assert "rank 0 of 8" in done.stdout


@pytest.mark.parametrize(("line", "code"), [("plan", 1), ("run", 1), ("--help", 1)])
def test_a_full_stdout_is_one_line_and_exit_code_1(ada: User, line: str, code: int) -> None:
    done = ada.run("sh", "-c", f"glaunch {line} ./prog.sh -n 8 >/dev/full")
    assert (done.code, done.stderr.splitlines()[-1]) == (code, "glaunch: nothing more can be written: No space left on device")


def test_a_throttled_array_is_followed_to_its_last_task_and_a_failed_one_counts(ada: User) -> None:
    program = "[ $SLURM_ARRAY_TASK_ID != 2 ] || exit 5"
    done = ada.glaunch("-n", "8", "--array=0-3%1", "sh", "-c", program)
    assert done.code == 5, done.stderr
    assert "3 of 4 array tasks ended well; not 2" in done.stderr
    assert re.search(r"^job \d+_2 \(sh\) failed", done.stderr, re.M)
    assert "the time limit is near" not in done.stdout + done.stderr  # there is none


def test_a_centre_that_shows_its_nodes_to_nobody(sandboxes: Callable[..., Sandbox]) -> None:
    user = User(sandboxes("private", nodes=4, slurm_conf=("PrivateData=jobs,nodes,reservations,usage",)))
    user.write("prog.sh", PROGRAM)
    done = user.glaunch("./prog.sh", "-n", "16")
    assert (done.code, "how many GPUs a node has must be said" in done.stderr) == (2, True)
    done = user.glaunch("./prog.sh", "-n", "999", "--gpus-per-node", "8")
    assert (done.code, "partition gpu has 4 such nodes" in done.stderr) == (1, True)
    done = user.glaunch("./prog.sh", "-n", "16", "--gpus-per-node", "8")
    assert done.code == 0, done.stderr
    assert "Slurm does not show its nodes here (PrivateData)" in done.stderr
    assert "free now" not in done.stderr
    assert "all 16 ranks ran where the plan's order puts them" in done.stderr
