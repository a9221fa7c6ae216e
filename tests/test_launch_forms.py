"""The launch forms: what each becomes, what is refused, and the whole script of each for five versions of Slurm.

`tests/golden/forms/table.txt` names the file of each form and version; equal texts share one. After a meant change:
GLAUNCH_GOLDEN=write pytest tests/test_launch_forms.py, then read the diff.
"""

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest
from tests.decisions import CLUSTER, FABRIC
from tests.plans import GATHERING, load_templates

from glaunch import config
from glaunch.decide import Ground, decide
from glaunch.errors import UsageError
from glaunch.plan import Plan
from glaunch.report.plan import started_by
from glaunch.request import Caller, Request
from glaunch.schema import KEYS, LAUNCH_FORMS
from glaunch.script import Script, render

GOLDEN = Path(__file__).parent / "golden" / "forms"
VERSIONS = {"22.05": (22, 5, 8), "23.11": (23, 11, 10), "24.11": (24, 11, 5), "25.05": (25, 5, 3), "26.05": (26, 5, 5)}
BLOCK = "26.05-block"
"""The same with topology/block, which takes no order of the ranks."""
CASES = (*VERSIONS, BLOCK)
PYTHON = "/opt/venv/bin/python"


def plan_of(
    form: str,
    version: str = "24.11",
    *,
    command: tuple[str, ...] = ("train.py", "--lr", "1e-3"),
    tasks: int = 32,
    nodes: int | None = None,
    tasks_per_node: int | None = None,
    **more: object,
) -> Plan:
    """A plan of 32 ranks on four nodes with the form on the line; `more` are further settings, as the line says them."""
    options = {"launch.form": (form, "--launcher"), **{name.replace("__", "."): (value, "the line") for name, value in more.items()}}
    empty = GOLDEN.parent / "no-such-folder"
    settings = config.load(home=empty, cwd=empty, environ={}, etc=empty, options=options)  # type: ignore[arg-type]
    program = (PYTHON, *command) if command[0].endswith(".py") else command
    caller = Caller("ada", frozenset(), "/home/ada", program, "train", {})
    request = Request(command, tasks=tasks, nodes=nodes, tasks_per_node=tasks_per_node)
    cluster = replace(CLUSTER, slurm_version=VERSIONS[version.removesuffix("-block")])
    if version == BLOCK:
        cluster = replace(cluster, config=MappingProxyType({"TopologyPlugin": "topology/block"}))
    rules = config.load_rules()
    return decide(request, caller, Ground(settings, rules, cluster, FABRIC, "ab12", "/home/ada/jobs/train-ab12", 1_000_000))


def script_of(plan: Plan) -> Script:
    return render(plan, load_templates(), version="1.2.3", gathering=GATHERING)


def table() -> dict[str, str]:
    lines = (GOLDEN / "table.txt").read_text().splitlines()
    return {" ".join(line.split()[:2]): line.split()[2] for line in lines}


def write_golden() -> None:
    """All of them anew, equal texts once."""
    GOLDEN.mkdir(exist_ok=True)
    names: dict[str, str] = {}
    lines = []
    for form in LAUNCH_FORMS:
        for version in CASES:
            text = script_of(plan_of(form, version))["job.sbatch"]
            name = names.setdefault(text, f"{form}-{version}.sbatch")
            lines.append(f"{form} {version} {name}\n")
    for file in GOLDEN.iterdir():
        file.unlink()
    for text, name in names.items():
        (GOLDEN / name).write_text(text)
    (GOLDEN / "table.txt").write_text("".join(lines))


if os.environ.get("GLAUNCH_GOLDEN") == "write":
    write_golden()


@pytest.mark.parametrize("version", CASES)
@pytest.mark.parametrize("form", LAUNCH_FORMS)
def test_golden(form: str, version: str) -> None:
    assert script_of(plan_of(form, version))["job.sbatch"] == (GOLDEN / table()[f"{form} {version}"]).read_text()


def test_every_golden_file_is_of_some_form_and_is_a_good_script() -> None:
    files = sorted(set(table().values()))
    assert {path.name for path in GOLDEN.iterdir()} == {"table.txt", *files}
    for shell in (("dash", "-n"), ("bash", "-n")):
        for file in files:
            done = subprocess.run([*shell, GOLDEN / file], capture_output=True, text=True, timeout=120)
            assert (done.returncode, done.stderr) == (0, ""), file
    # SC2034, SC2154: names that the script and node/batch.sh share. SC2016: values that must not expand
    command = ["shellcheck", "-s", "sh", "-e", "SC2016,SC2034,SC2154", *(str(GOLDEN / file) for file in files)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("form", LAUNCH_FORMS)
def test_the_folder_gets_the_one_form_that_the_plan_names(form: str) -> None:
    texts = dict(script_of(plan_of(form)).texts)
    assert [path for path in texts if path.startswith("node/form")] == ["node/form.sh"]
    assert texts["node/form.sh"] == load_templates()[f"node/form-{form}.sh"]
    assert "form-" not in texts["node/batch.sh"] + texts["node/task.sh"] + texts["node/probe.sh"], "what is not a form's file knows none"


def test_what_starts_the_ranks_of_a_node() -> None:
    module = (PYTHON, "-m", "torch.distributed.run")
    assert plan_of("torchrun").launch.starter == module
    assert plan_of("torchrun", launch__max_restarts=3, launch__options=("--tee=3",)).launch.starter == (
        *module,
        "--max_restarts=3",
        "--tee=3",
    )
    assert plan_of("torchrun", command=("./run.sh",)).launch.starter == ("torchrun",)
    assert plan_of("accelerate").launch.starter == (PYTHON, "-m", "accelerate.commands.launch")
    assert plan_of("accelerate", command=("./run.sh",)).launch.starter == ("accelerate", "launch")
    assert plan_of("srun").launch.starter == plan_of("exec").launch.starter == plan_of("mpi").launch.starter == ()
    assert plan_of("srun", launch__options=("--cpu-bind=cores",)).launch.starter == ("--cpu-bind=cores",)


def test_the_starter_is_written_word_by_word_for_a_shell() -> None:
    text = script_of(plan_of("torchrun", launch__options=("--log_dir=it's a b",)))["starter.sh"]
    words = "'/opt/venv/bin/python' \\\n    '-m' \\\n    'torch.distributed.run' \\\n    '--log_dir=it'\"'\"'s a b'\n"
    assert text == f"# What starts the ranks; node/form.sh adds their places.\nset -- \\\n    {words}"


@pytest.mark.parametrize(
    ("form", "more", "said"),
    [
        ("mpi", {"launch__max_restarts": 1}, "only torchrun starts ranks again, and this is mpi"),
        ("srun", {"launch__max_restarts": 1}, "only torchrun starts ranks again, and this is srun"),
        ("mpi", {"launch__mpi": "pmix -v"}, "no type of srun --mpi"),
        ("accelerate", {"tasks": 30}, "accelerate puts as many ranks on every node, and 30 are not 4 × 8"),
    ],
)
def test_what_a_form_cannot_do_is_refused(form: str, more: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        plan_of(form, **more)  # type: ignore[arg-type]


def test_ranks_that_accelerate_cannot_share_out_are_told_in_the_options_of_the_line() -> None:
    for nodes, hint in ((None, "-n 24 or -n 32, or"), (4, "-N 3 -n 24 or -N 4 -n 32, or")):
        with pytest.raises(UsageError) as refused:
            plan_of("accelerate", tasks=30, nodes=nodes)
        assert refused.value.hint.startswith(hint)
    assert plan_of("accelerate", tasks=3, tasks_per_node=8).layout.nodes == 1, "on one node any number is an even share"


def test_the_plan_says_what_a_form_becomes() -> None:
    assert started_by(plan_of("srun").launch) == "srun, one task a rank"
    assert "pmix where that works there, else Open MPI's mpirun" in started_by(plan_of("mpi").launch)
    assert started_by(plan_of("mpi", launch__mpi="pmi2").launch) == "srun --mpi=pmi2: one MPI job"
    assert started_by(plan_of("torchrun").launch).endswith(f"static rendezvous): {PYTHON} -m torch.distributed.run")
    assert "$GLAUNCH_HOSTFILE" in started_by(plan_of("exec").launch)
    assert KEYS["launch.form"].choices == LAUNCH_FORMS
