"""The shape holds: imports go down, deciding and doing stay apart, pure modules touch no world, and only `cli` catches.

The checker reads every module with `ast` and imports nothing. The last tests show it small wrong trees, so that it can fail.
"""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

LAUNCHER = Path(__file__).resolve().parents[1] / "launcher"

FLOORS: dict[str, int] = {
    "errors": 0, "units": 0,
    "hostlist": 1, "cluster": 1, "fabric": 1, "node_shape": 1, "request": 1, "settings": 1, "job": 1, "logs": 1,
    "document": 1, "inherited": 1, "rule": 1, "network_model": 1, "schema": 1, "reasons": 1, "network": 1, "network_json": 1,
    "past_jobs": 1, "slurm_versions": 1, "accounting": 1, "block_tree": 1, "block_rule": 1,
    "job_array": 1, "dependency": 1,
    "fabric_json": 1, "routes": 1, "secret": 1,
    "parsers": 2, "writers": 2,
    "placement": 3, "tuning": 3, "plan": 3, "script": 3, "diagnosis": 3, "report": 3, "doctor": 3,
    "decide": 3, "sbatch_options": 3, "hierarchy": 3, "leaf_domains": 3, "merge": 3, "asking": 3, "launch_form": 3,
    "ahead": 3, "remarks": 3, "array_parts": 3, "segments": 3, "spares": 3, "withheld": 3, "components": 3, "container": 3,
    "setup_lines": 3, "topologies": 1,
    "gateways": 3, "config": 3, "rundir": 3, "collect": 3, "history": 3, "sandbox": 3, "shipped": 3, "follow": 3,
    "bundle": 3, "attempt": 3, "recover": 3, "meant": 3, "talk": 3, "pin": 3, "fabric_files": 3, "growing_file": 3, "job_output": 3,
    "trusted_file": 3,
    "pipeline": 4, "launch": 4, "topology": 4, "examination": 4, "caller": 4, "aftermath": 4, "evidence": 4, "here": 4,
    "commands": 5,
    "cli": 6, "__main__": 7,
}  # fmt: skip
"""First part below `glaunch` → its floor. `glaunch` itself holds the version and nothing else."""

DECIDING = frozenset(
    {
        *("placement", "tuning", "plan", "script", "diagnosis", "report", "doctor", "decide", "sbatch_options", "hierarchy", "merge"),
        *("asking", "ahead", "remarks", "launch_form", "withheld", "container", "components", "segments", "spares", "array_parts"),
        *("leaf_domains", "setup_lines"),
    }
)
DOING = frozenset(
    {"gateways", "config", "rundir", "collect", "history", "sandbox", "shipped", "follow", "bundle", "attempt", "recover", "talk", "pin"}
    | {"meant", "fabric_files", "growing_file", "job_output", "trusted_file"}
)
PURE = DECIDING | {part for part, floor in FLOORS.items() if floor <= 2}
WORLD = frozenset({"os", "subprocess", "pathlib", "time", "random", "socket", "paramiko", "pyslurm", "shutil", "tempfile", "threading"})
LAZY = ("numpy", "jinja2", "paramiko", "pyslurm", "rich", "yaml")

CARRIERS = frozenset({"gateways.fan_out"})
"""Catches all in a thread of its own and raises it in the caller's."""

FUNCTION_LINES = 90
MODULE_LINES = 450
"""Above these a module or a function cannot be read any more. The compass is 60 and 300."""


@dataclass(frozen=True)
class Module:
    """One source file: its name below glaunch (`parsers.topology`) and its tree."""

    name: str
    text: str

    @property
    def part(self) -> str:
        return self.name.split(".")[0]

    @property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)


def modules(root: Path) -> list[Module]:
    """All modules of the package under `root`, without the empty `__init__` files."""
    found = []
    for path in sorted((root / "glaunch").rglob("*.py")):
        parts = path.relative_to(root / "glaunch").with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__")
        if name:
            found.append(Module(name, path.read_text(encoding="utf-8")))
    return found


def imported(module: Module) -> Iterator[tuple[str, int]]:
    """Every absolute module name that is imported anywhere in the file, also inside functions, with its line."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                yield "glaunch.<relative>", node.lineno
            elif node.module == "glaunch":  # from glaunch import parsers
                yield from ((f"glaunch.{alias.name}", node.lineno) for alias in node.names if alias.name != "__version__")
            else:
                yield str(node.module), node.lineno


def import_faults(module: Module) -> Iterator[str]:
    """Laws 1 to 3 for one module."""
    if module.part not in FLOORS:
        yield f"{module.name}: on no floor; give {module.part!r} a floor in tests/test_floors.py"
        return
    floor = FLOORS[module.part]
    for name, line in imported(module):
        where = f"{module.name}:{line}"
        if module.part in PURE and name.split(".")[0] in WORLD:
            yield f"{where}: a pure module imports {name}"
        if not name.startswith("glaunch.") or module.part == "__main__":
            continue
        part = name.split(".")[1]
        if part not in FLOORS:
            yield f"{where}: imports {name}, which is on no floor (relative imports have none)"
        elif FLOORS[part] > floor:
            yield f"{where}: floor {floor} imports {name} of floor {FLOORS[part]}"
        elif (module.part in DECIDING and part in DOING) or (module.part in DOING and part in DECIDING):
            yield f"{where}: deciding and doing must not import each other ({name})"


def catches(handler: ast.ExceptHandler) -> list[str]:
    """The names an except clause catches; `` for a bare one."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return [ast.unparse(kind).split(".")[-1] if kind else "" for kind in kinds]


def conduct_faults(module: Module) -> Iterator[str]:
    """No broad except outside cli unless it raises again, no shell, no assert."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ExceptHandler):
            for name in catches(node):
                goes_on = isinstance(node.body[-1], ast.Raise) or module.name in CARRIERS or module.part == "cli"
                if name in {"", "Exception", "BaseException"} and not goes_on:
                    yield f"{module.name}:{node.lineno}: catches everything and lets it end there"
                if name == "GlaunchError" and module.part != "cli":
                    yield f"{module.name}:{node.lineno}: catches GlaunchError; only cli does (a part catches the one kind it can answer)"
        elif isinstance(node, ast.Assert):
            yield f"{module.name}:{node.lineno}: assert, which python -O leaves out"
        elif isinstance(node, ast.Call):
            for word in node.keywords:
                if word.arg == "shell" and not (isinstance(word.value, ast.Constant) and word.value.value is False):
                    yield f"{module.name}:{node.lineno}: runs a shell"
            if ast.unparse(node.func) in {"os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"}:
                yield f"{module.name}:{node.lineno}: runs a shell"


def size_faults(module: Module) -> Iterator[str]:
    """Functions and modules that are too long to be read."""
    lines = len(module.text.splitlines())
    if lines > MODULE_LINES:
        yield f"{module.name}: {lines} lines"
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            span = (node.end_lineno or node.lineno) - node.lineno + 1
            if span > FUNCTION_LINES:
                yield f"{module.name}:{node.lineno}: {node.name} has {span} lines"


def vague_names(module: Module) -> Iterator[str]:
    """A noun is a module; these words say nothing."""
    for part in module.name.split("."):
        if part in {"core", "util", "utils", "common", "manager", "handler", "helpers", "misc"}:
            yield f"{module.name}: {part!r} says nothing about what is in it"


OURS = modules(LAUNCHER)


def test_imports_go_down_and_pure_modules_touch_no_world() -> None:
    assert len(OURS) > 10
    assert [fault for module in OURS for fault in import_faults(module)] == []


def test_only_cli_catches_all_and_nothing_runs_a_shell() -> None:
    assert [fault for module in OURS for fault in conduct_faults(module)] == []


def test_modules_and_functions_can_be_read() -> None:
    assert [fault for module in OURS for fault in (*size_faults(module), *vague_names(module))] == []


def test_every_module_and_folder_is_named_where_a_newcomer_looks() -> None:
    page = (LAUNCHER.parent / "docs/how-it-is-built.md").read_text(encoding="utf-8")
    named = {word for code in re.findall(r"`([^`\n]+)`", page) for word in re.findall(r"\w+", code)}
    assert {module.part for module in OURS} - named == {"__main__"}


def callers(module: Module, name: str) -> set[str]:
    """The functions of a module that call the function `name`."""
    return {
        function.name
        for function in ast.walk(module.tree)
        if isinstance(function, ast.FunctionDef)
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == name
    }


def test_plan_and_run_decide_by_the_same_function() -> None:
    """Law 4: one place decides, and both verbs come through it; a command decides nothing by itself."""
    trees = {module.name: module for module in OURS}
    assert {name for name, module in trees.items() if callers(module, "decide")} == {"components"}
    assert {(name, function) for name, module in trees.items() for function in callers(module, "decide_all")} == {("pipeline", "_decide")}
    assert callers(trees["pipeline"], "_decide") == {"plan", "decide_on"}
    assert {function for module in OURS for function in callers(module, "decide_on")} >= {"launch"}
    for name, module in trees.items():
        if module.part == "commands":
            parts = {found.split(".")[1] for found, _ in imported(module) if found.startswith("glaunch.")}
            assert not parts & {"placement", "script", "decide"}, f"{name} decides by itself: {sorted(parts)}"


def test_one_program_imports_pyslurm() -> None:
    """Importing it may end the process: it is done in a process of its own, which knows nothing of glaunch."""
    names = {module.name: {name.split(".")[0] for name, _ in imported(module)} for module in OURS}
    assert [name for name, found in names.items() if "pyslurm" in found] == ["gateways.pyslurm_program"]
    assert "glaunch" not in names["gateways.pyslurm_program"]


def test_help_imports_nothing_heavy() -> None:
    """`glaunch --help` and shell completion must answer at once: none of the heavy packages is loaded for them."""
    code = f"""
import sys
from glaunch.cli import main
sys.argv = ["glaunch", "--help"]
try:
    main()
except SystemExit as end:
    print("loaded", [name for name in {LAZY!r} if name in sys.modules], "exit", end.code or 0)
"""
    env = dict(os.environ, PYTHONPATH=str(LAUNCHER))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=env)
    assert done.stdout.splitlines()[-1:] == ["loaded [] exit 0"], done.stdout + done.stderr


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("errors", "from glaunch.units import parse_time_s", ""),
        ("parsers.nodes", "from glaunch.cluster import NodeTable\nimport re", ""),
        ("commands.run", "from glaunch import pipeline, __version__", ""),
        ("cluster", "from glaunch.parsers.nodes import parse", "floor 1 imports"),
        ("units", "import glaunch.hostlist", "floor 0 imports"),
        ("fabric", "def f() -> None:\n    from glaunch.gateways import process", "floor 1 imports"),
        ("pipeline", "from glaunch import commands", "floor 4 imports"),
        ("gateways.ssh", "from glaunch.cli import main", "floor 3 imports"),
        ("report.text", "from glaunch.rundir import load", "deciding and doing"),
        ("gateways.slurm", "from glaunch.plan import Plan", "deciding and doing"),
        ("script", "import os.path", "a pure module imports os.path"),
        ("parsers.topology", "from pathlib import Path", "a pure module imports pathlib"),
        ("request", "import time", "a pure module imports time"),
        ("diagnosis.rules", "def f() -> None:\n    import subprocess", "a pure module imports subprocess"),
        ("mystery", "", "on no floor"),
        ("report.text", "from .words import words", "on no floor"),
        ("report.text", "from glaunch.mystery import words", "on no floor"),
    ],
)
def test_the_checker_sees_wrong_imports(name: str, text: str, fault: str) -> None:
    faults = list(import_faults(Module(name, text)))
    assert len(faults) == (1 if fault else 0), faults
    assert fault in "".join(faults)


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("cli", "try:\n    f()\nexcept GlaunchError:\n    g()", ""),
        ("rundir", "try:\n    f()\nexcept (OSError, SlurmError):\n    g()", ""),
        ("rundir", "run(argv, shell=False)", ""),
        ("rundir", "try:\n    f()\nexcept BaseException:\n    g()\n    raise", ""),
        ("rundir", "try:\n    f()\nexcept BaseException:\n    if x:\n        raise\n    g()", "catches everything"),
        ("rundir", "try:\n    f()\nexcept Exception:\n    g()", "catches everything"),
        ("rundir", "try:\n    f()\nexcept (OSError, BaseException):\n    g()", "catches everything"),
        ("rundir", "try:\n    f()\nexcept:\n    g()", "catches everything"),
        ("pipeline", "try:\n    f()\nexcept errors.GlaunchError:\n    g()", "catches GlaunchError"),
        ("pipeline", "assert x, 'y'", "assert"),
        ("gateways.process", "subprocess.run('ls', shell=True)", "runs a shell"),
        ("gateways.process", "subprocess.run('ls', shell=wanted)", "runs a shell"),
        ("gateways.process", "os.system('ls')", "runs a shell"),
    ],
)
def test_the_checker_sees_wrong_conduct(name: str, text: str, fault: str) -> None:
    faults = list(conduct_faults(Module(name, text)))
    assert len(faults) == (1 if fault else 0), faults
    assert fault in "".join(faults)


def test_the_checker_sees_what_is_too_long_or_says_nothing() -> None:
    long_function = "def f() -> None:\n" + "    x = 1\n" * FUNCTION_LINES
    assert list(size_faults(Module("job", long_function))) == [f"job:1: f has {FUNCTION_LINES + 1} lines"]
    assert list(size_faults(Module("job", "x = 1\n" * (MODULE_LINES + 1)))) == [f"job: {MODULE_LINES + 1} lines"]
    assert list(size_faults(Module("job", "x = 1\n" * MODULE_LINES))) == []
    assert list(vague_names(Module("report.utils", ""))) == ["report.utils: 'utils' says nothing about what is in it"]


def test_the_checker_finds_who_calls_a_function() -> None:
    text = "def a():\n    return f(1)\n\ndef b():\n    return [f for f in x.f(2)]\n"
    assert callers(Module("pipeline", text), "f") == {"a"}


def test_the_checker_reads_a_tree(tmp_path: Path) -> None:
    (tmp_path / "glaunch/parsers").mkdir(parents=True)
    (tmp_path / "glaunch/__init__.py").write_text("")
    (tmp_path / "glaunch/parsers/__init__.py").write_text("import os\n")
    (tmp_path / "glaunch/parsers/nodes.py").write_text("from glaunch.cli import main\n")
    assert [fault for module in modules(tmp_path) for fault in import_faults(module)] == [
        "parsers:1: a pure module imports os",
        "parsers.nodes:1: floor 2 imports glaunch.cli of floor 6",
    ]
