"""The first words of a line: help as people ask for it, a verb with a slip in it, a program that is no verb."""

import subprocess
import sys
from pathlib import Path

import pytest

from glaunch.cli import with_verb

LAUNCHER = Path(__file__).resolve().parents[1] / "launcher"


def glaunch(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "glaunch", *words],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": str(LAUNCHER), "HOME": "/"},
    )


@pytest.mark.parametrize(
    ("words", "start"), [(("help",), "Usage: glaunch [OPTIONS]"), (("help", "plan"), "Usage: glaunch plan"), ((), "Usage: glaunch")]
)
def test_help_in_every_spelling(words: tuple[str, ...], start: str) -> None:
    done = glaunch(*words)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(start)


def test_a_verb_with_a_slip_is_no_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = glaunch("stauts", "12")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[1] == "  did you mean: glaunch status"
    (tmp_path / "stauts").write_text("")
    assert "did you mean: glaunch status" not in glaunch("stauts", "12").stderr


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("glaunch st", ["plain,status"]),
        ("glaunch tr", ["file,tr"]),
        ("glaunch tr -n 8 --parti", ["plain,--partition"]),
        ("glaunch plan tr", ["file,tr"]),
        ("glaunch run --place o", ["plain,order"]),
        ("glaunch plan train.py --steps 3 --deta", []),
        ("glaunch stauts x", ["file,x"]),
    ],
)
def test_completion_knows_verbs_options_and_files(line: str, found: list[str]) -> None:
    words = line.split()
    env = {
        "_GLAUNCH_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
        "PYTHONPATH": str(LAUNCHER),
        "HOME": "/",
    }
    done = subprocess.run([sys.executable, "-m", "glaunch"], capture_output=True, text=True, timeout=60, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == found


@pytest.mark.parametrize("word", ["train.py", "./plan", "hostname", "xyzzy", "-n"])
def test_what_is_no_verb_is_launched(word: str) -> None:
    assert with_verb([word, "a"]) == ["run", word, "a"]
