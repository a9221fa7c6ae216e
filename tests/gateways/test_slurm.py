"""The gateway through its seam: what it asks, and what it makes of answers, refusals and silence."""

import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from glaunch.errors import ControllerSilent, ParseError, SlurmError, UsageError
from glaunch.gateways.process import Completed, Run, Surroundings
from glaunch.gateways.slurm import QUESTIONS, SlurmCommands
from glaunch.gateways.slurm_environment import reading_environment, submitting_environment


class Script:
    """A seam that answers the same to everything, and notes what it was asked."""

    def __init__(self, stdout: str = "", stderr: str = "", code: int | None = 0) -> None:
        self.answer = (code, stdout, stderr)
        self.asked: list[tuple[tuple[str, ...], Surroundings, float]] = []

    def __call__(self, surroundings: Surroundings) -> Run:
        def run(argv: Sequence[str], stdin: str, timeout_s: float) -> Completed:
            self.asked.append((tuple(argv), surroundings, timeout_s))
            return Completed(tuple(argv), *self.answer)

        return run

    def gateway(self) -> SlurmCommands:
        return SlurmCommands(environ={"PATH": "/bin", "SLURM_CONF": "/x", "SBATCH_QOS": "q", "SQUEUE_SORT": "u"}, surround=self)


SILENCES = [
    ("slurm_load_partitions: Unable to contact slurm controller (connect failure)", "controller", "scontrol ping"),
    ("slurm_load_jobs error: Socket timed out on send/recv operation", "controller", "scontrol ping"),
    ('sbatch: error: Munge encode failed: Failed to access "/run/munge/munge.socket.2"', "munge", "munge -n"),
    ("sinfo: error: s_p_parse_file: cannot stat file /nope", "slurm.conf", "SLURM_CONF"),
    ("sbatch: fatal: Could not establish a configuration source", "slurm.conf", "SLURM_CONF"),
]


@pytest.mark.parametrize(("stderr", "says", "hint"), SILENCES)
def test_silence_is_told_as_such_with_the_next_thing_to_type(stderr: str, says: str, hint: str) -> None:
    gateway = Script(stderr=stderr + "\n", code=1).gateway()
    for ask in (gateway.nodes, gateway.own_jobs, lambda: gateway.job("1"), lambda: gateway.submit("/x"), lambda: gateway.cancel(["1"])):
        with pytest.raises(ControllerSilent) as silent:
            ask()
        assert says in silent.value.message
        assert hint in silent.value.hint
        assert silent.value.exit_code == 5


def test_a_topology_that_comes_with_code_0_and_an_error_is_silence_too() -> None:
    assert Script(stderr="scontrol: error: No topology information available\n").gateway().answer("topology") == ""
    assert Script().gateway().answer("topology") == ""
    with pytest.raises(ControllerSilent):
        Script(stderr="slurm_load_topo error: Unable to contact slurm controller (connect failure)\n").gateway().answer("topology")


@pytest.mark.parametrize("question", ["nodes", "partitions", "reservations"])
def test_an_answer_that_was_cut_off_is_none(question: str) -> None:
    """Half a list of nodes would read as a smaller cluster."""
    whole = "NodeName=n1 State=IDLE\nNodeName=n2 State=IDLE\n"
    assert Script(whole).gateway().answer(question) == whole
    with pytest.raises(ParseError, match=r"scontrol .*:2: expected a line break at the end"):
        Script(whole[:-5]).gateway().answer(question)


def test_what_runs_into_the_deadline_is_unknown() -> None:
    with pytest.raises(ControllerSilent, match=r"sbatch did not answer within 120 s"):
        Script(code=None).gateway().submit("/x")


@pytest.mark.parametrize(
    ("stdout", "job_id", "cluster", "banner"),
    [
        ("12\n", "12", "", ""),
        ("12;red\n", "12", "red", ""),
        ("Welcome!\n*** 34 jobs today\n12\nbye 5\n", "12", "", "Welcome!\n*** 34 jobs today\nbye 5"),
        ("7\n12\n", "12", "", "7"),
    ],
)
def test_the_id_is_the_last_line_that_is_one(stdout: str, job_id: str, cluster: str, banner: str) -> None:
    answer = Script(stdout).gateway().submit("/x")
    assert (answer.job_id, answer.cluster, answer.banner) == (job_id, cluster, banner)


def test_no_id_is_unknown_not_done() -> None:
    with pytest.raises(ControllerSilent, match="no job id"):
        Script("queued\n").gateway().submit("/x")


@pytest.mark.parametrize(
    ("code", "stdout", "stderr"),
    [
        (-11, "", ""),
        (-9, "", "sbatch: a warning\n"),
        (137, "", "/opt/site/bin/sbatch: line 3: 7 Killed\n"),
        (1, "", ""),
        (3, "12\n", "cannot write the site's log\n"),
    ],
)
def test_an_sbatch_that_fails_without_a_refusal_may_have_submitted(code: int, stdout: str, stderr: str) -> None:
    """So it is unknown, and nobody asks a second time."""
    with pytest.raises(ControllerSilent, match=f"sbatch ended with (code|signal) {abs(code)}"):
        Script(stdout, stderr, code).gateway().submit("/x")


@pytest.mark.parametrize(
    ("code", "stdout", "stderr"),
    [
        (1, "", "sbatch: error: Batch job submission failed: Requested node configuration is not available\n"),
        (1, "", "You have no budget left.\n"),
        (1, "7\n", "sbatch: error: Batch job submission failed: Invalid account\n"),
        (255, "", "sbatch: fatal: cli_filter plugin terminated with error\n"),
    ],
)
def test_a_refusal_is_a_refusal(code: int, stdout: str, stderr: str) -> None:
    with pytest.raises(SlurmError) as no:
        Script(stdout, stderr, code).gateway().submit("/x")
    assert not isinstance(no.value, ControllerSilent)


def test_sbatch_sees_the_users_environment_and_its_own_session() -> None:
    script = Script("12\n")
    script.gateway().submit(Path("/a b/job.sbatch"), ["--nodes=2", "--parsable"], ["sub-1"], folder="/w", environment={"TOKEN": "t"})
    ((argv, surroundings, _),) = script.asked
    assert argv == ("sbatch", "--parsable", "--nodes=2", "/a b/job.sbatch", "sub-1")
    assert (surroundings.folder, surroundings.own_session) == ("/w", True)
    assert surroundings.environment == {"PATH": "/bin", "SLURM_CONF": "/x", "SQUEUE_SORT": "u", "TOKEN": "t"}
    for path in ("job.sbatch", "/a\nb"):
        with pytest.raises(UsageError):
            script.gateway().submit(path)


def test_environments() -> None:
    users = {
        "PATH": "/bin", "SLURM_CONF": "/c", "SLURM_CLUSTERS": "red", "SQUEUE_FORMAT": "%j", "SINFO_FORMAT": "x",
        "SLURM_TIME_FORMAT": "relative", "SLURM_JOB_ID": "7", "SLURM_HOSTFILE": "/h", "SBATCH_WAIT": "1",
        "SBATCH_PARTITION": "p", "LC_ALL": "de_DE",
    }  # fmt: skip
    reading = reading_environment(users)
    assert {name for name in reading if name.startswith(("SQUEUE", "SINFO"))} == set()
    assert (reading["SLURM_CONF"], reading["SLURM_CLUSTERS"], reading["SLURM_TIME_FORMAT"], reading["LC_ALL"]) == ("/c", "red", "%s", "C")
    assert "SLURM_JOB_ID" not in reading
    assert set(submitting_environment(users)) == {
        "PATH",
        "SLURM_CONF",
        "SQUEUE_FORMAT",
        "SINFO_FORMAT",
        "LC_ALL",
    }
    del users["SLURM_JOB_ID"]
    assert submitting_environment(users)["SLURM_TIME_FORMAT"] == "relative"
    with pytest.raises(UsageError, match="several clusters"):
        reading_environment({"SLURM_CLUSTERS": "red,blue"})


def test_what_sh_does_not_hand_on_travels_in_one_variable() -> None:
    users = {
        "PATH": "/bin", "BASH_FUNC_say%%": "() {  echo 'a b'\n}", "a.b": "1", "my-token": "t", "-x": "1", "long.one": "l" * 70000,
        "gl_functions": "left over",
    }  # fmt: skip
    given = submitting_environment(users)
    assert shlex.split(given.pop("gl_functions")) == ["BASH_FUNC_say%%=() {  echo 'a b'\n}", "a.b=1"]
    del users["gl_functions"]
    assert given == users
    assert "gl_functions" not in submitting_environment({"PATH": "/bin", "gl_functions": "left over"})


@pytest.mark.parametrize("job_id", ["", "x", "-1", "1 2", "1;2", "--me", "1,2", "12_", "1\n"])
def test_what_is_no_id_goes_to_no_command(job_id: str) -> None:
    script = Script("12\n")
    gateway = script.gateway()
    for act in (
        lambda: gateway.job(job_id),
        lambda: gateway.jobs([job_id]),
        lambda: gateway.cancel([job_id]),
        lambda: gateway.unpin(job_id),
    ):
        with pytest.raises(UsageError, match="no job id"):
            act()
    assert script.asked == []


def test_every_question_has_a_deadline() -> None:
    for question in QUESTIONS:
        script = Script("slurm 22.05.8 = x\n")
        script.gateway().answer(question)
        assert script.asked[0][2] == 30


def test_only_the_empty_pin_is_ever_sent() -> None:
    script = Script()
    assert script.gateway().unpin("12") == "lifted"
    assert script.asked[0][0] == ("scontrol", "update", "JobId=12", "ReqNodeList=")


def test_a_database_that_is_off_and_one_that_is_silent() -> None:
    assert Script(stderr="Slurm accounting storage is disabled\n", code=1).gateway().accounted(["1"]) is None
    with pytest.raises(ControllerSilent, match="slurmdbd"):
        Script(stderr="sacct: error: Problem talking to the database: Connection refused\n", code=1).gateway().accounted(["1"])


def test_past_jobs_are_one_question_with_time_to_answer_it() -> None:
    heading = "JobID|Partition|NNodes|NodeList|Elapsed|State|User\n"
    script = Script(f"{heading}7|gpu|2|n[1-2]|01:00:00|COMPLETED|ada\n")
    jobs = script.gateway().past_jobs(7 * 86400)
    assert jobs is not None
    assert (jobs.ids, jobs.nodes, jobs.elapsed_s, jobs.users) == (("7",), ("n[1-2]",), (3600,), ("ada",))
    ((argv, _, timeout_s),) = script.asked
    assert argv == ("sacct", "-a", "-X", "-P", "-S", "now-604800seconds", "-o", "JobID,Partition,NNodes,NodeList,Elapsed,State,User")
    assert timeout_s == 300
    assert Script(stderr="Slurm accounting storage is disabled\n", code=1).gateway().past_jobs(60) is None
    with pytest.raises(ControllerSilent, match="slurmdbd"):
        Script(stderr="sacct: error: Problem talking to the database: Connection refused\n", code=1).gateway().past_jobs(60)


def test_no_slurm_at_all(tmp_path: Path) -> None:
    with pytest.raises(SlurmError) as gone:
        SlurmCommands(environ={"PATH": str(tmp_path)}).answer("version")
    assert "no sinfo on PATH" in gone.value.message
    assert "--snapshot" in gone.value.hint
    with pytest.raises(SlurmError, match="there is no such file"):
        SlurmCommands(environ={"PATH": str(tmp_path), "SLURM_CONF": str(tmp_path / "nope")}).answer("version")
