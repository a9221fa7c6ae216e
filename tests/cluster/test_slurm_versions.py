"""Rows of the table of Slurm's versions, tried on the Slurm that is here (`make test-versions` tries them on three)."""

import pytest
from tests.cluster.conftest import User

from glaunch.parsers.slurm_config import parse_version
from glaunch.slurm_versions import LISTS_SPARES, NODES_OR_HOST_FILE, REFUSES_TOO_MANY_NODES, SEGMENTS, Change, version_text

pytestmark = pytest.mark.slurm

BACKWARDS = """\
scontrol show hostnames | sort -r >backwards
SLURM_HOSTFILE=backwards srun --distribution=arbitrary -n2 sh -c 'echo $SLURM_PROCID $SLURMD_NODENAME' | sort
SLURM_HOSTFILE=backwards srun --distribution=arbitrary -N2 -n2 true; echo with --nodes: $?
"""


def version_of(user: User) -> tuple[int, ...]:
    """Of the Slurm in this sandbox."""
    return parse_version(user.run("sinfo", "--version").stdout)


def test_ranks_lie_as_the_host_file_says_and_nodes_beside_it_are_refused_since_23_11(ada: User) -> None:
    done = ada.run("salloc", "-N2", "-n2", "sh", "-c", BACKWARDS, timeout_s=60)
    first, second, beside = done.stdout.splitlines()
    assert first.split()[1] > second.split()[1], "rank 0 is on the last of the two by name, against the order of the switches"
    assert (beside != "with --nodes: 0") == NODES_OR_HOST_FILE.there(version_of(ada)), done.stderr


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (LISTS_SPARES, ("-N1", "-w", "n[001-002]")),
        (SEGMENTS, ("-N2", "--segment=2")),
    ],
)
def test_what_sbatch_takes_since_a_version(ada: User, row: Change, words: tuple[str, ...]) -> None:
    done = ada.run("sbatch", "--test-only", *words, "--wrap", "true")
    version = version_of(ada)
    assert (done.code == 0) == row.there(version), f"{version_text(version)}: {done.stderr}"


def test_more_nodes_than_there_are_wait_for_ever_or_are_refused(ada: User) -> None:
    done = ada.run("sbatch", "--parsable", "-N99", "--wrap", "true")
    assert (done.code != 0) == REFUSES_TOO_MANY_NODES.there(version_of(ada)), done.stderr
