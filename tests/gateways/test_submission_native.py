"""`slurm.submit: pyslurm` on a real Slurm: the job is the one that sbatch would have made, and what cannot be said is refused by name."""

import re
from collections.abc import Mapping

import pytest
from tests.gateways.conftest import Live

from glaunch.errors import UsageError
from glaunch.gateways.process import Completed
from glaunch.sandbox.box import Sandbox
from glaunch.writers.pyslurm_job import fields_of

PROGRAM = """\
echo "rank $RANK of $WORLD_SIZE: $TOKEN, $# arguments, $SLURM_SUBMIT_DIR, ${SLURM_TIME_FORMAT-no format}, umask $(umask)"
"""
OWN = {
    *(
        "JobId",
        "Command",
        "StdOut",
        "StdErr",
        "SubmitTime",
        "EligibleTime",
        "AccrueTime",
        "StartTime",
        "EndTime",
        "LastSchedEval",
        "RunTime",
    ),
    *("AllocNode:Sid", "SLUID", "PreemptEligibleTime", "Priority", "JobState", "ExitCode", "Scheduler"),
}
"""What no two jobs share, or what time has changed."""
APART = {"TresPerTask", "OOMKillStep"}
"""What pyslurm 25.11 leaves out, beside SubmitLine; none changes what runs where."""


def submitted(box: Sandbox, how: str, *words: str) -> Completed:
    """A launch, its job submitted by sbatch or pyslurm."""
    env = {"GLAUNCH_SLURM_GATEWAY": "pyslurm", "GLAUNCH_SLURM_SUBMIT": how}
    return box.exec(["glaunch", "run", "-t", "10", "--env", "TOKEN=a b", *words, "said.sh", "x y", "$z"], "ada", env=env, timeout_s=180)


def facts(box: Sandbox, done: Completed) -> Mapping[str, str]:
    """What scontrol says of the job, key by key, once it is over: of one that is completing it shows only the nodes that still do."""
    found = re.search(r"job (\d+) submitted", done.stderr)
    assert found, done
    shown = ""

    def over() -> bool:
        nonlocal shown
        shown = box.exec(["scontrol", "show", "job", found[1]], "ada").stdout
        return "JobState=COMPLETED" in shown

    Live.until(over)
    lines = "\n".join(line for line in shown.splitlines() if not line.strip().startswith("SubmitLine="))
    return {key: value for key, value in re.findall(r"(\S+?)=(.*?)(?=\s+\S+?=|\s*$)", lines, re.M) if key not in OWN | APART}


@pytest.mark.slurm
@pytest.mark.needs_pyslurm
def test_the_job_is_the_same_as_by_sbatch(accounting_box: Sandbox) -> None:
    box = accounting_box
    Live(box).script("said.sh", PROGRAM)
    # nodes by name: a job of the test before may be completing on the best ones
    jobs = {how: submitted(box, how, "-n", "16", "-w", "n[003-004]") for how in ("sbatch", "pyslurm")}
    for how, done in jobs.items():
        assert done.code == 0, done
        lines = sorted(done.stdout.splitlines())
        assert len(lines) == 8  # of rank 0's node
        assert lines[0].endswith(f"rank 0 of 16: a b, 2 arguments, /home/ada, no format, umask {lines[0][-4:]}")
        assert ("cli_filter plugins and SPANK options do not see this job" in done.stderr) == (how == "pyslurm")
    by_pyslurm, by_sbatch = facts(box, jobs["pyslurm"]), facts(box, jobs["sbatch"])
    differs = {
        key: (by_pyslurm.get(key), by_sbatch.get(key))
        for key in by_pyslurm.keys() | by_sbatch.keys()
        if by_pyslurm.get(key) != by_sbatch.get(key)
    }
    assert differs == {}
    assert (by_pyslurm["NodeList"], by_pyslurm["Comment"][:8]) == ("n[003-004]", "glaunch/")


def newest(box: Sandbox) -> int:
    """The id of a job that is submitted now, and cancelled. (What squeue lists does not tell: it forgets old jobs one after the other.)"""
    job = box.exec(["sbatch", "--parsable", "--hold", "--wrap=true"], "bob").stdout.strip()
    box.exec(["scancel", job], "bob")
    return int(job)


@pytest.mark.slurm
@pytest.mark.needs_pyslurm
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--wait-for-leaves", "2"], "--switches=2 cannot be said through pyslurm"),
        (["--sbatch", "export=NONE"], "cannot be said through pyslurm"),
        (["--qos", "nope", "--force"], "Slurm refused the job: Invalid qos"),
    ],
)
def test_what_cannot_be_is_told_and_nothing_is_submitted(accounting_box: Sandbox, words: list[str], says: str) -> None:
    live = Live(accounting_box)
    live.quiet()
    live.script("said.sh", PROGRAM)
    last = newest(accounting_box)
    done = submitted(accounting_box, "pyslurm", "-n", "16", *words)
    assert done.code in {1, 2}
    assert says in done.stderr
    assert newest(accounting_box) == last + 1
    # and the next launch does not believe that its nodes are taken
    planned = accounting_box.exec(["glaunch", "plan", "-n", "64", "said.sh"], "ada", timeout_s=180)
    assert (planned.code, "taken by your own launches" in planned.stdout + planned.stderr) == (0, False), planned


SCRIPT = r"""#!/bin/sh
# why
#SBATCH --job-name="a \"b\" \\ c"
#SBATCH --nodes="2"
#SBATCH --ntasks="16"
#SBATCH --time="90"
#SBATCH --exclusive
#SBATCH --gres="gpu:h100:8,shard:4"
#SBATCH --chdir="/x y"
"""


def test_the_fields_of_a_script() -> None:
    assert fields_of(SCRIPT, ["--nodelist=n[1-2]", "--no-requeue", "--time=1-12"], work_dir="/elsewhere") == {
        "name": 'a "b" \\ c',
        "nodes": "2",
        "ntasks": 16,
        "time_limit": "1-12",
        "resource_sharing": "exclusive",
        "gres_per_node": "gpu:h100:8,shard:4",
        "working_directory": "/x y",
        "required_nodes": "n[1-2]",
        "is_requeueable": False,
    }
    assert fields_of(SCRIPT, [], work_dir="/")["time_limit"] == 90


@pytest.mark.parametrize(
    "words",
    [
        ["--switches=2"],
        ["--mem=0"],
        ["--exclusive=user"],
        ["--frobnicate"],
        ["--gres=gpu"],
        ["--ntasks=many"],
        ["--hold=1"],
        ["--export=ALL"],
    ],
)
def test_what_pyslurm_cannot_say_is_refused_by_name(words: list[str]) -> None:
    with pytest.raises(UsageError) as refused:
        fields_of(SCRIPT, words, work_dir="/")
    assert words[0] in refused.value.message
    assert "slurm.submit: sbatch" in refused.value.hint


def test_a_job_without_counts_is_refused() -> None:
    with pytest.raises(UsageError, match="--nodes and --ntasks"):
        fields_of("#!/bin/sh\n", ["--ntasks=1"], work_dir="/")
    with pytest.raises(UsageError, match="no line that glaunch wrote"):
        fields_of("#SBATCH -N 2\n", [], work_dir="/")
