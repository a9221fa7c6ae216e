"""How nodes are asked for, on a real Slurm: prefer, waiting for leaves, now or later, and Slurm's own choice beside ours."""

import json
import re
from collections.abc import Callable, Iterator

import pytest
from tests.cluster.conftest import PROGRAM, User, idle, job_id_of, until

from glaunch.sandbox.box import Sandbox

pytestmark = pytest.mark.slurm

ONE_EACH = ("./prog.sh", "-N", "4", "--ntasks-per-node", "1")


def running(user: User, count: int) -> None:
    until(lambda: user.box.exec(["squeue", "-h", "-t", "R", "-o", "%i"]).stdout.count("\n") == count, 60, f"{count} jobs run")


@pytest.fixture
def two_jobs(ada: User) -> Iterator[User]:
    """Two jobs of root's leave one node on each leaf: the first ends within 40 minutes, the other within 90."""
    for minutes, nodes in (("40", "n[001-003,005-007]"), ("90", "n[009-011,013-015]")):
        ada.box.exec(["sbatch", "-t", minutes, "-w", nodes, "-N6", "--exclusive", "-o", "/dev/null", "--wrap", "sleep 900"])
    running(ada, 2)
    yield ada
    ada.box.exec(["scancel", "--user=root"])


@pytest.mark.before_slurm("23.02")
def test_prefer_asks_2205_for_leaf_switches_and_says_why_not_for_a_list(ada: User) -> None:
    done = ada.glaunch("./prog.sh", "-N", "6", "--ntasks-per-node", "1", "--place", "prefer")
    assert done.code == 0, done.stderr
    assert "for nodes on 2 leaf switches, then takes any; no list with spare nodes, which Slurm takes from 23.02 on" in done.stderr
    job = ada.job(job_id_of(done))
    assert job["Switches"].startswith("2@")
    assert job["ReqNodeList"] == "(null)"
    assert job["Requeue"] == "1"
    assert "switches" not in (ada.folder(job_id_of(done)) / "job.sbatch").read_text().split("set -u")[0]


def test_slurm_waits_for_leaves_and_then_takes_any(two_jobs: User) -> None:
    done = two_jobs.glaunch(*ONE_EACH, "--wait-for-leaves", "1@1", "--detach")
    job_id = done.stdout.strip()
    assert "Slurm waits at most 1 min for nodes on 1 leaf switch, then takes any" in done.stderr
    assert two_jobs.job(job_id)["Switches"] == "1@00:01:00"
    assert two_jobs.job(job_id)["JobState"] == "PENDING", "four nodes are free, on four leaves"
    two_jobs.box.exec(["scancel", "--user=root"])
    two_jobs.wait_for(job_id, "COMPLETED", timeout_s=90)
    (attempt,) = two_jobs.attempts(job_id)
    assert attempt.placed is not None
    assert (attempt.placed.leaves, attempt.placed.bad) == (1, False)


def test_a_plan_says_what_waiting_would_buy(two_jobs: User) -> None:
    plan = json.loads(two_jobs.glaunch("plan", *ONE_EACH, "-t", "2:00:00", "--when", "--json").stdout)
    assert plan["placement"]["cost"]["pods"] == 2
    (moment,) = plan["later"]["moments"]
    assert (moment["cost"]["pods"], moment["cost"]["leaves"]) == (1, 1)
    assert 30 * 60 < moment["in_s"] <= 40 * 60
    text = " ".join(two_jobs.glaunch("plan", *ONE_EACH, "-t", "2:00:00", "--when").stdout.split())
    assert "now: 2 pods, 4 leaves; in ~" in text
    assert "if nobody else takes them: 1 pod, 1 leaf start now:" in text
    more = json.loads(two_jobs.glaunch("plan", "./prog.sh", "-N", "14", "--when", "--json").stdout)
    assert more["placement"] is None
    assert [round(one["in_s"] / 60, -1) for one in more["later"]["moments"]] == [90]


def test_a_plan_shows_what_slurm_itself_would_choose(two_jobs: User) -> None:
    plan = json.loads(two_jobs.glaunch("plan", *ONE_EACH, "--compare", "--json").stdout)
    assert plan["slurm_choice"]["nodes"] == ["n004", "n008", "n012", "n016"]
    assert plan["slurm_choice"]["cost"]["hops"] == plan["placement"]["cost"]["hops"]
    assert plan["slurm_choice"]["cost"]["weight"] == plan["placement"]["cost"]["weight"] == 4
    assert two_jobs.run("squeue", "-h", "-u", "ada").stdout == "", "nothing was submitted"
    text = two_jobs.glaunch("plan", *ONE_EACH, "--compare").stdout
    assert "by itself: n[004,008,012,016], 4 leaves in 2 pods" in text
    assert "at once (Slurm's estimate; changes with the queue)" in " ".join(text.split())
    refused = two_jobs.glaunch("plan", "./prog.sh", "-N", "2", "--compare", "--sbatch", "licenses=none:1")
    assert "refuses this job: " in refused.stdout


def test_what_must_not_be_pinned_is_not_and_runs(ada: User) -> None:
    first = ada.glaunch("./prog.sh", "-N", "1", "--env", "SLEEP=1", "--detach").stdout.strip()
    ids = []
    for words, why in (
        (("--array", "0-1"), "a pinned array would run one task at a time"),
        (("--sbatch", "hold"), "it is held"),
        (("-d", f"afterany:{first}"), "it waits for other jobs"),
    ):
        done = ada.glaunch("./prog.sh", "-N", "1", "--ntasks-per-node", "1", *words, "--detach")
        assert done.code == 0, done.stderr
        assert why in done.stderr
        ids.append(done.stdout.strip())
        job = ada.job(ids[-1])
        assert job["ReqNodeList"] == "(null)"
        assert "Switches" not in job
        if "hold" in words:
            ada.run("scontrol", "release", ids[-1])
    for job_id in ids:
        ada.wait_for(job_id, "COMPLETED")


@pytest.fixture
def accounted(sandboxes: Callable[..., Sandbox]) -> Iterator[User]:
    """ada where jobs can be preempted by QOS."""
    user = User(sandboxes("accounting", shape="core:1 spine:2 leaf:2 node:2", accounting=True))
    user.write("prog.sh", PROGRAM)
    idle(user.box)
    yield user
    idle(user.box)


def test_what_can_be_preempted_is_not_pinned(accounted: User) -> None:
    done = accounted.glaunch("./prog.sh", "-N", "2", "--ntasks-per-node", "1", "--qos", "spare")
    assert done.code == 0, done.stderr
    assert "jobs of QOS spare can be preempted by those of QOS normal" in done.stderr
    assert accounted.job(job_id_of(done))["ReqNodeList"] == "(null)"
    normal = accounted.glaunch("./prog.sh", "-N", "2", "--ntasks-per-node", "1")
    assert normal.code == 0, normal.stderr
    assert accounted.job(job_id_of(normal))["ReqNodeList"] != "(null)"


def test_what_a_qos_can_never_run_is_refused_before_slurm_is_asked(accounted: User) -> None:
    five = accounted.glaunch("plan", "./prog.sh", "-N", "5", "--qos", "small")
    assert five.code == 1
    assert "QOS small allows a job node=4 (MaxTRESPerJob); this job has 5, which would wait for ever" in five.stderr
    assert "-N 4, or another --qos" in five.stderr
    assert accounted.glaunch("plan", "./prog.sh", "-N", "5", "--qos", "small", "--force").code == 0
    assert (
        "QOS none is not known here; you have: normal, small, spare" in accounted.glaunch("plan", "./prog.sh", "-N1", "--qos=none").stderr
    )
    try:
        accounted.box.exec(["sacctmgr", "-i", "modify", "qos", "small", "set", "MaxTRESPerJob=node=8", "MaxWall=30:00"])
        raised = accounted.glaunch("plan", "./prog.sh", "-N", "5", "--qos", "small")
        assert raised.code == 0, "a limit that was kept refuses nobody"
        accounted.box.exec(["sacctmgr", "-i", "modify", "account", "red", "set", "GrpTRES=node=2"])
        accounted.run("rm", "-rf", ".local/state/glaunch/kept")
        assert "account red allows all its jobs together node=2 (GrpTRES)" in accounted.glaunch("plan", "./prog.sh", "-N", "3").stderr
        assert "00:30:00 (QOS small: MaxWall; -t asks for less)" in raised.stdout
    finally:
        accounted.box.exec(["sacctmgr", "-i", "modify", "qos", "small", "set", "MaxTRESPerJob=node=4", "MaxWall=-1"])
        accounted.box.exec(["sacctmgr", "-i", "modify", "account", "red", "set", "GrpTRES=node=-1"])
        accounted.run("rm", "-rf", ".local/state/glaunch/kept")


def test_a_plan_from_a_snapshot_is_the_one_on_the_cluster_also_where_accounting_has_limits(accounted: User) -> None:
    def plan(words: str, *snapshot: str) -> tuple[int | None, str]:
        done = accounted.glaunch(*snapshot, "plan", "./prog.sh", "--json", *words.split())
        text = re.sub(r'("submission_id": "|prog-)[0-9a-f]+|"cluster_taken_at_s": [\d.]+', r"\1", done.stdout)
        return done.code, text or done.stderr

    assert accounted.run("sh", "-c", "rm -rf c d; glaunch snapshot --plain c && glaunch snapshot d").code == 0
    for words in ("-N 2", "-N 3 --qos spare", "-N 5 --qos small", "-N 1 --qos none", "-N 1 -A blue"):
        here = plan(words)
        assert plan(words, "--snapshot", "c") == here, words
        assert plan(words, "--snapshot", "d")[0] == here[0], words
    accounted.box.exec(["sh", "-c", "rm -rf ~bob/d; cp -r ~ada/d ~bob/d; chown -R bob: ~bob/d"])
    bobs = User(accounted.box, "bob").run("glaunch", "--snapshot", "d", "plan", "hostname", "-N", "5", "--qos", "small")
    assert "QOS small allows a job node=4 (MaxTRESPerJob); this job has 5" in bobs.stderr
    masked = accounted.run("sh", "-c", "cat d/sacctmgr*").stdout
    assert not re.findall("ada|red|blue", masked)


def test_where_jobs_and_nodes_are_private_it_still_plans(sandboxes: Callable[..., Sandbox]) -> None:
    user = User(sandboxes("private", nodes=8, shape="core:1 spine:2 leaf:2 node:2", slurm_conf=("PrivateData=jobs,nodes",)))
    user.write("prog.sh", PROGRAM)
    user.box.exec(["sbatch", "-N", "3", "-w", "n[001-003]", "--exclusive", "-t", "30", "-o", "/dev/null", "--wrap", "sleep 900"])
    running(user, 1)
    launch = (*ONE_EACH, "--gpus-per-node", "0")
    done = user.glaunch("plan", *launch, "-t", "1:00:00", "--when", "--compare")
    assert done.code == 0, done.stderr
    assert "not known: Slurm does not show its nodes" in done.stdout
    assert "by itself: n[00" in done.stdout
    ran = user.glaunch(*launch)
    assert ran.code == 0, ran.stderr
