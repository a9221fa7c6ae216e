"""A second submitter takes nodes between glaunch's look and its sbatch, again and again: no pin stays, no job is lost, none runs twice.

`make chaos` runs it 50 times (GLAUNCH_RACES), the tests 10 times.
"""

import os
import re
from collections import Counter

import pytest
from tests.cluster.conftest import User, until

pytestmark = pytest.mark.slurm

RACES = int(os.environ.get("GLAUNCH_RACES", "10"))
AT_ONCE = 10
SIZES = (1, 1, 2, 1, 1, 2, 1, 1, 1, 1)
"""Nodes of each launch: together fewer than the sandbox has, so that all of a round are pinned."""
RANKS = 2

SBATCH = """\
#!/bin/sh
# glaunch has decided and calls this: another job asks for the first of its nodes, once all others of the round have decided as well. With
# BEFORE it has the node when glaunch's own sbatch begins, without it both ask at the same moment. The rivals end when the test ends them.
# With KILLED glaunch dies when Slurm has the job and before it knows that.
for word; do case $word in --nodelist=*) wanted=${word#*=} ;; esac; done
if [ "${wanted-}" ]; then
  node=$(scontrol show hostnames "$wanted" | head -n 1)
  rival() { /usr/bin/sbatch --parsable -J rival -w "$node" -N1 --exclusive -o /dev/null --wrap "sleep 900"; }
  echo "$wanted" >>"$HOME/wanted"
  for _ in $(seq 600); do [ "$(wc -l <"$HOME/wanted")" -lt "$DECIDED" ] || break; sleep 0.1; done
  if [ "$BEFORE" ]; then
    id=$(rival)
    for _ in $(seq 600); do [ "$(squeue -h -j "$id" -t R -o %i)" ] && break; sleep 0.1; done
  else
    rival >/dev/null &
  fi
fi
[ -z "$KILLED" ] || { /usr/bin/sbatch "$@" && kill -9 $PPID; exit; }
exec /usr/bin/sbatch "$@"
"""
PROGRAM = """\
#!/bin/sh
echo "$SLURM_JOB_ID $RANK" >>"$HOME/ran"
"""


def surroundings(*, before: bool = True, killed: bool = False, decided: int = 1) -> dict[str, str]:
    """Variables of a launch whose sbatch is the one above; the rivals come when so many launches have decided."""
    flags = {"BEFORE": "yes" if before else "", "KILLED": "yes" if killed else ""}
    return {"PATH": "/home/ada/bin:/usr/local/bin:/usr/bin:/bin", "DECIDED": str(decided), **flags}


def test_a_race_for_the_nodes_leaves_no_pin_loses_no_job_and_runs_none_twice(ada: User) -> None:
    prepare(ada)
    expected: Counter[str] = Counter()
    for start in range(0, RACES, AT_ONCE):
        expected.update(race(ada, start, min(AT_ONCE, RACES - start)))
    assert len((ada.home / "wanted").read_text().split()) == RACES, "every launch was pinned, and had a rival"
    assert Counter((ada.home / "ran").read_text().splitlines()) == expected, "every rank of every job ran, and ran once"


def prepare(ada: User) -> None:
    """Her sbatch and her program, and no notes of earlier ones."""
    ada.write("bin/sbatch", SBATCH)
    ada.write("once.sh", PROGRAM)
    for name in ("ran", "wanted"):
        (ada.home / name).unlink(missing_ok=True)


def race(ada: User, earlier: int, count: int) -> list[str]:
    """So many launches at once, every other one too late, after `earlier` others; `JOB RANK` of each rank that has to run."""
    launches = [
        ada.box.popen(
            ["glaunch", "-N", str(SIZES[number]), "--ntasks-per-node", str(RANKS), "--detach", "./once.sh"],
            "ada",
            env=surroundings(before=bool(number % 2), decided=earlier + count),
        )
        for number in range(count)
    ]
    expected = []
    for number, launch in enumerate(launches):
        stdout, stderr = (text.decode() for text in launch.communicate(timeout=200))
        assert launch.returncode == 0, stderr
        job_id = stdout.strip()
        assert re.fullmatch(r"\d+", job_id), stdout
        job = ada.job(job_id)
        assert job["JobState"] != "PENDING" or job["ReqNodeList"] == "(null)", f"left pinned: {stderr}"
        if number % 2:
            assert "the pin is lifted" in stderr, stderr
            assert job["ReqNodeList"] == "(null)"
        expected += [f"{job_id} {rank}" for rank in range(SIZES[number] * RANKS)]
    ada.run("scancel", "--name=rival")
    until(lambda: ada.run("squeue", "-h").stdout == "", 120, "all jobs are over, the rivals too")
    for job_id in {line.split()[0] for line in expected}:
        assert ada.job(job_id)["JobState"] == "COMPLETED"
        (attempt,) = ada.attempts(job_id)
        assert attempt.restart == 0
    return expected


def test_killed_with_its_nodes_taken_and_its_id_unknown_the_next_command_frees_the_job(ada: User) -> None:
    prepare(ada)
    launch = ada.box.popen(["glaunch", "-N", "2", "--ntasks-per-node", "1", "./once.sh"], "ada", env=surroundings(killed=True))
    launch.communicate(timeout=60)
    (job_id,) = ada.run("squeue", "-h", "-t", "PD", "-o", "%i").stdout.split()
    assert ada.job(job_id)["ReqNodeList"] == (ada.home / "wanted").read_text().strip(), "pinned, and nobody alive to lift it"
    seen = ""

    def lifted() -> bool:
        nonlocal seen
        seen += ada.glaunch("status", env={"GLAUNCH_PIN_PATIENCE_S": "2"}).stderr
        return "the pin is lifted" in seen

    until(lifted, 60, "the next command lifts it")
    assert f"was submitted as job {job_id}" in seen
    job = ada.wait_for(job_id)
    assert (job["JobState"], job["ReqNodeList"]) == ("COMPLETED", "(null)")
    assert (ada.home / "ran").read_text().splitlines() in ([f"{job_id} 0", f"{job_id} 1"], [f"{job_id} 1", f"{job_id} 0"])
    assert ada.run("squeue", "-h", "-o", "%j").stdout.split() == ["rival"], "it did not wait for the nodes that were taken"
