"""Rules of diagnosis on the words that a real Slurm 22.05.8 printed."""

import dataclasses
import re

import pytest

from glaunch.diagnosis.diagnose import diagnose
from glaunch.diagnosis.facts import JobFacts, TextFile
from glaunch.diagnosis.failures import first_failure
from glaunch.diagnosis.faulty import faulty_nodes
from glaunch.diagnosis.finding import Finding
from glaunch.hostlist import fold
from glaunch.job import Job
from glaunch.logs import HostLogs, LogBundle, RankRow
from glaunch.placement.layout import RankLayout
from glaunch.placement.placement import Cost

NODES = tuple(f"n{number:03d}" for number in range(8, 0, -1))
RANKS = tuple(RankRow(rank, NODES[rank // 8], rank % 8) for rank in range(64))
NEAR, FAR = Cost(8, 60, 1, 2), Cost(8, 72, 2, 4)

GOOD = JobFacts(
    job=Job("12", "COMPLETED"),
    attempt="12.0.0",
    program="python3",
    tasks=64,
    tasks_per_node=8,
    pinned=True,
    planned=NODES,
    order=tuple((f"n{number:03d}", 16 - number) for number in range(16, 0, -1)),
    granted=NODES,
    planned_cost=NEAR,
    granted_cost=NEAR,
    best_cost=NEAR,
    ranks=RANKS,
    batch_log=TextFile("12.0.0/batch.log", "+  0 glaunch: gather (EXIT)\n"),
    exit_code=0,
    logs=LogBundle("/j/12.0.0", tuple(HostLogs(host, "gathered", f"logs/{host}.tar.gz", (), "", "") for host in NODES)),
)


def failed(log: str, state: str = "FAILED", code: int = 1, **changes: object) -> JobFacts:
    job = Job("12", state, exit_code=code)
    return dataclasses.replace(GOOD, job=job, exit_code=code, batch_log=TextFile("12.0.0/batch.log", log), **changes)  # type: ignore[arg-type]


def codes(facts: JobFacts) -> list[str]:
    return [finding.code for finding in diagnose(facts)]


def only(facts: JobFacts, code: str) -> Finding:
    found = [finding for finding in diagnose(facts) if finding.code == code]
    assert len(found) == 1, (code, diagnose(facts))
    return found[0]


TWO = (RankLayout(8, 2, 4, 4, "h100"), RankLayout(2, 1, 2, 2, "h100"))
"""Two components: 8 ranks on n005 and n006, 2 on n001."""
OF_TWO = dataclasses.replace(
    GOOD,
    tasks=10,
    tasks_per_node=4,
    layouts=TWO,
    planned=(),
    order=(("n001", 0), ("n005", 1), ("n006", 2)),
    granted=("n005", "n006", "n001"),
    ranks=tuple(RankRow(rank, ("n005", "n006", "n001")[rank // 4], rank % 4) for rank in range(10)),
)


def test_the_ranks_of_components_are_where_each_ones_order_puts_them() -> None:
    assert only(OF_TWO, "GL110").title == "all 10 ranks ran where the plan's order puts them"
    wrong = dataclasses.replace(OF_TWO, ranks=(*OF_TWO.ranks[:9], RankRow(9, "n006", 4)))
    assert only(wrong, "GL111").title == "1 rank on another node than the order says, first rank 9: on n006 instead of n001"


def test_srun_counts_the_tasks_of_each_component_from_0() -> None:
    log = "srun: error: n001: task 1: Exited with exit code 7\n"
    facts = dataclasses.replace(OF_TWO, job=Job("12", "FAILED", exit_code=7), exit_code=7, batch_log=TextFile("b.log", log))
    assert (only(facts, "GL201").rank, only(facts, "GL201").host) == (9, "n001")
    odd = dataclasses.replace(facts, batch_log=TextFile("b.log", log.replace("n001", "n[3-1]")))
    assert only(odd, "GL201").rank == 1


def test_a_good_job_has_notes_only_and_each_its_line() -> None:
    found = diagnose(GOOD)
    assert [(finding.code, finding.severity) for finding in found] == [("GL110", "note"), ("GL101", "note")]
    assert found[0].title == "all 64 ranks ran where the plan's order puts them"
    assert (found[0].where, found[0].evidence) == ("12.0.0/ranks.tsv:64", "63\tn001\t7")
    assert found[1].title == "the job got the planned nodes"


def test_a_job_of_one_rank_is_spoken_of_as_one() -> None:
    alone = dataclasses.replace(GOOD, tasks=1, tasks_per_node=1, planned=NODES[:1], granted=NODES[:1], ranks=RANKS[:1])
    assert only(alone, "GL110").title == "the only rank ran where the plan's order puts it"


def test_the_first_rank_that_exits_with_a_code() -> None:
    facts = failed("srun: error: n006: task 17: Exited with exit code 5\nsrun: error: n001: tasks 56-63: Terminated\n", code=5)
    finding = only(facts, "GL201")
    assert finding.title == "rank 17 on n006 exited with code 5; 8 more ranks ended badly"
    assert (finding.host, finding.rank, finding.where, finding.severity) == ("n006", 17, "12.0.0/batch.log:1", "error")
    assert finding.evidence == "srun: error: n006: task 17: Exited with exit code 5"
    assert diagnose(facts)[0] == finding, "the worst comes first"
    assert first_failure(facts) == (17, "n006")


def test_its_last_line_is_shown_with_its_place() -> None:
    output = TextFile("12.0.0/out/n006.log", "17: step 1\n16: step 1\n17: ValueError: 5\n17: \n16: bye\n", first_line=100)
    finding = only(failed("srun: error: n006: task 17: Exited with exit code 5\n", code=5, outputs=(output,)), "GL212")
    assert (finding.where, finding.evidence, finding.rank) == ("12.0.0/out/n006.log:102", "ValueError: 5", 17)


@pytest.mark.parametrize(
    ("what", "title"),
    [
        ("Segmentation fault", "rank 2 on n008 died: Segmentation fault"),
        ("Segmentation fault (core dumped)", "rank 2 on n008 died: Segmentation fault (core dumped)"),
        ("Killed", "rank 2 on n008 died: Killed"),
        ("Exited with exit code 139", "rank 2 on n008 exited with code 139 (128 + 11: SIGSEGV)"),
    ],
)
def test_signals(what: str, title: str) -> None:
    found = [finding for finding in diagnose(failed(f"srun: error: n008: task 2: {what}\n", code=139)) if finding.severity == "error"]
    assert [finding.title for finding in found] == [title]


def test_a_death_of_its_own_counts_before_those_that_slurm_caused() -> None:
    log = "srun: error: n002: tasks 48-55: Killed\nsrun: error: n008: task 3: Aborted (core dumped)\n"
    assert only(failed(log, code=134), "GL202").rank == 3


LIMIT = """\
slurmstepd-n001: error: *** JOB 141 ON n001 CANCELLED AT 2026-11-30T07:51:18 DUE TO TIME LIMIT ***
srun: Job step aborted: Waiting up to 32 seconds for job step to finish.
srun: forcing job termination
srun: error: n001: tasks 56-63: Terminated
srun: error: n004: task 33: Exited with exit code 1
"""


def test_the_time_limit_is_the_cause_and_not_the_ranks_that_died_of_it() -> None:
    facts = failed(LIMIT, "TIMEOUT", 143)
    assert [code for code in codes(facts) if code.startswith("GL2")] == ["GL205"]
    finding = only(facts, "GL205")
    assert (finding.where, finding.host) == ("12.0.0/batch.log:1", "n001")
    assert first_failure(facts) is None
    # a rank that failed before it is told as well
    both = failed("srun: error: n006: task 17: Exited with exit code 5\n" + LIMIT, "TIMEOUT", 143)
    assert [code for code in codes(both) if code.startswith("GL2")] == ["GL205", "GL201"]


def test_without_a_line_the_state_is_the_evidence() -> None:
    for state, code in (
        ("TIMEOUT", "GL205"),
        ("NODE_FAIL", "GL204"),
        ("PREEMPTED", "GL211"),
        ("OUT_OF_MEMORY", "GL203"),
        ("BOOT_FAIL", "GL204"),
    ):
        finding = only(failed("", state, 0), code)
        assert (finding.where, f"JobState={state}" in finding.evidence) == ("Slurm's answer about the job", True)


def test_a_node_that_fails_and_memory_that_runs_out() -> None:
    node = only(failed("srun: error: Node failure on n005\n", "NODE_FAIL"), "GL204")
    assert (node.host, node.where) == ("n005", "12.0.0/batch.log:1")
    line = "slurmstepd-n003: error: Detected 1 oom-kill event(s) in StepId=3.0. Some of your processes may have been killed."
    memory = only(failed(f"srun: error: n003: task 40: Out Of Memory\n{line}\n", "OUT_OF_MEMORY"), "GL203")
    assert memory.host == "n003"


@pytest.mark.parametrize("speaker", ["slurmstepd-n001: ", "[2026-11-30T07:51:18.123] "])
def test_a_cancelled_job_is_no_error_whoever_says_so(speaker: str) -> None:
    line = f"{speaker}error: *** STEP 63.2 ON n001 CANCELLED AT 2026-11-30T07:51:18 ***"
    found = [finding for finding in diagnose(failed(line + "\n", "CANCELLED", 143)) if finding.code.startswith("GL2")]
    assert [(finding.code, finding.severity, finding.evidence) for finding in found] == [("GL206", "note", line)]


def test_a_job_that_has_ended_before_slurm_says_so() -> None:
    """exit.json is there a moment before Slurm's own answer: neither a cause nor a cancel is lost by that."""
    log = "slurmstepd-n001: error: *** JOB 63 ON n001 CANCELLED AT x ***\nsrun: error: n001: task 1: Exited with exit code 143\n"
    found = [(one.code, one.severity) for one in diagnose(failed(log, "COMPLETING", 143)) if one.code.startswith("GL2")]
    assert found == [("GL206", "note")]
    killed = only(failed("Killed\n", "RUNNING", 137), "GL210")
    assert killed.title == "the job ended with exit code 137, and no line of Slurm's says why"


def test_a_folder_that_the_nodes_cannot_see() -> None:
    unseen = Job("9", "FAILED", "NonZeroExitCode", exit_code=73)
    for job in (Job("9", "FAILED", "JobLaunchFailure"), Job("9", "FAILED", "NonZeroExitCode", exit_code=0, exit_signal=53), unseen):
        finding = only(JobFacts(job), "GL207")
        assert f"ExitCode={job.exit_code}:" in finding.evidence
        assert "rundir.path" in finding.advice
    assert "GL207" not in [finding.code for finding in diagnose(JobFacts(unseen, attempt="9.0.0", exit_code=73))]


@pytest.mark.parametrize(
    "line",
    [
        "slurmstepd-n001: error: execve(): /usr/bin/python3: No such file or directory",
        "slurmstepd-n001: error: execve(): /usr/bin/python3: Permission denied",
        "/usr/bin/sh: 1: python3: not found",
        "/usr/bin/env: ‘python3’: No such file or directory",
        "bash: line 1: python3: command not found",
        "bash: ./train.py: /opt/python3: bad interpreter: No such file or directory",
    ],
)
def test_a_program_that_the_node_does_not_have(line: str) -> None:
    log = f"{line}\nsrun: error: n001: tasks 0-7: Exited with exit code {2 if 'execve' in line else 127}\n"
    finding = only(failed(log, code=127), "GL208")
    assert (finding.evidence, finding.where) == (line, "12.0.0/batch.log:1")
    # the same line in a rank's own output
    output = TextFile("12.0.0/out/n008.log", f"0: {line}\n")
    finding = only(failed(log.split("\n", 1)[1], code=127, outputs=(output,)), "GL208")
    assert finding.where == "12.0.0/out/n008.log:1"
    if "interpreter" not in line and "Permission" not in line:
        finding = only(failed(log, code=127, program="/home/ada/train.sh"), "GL208")
        assert re.match(r"rank 0 found no (/usr/bin/)?python3 on n008 and exited with code (2|127); 7 more ranks", finding.title)
        assert only(failed(log, code=127, program="python3"), "GL208").title.startswith("n008 cannot start the program python3")


PROBE = """\
glaunch: n003: python3: not found
glaunch: n005: python3: not found
srun: error: n003: task 5: Exited with exit code 127
srun: error: n005: task 3: Exited with exit code 127
glaunch: the program cannot run on every node; no rank was started
"""


def test_a_look_at_the_nodes_that_found_no_program_starts_no_rank() -> None:
    facts = failed(PROBE, code=127, ranks=())
    found = [finding for finding in diagnose(facts) if finding.severity != "note"]
    assert [(finding.code, finding.host, finding.where) for finding in found] == [("GL208", "n[003,005]", "12.0.0/batch.log:1")]
    assert found[0].title.endswith("cannot start the program: python3: not found")
    assert first_failure(facts) is None


def test_a_node_that_cannot_take_part() -> None:
    log = "glaunch: n003: cannot write /j/12.0.0/out/n003.log\nglaunch: not every node can take part; no rank was started\n"
    finding = only(failed(log, ranks=()), "GL213")
    assert (finding.host, finding.title) == ("n003", "n003 cannot take part: cannot write /j/12.0.0/out/n003.log")


def test_a_job_that_stopped_before_its_ranks() -> None:
    line = "glaunch: job 11 runs the same submission and is not over; job 12 stops here (scancel 11, or wait)"
    finding = only(failed(f"{line}\n", ranks=(), granted=()), "GL213")
    assert (finding.evidence, "job 11 runs the same submission" in finding.title) == (line, True)


def test_ranks_that_never_started_though_srun_returned_zero() -> None:
    log = "".join(f"srun: error: task {rank} launch failed: Slurmd could not connect IO\n" for rank in (4, 5))
    finding = only(dataclasses.replace(GOOD, batch_log=TextFile("12.0.0/batch.log", log)), "GL209")
    assert finding.title == "2 ranks never started, first rank 4: Slurmd could not connect IO"
    assert finding.host == "n008"


def test_a_failure_without_words() -> None:
    finding = only(failed("", code=7), "GL210")
    assert "exit code 7" in finding.title
    assert "12.0.0/batch.log" in finding.advice
    assert only(dataclasses.replace(GOOD, exit_code=7), "GL210"), "also where Slurm calls the job completed"
    here = only(dataclasses.replace(GOOD, exit_code=7, batch_log=None), "GL210")
    assert here.advice == "what its ranks wrote is in 12.0.0/out/", "run inside an allocation there is no batch log to look at"


def test_a_program_cannot_speak_in_slurms_name() -> None:
    log = "train: srun: error: n006: task 17: Exited with exit code 5\nDUE TO TIME LIMIT\nwe expect an oom-kill here\n"
    assert [code for code in codes(dataclasses.replace(GOOD, batch_log=TextFile("12.0.0/batch.log", log))) if code.startswith("GL2")] == []


def test_other_nodes_than_planned() -> None:
    other = ("n016", *NODES[:7])
    worse = dataclasses.replace(GOOD, granted=other, granted_cost=FAR, ranks=(), pinned=False)
    finding = only(worse, "GL102")
    assert finding.severity == "warning"
    assert "7 of 8 the same" in finding.title
    assert (
        "farther apart: 4 leaves in 2 pods, 2.57 switches between two nodes on average instead of 2 leaves in 1 pod, 2.14" in finding.title
    )
    assert finding.evidence == fold(other)
    assert only(worse, "GL103").severity == "note"
    assert only(dataclasses.replace(worse, granted_cost=NEAR), "GL102").severity == "note"
    assert only(dataclasses.replace(worse, granted_cost=None), "GL102").severity == "note"


@pytest.mark.parametrize(("did", "severity"), [("", "warning"), ("failed", "warning"), ("requeued", "note")])
def test_more_pods_than_the_size_needs(did: str, severity: str) -> None:
    finding = only(dataclasses.replace(GOOD, pods=(3, 2, did)), "GL105")
    assert finding.title.startswith("the job started in 3 pods, and its size fits in 2")
    assert (finding.severity, finding.where) == (severity, "12.0.0/placement.json:1")


def test_preferred_nodes_that_slurm_did_not_take() -> None:
    finding = only(dataclasses.replace(GOOD, granted=("n016", *NODES[:7]), ranks=(), pinned=False, preferred=True), "GL102")
    assert "they were preferred, not pinned" in finding.advice


def test_a_node_that_the_fabric_does_not_know() -> None:
    finding = only(dataclasses.replace(GOOD, granted=(*NODES[:7], "x001"), ranks=()), "GL104")
    assert (finding.host, finding.where) == ("x001", "12.0.0/ordered:8")


def test_ranks_that_are_elsewhere() -> None:
    swapped = tuple(dataclasses.replace(row, host={"n008": "n007", "n007": "n008"}.get(row.host, row.host)) for row in RANKS)
    finding = only(dataclasses.replace(GOOD, ranks=swapped), "GL111")
    assert finding.title == "16 ranks on another node than the order says, first rank 0: on n007 instead of n008"
    assert (finding.where, finding.evidence) == ("12.0.0/ranks.tsv:1", "0\tn007\t0")


def test_ranks_that_said_nothing() -> None:
    finding = only(dataclasses.replace(GOOD, ranks=RANKS[:60]), "GL112")
    assert finding.title == "4 ranks never said where they run, first rank 60"
    assert finding.host == "n001"
    assert only(dataclasses.replace(GOOD, ranks=()), "GL112").severity == "warning"
    running = dataclasses.replace(GOOD, ranks=(), job=Job("12", "RUNNING"))
    assert "GL112" not in codes(running), "it may still come"


def test_the_last_node_may_carry_fewer_ranks() -> None:
    assert only(dataclasses.replace(GOOD, tasks=60, ranks=RANKS[:60]), "GL110")


def test_an_order_that_could_not_be_made() -> None:
    for line in (
        "glaunch: no order: order.tsv is missing or empty; the ranks follow Slurm's own",
        "glaunch: Slurm does not take the plan's order; the ranks follow Slurm's own",
    ):
        facts = dataclasses.replace(GOOD, granted=tuple(reversed(NODES)), batch_log=TextFile("12.0.0/batch.log", line), ranks=())
        assert only(facts, "GL113").evidence == line


def test_hosts_without_logs_are_told_once_a_reason() -> None:
    gone = [
        HostLogs("n001", "none", "", (), "unreachable", "10.77.1.1 port 22: no answer within 10 s", "manifest.jsonl:4"),
        HostLogs("n002", "none", "", (), "unreachable", "10.77.1.2 port 22: no answer within 10 s", "manifest.jsonl:5"),
        HostLogs("n003", "none", "", (), "changed-host-key", "n003 showed another key", "manifest.jsonl:6"),
        HostLogs("n004", "none", "", (), "no-logs", "no folder"),
        HostLogs("n005", "ssh", "logs/n005.tar.gz", (), "", "tar: file changed as we read it", "manifest.jsonl:7"),
    ]
    found = [
        finding for finding in diagnose(dataclasses.replace(GOOD, logs=LogBundle("/j", tuple(gone)))) if finding.code.startswith("GL3")
    ]
    assert [(finding.code, finding.severity, finding.host, finding.where) for finding in found] == [
        ("GL301", "warning", "n[001-002]", "12.0.0/manifest.jsonl:4"),
        ("GL301", "warning", "n003", "12.0.0/manifest.jsonl:6"),
        ("GL301", "note", "n004", "12.0.0/manifest.jsonl"),
        ("GL302", "note", "n005", "12.0.0/manifest.jsonl:7"),
    ]


def test_no_finding_without_its_line() -> None:
    for facts in (GOOD, failed(LIMIT, "TIMEOUT", 143), failed("", code=7), JobFacts(Job("1", "FAILED", "JobLaunchFailure"))):
        for finding in diagnose(facts):
            assert finding.where
            assert finding.evidence
            assert finding.severity in ("error", "warning", "note")


def test_a_job_that_left_its_shell_in_a_line_of_setup_has_that_as_its_cause() -> None:
    nothing = {"granted": (), "granted_cost": None, "ranks": (), "logs": None, "exit_code": None, "left_in": "exec true"}
    for state in ("COMPLETED", "FAILED"):
        finding = only(dataclasses.replace(GOOD, job=Job("12", state), **nothing), "GL213")  # type: ignore[arg-type]
        assert finding.title == "the job ended in a line of setup, and no rank was started: exec true"
        assert (finding.severity, finding.where, finding.evidence) == ("error", "12.0.0/setup:1", "exec true")
    late = dataclasses.replace(GOOD, job=Job("12", "TIMEOUT"), **nothing)  # type: ignore[arg-type]
    assert [code for code in codes(late) if code.startswith("GL2")] == ["GL205"], "what ended it is known"
    assert "GL213" not in codes(dataclasses.replace(late, job=Job("12", "RUNNING"))), "the line may still end well"


def test_a_secret_in_a_line_of_setup_that_failed_is_not_in_the_report() -> None:
    facts = failed("glaunch: setup ended with 1 in the line: export A_KEY=hf_1; false\n", code=1, ranks=(), granted=())
    finding = only(facts, "GL213")
    assert "setup ended with 1 in the line: export A_KEY=(not shown); false" in finding.title
    assert "hf_1" not in f"{finding}"


def test_a_job_that_waits_has_no_findings() -> None:
    assert diagnose(JobFacts(Job("1", "PENDING", "Resources"))) == ()


ALL_CANNOT = "glaunch: n004: cannot write\nglaunch: n005: cannot write\n"


@pytest.mark.parametrize(
    ("facts", "blamed"),
    [
        (failed("srun: error: Node failure on n005\n", "NODE_FAIL", granted=("n004", "n005")), ("n005",)),
        (failed("srun: error: Node failure on n[004-005]\n", "NODE_FAIL", granted=("n004", "n005")), ("n004", "n005")),
        (failed("srun: error: Node failure on n009\n", "NODE_FAIL", granted=("n003", "n004")), ()),  # not of this job
        (failed("slurmstepd-n004: error: *** JOB 7 ON n004 CANCELLED AT x DUE TO NODE FAILURE ***\n", granted=("n003", "n004")), ()),
        (failed("glaunch: n004: cannot write\nglaunch: no rank was started\n", ranks=(), granted=("n004", "n005")), ("n004",)),
        (failed(f"{ALL_CANNOT}glaunch: no rank was started\n", ranks=(), granted=("n004", "n005")), ()),  # its folder, more likely
        (failed("glaunch: n004: python3: not found\nglaunch: no rank was started\n", ranks=(), granted=("n004", "n005")), ()),
    ],
)
def test_which_nodes_are_to_blame(facts: JobFacts, blamed: tuple[str, ...]) -> None:
    assert faulty_nodes(diagnose(facts), facts.granted) == blamed
