"""Every launch form on a real Slurm, as a plain user: the same promises whoever starts the ranks."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.node.conftest import Jobs

from glaunch.attempt import AttemptFolder
from glaunch.plan import Option
from glaunch.tuning import Variable

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(180)]

HOSTILE = (
    "a b",
    'it\'s "so"',
    "$(id) `id` $HOME",
    "back\\slash\\",
    "*",
    "two\nlines\n",
    "grüße 日本",
    "",
    "-x",
    "--nnodes=9",
    ":",
    "~",
    "a\tb",
)
SHOW = """
i=0
hex() { printf %s "$1" | od -An -v -tx1 | tr -d ' \\n'; }
for word in "$@"; do echo "word $i $(hex "$word")."; i=$((i + 1)); done
echo "env $(hex "$HOSTILE")."
echo "who ${RANK-}/${WORLD_SIZE-} ${LOCAL_RANK-}/${LOCAL_WORLD_SIZE-} ${NODE_RANK-} $SLURMD_NODENAME $MASTER_ADDR $CUDA_VISIBLE_DEVICES $(env | grep -c ^gl_)"
[ "${RANK:-3}" != 3 ] || exit 7
"""
"""What it was given, byte for byte, and who it is; rank 3 (or the one that there is) ends with 7."""
TORCH = ("--redirects=0:1", "--tee=0:1")
"""Debian 12's torch reads its own default for these as None, with Python 3.11."""
FORMS = {
    "srun": ("srun", "", ()),
    "torchrun": ("torchrun", "", TORCH),
    "mpirun": ("mpi", "mpirun", ()),
    "mpi by srun": ("mpi", "pmi2", ()),
    "exec": ("exec", "", ()),
}


def lines_of(run: AttemptFolder) -> dict[int, list[str]]:
    """Rank → its lines."""
    found: dict[int, list[str]] = {}
    for host in run.hosts:
        for line in (run.path / "out" / f"{host}.log").read_text().splitlines():
            label, colon, text = line.partition(": ")
            if colon and label.strip().isdigit():
                found.setdefault(int(label), []).append(text)
    return found


def make(jobs: Jobs, name: str, argv: Sequence[str], **more: object) -> Path:
    form, mpi, options = FORMS[name]
    return jobs.make(tuple(argv), form=form, mpi=mpi, options=options, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", FORMS)
def test_each_form_keeps_order_words_environment_and_code(jobs: Jobs, name: str) -> None:
    variables = [Variable("HOSTILE", "\n".join(HOSTILE), "--env", "asked for", "")]
    folder = make(
        jobs,
        name,
        ("sh", "-c", SHOW, "sh", *HOSTILE),
        nodes=3,
        per_node=2,
        tasks=5,
        variables=variables,
        more=(Option("gpus-per-node", "4"),),
    )
    run = jobs.run(folder)
    assert run.end is not None
    assert run.end.code == 7, jobs.log(folder) + str(lines_of(run))
    assert run.start is not None
    assert run.start.order == "planned"
    hosts = sorted((run.path / "granted").read_text().split(), reverse=True)
    assert list(run.hosts) == hosts
    once = name == "exec"
    places = [(0, hosts[0], 0)] if once else [(rank, hosts[rank // 2], rank % 2) for rank in range(5)]
    assert [(row.rank, row.host, row.local_rank) for row in run.ranks] == places
    words = [f"word {number} {word.encode().hex()}." for number, word in enumerate(HOSTILE)]
    value = "env " + "\n".join(HOSTILE).encode().hex() + "."
    whole = "0,1,2,3"
    for rank, host, local in places:
        local_size = 1 if rank == 4 else 2
        who = f"who {rank}/5 {local}/{local_size} {rank // 2} {host} {hosts[0]} {whole} 0"
        if once:
            who = f"who / /  {host} {hosts[0]} {whole} 0"
        assert lines_of(run)[rank] == [*words, value, who]
    assert json.loads((run.path / "audit.json").read_text())["how"] == FORMS[name][1]
