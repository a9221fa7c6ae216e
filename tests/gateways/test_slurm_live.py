"""Every method of the gateway against a real Slurm, as a plain user."""

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from glaunch.errors import ControllerSilent, SlurmError
from glaunch.gateways.capture import Recorded, record, replay, taken_at_s, write_capture
from glaunch.gateways.kept import Kept, read_cluster
from glaunch.gateways.process import Surroundings
from glaunch.gateways.slurm import QUESTIONS, SlurmCommands
from glaunch.job import Job
from glaunch.placement.eligible import eligible
from glaunch.placement.partition import choose_partition
from glaunch.request import Request
from glaunch.slurm_versions import SHOWS_SCRIPTS_ALONE

if TYPE_CHECKING:
    from tests.gateways.conftest import Live

pytestmark = pytest.mark.slurm


def told(job: Job | None) -> Job:
    """The job, which Slurm must know."""
    assert job is not None
    return job


USERS_OWN = {
    "SQUEUE_FORMAT": "%j %u",
    "SQUEUE_STATES": "FAILED",
    "SQUEUE_USERS": "bob",
    "SQUEUE_PARTITION": "nope",
    "SINFO_FORMAT": "%n",
    "SACCT_FORMAT": "user",
    "SLURM_TIME_FORMAT": "%A",
    "SLURM_BITSTR_LEN": "1",
    "SLURM_TOPO_LEN": "10",
    "SCONTROL_LOCAL": "1",
}


def test_what_there_is(live: "Live") -> None:
    gateway = live.gateway(environ=USERS_OWN)
    nodes = gateway.nodes()
    assert nodes.names == tuple(f"n{number:03d}" for number in range(1, 9))
    assert set(nodes.gpu_types) == {"h100"}
    assert int(nodes.gpus_total.sum()) == 64
    cluster, topology = read_cluster(gateway, time.time())
    assert cluster.nodes == nodes
    assert len(cluster.slurm_version) >= 2
    (partition,) = [partition for partition in cluster.partitions if partition.default]
    assert partition.nodes == nodes.names
    assert topology.count("SwitchName=") == 7
    assert all(re.search(r"(Nodes|Switches)=\S+$", line) for line in topology.splitlines())
    assert cluster.config["ClusterName"] == cluster.name == "sandbox"


def test_no_more_questions_than_promised(live: "Live", tmp_path: Path) -> None:
    live.quiet()
    gateway = live.gateway()
    script = live.script("true.sh", "true")
    conf = tmp_path / "slurm.conf"
    conf.write_text("ClusterName=x\n")
    kept = Kept(tmp_path / "kept", environ={"SLURM_CONF": str(conf)})
    with live.rpcs() as cold:
        read_cluster(gateway, time.time(), kept)
        answer = gateway.submit(script, ["--nodes=1", "--gpus-per-node=8"])
        gateway.job(answer.job_id)
    # pyslurm asks for the configuration with the partitions, but for no ping with the configuration
    config = {"BUILD_INFO": 1, "PING": 1} if live.kind == "commands" else {"BUILD_INFO": 2}
    cluster = {"NODE_INFO": 1, "PARTITION_INFO": 2, "TOPO_INFO": 1, "RESERVATION_INFO": 1}
    assert cold == {**config, **cluster, "SUBMIT_BATCH_JOB": 1, "JOB_INFO_SINGLE": 1}
    with live.rpcs() as warm:
        read_cluster(gateway, time.time(), kept)
        answer = gateway.submit(script)
        gateway.job(answer.job_id)
    assert warm == {"NODE_INFO": 1, "PARTITION_INFO": 1, "RESERVATION_INFO": 1, "SUBMIT_BATCH_JOB": 1, "JOB_INFO_SINGLE": 1}
    with live.rpcs() as plan:
        read_cluster(gateway, time.time(), kept, nodes_max_age_s=60)
    assert plan == {"NODE_INFO": 1, "PARTITION_INFO": 1, "RESERVATION_INFO": 1}
    with live.rpcs() as young:
        read_cluster(gateway, time.time(), kept, nodes_max_age_s=60)
    assert young == {"RESERVATION_INFO": 1}
    with live.rpcs() as look:
        gateway.job(answer.job_id)
    assert look == {"JOB_INFO_SINGLE": 1}
    with live.rpcs() as batch:
        gateway.jobs([answer.job_id, "1"])
    assert batch == {"JOB_USER_INFO": 1, "PARTITION_INFO": 1}
    with live.rpcs() as end:
        gateway.cancel([answer.job_id])
    assert sum(end.values()) == 1, end


def test_a_job_from_submission_to_its_end(live: "Live", slurm_version: tuple[int, int]) -> None:
    gateway = live.gateway(environ={**USERS_OWN, "SBATCH_WAIT": "1", "SLURM_HOSTFILE": "/nope"})
    script = live.script("dir with blank/seven.sh", 'echo "$GLAUNCH_X in $PWD, $# arguments, host file ${SLURM_HOSTFILE-none}"; exit 7')
    answer = gateway.submit(
        script,
        ["--nodes=2", "--time=30", "--comment=c"],
        ["sub 1", "$x"],
        folder="/home/ada/dir with blank",
        environment={"GLAUNCH_X": "a b"},
    )
    assert answer.job_id.isdigit()
    live.until(lambda: told(gateway.job(answer.job_id)).over)
    job = told(gateway.job(answer.job_id))
    assert (job.state, job.exit_code, job.exit_signal, job.node_count) == ("FAILED", 7, 0, 2)
    assert job.script == (script if SHOWS_SCRIPTS_ALONE.there(slurm_version) else f"{script} sub 1 $x")
    assert job.time_limit_s == 1800
    assert abs((job.start_s or 0) - time.time()) < 600
    (row,) = gateway.jobs([answer.job_id])
    assert row == job
    assert job.id in {own.id for own in gateway.own_jobs()}
    assert (
        live.ask("cat", f"/home/ada/dir with blank/slurm-{answer.job_id}.out")
        == "a b in /home/ada/dir with blank, 2 arguments, host file none\n"
    )
    live.until(lambda: any(row.over for row in gateway.accounted([answer.job_id]) or ()))
    (past,) = gateway.accounted([answer.job_id]) or ()
    assert (past.state, past.exit_code) == ("FAILED", 7)
    live.until(lambda: any(script in row.script for row in gateway.accounted_within(3600) or ()))


@pytest.mark.parametrize(
    "name",
    [
        "x JobState=RUNNING Reason=None UserId=evil",
        "a\n   JobState=COMPLETED Reason=None Dependency=(null)",
        "a\nJobId=1 JobName=b\n   JobState=COMPLETED Reason=None Dependency=(null)",
        "|x1f2|",
        "ü \"q' $(id) `id` \\",
        "a\n1|1|FAILED",
    ],
)
def test_a_name_forges_nothing(live: "Live", name: str) -> None:
    gateway = live.gateway()
    answer = gateway.submit(live.script("true.sh", "true"), ["--hold", f"--job-name={name}", f"--comment={name}"])
    job = told(gateway.job(answer.job_id))
    assert (job.id, job.state, job.name, job.script) == (answer.job_id, "PENDING", name, "/home/ada/true.sh")
    assert gateway.jobs([answer.job_id, "999999"]) == (job,)
    gateway.cancel([answer.job_id])


def test_a_pin_is_lifted_only_from_a_job_that_waits(live: "Live") -> None:
    live.quiet()
    gateway = live.gateway()
    sleep = live.script("sleep.sh", "exec sleep 600")
    running = gateway.submit(sleep, ["--nodes=2", "--nodelist=n003,n004", "--exclusive", "--time=30"]).job_id
    live.until(lambda: told(gateway.job(running)).state == "RUNNING")
    pinned = gateway.submit(sleep, ["--nodes=2", "--nodelist=n003,n004", "--exclusive", "--time=30"]).job_id
    assert told(gateway.job(pinned)).required_nodes == "n[003-004]"
    live.until(lambda: told(gateway.job(pinned)).reason == "Resources")
    with live.rpcs() as counted:
        assert gateway.unpin(pinned) == "lifted"
    assert sum(count for name, count in counted.items() if name in {"FED_INFO", "JOB_INFO_SINGLE", "UPDATE_JOB"}) == 3
    assert told(gateway.job(pinned)).required_nodes == ""
    live.until(lambda: told(gateway.job(pinned)).state == "RUNNING")
    assert gateway.unpin(running) == "running"
    assert told(gateway.job(running)).nodes == "n[003-004]"
    gateway.cancel([running, pinned])
    live.until(lambda: told(gateway.job(running)).over)
    assert gateway.unpin(running) == "over"
    assert gateway.unpin("999999") == "unknown"
    assert gateway.job("999999") is None
    assert gateway.jobs(["999999"]) == ()


def test_array_tasks_have_rows_of_their_own(live: "Live") -> None:
    gateway = live.gateway()
    array = gateway.submit(live.script("true.sh", "true"), ["--array=1-3", "--hold"]).job_id
    assert [job.id for job in gateway.jobs([array])] == [f"{array}_{task}" for task in (1, 2, 3)]
    assert told(gateway.job(f"{array}_2")).id in {f"{array}_2", array}
    gateway.cancel([array])


@pytest.mark.parametrize(
    ("options", "words", "hint"),
    [
        (["--partition=nope"], "Invalid partition name", "sinfo -s"),
        (["--account=blue"], "Invalid account", "sacctmgr show associations"),
        (["--qos=nope"], "Invalid qos", "sacctmgr"),
        (["--gres=gpu:9"], "node configuration is not available", "sinfo"),
        (["--nodelist=zz"], "Invalid node name", "sinfo -N"),
        (["--frobnicate"], "unrecognized option", ""),
        (["--time=1x"], "Invalid --time", ""),
        (["--comment=" + "x" * 2000], "too long", "1,024"),
    ],
)
def test_a_refusal_comes_in_slurms_own_words(live: "Live", options: list[str], words: str, hint: str) -> None:
    with pytest.raises(SlurmError) as refused:
        live.gateway().submit(live.script("true.sh", "true"), options)
    assert words in refused.value.message
    assert hint in refused.value.hint
    assert "sbatch:" not in refused.value.message
    assert refused.value.exit_code == 1


def test_another_users_jobs_stay_alone(live: "Live") -> None:
    bobs = live.gateway("bob").submit(live.script("sleep.sh", "exec sleep 60", "bob"), ["--hold"]).job_id
    gateway = live.gateway()
    assert gateway.jobs([bobs]) == ()
    with pytest.raises(SlurmError, match="denied"):
        gateway.cancel([bobs])
    with pytest.raises(SlurmError):
        gateway.unpin(bobs)
    live.gateway("bob").cancel([bobs])


def test_which_nodes_are_free_is_what_slurm_does(live: "Live") -> None:
    live.quiet()
    gateway = live.gateway()
    live.ask("scontrol", "update", "NodeName=n008", "State=DRAIN", "Reason=State=IDLE Gres=gpu:x:9")
    live.ask("scontrol", "create", "reservation", "reservation=ahead", "starttime=now+1hour", "duration=60", "nodes=n007", "users=root")
    busy = gateway.submit(live.script("sleep.sh", "exec sleep 600"), ["--nodelist=n001", "--gpus-per-node=3", "--time=30"]).job_id
    try:
        live.until(lambda: told(gateway.job(busy)).state == "RUNNING")
        cluster, _ = read_cluster(gateway, time.time())
        request = Request(("x",), tasks=8)
        found = eligible(request, cluster, choose_partition(request, cluster), now_s=time.time(), time_limit_s=7200)
        assert found.nodes == ("n002", "n003", "n004", "n005", "n006")
        left = dict(found.left_out)
        # a plan that Slurm made for the job while it waited stays until the next backfill
        assert left.pop("busy", 0) + left.pop("planned for other jobs", 0) == 1
        assert left == {"drained": 1, "reserved before the job would end": 1}
        for node, free in (("n001", False), ("n002", True), ("n007", False), ("n008", False)):
            job = gateway.submit(
                "/home/ada/sleep.sh", [f"--nodelist={node}", "--gpus-per-node=8", "--cpus-per-task=8", "-n8", "--time=120"]
            ).job_id
            if free:
                live.until(lambda job=job: told(gateway.job(job)).state == "RUNNING")  # type: ignore[misc]
            else:
                live.until(lambda job=job: told(gateway.job(job)).reason not in {"", "Priority"})  # type: ignore[misc]
                assert told(gateway.job(job)).state == "PENDING"
            gateway.cancel([job])
    finally:
        gateway.cancel([busy])
        live.ask("scontrol", "delete", "ReservationName=ahead")
        live.ask("scontrol", "update", "NodeName=n008", "State=RESUME")


def test_a_capture_answers_like_the_cluster(live: "Live", tmp_path: Path) -> None:
    recorded: list[Recorded] = []
    run = live.surround()(Surroundings({"LC_ALL": "C", "SLURM_TIME_FORMAT": "%s"}))
    gateway = SlurmCommands(record(run, recorded, 1000.0), environ={}, timeout_s=120)
    for question in QUESTIONS:
        gateway.answer(question)
    write_capture(tmp_path / "capture", recorded, plain=True)
    cluster, topology = read_cluster(SlurmCommands(replay(tmp_path / "capture"), environ={}), taken_at_s(tmp_path / "capture"))
    assert cluster.taken_at_s == 1000.0
    assert cluster.nodes.names == gateway.nodes().names
    assert topology == gateway.answer("topology")
    with pytest.raises(SlurmError, match="no answer of: scontrol --local show job 1"):
        SlurmCommands(replay(tmp_path / "capture"), environ={}).job("1")


def test_a_hung_controller_is_silence_not_refusal(live: "Live") -> None:
    gateway = live.gateway(timeout_s=1)
    pid = live.ask("sh", "-c", "cat /run/slurmctld.pid").strip()
    live.ask("kill", "-STOP", pid)
    try:
        for ask in (gateway.nodes, lambda: gateway.job("1")):
            with pytest.raises(ControllerSilent) as silent:
                ask()
            assert silent.value.exit_code == 5
            assert "scontrol ping" in silent.value.hint
    finally:
        live.ask("kill", "-CONT", pid)
    live.until(lambda: len(live.gateway().nodes()) == 8)


def test_nothing_of_accounting_is_none(live: "Live") -> None:
    assert live.gateway().accounted([]) == ()
    assert live.gateway().accounted(["999999"]) == ()
