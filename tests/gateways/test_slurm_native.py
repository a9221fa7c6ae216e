"""The gateway over pyslurm without a Slurm: what becomes of a pyslurm that does not start, and of what it says, as it was recorded."""

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from glaunch.cluster import GpuCount
from glaunch.errors import ControllerSilent, ParseError, SlurmError, UsageError
from glaunch.gateways.answering import Answering, Ended
from glaunch.gateways.choose import Choice, choose, installed
from glaunch.gateways.kept import Answer, Kept
from glaunch.gateways.pyslurm_program import CONFIG
from glaunch.gateways.slurm_native import BY_COMMANDS, NODES, SlurmNative, by_commands, words_of
from glaunch.parsers.pyslurm_answers import gpus_of, parse_config, parse_nodes, parse_partitions, tells_gpus
from glaunch.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
LAUNCHER = ROOT / "launcher" / "glaunch"


def answering(code: str) -> Answering:
    return Answering([sys.executable, "-c", code], dict(os.environ))


def test_a_program_is_asked_line_by_line() -> None:
    loop = "import sys\nfor line in sys.stdin:\n "
    program = answering(loop + "print('noise', file=sys.stderr, flush=True); print(line.strip() * 2, flush=True)")
    assert program.ask("ab", 60)[0] == "abab"
    large = "x" * 3_000_000  # more than any pipe holds
    assert program.ask(large, 120)[0] == large * 2
    program.close()
    assert program.ask("again", 60)[0] == "againagain"
    program.close()


@pytest.mark.parametrize(
    ("code", "ended"),
    [
        ("import sys; sys.exit('fatal: no way')", 1),
        ("import os; os.kill(os.getpid(), 11)", -signal.SIGSEGV),
        ("import sys; print('half a line', end='', flush=True)", 0),
        ("import time; time.sleep(600)", None),
        ("import sys, time; sys.stdin.close(); time.sleep(600)", None),
    ],
)
def test_a_program_that_gives_no_answer(code: str, ended: int | None) -> None:
    program, began = answering(code), time.monotonic()
    with pytest.raises(Ended) as end:
        program.ask("x" * 200_000, 1.5 if ended is None else 120)
    assert end.value.code == ended
    assert ("no way" in end.value.stderr) == (ended == 1)
    assert time.monotonic() - began < (30 if ended is None else 120)


def native(tmp_path: Path, init: str, *, fall_back: bool, timeout_s: float = 60) -> tuple[SlurmNative, list[str]]:
    """The gateway with a pyslurm that begins like this, on a host whose scontrol answers with a node."""
    (tmp_path / "pyslurm").mkdir()
    (tmp_path / "pyslurm" / "__init__.py").write_text(init)
    (tmp_path / "scontrol").write_text("#!/bin/sh\necho NodeName=n1 CPUAlloc=0 CPUTot=4 RealMemory=1 State=IDLE\necho 'GresTypes = x'\n")
    (tmp_path / "scontrol").chmod(0o755)
    said: list[str] = []
    start = f"import sys, runpy; sys.path.insert(0, {str(tmp_path)!r}); runpy.run_path(sys.argv[1], run_name='__main__')"
    gateway = SlurmNative(
        fall_back=fall_back,
        say=said.append,
        program=[sys.executable, "-c", start, str(LAUNCHER / "gateways" / "pyslurm_program.py")],
        environ={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        timeout_s=timeout_s,
    )
    return gateway, said


BROKEN = [
    ("raise ImportError('libslurmfull.so.45: cannot open shared object file')", "cannot open shared object file"),
    ("import os; os.kill(os.getpid(), 11)", "ended by SIGSEGV"),
]


@pytest.mark.parametrize(("init", "words"), BROKEN)
def test_a_pyslurm_that_does_not_start_is_told_once_and_done_without(tmp_path: Path, init: str, words: str) -> None:
    gateway, said = native(tmp_path, init, fall_back=True)
    assert gateway.answer("config").endswith("GresTypes = x\n")
    assert gateway.answer("nodes").startswith("NodeName=n1")
    assert set(gateway.answers(("config", "topology", "partitions"))) == {"config", "topology", "partitions"}
    (line,) = said
    assert words in line
    assert "Slurm's commands are used instead" in line


@pytest.mark.parametrize(("init", "words"), BROKEN)
def test_asked_for_by_name_it_is_an_error(tmp_path: Path, init: str, words: str) -> None:
    gateway, said = native(tmp_path, init, fall_back=False)
    with pytest.raises(SlurmError, match=words) as error:
        gateway.answer("config")
    assert "slurm.gateway: commands" in error.value.hint
    assert said == []


def test_what_libslurm_says_at_its_end_is_told_as_from_the_commands(tmp_path: Path) -> None:
    init = "import sys; sys.exit('pyslurm: fatal: Could not establish a configuration source')"
    gateway, _ = native(tmp_path, init, fall_back=True)
    with pytest.raises(ControllerSilent, match="finds no slurm") as silent:
        gateway.answer("config")
    assert "export SLURM_CONF" in silent.value.hint


def test_an_import_that_hangs_ends_at_the_deadline(tmp_path: Path) -> None:
    gateway, _ = native(tmp_path, "import time; time.sleep(599)", fall_back=True, timeout_s=1)
    began = time.monotonic()
    with pytest.raises(ControllerSilent, match="pyslurm did not answer within 1 s"):
        gateway.answers(("nodes", "partitions", "reservations", "config"))
    assert time.monotonic() - began < 40


def test_words_of_libslurm() -> None:
    assert words_of("python3: error: a: b\npyslurm: fatal: c\nplain\n") == "a: b\nc\nplain\n"


NODE = {
    "name": "n1",
    "address": "10.0.0.1",
    "state": "MIXED+DRAIN",
    "effective_cpus": 62,
    "allocated_cpus": 6,
    "real_memory": 500000,
    "memory_reserved_for_system": 1000,
    "allocated_memory": 7,
    "weight": None,
    "active_features": ["ib"],
    "configured_gres": {"gpu:h100": 8, "shard:h100": 64},
    "allocated_tres": {"cpu": 6, "mem": "7M", "gres/gpu": 3},
    "partitions": ["gpu"],
}


def test_a_node() -> None:
    table = parse_nodes(json.dumps({"schema": "glaunch.pyslurm/1", "columns": list(NODE), "nodes": [list(NODE.values())]}))
    assert (table.names, table.addresses, table.states) == (("n1",), ("10.0.0.1",), ("MIXED+DRAIN",))
    assert (int(table.memory_total_mib[0]), int(table.cpus_total[0]), int(table.weights[0])) == (499000, 62, 0)
    assert (table.gpu_types, int(table.gpus_total[0]), int(table.gpus_allocated[0])) == (("h100",), 8, 3)


@pytest.mark.parametrize(
    ("configured", "allocated", "free"),
    [
        ({"gpu:h100": 8}, {}, {"h100": 8}),
        ({"gpu": 4}, {"gres/gpu": 1}, {"": 3}),
        ({"gpu:a100": 4, "gpu:h100": 4}, {"gres/gpu": 0}, {"a100": 4, "h100": 4}),
        ({"gpu:a100": 4, "gpu:h100": 4}, {"gres/gpu": 2}, {"a100": 0, "h100": 0}),
        ({"gpu:a100": 4, "gpu:h100": 4}, {"gres/gpu": 2, "gres/gpu:h100": 2}, {"a100": 4, "h100": 2}),
        ({"gpu:a100": 4, "gpu:h100": 4}, {"gres/gpu": 3, "gres/gpu:h100": 2}, {"a100": 3, "h100": 2}),
        ({"gpu:1g.10gb": 7, "mps:h100": 9}, {"gres/gpu": 7, "gres/gpu:1g.10gb": 7}, {"1g.10gb": 0}),
        ({"gpu:h100": 8}, {"gres/gpu": 9}, {"h100": 0}),
    ],
)
def test_gpus_in_use_are_never_fewer_than_they_are(configured: dict[str, int], allocated: dict[str, int], free: dict[str, int]) -> None:
    found: tuple[GpuCount, ...] = gpus_of(configured, allocated)
    assert {gpu.kind: gpu.total - gpu.allocated for gpu in found} == free


def test_where_gpus_in_use_are_told() -> None:
    assert tells_gpus({"GresTypes": "gpu,mps", "AccountingStorageTRES": "cpu,gres/gpu"})
    assert tells_gpus({"GresTypes": "craynetwork"})
    assert not tells_gpus({"GresTypes": "gpu", "AccountingStorageTRES": "cpu,gres/gpumem"})
    assert NODES not in by_commands({"GresTypes": ""})
    assert NODES in by_commands({"GresTypes": "gpu"})


def test_the_configuration_is_written_as_slurm_does() -> None:
    told = {"SchedulerParameters": {"defer": True, "bf_window": 600}, "PrivateData": [], "GresTypes": ["gpu", "mps"], "TopologyParam": None}
    found = parse_config(json.dumps({"schema": "glaunch.pyslurm/1", "config": told}))
    assert dict(found) == {
        "SchedulerParameters": "defer,bf_window=600",
        "PrivateData": "none",
        "GresTypes": "gpu,mps",
        "TopologyParam": "",
        "AccountingStorageEnforce": "none",
        "PreemptExemptTime": "00:00:00",
    }


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"schema": "x"}', '{"schema": "glaunch.pyslurm/1"}', '{"schema": "glaunch.pyslurm/1", "partitions": [{}]}']
)
def test_what_is_no_document_is_said(text: str) -> None:
    with pytest.raises(ParseError):
        parse_partitions(text)


def test_every_key_that_is_looked_at_is_asked_for() -> None:
    import re

    looked_at = {
        key
        for path in LAUNCHER.rglob("*.py")
        for key in re.findall(r"config(?:\.get)?\(\"([A-Z]\w+)\"|parameters\(\"([A-Z]\w+)\"", path.read_text(encoding="utf-8"))
        for key in key
        if key
    }
    assert "TopologyPlugin" in looked_at
    assert looked_at <= set(CONFIG)


def test_the_page_shows_what_goes_through_the_commands() -> None:
    page = (ROOT / "docs" / "gateway.md").read_text(encoding="utf-8")
    for what, why in BY_COMMANDS.items():
        assert f"| {what} | {why} |" in page


def made_of(tmp_path: Path, gateway: str, *, version: str, submit: str = "sbatch", cluster: str = "") -> Choice:
    """choose() on a host whose pyslurm and Slurm's commands are of these versions."""
    environ = {"SLURM_CONF": str(tmp_path / "slurm.conf"), "PATH": str(tmp_path), **({"SLURM_CLUSTERS": cluster} if cluster else {})}
    (tmp_path / "slurm.conf").write_text("ClusterName=x\n")
    Kept(tmp_path / "kept", environ=environ).put("version", Answer(f"slurm {version}\n", time.time()))
    return choose(settings(gateway, submit), tmp_path / "kept", environ)


def settings(gateway: str, submit: str) -> Settings:
    from glaunch.config import load

    return load(home="/", cwd="/", environ={"GLAUNCH_SLURM_GATEWAY": gateway, "GLAUNCH_SLURM_SUBMIT": submit}, etc="/nonexistent")


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pyslurm 25.11.2 is installed for this Python, as far as its folder tells; importing it would end the process."""
    (tmp_path / "site" / "pyslurm").mkdir(parents=True)
    (tmp_path / "site" / "pyslurm" / "__init__.py").write_text("raise SystemExit('it was imported')")
    (tmp_path / "site" / "pyslurm" / "version.py").write_text('__version__ = "25.11.2"\n')
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return tmp_path


@pytest.mark.parametrize(
    ("wished", "slurm", "taken", "why", "notes"),
    [
        ("auto", "25.11.8", "SlurmNative", "is made for this Slurm 25.11", []),
        ("auto", "26.05.5", "SlurmCommands", "is not made for this Slurm 26.05", ["Slurm's commands are used instead"]),
        ("pyslurm", "26.05.5", "SlurmNative", "is not made for this Slurm 26.05", ["it is used all the same"]),
        ("pyslurm", "25.11.8", "SlurmNative", "is made for this Slurm 25.11", []),
        ("commands", "25.11.8", "SlurmCommands", "GLAUNCH_SLURM_GATEWAY says so", []),
    ],
)
def test_the_choice(beside: Path, wished: str, slurm: str, taken: str, why: str, notes: list[str]) -> None:
    chosen = made_of(beside, wished, version=slurm)
    assert installed() == "25.11.2"
    assert type(chosen.gateway).__name__ == taken
    assert why in chosen.why
    assert len(chosen.notes) == len(notes)
    assert all(words in note for words, note in zip(notes, chosen.notes, strict=True))


@pytest.mark.parametrize(("wished", "notes"), [("auto", 0), ("pyslurm", 1)])
def test_another_cluster_is_asked_by_the_commands(beside: Path, wished: str, notes: int) -> None:
    chosen = made_of(beside, wished, version="25.11.8", cluster="red")
    assert (type(chosen.gateway).__name__, chosen.gateway.cluster, len(chosen.notes)) == ("SlurmCommands", "red", notes)
    assert "red was asked for" in chosen.why
    own = made_of(beside, wished, version="25.11.8").gateway
    assert (type(own.on("red")).__name__, type(own.on("")).__name__) == ("SlurmCommands", "SlurmNative")


def test_a_submission_through_pyslurm_needs_the_gateway(beside: Path) -> None:
    chosen = made_of(beside, "auto", version="26.05.5", submit="pyslurm")
    assert "jobs go through sbatch" in chosen.notes[-1]


@pytest.mark.skipif(installed() is not None, reason="pyslurm is installed here")
def test_pyslurm_by_name_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="this Python has no pyslurm"):
        made_of(tmp_path, "pyslurm", version="25.11.8")
    chosen = made_of(tmp_path, "auto", version="25.11.8")
    assert (type(chosen.gateway).__name__, chosen.notes) == ("SlurmCommands", ())
