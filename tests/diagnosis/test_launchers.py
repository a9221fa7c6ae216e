"""What torchrun and mpirun say of a rank that failed: words that torch 1.13 and Open MPI 4.1.4 printed on a real Slurm."""

import dataclasses

from tests.diagnosis.test_diagnose import GOOD, RANKS, failed, only

from glaunch.diagnosis.diagnose import diagnose
from glaunch.diagnosis.facts import TextFile
from glaunch.diagnosis.failures import first_failure

TORCH = """ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 7) local_rank: 1 (pid: 2881) of binary: sh
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
sh FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-11-30_12:28:31
  host      : n007
  rank      : 14 (local_rank: 6)
  exitcode  : -6 (pid: 2882)  (SIGABRT)
  error_file: <N/A>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-30_12:28:31
  host      : n007
  rank      : 9 (local_rank: 1)
  exitcode  : 7 (pid: 2881)
  error_file: <N/A>
============================================================
9: the last word
"""
MPI = """--------------------------------------------------------------------------
mpirun detected that one or more processes exited with non-zero status, thus causing
the job to be terminated. The first process to do so was:

  Process name: [[27345,1],17]
  Exit code:    7
--------------------------------------------------------------------------
"""
KILLED = "mpirun noticed that process rank 17 with PID 2882 on node n006 exited on signal 9 (Killed).\n"


def test_a_task_of_srun_is_an_agent_and_its_output_names_the_rank() -> None:
    facts = failed("srun: error: n007: task 1: Exited with exit code 7\n", code=7, form="torchrun")
    assert first_failure(facts) == (8, "n007")
    facts = dataclasses.replace(facts, outputs=(TextFile("12.0.0/out/n007.log", TORCH),))
    assert first_failure(facts) == (9, "n007")
    assert only(facts, "GL201").title == "rank 9 on n007 exited with code 7"
    assert only(facts, "GL212").evidence == "the last word"


def test_mpirun_says_it_on_the_first_host_whichever_host_the_rank_is_on() -> None:
    facts = failed("", code=7, form="mpi")
    assert first_failure(facts) == (0, "n008")
    facts = dataclasses.replace(facts, outputs=(TextFile("12.0.0/out/n008.log", MPI),))
    assert first_failure(facts) == (17, "n006")
    found = only(facts, "GL201")
    assert (found.title, found.where) == ("rank 17 on n006 exited with code 7", "12.0.0/out/n008.log:6")
    newer = dataclasses.replace(facts, outputs=(TextFile("o", MPI.replace("[[27345,1],17]", "[prterun-n008-1017@1,17]")),))  # 6.0.0rc2's
    assert first_failure(newer) == (17, "n006")
    killed = failed("", code=137, form="mpi", outputs=(TextFile("12.0.0/out/n008.log", KILLED),))
    assert only(killed, "GL201").title == "rank 17 on n006 exited with code 137 (128 + 9: SIGKILL)"


def test_a_program_that_runs_once_is_no_missing_rank() -> None:
    once = dataclasses.replace(GOOD, form="exec", ranks=RANKS[:1])
    assert next((found.code, found.title) for found in diagnose(once)) == ("GL110", "the program ran once, on the first node of the order")
    elsewhere = dataclasses.replace(GOOD, form="exec", ranks=(dataclasses.replace(RANKS[0], host="n003"),))
    assert only(elsewhere, "GL111").title == "the program ran on n003, and the first node of the order is n008"


def test_an_agent_that_ends_before_its_ranks_is_no_rank() -> None:
    said = TextFile("12.0.0/out/n007.log", "Traceback (most recent call last):\nAttributeError: 'NoneType' object has no attribute 'get'\n")
    facts = failed("srun: error: n007: task 1: Exited with exit code 1\n", form="torchrun", ranks=RANKS[:8], outputs=(said,))
    assert only(facts, "GL201").title == "torchrun on n007 ended before it started a rank: exited with code 1"
    assert only(facts, "GL201").rank is None
    assert only(facts, "GL212").evidence == "AttributeError: 'NoneType' object has no attribute 'get'"


def test_a_package_that_nodes_lack_is_a_program_that_cannot_start() -> None:
    facts = failed(
        "glaunch: n007: /usr/bin/python3 has no package torch\nglaunch: the program cannot run on every node; no rank was started\n",
        code=127,
        form="torchrun",
        ranks=(),
    )
    assert only(facts, "GL208").title == "n007 cannot start the program: /usr/bin/python3 has no package torch"
