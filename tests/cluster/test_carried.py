"""What a job carries: its variables byte for byte, its secrets, nothing of the job around it."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cluster.conftest import User, job_id_of

from glaunch.sandbox.box import Sandbox

pytestmark = pytest.mark.slurm
LAUNCHER = Path(__file__).resolve().parents[2] / "launcher"

DUMP = """\
import json, os, sys
SHOWN = ("V_", "A_", "HF_", "OWN_", "PYTHON", "BASH_FUNC_A_")
print(json.dumps({name: value for name, value in os.environ.items() if name.startswith(SHOWN)}))
"""
VALUES = {
    "V_SPACES": " a  b ",
    "V_QUOTES": 'it\'s "quoted" `id` $(id) $HOME ${X}',
    "V_BACKSLASH": "a\\nb\\\\c\\",
    "V_GLOB": "* ? [a] {a,b} ~ !x #y",
    "V_LINES": "one\n\ntwo\n",
    "V_UTF8": "grüße 日本 🚀",
    "V_EMPTY": "",
    "V_DASH": "--export=NONE,-x",
    "V_COMMA": "mlx5_0:1,mlx5_1:1=a",
    "V_CONTROL": "\t\r\x1b[31m",
}


def dumped(user: User, job_id: str) -> dict[str, str]:
    """The variables that rank 0 saw."""
    (attempt,) = user.attempts(job_id)
    text = (attempt.path / "out" / f"{attempt.hosts[0]}.log").read_text()
    found = json.loads(re.search(r"^0: (\{.*)$", text, re.M)[1])  # type: ignore[index]
    return {str(name): str(value) for name, value in found.items()}


def test_values_arrive_byte_for_byte_from_the_line_and_from_the_callers_environment(ada: User) -> None:
    ada.write("dump.py", DUMP)
    typed = [word for name, value in VALUES.items() for word in ("--env", f"{name}={value}")]
    around = {f"A_{name}": value for name, value in VALUES.items()} | {"A_.odd": "a 'b'\n", "BASH_FUNC_A_say%%": "() {  echo $1\n}"}
    done = ada.glaunch("-N", "1", "-n", "1", *typed, "dump.py", env=around)
    assert done.code == 0, done.stderr
    assert {name: value for name, value in dumped(ada, job_id_of(done)).items() if name[:2] in {"V_", "A_", "BA"}} == {**VALUES, **around}


def test_a_secret_reaches_the_program_and_no_file(ada: User) -> None:
    ada.write("dump.py", DUMP)
    ada.write("glaunch.yaml", "environment.set: {OWN_API_KEY: s3cret-own}\n", 0o600)
    env = {"HF_HUB_TOKEN": "s3cret-around", "SBATCH_EXPORT": "HOME,PATH,HF_SBATCH_TOKEN=s3cret-sbatch"}
    try:
        done = ada.glaunch("-n", "1", "-N", "1", "--env", "HF_TOKEN=s3cret-typed", "dump.py", env=env)
    finally:
        (ada.home / "glaunch.yaml").unlink()
    assert done.code == 0, done.stderr
    job_id = job_id_of(done)
    seen = {name: value for name, value in dumped(ada, job_id).items() if name.startswith(("HF_", "OWN_"))}
    assert seen == {"HF_TOKEN": "s3cret-typed", "OWN_API_KEY": "s3cret-own", "HF_SBATCH_TOKEN": "s3cret-sbatch"}
    assert "s3cret" not in done.stderr
    holding = [
        path for path in ada.folder(job_id).rglob("*") if path.is_file() and b"s3cret" in path.read_bytes() and path.parent.name != "out"
    ]
    assert holding == []
    assert b"s3cret" not in b"".join(path.read_bytes() for path in (ada.home / ".local/state/glaunch").rglob("*") if path.is_file())
    # by hand the secret must be exported again, and the job says so where it is not
    script = str(ada.folder(job_id) / "job.sbatch").replace(str(ada.home), "/home/ada")
    assert ada.run("sbatch", "--wait", script).code == 0
    logs = [path.read_text() for path in ada.folder(job_id).glob("batch-*.log")]
    assert sum("no HF_TOKEN in the environment of this job: export it" in text for text in logs) == 1


def test_export_none_and_names(ada: User) -> None:
    ada.write("dump.py", DUMP)
    done = ada.glaunch("-N", "1", "-n", "1", "--export", "A_TWO", "--env", "V_X=a,b", "dump.py", env={"A_ONE": "1", "A_TWO": "2"})
    assert done.code == 0, done.stderr
    assert {n: v for n, v in dumped(ada, job_id_of(done)).items() if n[:2] in {"V_", "A_"}} == {"A_TWO": "2", "V_X": "a,b"}
    done = ada.glaunch("-N", "1", "-n", "1", "--export", "NONE", "--env", "HF_TOKEN=t", "dump.py", env={"A_ONE": "1"})
    assert done.code == 0, done.stderr
    assert {n: v for n, v in dumped(ada, job_id_of(done)).items() if n[:2] in {"HF", "A_"}} == {"HF_TOKEN": "t"}


OUTER = """\
#!/bin/sh
# A job whose one step is bound to core 1 and has one GPU; glaunch is started in that step.
srun -n1 -N1 --cpu-bind=map_cpu:1 --gres=gpu:h100:1 sh -c '
    taskset -cp $$
    export PYTHONPATH=$1
    shift
    "$@" -n 2 -N 2 --job-name inner sh -c "env; taskset -cp \\$\\$"
    "$@" --here -n 8 --job-name here sh -c "env; taskset -cp \\$\\$"
' sh "$@"
"""


def test_inside_a_step_of_another_job_nothing_of_its_binding_is_inherited(sandboxes: Callable[..., Sandbox]) -> None:
    """The outer step is bound to core 1 and has one GPU: neither the job submitted in it nor `--here` is."""
    user = User(sandboxes("bound", nodes=4, slurm_conf=("TaskPlugin=task/affinity",)))
    user.write("outer.sh", OUTER)
    glaunch = (str(LAUNCHER), sys.executable, "-m", "glaunch")
    line = ("sbatch", "--wait", "-N1", "-n8", "--gres=gpu:h100:8", "-t", "2", "-o", "outer.log", "./outer.sh")
    done = user.run(*line, *glaunch, timeout_s=120)
    said = (user.home / "outer.log").read_text()
    assert done.code == 0, said
    assert "current affinity list: 1\n" in said  # the outer step is bound
    logs = {name: sorted((user.home / "glaunch-jobs").glob(f"{name}-*/*/out/*.log"))[0].read_text() for name in ("inner", "here")}
    assert "CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7\n" in logs["here"]
    for text in logs.values():
        assert "map_cpu" not in text
        assert re.findall(r"current affinity list: (.*)$", text, re.M)
        assert not re.search(r"current affinity list: 1$", text, re.M), text


TOOL = "#!/bin/sh\necho tool of $TOOL_HOME, $NCCL_DEBUG, $ADDED, $(ulimit -n)\n"
MODULE = "#%Module1.0\nprepend-path PATH /home/ada/toolbin\nsetenv TOOL_HOME /opt/tool\nsetenv NCCL_DEBUG INFO\n"
MODULES_INIT = Path("/usr/share/modules/init/sh")


@pytest.mark.skipif(not MODULES_INIT.exists(), reason="no environment-modules")
def test_modules_are_loaded_before_any_rank_and_one_that_is_not_there_stops_the_job(ada: User) -> None:
    ada.write("toolbin/mytool", TOOL)
    ada.write("mods/tool/1.0", MODULE, 0o644)
    env = {"MODULEPATH": "/home/ada/mods"}
    done = ada.glaunch("-n", "2", "-N", "2", "--module", "tool", "mytool", env=env)
    assert done.code == 0, done.stderr
    assert "0: tool of /opt/tool, INFO" in done.stdout
    done = ada.glaunch("-n", "2", "-N", "2", "--module", "tool/2", "mytool", env=env)
    assert done.code == 1, done.stderr
    assert "module tool/2 does not load on n001; no rank was started" in done.stderr + done.stdout
    (attempt,) = ada.attempts(job_id_of(done))
    assert attempt.end is not None  # written, though it ended before anything was looked at
    assert not list((attempt.path / "out").iterdir())


def test_lines_of_ones_own_are_bash_and_reach_every_rank(ada: User) -> None:
    ada.write("toolbin/mytool", TOOL)
    ada.write("env.sh", "export PATH=$PATH:~/toolbin ADDED='it is \"so\"'\n", 0o644)
    ada.write("names.sh", "start() { :; }\nfinish() { :; }\nalias srun=false\nIFS=:\n", 0o644)  # as others use these words
    lines = ["--setup", "# for us", "--setup", "source names.sh"]
    lines += ["--setup", "source env.sh # mine", "--setup", "[[ $ADDED == it* ]] && names=(a b) && ulimit -n 999"]
    done = ada.glaunch("-n", "2", "-N", "2", *lines, "mytool")
    assert done.code == 0, done.stderr
    assert '0: tool of , , it is "so", 999' in done.stdout
    done = ada.glaunch("-n", "2", "-N", "2", "--setup", "source nothing.sh", "mytool")
    assert done.code == 1, done.stderr
    assert "setup ended with 1 in the line: source nothing.sh" in done.stderr + done.stdout
    for line, code in [("if true; then", 2), ("exit 0", 1)]:
        done = ada.glaunch("-n", "2", "-N", "2", "--setup", line, "mytool")
        assert done.code == code, done.stderr
        assert f"in the line: {line}" in done.stderr + done.stdout


def test_a_line_that_leaves_the_jobs_shell_is_told_though_slurm_calls_the_job_done(ada: User) -> None:
    ada.write("leaves.sh", "exec true\n", 0o644)
    done = ada.glaunch("-n", "2", "-N", "2", "--setup", "source leaves.sh", "hostname", env={"GLAUNCH_FOLLOW_POLL_S": "2"})
    assert done.code == 1, done.stderr
    job_id = job_id_of(done)
    assert ada.job(job_id)["JobState"] == "COMPLETED"
    assert f"job {job_id} ended in a line of setup, no rank was started: source leaves.sh" in done.stderr
    assert "the job ended in a line of setup, and no rank was started: source leaves.sh" in done.stderr
    assert "in the place of the job's own shell" not in done.stderr  # of a file nobody knows before
    (attempt,) = ada.attempts(job_id)
    assert (attempt.end, attempt.left_in) == (None, "source leaves.sh")
    plan = ada.glaunch("plan", "-n", "2", "--setup", "exec scl enable x bash", "hostname")
    assert "exec puts 'scl' in the place of the job's own shell" in " ".join(plan.stdout.split())


def test_an_active_venv_goes_along_also_without_the_environment(ada: User) -> None:
    ada.write("where.py", "import os, sys\nprint('in', sys.prefix, os.environ.get('VIRTUAL_ENV'))\n")
    shell = "python3 -m venv --without-pip v && . v/bin/activate && exec glaunch -n 1 -N 1 "
    done = ada.run("sh", "-c", shell + "where.py")
    assert "0: in /home/ada/v /home/ada/v" in done.stdout, done.stderr
    done = ada.run("sh", "-c", shell + "--export NONE where.py")
    assert "0: in /home/ada/v None" in done.stdout, done.stderr
