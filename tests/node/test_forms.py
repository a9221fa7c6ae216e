"""Every launch form on a real Slurm, as a plain user: the same promises whoever starts the ranks."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.node.conftest import Jobs

from glaunch.attempt import AttemptFolder
from glaunch.plan import Option
from glaunch.tuning import Variable

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(180)]

HOSTILE = (
    *("a b", " lead", "trail ", "", " ", "a\tb", "\t", "two\nlines\n", "\n", "\n\n", "a\r\nb", "\r", "\x1b[31m", "\x01\x7f"),
    *('it\'s "so"', "'", '"', "\\", "\\\\", "back\\slash\\", "\\n", "\\0", "`id`", "$(id)", "$HOME", "${HOME}", "$$", "$"),
    *(
        "*",
        "?",
        "[a-z]",
        "{a,b}",
        "~",
        "~root",
        "!",
        "!!",
        "#",
        "a#b",
        "&",
        "|",
        ";",
        "(",
        ")",
        "<",
        ">x",
        "%j %N %%",
        "%s%n",
        "@file",
        "^",
    ),
    *(
        "-x",
        "-",
        "--",
        "-n",
        "-m",
        "-np",
        "-host",
        "--mca",
        "--nnodes=9",
        "--num_processes=9",
        "--no_python",
        "--config_file=x",
        "--export=NONE",
    ),
    *(
        ":",
        "::",
        "a:b",
        "=",
        "a=b",
        "HOSTILE=1",
        ",",
        "a,b",
        "+",
        "0",
        "grüße 日本",
        "🚀",
        "e\u0301\u202e\u200b",
        "\udcff\udcfe",
        "x'y" * 1500,
    ),
)
SHOW = """
hex() { od -An -v -tx1 | tr -d ' \\n' | fold -w 900; echo; }
printf '%s\\0' "$@" | hex | sed 's/^/word /'
env -0 | tr '\\0\\n' '\\n\\0' | LC_ALL=C grep -a '^\\(SLURM_\\)\\?HOSTILE_' | LC_ALL=C sort | tr '\\0\\n' '\\n\\0' | hex | sed 's/^/env /'
place="${RANK-}/${WORLD_SIZE-} ${LOCAL_RANK-}/${LOCAL_WORLD_SIZE-} ${NODE_RANK-} $SLURMD_NODENAME"
echo "who $place $MASTER_ADDR $CUDA_VISIBLE_DEVICES $(env | grep -c ^gl_)"
echo >"spoke.$SLURM_JOB_ID.${RANK-}"
[ "${RANK:-3}" = 3 ] || exit 0
for other in ${WORLD_SIZE:+0 1 2 4}; do
    until [ -e "spoke.$SLURM_JOB_ID.$other" ]; do sleep 0.1; done
done
exit 7
"""
"""What it was given, byte for byte, and who it is; rank 3 (or the one that there is) ends with 7. torchrun and mpirun then end the others,
so it waits until all have spoken."""
LISTENS = """
import os, signal, time
def told(number, _):
    if number == signal.SIGTERM:
        time.sleep(float(os.environ.get("SAVES_S", "0")))
    os.write(1, signal.Signals(number).name.encode() + b"\\n")
    if number != signal.SIGUSR1:
        os._exit(7 if os.environ.get("RANK", "0") == "0" else 0)
for name in ("USR1", "USR2", "TERM"):
    signal.signal(getattr(signal, "SIG" + name), told)
print("ready", flush=True)
while True:
    time.sleep(10)
"""
TORCH = ("--redirects=0:1", "--tee=0:1")
"""Debian 12's torch reads its own default for these as None, with Python 3.11."""
FORMS = {
    "srun": ("srun", "", ()),
    "torchrun": ("torchrun", "", TORCH),
    "an agent": ("torchrun", "", ()),
    "accelerate": ("accelerate", "", ()),
    "mpirun": ("mpi", "mpirun", ()),
    "mpi by srun": ("mpi", "pmi2", ()),
    "exec": ("exec", "", ()),
}


DEBIAN_12 = pytest.mark.before_slurm("23.02")
"""Where `make test` runs there are torch and Open MPI; the roots of `make test-versions` have neither."""


def some(*names: str) -> list[Any]:
    return [pytest.param(name, marks=DEBIAN_12 if name in {"torchrun", "mpirun"} else ()) for name in names]


def lines_of(run: AttemptFolder) -> dict[int, list[str]]:
    """Rank → its lines."""
    found: dict[int, list[str]] = {}
    for host in run.hosts:
        for line in (run.path / "out" / f"{host}.log").read_text().splitlines():
            label, colon, text = line.partition(": ")
            if colon and label.strip().isdigit() and not text.startswith("slurmstepd-") and " error: *** STEP " not in text:  # 26.05
                found.setdefault(int(label), []).append(text)
    return found


AGENT = """#!/bin/sh
# In torchrun's or accelerate's place, where those are not: it starts the ranks of its node, and says of the one that failed what they say
all=5
while [ "$1" != --no_python ]; do
    case $1 in
    --node_rank=* | --machine_rank=*) node=${1#*=} ;;
    --nproc_per_node=*) here=${1#*=} ;;
    --num_machines=*) nodes=${1#*=} ;;
    --num_processes=*) all=${1#*=} here=$((${1#*=} / nodes)) ;;
    esac
    shift
done
shift
i=0
while [ $i -lt $here ]; do
    RANK=$((node * 2 + i)) WORLD_SIZE=$all LOCAL_RANK=$i LOCAL_WORLD_SIZE=$here "$@" &
    ranks="${ranks-} $!"
    i=$((i + 1))
done
for one in $ranks; do wait $one || code=$?; done
[ -z "${code-}" ] || { echo "Root Cause (first observed failure):"; echo "  exitcode  : $code (pid: 1)"; exit 1; }
"""


def make(jobs: Jobs, name: str, argv: Sequence[str], **more: object) -> Path:
    form, mpi, options = FORMS[name]
    if name in {"an agent", "accelerate"}:
        agent = jobs.box.home("ada") / "agent"
        agent.write_text(AGENT)
        agent.chmod(0o755)
        more["starter"] = ("/home/ada/agent",)
    return jobs.make(tuple(argv), form=form, mpi=mpi, options=options, **more)  # type: ignore[arg-type]


def bytes_of(lines: Sequence[str], what: str) -> list[bytes]:
    """What a program showed of its words, or of its variables, each ended by NUL."""
    return bytes.fromhex("".join(line.removeprefix(what) for line in lines if line.startswith(what))).split(b"\0")[:-1]


@pytest.mark.parametrize("name", some(*FORMS))
def test_each_form_keeps_order_words_environment_and_code(jobs: Jobs, name: str) -> None:
    values = {f"HOSTILE_{number:02}": word for number, word in enumerate(HOSTILE)} | {"SLURM_HOSTILE_": "\n".join(HOSTILE)}
    tasks = 6 if name == "accelerate" else 5  # it puts as many on each node
    folder = make(
        jobs,
        name,
        ("sh", "-c", SHOW, "sh", *HOSTILE),
        nodes=3,
        per_node=2,
        tasks=tasks,
        variables=[Variable(name, value, "--env", "asked for", "") for name, value in values.items()],
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
    places = [(0, hosts[0], 0)] if once else [(rank, hosts[rank // 2], rank % 2) for rank in range(tasks)]
    assert [(row.rank, row.host, row.local_rank) for row in run.ranks] == places
    whole = "0,1,2,3"
    for rank, host, local in places:
        lines = lines_of(run)[rank]
        assert bytes_of(lines, "word ") == [os.fsencode(word) for word in HOSTILE]
        assert bytes_of(lines, "env ") == [os.fsencode(f"{variable}={value}") for variable, value in values.items()]
        local_size = 1 if rank == 4 and tasks == 5 else 2
        who = f"who {rank}/{tasks} {local}/{local_size} {rank // 2} {host} {hosts[0]} {whole} 0"
        if once:
            who = f"who / /  {host} {hosts[0]} {whole} 0"
        assert [line for line in lines if not line.startswith(("word ", "env "))] == [who]
    assert json.loads((run.path / "audit.json").read_text())["how"] == FORMS[name][1]


GLOO = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
mine = torch.tensor([10.0 ** dist.get_rank()])
dist.all_reduce(mine)
print(dist.get_rank(), os.environ["SLURMD_NODENAME"], int(mine.item()), flush=True)
"""
MPI = """
import os
from mpi4py import MPI
world = MPI.COMM_WORLD
print(world.rank, os.environ["SLURMD_NODENAME"], world.allreduce(10 ** world.rank), flush=True)
"""


@DEBIAN_12
@pytest.mark.parametrize(("name", "program"), [("srun", GLOO), ("torchrun", GLOO), ("mpirun", MPI)], ids=["srun", "torchrun", "mpirun"])
def test_ranks_of_a_real_framework_are_the_planned_ones_and_reach_each_other(jobs: Jobs, name: str, program: str) -> None:
    run = jobs.run(make(jobs, name, ("/usr/bin/python3", "-c", program), nodes=2, per_node=2, tasks=3))
    assert run.end is not None
    assert run.end.code == 0, lines_of(run)
    first, second = run.hosts
    assert first > second, "the planned order is not Slurm's"
    places = {rank: [line for line in lines if line.endswith(" 111")] for rank, lines in lines_of(run).items()}
    assert places == {0: [f"0 {first} 111"], 1: [f"1 {first} 111"], 2: [f"2 {second} 111"]}


@pytest.mark.parametrize("name", some("torchrun", "mpirun", "exec"))
def test_a_signal_for_the_ranks_arrives_once_and_nothing_else_dies_of_it(jobs: Jobs, name: str) -> None:
    folder = make(jobs, name, ("/usr/bin/python3", "-c", LISTENS), nodes=2, per_node=1)
    job = jobs.submit(folder)
    ranks = 1 if name == "exec" else 2
    jobs.until(folder, f"{job}.0.0/out/*.log", "ready", count=ranks)
    assert jobs.ada("scancel", "--signal=USR1", job).code == 0
    jobs.until(folder, f"{job}.0.0/out/*.log", "SIGUSR1", count=ranks)
    assert jobs.ada("scancel", "--signal=USR2", job).code == 0
    run = jobs.end(folder)[-1]
    assert run.end is not None
    assert (run.end.code, run.end.told) == (7, ""), [jobs.log(folder), *(path.read_text() for path in run.path.glob("out/*"))]
    for rank in range(ranks):
        lines = lines_of(run)[rank]
        if name == "mpirun":  # its helper hands on what this Slurm has told the ranks already
            lines = list(dict.fromkeys(lines))
        assert lines[:3] == ["ready", "SIGUSR1", "SIGUSR2"]


@pytest.mark.parametrize("name", some("torchrun", "mpirun", "exec"))
def test_a_job_that_is_cancelled_ends_its_ranks(jobs: Jobs, name: str) -> None:
    """Each of them takes its time for its last words, and these are there when the job's end is."""
    folder = make(jobs, name, ("/usr/bin/python3", "-c", LISTENS), nodes=2, per_node=1)
    if name == "mpirun":  # which kills a rank one second after it has told it to end, too soon for a busy machine
        (folder / "starter.sh").write_text("set -- --mca odls_base_sigkill_timeout 3\n")
    job = jobs.submit(folder, env={"SAVES_S": "0.5"})
    jobs.until(folder, f"{job}.0.0/out/*.log", "ready", count=1 if name == "exec" else 2)
    assert jobs.ada("scancel", job).code == 0
    run = jobs.end(folder)[-1]
    told = {rank: list(dict.fromkeys(lines)) for rank, lines in lines_of(run).items()}  # Slurm, srun and the starter each may tell them
    assert told == {rank: ["ready", "SIGTERM"] for rank in range(1 if name == "exec" else 2)}


@DEBIAN_12
def test_torchrun_starts_a_failed_rank_again_and_each_rank_stands_once_in_the_map(jobs: Jobs) -> None:
    program = 'echo "try $TORCHELASTIC_RESTART_COUNT"; [ "$TORCHELASTIC_RESTART_COUNT" = 1 ] || exit 5'
    folder = jobs.make(("sh", "-c", program), nodes=1, per_node=2, form="torchrun", options=(*TORCH, "--max_restarts=2"))
    run = jobs.run(folder)
    assert run.end is not None
    assert run.end.code == 0, jobs.log(folder)
    assert [row.rank for row in run.ranks] == [0, 1]
    assert {rank: lines[-1] for rank, lines in lines_of(run).items()} == {0: "try 1", 1: "try 1"}


@pytest.mark.parametrize("name", ["mpi by srun", "exec"])
def test_nodes_need_no_python_where_the_program_needs_none(no_python: Jobs, name: str) -> None:
    run = no_python.run(make(no_python, name, ("sh", "-c", "command -v python3; exit 7"), nodes=2, per_node=2))
    assert run.end is not None
    assert run.end.code == 7, no_python.log(run.path.parent)


def test_a_starter_that_a_node_lacks_is_one_line_for_each_node(no_python: Jobs) -> None:
    folder = no_python.make(("sh", "-c", "true"), nodes=2, per_node=1, form="torchrun")
    run = no_python.run(folder)
    assert run.end is not None
    assert run.end.code == 127
    assert sorted(no_python.log(folder).splitlines())[:2] == [f"glaunch: {host}: /usr/bin/python3: not found" for host in sorted(run.hosts)]


@DEBIAN_12
def test_a_port_that_is_taken_is_tried_again_with_another(jobs: Jobs) -> None:
    folder = jobs.make(("sh", "-c", "echo $MASTER_PORT"), nodes=1, per_node=1, form="torchrun", options=TORCH)
    (folder / "node" / "port.sh").write_text(
        'n=$(($(cat "/tmp/tries.$SLURM_JOB_ID" 2>/dev/null || echo 0) + 1)); echo $n >"/tmp/tries.$SLURM_JOB_ID"\n'
        "if [ $n = 1 ]; then\n"
        '    python3 -c \'import socket, sys, time; s = socket.socket(); s.bind(("", 23457)); s.listen(); open(sys.argv[1], "w"); '
        """time.sleep(200)' "/tmp/listens.$SLURM_JOB_ID" >/dev/null 2>&1 &\n"""
        '    until [ -e "/tmp/listens.$SLURM_JOB_ID" ]; do sleep 0.1; done; echo 23457 $SLURMD_NODENAME\n'
        "else echo 23458 $SLURMD_NODENAME; fi\n"
    )
    run = jobs.run(folder)
    assert run.end is not None
    assert run.end.code == 0, jobs.log(folder)
    assert run.start is not None
    assert (run.start.tries, run.start.port) == (2, 23458)
    assert {rank: lines[-1:] for rank, lines in lines_of(run).items()} == {0: ["23458"]}
