"""What is submitted beside one plain job: arrays, chains, components, requeues; for real."""

import re
from collections.abc import Callable, Iterator

import pytest
from tests.cluster.conftest import PROGRAM, User, idle, job_id_of, until

from glaunch.attempt import AttemptFolder
from glaunch.sandbox.box import Sandbox
from glaunch.sandbox.fault import fault

pytestmark = pytest.mark.slurm

TASK = """\
#!/bin/sh
echo "task $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_MIN-$SLURM_ARRAY_TASK_MAX, $SLURM_ARRAY_TASK_COUNT in all"
[ "$SLURM_ARRAY_TASK_ID" != "${FAIL-}" ] || exit 7
"""

LUA = """\
-- A site's rules: everybody is greeted, and what asks for the large partition goes to the small one.
function slurm_job_submit(job, partitions, uid)
    slurm.log_user("Welcome to the centre!\\n4711\\nYour group has used 80 %% of its hours.")
    if job.name == "refused" and job.dependency ~= nil then
        return slurm.ERROR
    end
    if job.partition == "gpu" then
        job.partition = "small"
        job.time_limit = 30
    end
    return slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, uid)
    return slurm.SUCCESS
end

return slurm.SUCCESS
"""


SERVER = """\
#!/bin/sh
cores=$SLURM_CPUS_PER_TASK
echo "server $GLAUNCH_COMPONENT: rank $RANK of $WORLD_SIZE, local $LOCAL_RANK of $LOCAL_WORLD_SIZE, node $NODE_RANK, $#: $1$2, cores $cores"
echo "$RANK" >"$GLAUNCH_LOG_DIR/server-$RANK.log"
[ "$RANK" != "${FAIL-}" ] || exit "${CODE:-0}"
"""


@pytest.fixture
def ada(sandboxes: Callable[..., Sandbox]) -> Iterator[User]:
    """ada on a small sandbox whose arrays end at index 3."""
    box = sandboxes("submitted", nodes=4, slurm_conf=("MaxArraySize=4",))
    user = User(box)
    user.write("prog.sh", PROGRAM)
    user.write("task.sh", TASK)
    yield user
    idle(box)


def test_an_array_that_is_too_large_is_several_jobs_and_every_task_sees_the_index_that_was_asked_for(ada: User) -> None:
    done = ada.glaunch("run", "-n", "1", "-a", "0-7", "--env", "FAIL=5", "./task.sh")
    assert done.code == 7, done.stderr
    seen = [int(index) for index in re.findall(r"^\[(\d+)\] 0: task \1 of 0-7, 8 in all$", done.stdout, re.M)]
    assert sorted(seen) == list(range(8))
    assert "7 of 8 array tasks ended well; not 5" in done.stderr
    first, second, third = re.findall(r"job (\d+) submitted \(tasks", done.stderr)
    assert ada.glaunch("logs", f"{first}_5").stdout == ada.glaunch("logs", f"{second}_2").stdout != ""
    assert len(re.findall(rf"^(?:{first}|{second}|{third}) +task \[", ada.glaunch("status", "task").stdout, re.M)) == 3
    assert re.findall(r"^\d+", ada.glaunch("status", f"{first}_5").stdout, re.M) == [second]
    assert "there is no array task" in ada.glaunch("cancel", f"{first}_9").stderr
    for verb in ("logs", "report", "collect"):
        others = f"the other parts of the array: glaunch {verb} {first}, glaunch {verb} {second}"
        assert others in ada.glaunch(verb, "task").stderr.replace("\n", " ")
    again = ada.run("sbatch", "--parsable", "--array=1", f"{ada.job(third + '_1')['Command'].split()[0]}").stdout.strip()
    ada.wait_for(again)
    (run,) = (run for run in ada.attempts(again) if run.job_id == again)
    assert "task 7 of 0-7" in (run.path / "out" / f"{run.hosts[0]}.log").read_text()


def test_the_cap_of_an_array_holds_over_its_parts_and_a_name_means_all_of_them(ada: User) -> None:
    done = ada.glaunch("run", "-n", "1", "-a", "1-5:2%3", "-J", "capped", "--sbatch", "hold", "--parsable", "./task.sh")
    first, second = done.stdout.strip().split(":")
    assert ada.job(second)["Dependency"].startswith(f"afterany:{first}_*")
    assert ada.job(second)["ArrayTaskThrottle"] == "3"
    assert f"job {second}, the part 5 of the same array, goes on" in ada.glaunch("cancel", first).stderr
    assert ada.glaunch("cancel", "capped").code == 0
    assert {ada.wait_for(job_id)["JobState"] for job_id in (first, second)} == {"CANCELLED"}


def test_a_chain_by_name_runs_in_its_order(ada: User) -> None:
    first = ada.glaunch("run", "-n", "1", "-J", "prep", "--env", "SLEEP=1", "--detach", "./prog.sh").stdout.strip()
    second = ada.glaunch("run", "-n", "1", "-J", "main", "-d", "afterok:prep", "--detach", "./prog.sh").stdout.strip()
    done = ada.glaunch("run", "-n", "1", "-d", "afterok:main", "--env", "FAIL=0", "--env", "CODE=7", "./prog.sh")
    assert f"-d afterok:main: afterok:{second}" in done.stderr
    assert done.code == 7, done.stderr
    ends = [[run.end for run in ada.attempts(job_id)][-1] for job_id in (first, second, job_id_of(done))]
    moments = [moment for end in ends if end is not None for moment in (end.began_s, end.ended_s)]
    assert moments == sorted(moments)
    assert len(moments) == 6


def test_a_job_that_lost_a_node_runs_again_as_often_as_it_may_and_its_log_goes_on(ada: User) -> None:
    line = ("run", "-N", "2", "--ntasks-per-node", "1", "--max-requeues", "1", "--env", "SLEEP=300", "--detach", "./prog.sh")
    job_id = ada.glaunch(*line).stdout.strip()
    until(lambda: any(len(run.ranks) == 2 for run in ada.attempts(job_id)), 60, "both ranks run")
    lost = ada.attempts(job_id)[0].hosts[1]
    fault(ada.box, "power-off", (lost,))
    try:
        ada.box.exec(["scontrol", "update", f"NodeName={lost}", "State=DOWN", "Reason=dead"])  # what SlurmdTimeout would do later
        ada.run_again(job_id, 1)
        until(lambda: any(len(run.ranks) == 2 and run.restart == 1 for run in ada.attempts(job_id)), 60, "both ranks run again")
        assert ada.run("scontrol", "requeue", job_id).code == 0
        ada.run_again(job_id, 2)
        assert ada.wait_for(job_id)["JobState"] == "FAILED"
    finally:
        fault(ada.box, "power-off", (lost,), undo=True)
        ada.box.exec(["scontrol", "update", f"NodeName={lost}", "State=RESUME"])
    runs = ada.attempts(job_id)
    assert [run.restart for run in runs] == [0, 1, 2]
    assert lost not in runs[1].hosts
    assert (runs[2].ranks, runs[2].end.code if runs[2].end else None) == ((), 1)
    log = (ada.folder(job_id) / f"batch-{job_id}.log").read_text()
    assert log.index("Node failure") < log.index(f"run {job_id}.0.1 begins") < log.index("requeued 2 times, and --max-requeues 1 allows")


@pytest.fixture
def ruled(sandboxes: Callable[..., Sandbox], tmp_path_factory: pytest.TempPathFactory) -> Iterator[User]:
    """ada on a sandbox with the rules above."""
    rules = tmp_path_factory.getbasetemp() / "job_submit.lua"
    rules.write_text(LUA)
    lines = ("JobSubmitPlugins=lua", "MaxArraySize=4", "PartitionName=small Nodes=n[001-002] MaxTime=60")
    user = User(sandboxes("lua", nodes=4, slurm_conf=lines, slurm_files=(rules,)))
    user.write("prog.sh", PROGRAM)
    yield user
    idle(user.box)


def test_what_a_sites_job_submit_plugin_makes_of_a_job_is_told_and_the_id_is_right(ruled: User) -> None:
    done = ruled.glaunch("run", "-n", "2", "-p", "gpu", "-t", "10", "--parsable", "./prog.sh")
    job = ruled.wait_for(done.stdout.strip())
    assert (job["JobName"], job["Partition"], job["JobState"]) == ("prog", "small", "COMPLETED")
    assert "Welcome to the centre!" in done.stderr
    assert "the site changed the partition: gpu → small" in done.stderr
    assert "the site changed the time limit: 00:10:00 → 00:30:00" in done.stderr


def test_of_an_array_whose_second_part_is_refused_it_is_told_what_is_there_and_what_is_not(ruled: User) -> None:
    done = ruled.glaunch("run", "-n", "1", "-a", "0-7%2", "-J", "refused", "--hold", "--parsable", "./prog.sh")
    assert done.code == 1, done.stderr
    job_id = job_id_of(done)
    assert f"submitted: job {job_id}; not submitted: -a 3-5,6-7%2" in done.stderr
    assert ruled.run("squeue", "-h", "-o", "%A").stdout.split() == [job_id]
    told = ruled.glaunch("status", "--all").stdout
    assert re.search(rf"^{job_id} +refused \[0-2\]", told, re.M)
    assert re.search(r"^- +refused \[3-5\] +never ran", told, re.M)


@pytest.fixture
def crossed(sandboxes: Callable[..., Sandbox], tmp_path_factory: pytest.TempPathFactory) -> User:
    """ada where the nodes' names run across the leaves."""
    file = tmp_path_factory.getbasetemp() / "crossed.conf"
    file.write_text("SwitchName=leaf1 Nodes=n[001,004]\nSwitchName=leaf2 Nodes=n[002-003]\nSwitchName=spine Switches=leaf[1-2]\n")
    # Backfill alone starts jobs of several components; here it comes often
    lines = ("SchedulerParameters=bf_interval=1", "PartitionName=cpu Nodes=n[001-002]")
    user = User(sandboxes("components", topology=file, slurm_conf=lines))
    user.write("prog.sh", PROGRAM.replace("args: $*", "args: $*, cores $SLURM_CPUS_PER_TASK"))
    user.write("server.sh", SERVER)
    return user


def test_components_are_one_world_of_ranks_each_with_its_program_and_the_code_of_any_is_kept(crossed: User) -> None:
    ada = crossed
    first = ("-N", "3", "--ntasks-per-node", "2", "-t", "5", "-w", "n[002-004]", "--env", "FAIL=7", "--env", "CODE=9", "./prog.sh", "a b")
    done = ada.glaunch(*first, ":", "-N", "1", "-n", "2", "-c", "3", "-p", "cpu", "-w", "n001", "--", "./server.sh", ":", "c d")
    assert done.code == 9, done.stderr
    assert "rank 7 on n001 exited with code 9" in done.stderr
    assert "all 8 ranks ran where the plan's order puts them" in done.stderr
    told = " ".join(done.stderr.split())
    assert "component 0: n[004,002-003], ranks 0–5: 2 leaves in 1 pod, 2.33 switches between two nodes on average, the best" in told
    assert "component 1: n001, ranks 6–7: 1 node" in told
    (run,) = ada.attempts(job_id_of(done))
    assert run.hosts == ("n004", "n002", "n003", "n001")
    assert [(row.rank, row.host, row.local_rank) for row in run.ranks] == [(rank, run.hosts[rank // 2], rank % 2) for rank in range(8)]
    said = {host: sorted((run.path / "out" / f"{host}.log").read_text().splitlines()) for host in run.hosts}
    assert said["n001"] == [f"{6 + at}: server 1: rank {6 + at} of 8, local {at} of 2, node 3, 2: :c d, cores 3" for at in range(2)]
    assert said["n002"] == [f"{rank}: rank {rank} of 8 on n002, local {rank - 2}, node 1, args: a b, cores 8" for rank in (2, 3)]
    assert sorted(path.name for path in (run.path / "logs").iterdir()) == [f"{host}.tar.gz" for host in sorted(run.hosts)]
    log = (run.path.parent / f"batch-{run.job_id}.log").read_text()
    assert "Warning" not in log, "no step is of another shape than srun was told"
    assert "n[004,002-003,001]" in ada.glaunch("status", f"{run.job_id}+1").stdout
    assert once_more(ada, run).hosts == run.hosts
    # and without the plan's table: by name, from Slurm 26.05 on along its topology; rank 0's host is the master wherever that is
    (run.path.parent / "order.tsv").write_text("")
    bare = once_more(ada, run)
    assert bare.start is not None
    assert (bare.start.order, bare.start.master) == ("slurm", bare.ranks[0].host)
    assert sorted(bare.hosts) == sorted(run.hosts)
    assert [row.host for row in bare.ranks] == [bare.hosts[rank // 2] for rank in range(8)]
    text = "".join((bare.path / "out" / f"{host}.log").read_text() for host in bare.hosts)
    assert sorted(re.findall(r"rank (\d) .* node (\d)", text)) == [(str(rank), str(rank // 2)) for rank in range(8)]


def once_more(ada: User, run: AttemptFolder) -> AttemptFolder:
    """The same script, submitted by hand."""
    seen = {one.job_id for one in ada.attempts(run.job_id)}
    ada.run("sbatch", "--wait", ada.job(run.job_id)["Command"].split()[0], timeout_s=120)
    (again,) = (one for one in ada.attempts(run.job_id) if one.job_id not in seen)
    assert again.end is not None
    assert again.end.code == 9
    return again
