"""Jobs from scontrol, squeue and sacct; what users write into them forges nothing."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glaunch.errors import ParseError
from glaunch.parsers.slurm_jobs import SACCT_FIELDS, SQUEUE_FIELDS, parse_job, parse_sacct, parse_squeue

SHARED = Path(os.environ.get("GLAUNCH_SHARED") or Path(__file__).resolve().parents[3] / "shared")
MARK = "|7f3a|"

SHOWN = """JobId={head}JobName={name}
   UserId=ada(2001) GroupId=ada(2001) MCS_label=N/A
   Priority=4294901759 Nice=0 Account=(null) QOS=(null)
   JobState=RUNNING Reason=None Dependency=(null)
   Requeue=1 Restarts=2 BatchFlag=1 Reboot=0 ExitCode=7:9
   RunTime=00:00:01 TimeLimit=00:30:00 TimeMin=N/A
   SubmitTime=1796029561 EligibleTime=1796029561
   StartTime=1796029561 EndTime=1796031361 Deadline=N/A
   Partition=gpu AllocNode:Sid=ctl:0
   ReqNodeList=n[001-002] ExcNodeList=(null)
   NodeList=n[001-002]
   BatchHost=n001
   NumNodes=2 NumCPUs=16 NumTasks=16 CPUs/Task=1 ReqB:S:C:T=0:0:*:*
   Comment={comment}
   Command=/home/ada/x.sh sub-1
   WorkDir=/home/ada

"""
TEXT = st.text(st.characters(blacklist_categories=["Cs"])) | st.sampled_from(
    [
        "x JobState=FAILED Reason=y ",
        "a\n   JobState=FAILED Reason=x Dependency=(null)",
        "\nJobId=9 JobName=b\n   UserId=z",
        "   NodeList=n9",
        "\r",
        "\x85",
    ]
)


def test_a_job_of_scontrol() -> None:
    job = parse_job(SHOWN.format(head="12 ", name="train", comment="c"))
    assert job is not None
    assert (job.id, job.state, job.reason, job.name, job.partition) == ("12", "RUNNING", "", "train", "gpu")
    assert (job.time_limit_s, job.node_count, job.nodes, job.required_nodes) == (1800, 2, "n[001-002]", "n[001-002]")
    assert (job.exit_code, job.exit_signal, job.restarts, job.start_s, job.script) == (7, 9, 2, 1796029561, "/home/ada/x.sh sub-1")


@pytest.mark.parametrize(
    ("head", "identity"),
    [
        ("7 ArrayJobId=2 ArrayTaskId=1 ArrayTaskThrottle=1 ", "2_1"),
        ("2 ArrayJobId=2 ArrayTaskId=2-3%1 ArrayTaskThrottle=1 ", "2"),
        ("13 HetJobId=12 HetJobOffset=1 ", "12+1"),
    ],
)
def test_ids(head: str, identity: str) -> None:
    job = parse_job(SHOWN.format(head=head, name="x", comment=""))
    assert job is not None
    assert job.id == identity


@given(TEXT, TEXT)
def test_a_forged_job_is_read_right_or_not_at_all(name: str, comment: str) -> None:
    job = parse_job(SHOWN.format(head="12 ", name=name, comment=comment))
    if job is not None:
        assert (job.id, job.state, job.nodes, job.exit_code, job.script) == ("12", "RUNNING", "n[001-002]", 7, "/home/ada/x.sh sub-1")
        assert "\n" not in name


def test_several_jobs_are_none() -> None:
    assert parse_job(SHOWN.format(head="1 ", name="x", comment="") * 2) is None


def rows(*jobs: dict[str, str], fields: tuple[str, ...]) -> str:
    return "".join("".join(job.get(field, "") + MARK for field in fields) + "\n" for job in jobs)


@given(st.lists(st.tuples(TEXT, TEXT), max_size=4))
def test_rows_of_squeue(texts: list[tuple[str, str]]) -> None:
    jobs = [
        {"JobArrayID": f"{number}_1", "State": "PENDING", "exit_code": "1792", "NumNodes": "2", "Name": name, "Command": script}
        for number, (name, script) in enumerate(texts)
    ]
    found = parse_squeue(rows(*jobs, fields=SQUEUE_FIELDS), MARK)
    assert [(job.id, job.state, job.exit_code, job.name) for job in found] == [
        (f"{n}_1", "PENDING", 7, name) for n, (name, _) in enumerate(texts)
    ]


def test_a_row_of_squeue() -> None:
    row = dict(
        zip(
            SQUEUE_FIELDS,
            [
                "3",
                "PENDING",
                "9",
                "1",
                "N/A",
                "1-00:00:00",
                "4",
                "",
                "n[1-4]",
                "ReqNodeNotAvail, UnavailableNodes:n3",
                "gpu",
                "x",
                "/a b c",
            ],
            strict=True,
        )
    )
    (job,) = parse_squeue("CLUSTER: red\n" + rows(row, fields=SQUEUE_FIELDS), MARK)
    assert (job.time_limit_s, job.node_count, job.required_nodes, job.start_s) == (86400, 4, "n[1-4]", None)
    assert (job.reason, job.exit_signal, job.restarts, job.script) == ("ReqNodeNotAvail,_UnavailableNodes:n3", 9, 1, "/a b c")
    assert parse_squeue("", MARK) == ()


def test_rows_of_sacct() -> None:
    row = dict(
        zip(
            SACCT_FIELDS,
            ["3", "CANCELLED by 2001", "0:15", "Unknown", "Partition_Limit", "2", "None assigned", "gpu", "None", "x", "sbatch /a"],
            strict=True,
        )
    )
    (job,) = parse_sacct(rows(row, fields=SACCT_FIELDS), MARK)
    assert (job.state, job.exit_code, job.exit_signal, job.nodes, job.time_limit_s, job.start_s, job.script) == (
        "CANCELLED",
        0,
        15,
        "",
        None,
        None,
        "sbatch /a",
    )
    assert job.over


def test_uneven_rows_are_said() -> None:
    for text in ("hello", f"1{MARK}PENDING{MARK}\n"):
        with pytest.raises(ParseError, match="squeue:1"):
            parse_squeue(text, MARK)
    with pytest.raises(ParseError, match="scontrol show job:1"):
        parse_job("hello")


@pytest.mark.skipif(not (SHARED / "corpus").is_dir(), reason="no corpus of Slurm outputs here")
def test_jobs_of_other_versions() -> None:
    files = sorted((SHARED / "corpus/slurm-output/runs").glob("*/dbd/scontrol_show_jobs.txt"))
    assert files
    for path in files:
        records = [f"JobId={record}" for record in ("\n" + path.read_text()).split("\nJobId=")[1:]]
        jobs = [parse_job(record) for record in records]
        assert len(jobs) > 10
        assert all(job is not None and job.state and job.partition for job in jobs), path
