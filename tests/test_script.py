"""The script as text: golden files for whole scripts, what it refuses, and values of any kind arriving byte for byte."""

import os
import re
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plans import GATHERING, TEMPLATES, joined, load_templates, make_plan

from glaunch import rundir
from glaunch.array_parts import part_of
from glaunch.errors import UsageError
from glaunch.job_array import parse_array, split
from glaunch.placement.placement import OrderRow
from glaunch.plan import Option, Plan
from glaunch.request import Request
from glaunch.sbatch_options import batch_output
from glaunch.script import render
from glaunch.tuning import Variable

GOLDEN = Path(__file__).parent / "golden"
HOSTILE = "a b'c\"d $(id) `id` \\ grüße 日本 🚀 # %j"
DEBUG = Variable("NCCL_DEBUG", "WARN", "R64", "say what went wrong, and nothing else", "NCCL guide, NCCL_DEBUG")

PLANS = {
    "plain": make_plan(
        "/home/ada/jobs/train-sub-1",
        ("/usr/bin/python3", "/home/ada/train.py", "--lr", "1e-3"),
        nodes=8,
        per_node=8,
        name="train",
        more=(Option("partition", "gpu"), Option("gpus-per-node", "8"), Option("exclusive", None)),
        variables=(DEBUG,),
        kept=(Variable("NCCL_IB_HCA", "mlx5_0", "your environment", "NCCL finds the cards itself", "NCCL guide"),),
        unset=(Variable("NCCL_NET", "IB", "R02", "one node needs no fabric", "OLCF"),),
        work_dir="/home/ada",
    ),
    "array": make_plan("/home/ada/jobs/try-sub-1", ("./a.out",), more=(Option("array", "1-3%2"),), work_dir="/home/ada"),
    "partial": make_plan("/home/ada/jobs/try-sub-1", ("./a.out",), nodes=8, per_node=8, tasks=60, more=(Option("signal", "B:USR2@60"),)),
    "hostile": make_plan(
        f"/home/ada/{HOSTILE.replace(chr(92), '')}",
        ("./a.out", HOSTILE, ":", "", "-x", "two\nlines", "\r\n", "$HOME"),
        name=HOSTILE,
        more=(Option("comment", HOSTILE, HOSTILE + "\n#SBATCH --hold"), Option("signal", "R:SIGWINCH@30")),
        variables=(Variable("X", HOSTILE + "\r\nlast", HOSTILE + "\nrm -rf /", HOSTILE, "\n"),),
        work_dir=f"/home/ada/{HOSTILE}",
        order=[OrderRow(f"n{row:04d}", row, "leaf", "pod") for row in range(4096)],
    ),
    "part": part_of(
        replace(
            make_plan(
                "/home/ada/jobs/try-sub-1", ("./a.out",), more=(Option("array", "0-9%2"), Option("requeue", None)), work_dir="/home/ada"
            ),
            request=Request(("./a.out",), array="0-24%2", requeue=True, max_requeues=3),
            parts=split(parse_array("0-24%2"), 11),
        ),
        2,
    ),
    "components": joined(
        make_plan(
            "/home/ada/jobs/train-sub-1",
            ("/usr/bin/python3", "train.py", "--lr", "1e-3"),
            nodes=8,
            per_node=8,
            name="train",
            more=(Option("partition", "gpu"), Option("signal", "B:USR1@60")),
            work_dir="/home/ada",
        ),
        make_plan("", ("./server", HOSTILE, ":"), nodes=2, per_node=1, more=(Option("partition", "cpu"),), work_dir="/home/ada"),
        make_plan("", ("./log", "a\n#SBATCH --hold"), nodes=1, per_node=3, time="10", work_dir="/home/ada"),
    ),
}

PLANS["software"] = replace(
    PLANS["plain"],
    environment=replace(
        PLANS["plain"].environment,
        variables=(replace(DEBUG, yields=True), Variable("HF_TOKEN", "(not shown)", "--env", "asked for with --env", "", withheld=True)),
    ),
    launch=replace(
        PLANS["plain"].launch,
        modules=("gcc/12.3", "it's a module"),
        setup=("# for us", "source ~/env.sh # mine", "[[ -d /scratch ]] && export DATA='/scratch/a b'"),
    ),
)


def folder_of(plan: Plan) -> dict[str, str]:
    return dict(render(plan, load_templates(), version="1.2.3", gathering=GATHERING).texts)


@pytest.mark.parametrize("name", PLANS)
def test_golden(name: str) -> None:
    """A change of the script is seen whole. To take it over: GLAUNCH_GOLDEN=write pytest tests/test_script.py."""
    texts = folder_of(PLANS[name])
    for part in ("job.sbatch", "command.sh" if "command.sh" in texts else "command-1.sh"):
        golden = GOLDEN / "script" / name / part
        if os.environ.get("GLAUNCH_GOLDEN") == "write":
            golden.parent.mkdir(parents=True, exist_ok=True)
            golden.write_bytes(texts[part].encode())
        assert texts[part].encode() == golden.read_bytes()


@pytest.mark.parametrize("name", PLANS)
def test_same_plan_same_bytes(name: str) -> None:
    assert render(PLANS[name], load_templates(), version="1", gathering=GATHERING) == render(
        PLANS[name], load_templates(), version="1", gathering=GATHERING
    )


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("shell", [("dash", "-n"), ("bash", "--posix", "-n")], ids=lambda shell: shell[0])
def test_every_shell_reads_it(name: str, shell: tuple[str, ...], tmp_path: Path) -> None:
    for path, text in folder_of(PLANS[name]).items():
        if path.endswith((".sh", ".sbatch")):
            file = tmp_path / Path(path).name
            file.write_text(text, encoding="utf-8", newline="")
            done = subprocess.run([*shell, file], capture_output=True, text=True, timeout=120)
            assert (done.returncode, done.stderr) == (0, ""), path


@pytest.mark.parametrize("name", ["plain", "array", "partial", "software", "components"])
def test_shellcheck(name: str, tmp_path: Path) -> None:
    script = tmp_path / "job.sbatch"
    script.write_text(folder_of(PLANS[name])["job.sbatch"], encoding="utf-8")
    shell = "bash" if name == "software" else "sh"  # its own lines are bash
    # SC2034, SC2154: names that the script and node/batch.sh share. SC2016: values that must not expand
    command = ["shellcheck", "-s", shell, "-e", "SC1090,SC1091,SC2016,SC2034,SC2154", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "")


def test_shellcheck_of_the_node_files() -> None:
    done = subprocess.run(["shellcheck", "-s", "sh", *sorted(TEMPLATES.glob("node/*.sh"))], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "")


def test_no_value_goes_into_the_script_without_a_filter() -> None:
    bare = [
        (path, value)
        for path, text in load_templates().items()
        if path == "job.sbatch.j2" or path.startswith("parts/")
        for value in re.findall(r"\{\{(.*?)\}\}", text, re.DOTALL)
        if not re.search(r"\|\s*(q|sbatch|comment|code|number|option|variable|signal)\b", value)
    ]
    assert bare == []


def test_the_pin_is_never_in_the_script() -> None:
    text = folder_of(PLANS["plain"])["job.sbatch"]
    assert not re.search(r"#SBATCH.*(nodelist|no-requeue|parsable)", text)


def test_each_component_has_its_directives_and_its_program_and_a_plain_job_has_none_of_it() -> None:
    texts = folder_of(PLANS["components"])
    parts = re.findall(r"^#SBATCH (?:--(?:partition|nodes|time|signal|job-name|output).*|hetjob)$", texts["job.sbatch"], re.M)
    assert parts == [
        *('#SBATCH --job-name="train"', '#SBATCH --nodes="8"', '#SBATCH --time="5"'),
        '#SBATCH --output="/home/ada/jobs/train-sub-1/batch-%j.log"',
        *('#SBATCH --partition="gpu"', '#SBATCH --signal="B:USR1@60"'),
        *("#SBATCH hetjob", '#SBATCH --nodes="2"', '#SBATCH --time="5"', '#SBATCH --partition="cpu"'),
        *("#SBATCH hetjob", '#SBATCH --nodes="1"', '#SBATCH --time="10"'),
    ]
    assert "gl_shapes='64 8 8 1 1\n2 2 1 1 1\n3 1 3 1 1'\n" in texts["job.sbatch"]
    assert {path for path in texts if path.startswith("command")} == {"command-0.sh", "command-1.sh", "command-2.sh"}
    plain = folder_of(PLANS["plain"])
    assert "node/components.sh" not in plain
    assert "hetjob" not in plain["job.sbatch"]


def test_order_table() -> None:
    lines = folder_of(PLANS["plain"])["order.tsv"].splitlines()
    assert lines[0] == "n016\t0\tleaf4\tspine"
    assert len(lines) == 16


def test_slurm_order_where_no_node_is_known() -> None:
    text = folder_of(replace(PLANS["plain"], order=()))["job.sbatch"]
    assert "gl_order='slurm'" in text


def test_the_users_own_signal_is_passed_on() -> None:
    assert "trap 'pass_on USR2' USR2" in folder_of(PLANS["partial"])["job.sbatch"]
    assert "trap 'pass_on WINCH' WINCH" in folder_of(PLANS["hostile"])["job.sbatch"]


def test_no_timer_when_it_is_switched_off() -> None:
    text = dict(render(PLANS["plain"], load_templates(), version="1", gathering=replace(GATHERING, before_limit_s=0)).texts)["job.sbatch"]
    assert "watch_limit &" not in text


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (make_plan("/j", ("x",), name="two\nlines"), "--job-name"),
        (make_plan("/j", ("x",), more=(Option("comment", "a\rb"),)), "--comment"),
        (make_plan("/j", ("x",), more=(Option("comment", "a\0b"),)), "--comment"),
        (make_plan("/j", ("x",), more=(Option("b\nad", "1"),)), "no name of an sbatch option"),
        (make_plan("/j", ("x\0y",)), "NUL"),
        (make_plan("/j", ()), "no program"),
        (make_plan("/new\nline", ("x",)), "job folder"),
        (make_plan("/back\\slash", ("x",)), "backslash"),
        (make_plan("relative", ("x",)), "job folder"),
        (make_plan("/j", ("x",), variables=(Variable("A=B", "1", "", "", ""),)), "environment variable"),
        (make_plan("/j", ("x",), variables=(Variable("A", "a\0b", "", "", ""),)), "NUL"),
        (make_plan("/j", ("x",), variables=(Variable("IFS", "x", "", "", ""),)), "the job's own shell"),
        (make_plan("/j", ("x",), variables=(Variable("gl_folder", "x", "", "", ""),)), "the job's own shell"),
        (make_plan("/j", ("x",), order=(OrderRow("a\tb", 0, "", ""),)), "tab"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_no_script_can_carry_is_refused(plan: Plan, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        folder_of(plan)


def test_the_batch_log_of_an_array_has_its_tasks() -> None:
    assert batch_output("/a%b", array=False) == "/a%%b/batch-%j.log"
    assert batch_output("/a", array=True) == "/a/batch-%A_%a.log"


# --- Values of any kind, through the whole script. srun, scontrol and the shell's own `sh` are stand-ins: programs of others.

SRUN = """#!/bin/sh
while :; do
    case $1 in
    --output=*) out=$(printf '%s' "${1#*=}" | awk '{ gsub(/%N/, "n001"); print }') ;;
    -*) ;;
    *) break ;;
    esac
    shift
done
export SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NODEID=0 SLURM_STEP_NUM_TASKS=1 SLURM_STEP_TASKS_PER_NODE=1 SLURMD_NODENAME=n001
if [ -n "${out-}" ]; then exec "$@" >>"$out" 2>&1; fi
exec "$@"
"""
SCONTROL = """#!/bin/sh
case $* in *hostnames*) echo n001 ;; *) exit 1 ;; esac
"""
DUMP = """
import os, sys
with open(sys.argv[1], "wb") as file:
    file.write(b"\\0".join([os.environb[b"X"], os.environb[b"tasks"], *map(os.fsencode, sys.argv[2:])]))
"""

any_text = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40),
    st.binary(max_size=20).map(lambda raw: raw.replace(b"\0", b"").decode(errors="surrogateescape")),
    st.sampled_from([":", "", "-x", "--", "a b", "'", '"', "$(id)", "`id`", "\\", "\n", "\r\n", "*", "~", "$HOME", "!", "x=1", "#"]),
)


def stand_ins(folder: Path, shell: str) -> Path:
    """A folder for PATH: srun, scontrol, and an `sh` that is the shell named."""
    folder.mkdir()
    for name, text in (("srun", SRUN), ("scontrol", SCONTROL), ("sh", f'#!/bin/sh\nexec {shell} "$@"\n')):
        (folder / name).write_text(text, encoding="utf-8")
        (folder / name).chmod(0o755)
    return folder


@pytest.mark.parametrize(("shell", "folder_name"), [("dash", "plain"), ("bash --posix", "with 'blank' \"$(id)\" %j ü")])
def test_every_argument_and_value_arrives(shell: str, folder_name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    count = iter(range(10**6))
    base = tmp_path_factory.mktemp("jobs")
    path = f"{stand_ins(base / 'bin', shell)}:{os.environ['PATH']}"
    gathering = replace(GATHERING, node_dir=str(base), before_limit_s=0)

    @settings(max_examples=20)
    @given(st.lists(any_text, max_size=5), any_text)
    def arrives(words: list[str], value: str) -> None:
        folder = base / f"{next(count)} {folder_name}"
        got = folder / "got"
        argv = (sys.executable, "-c", DUMP, str(got), *words)
        variable = Variable("X", value, "--env", "asked for", "")
        plan = make_plan(str(folder), argv, nodes=1, per_node=1, variables=(variable,), work_dir=str(base))
        rundir.create(folder, {"schema": "glaunch.intent/1"})
        rundir.write_texts(folder, render(plan, load_templates(), version="1", gathering=gathering).texts)
        done = subprocess.run(
            ["sh", folder / "job.sbatch"],
            env={"PATH": path, "SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n001", "tasks": "mine"},
            capture_output=True,
            timeout=120,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert got.read_bytes().split(b"\0") == [os.fsencode(value), b"mine", *map(os.fsencode, words)]

    arrives()


def test_what_a_rule_takes_out_of_the_environment_does_not_reach_the_program(tmp_path: Path) -> None:
    base, folder = tmp_path, tmp_path / "job"
    taken = Variable("NCCL_NET", "IB", "R02", "one node needs no fabric", "OLCF")
    plan = make_plan(str(folder), ("sh", "-c", 'echo "${NCCL_NET-unset} $OTHER"'), nodes=1, per_node=1, unset=(taken,), work_dir=str(base))
    rundir.create(folder, {"schema": "glaunch.intent/1"})
    gathering = replace(GATHERING, node_dir=str(base), before_limit_s=0)
    rundir.write_texts(folder, render(plan, load_templates(), version="1", gathering=gathering).texts)
    env = {"PATH": f"{stand_ins(base / 'bin', 'dash')}:{os.environ['PATH']}", "SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n001"}
    done = subprocess.run(["sh", folder / "job.sbatch"], env=env | {"NCCL_NET": "IB", "OTHER": "stays"}, capture_output=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (folder / "7.0.0" / "out" / "n001.log").read_text() == "unset stays\n"


def test_files_are_closed_to_others(tmp_path: Path) -> None:
    rundir.create(tmp_path / "job", {})
    rundir.write_texts(tmp_path / "job", folder_of(PLANS["plain"]).items())
    modes = {str(path.relative_to(tmp_path)): stat.S_IMODE(path.stat().st_mode) for path in sorted(tmp_path.rglob("*"))}
    assert modes["job"] == modes["job/node"] == modes["job/job.sbatch"] == modes["job/node/task.sh"] == 0o700
    assert modes["job/order.tsv"] == modes["job/intent.json"] == 0o600
