"""The first words of a line: help as people ask for it, a verb with a slip in it, a program that is no verb."""

import subprocess
import sys
from pathlib import Path

import pytest

from glaunch.cli import with_verb
from glaunch.errors import UsageError

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
    with pytest.raises(UsageError, match="stauts") as refused:
        with_verb(["stauts", "12"])
    assert refused.value.hint == "did you mean: glaunch status"
    (tmp_path / "stauts").write_text("")
    assert with_verb(["stauts", "12"]) == ["run", "stauts", "12"]


@pytest.mark.parametrize("word", ["train.py", "./plan", "hostname", "xyzzy", "-n"])
def test_what_is_no_verb_is_launched(word: str) -> None:
    assert with_verb([word, "a"]) == ["run", word, "a"]
