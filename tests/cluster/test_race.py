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
# glaunch has decided and calls this: another job asks for the first of its nodes. With BEFORE it has the node when glaunch's own
# sbatch begins, without it both ask at the same moment.
for word; do case $word in --nodelist=*) wanted=${word#*=} ;; esac; done
if [ "${wanted-}" ]; then
  node=$(scontrol show hostnames "$wanted" | head -n 1)
  rival() { /usr/bin/sbatch --parsable -J rival -w "$node" -N1 --exclusive -o /dev/null --wrap 'sleep 5'; }
  if [ "$BEFORE" ]; then
    id=$(rival)
    for _ in $(seq 100); do [ "$(squeue -h -j "$id" -t R -o %i)" ] && break; sleep 0.1; done
  else
    rival >/dev/null &
  fi
  echo "$wanted" >>"$HOME/wanted"
fi
exec /usr/bin/sbatch "$@"
"""
PROGRAM = """\
#!/bin/sh
echo "$SLURM_JOB_ID $RANK" >>"$HOME/ran"
"""


def test_a_race_for_the_nodes_leaves_no_pin_loses_no_job_and_runs_none_twice(ada: User) -> None:
    ada.write("bin/sbatch", SBATCH)
    ada.write("once.sh", PROGRAM)
    for name in ("ran", "wanted"):
        (ada.home / name).unlink(missing_ok=True)
    expected: Counter[str] = Counter()
    for start in range(0, RACES, AT_ONCE):
        expected.update(race(ada, min(AT_ONCE, RACES - start)))
    assert len((ada.home / "wanted").read_text().split()) == RACES, "every launch was pinned, and had a rival"
    assert Counter((ada.home / "ran").read_text().splitlines()) == expected, "every rank of every job ran, and ran once"


def race(ada: User, count: int) -> list[str]:
    """So many launches at once, every other one too late; `JOB RANK` of each rank that has to run."""
    launches = [
        ada.box.popen(
            ["glaunch", "-N", str(SIZES[number]), "--ntasks-per-node", str(RANKS), "--detach", "./once.sh"],
            "ada",
            env={"PATH": "/home/ada/bin:/usr/local/bin:/usr/bin:/bin", "BEFORE": "yes" if number % 2 else ""},
        )
        for number in range(count)
    ]
    expected = []
    for number, launch in enumerate(launches):
        stdout, stderr = (text.decode() for text in launch.communicate(timeout=120))
        assert launch.returncode == 0, stderr
        job_id = stdout.strip()
        assert re.fullmatch(r"\d+", job_id), stdout
        job = ada.job(job_id)
        assert job["JobState"] != "PENDING" or job["ReqNodeList"] == "(null)", f"left pinned: {stderr}"
        if number % 2:
            assert "the pin is lifted" in stderr, stderr
            assert job["ReqNodeList"] == "(null)"
        expected += [f"{job_id} {rank}" for rank in range(SIZES[number] * RANKS)]
    until(lambda: ada.run("squeue", "-h").stdout == "", 60, "all jobs are over, the rivals too")
    for job_id in {line.split()[0] for line in expected}:
        assert ada.job(job_id)["JobState"] == "COMPLETED"
        (attempt,) = ada.attempts(job_id)
        assert attempt.restart == 0
    return expected
