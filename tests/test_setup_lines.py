"""Which lines of setup leave the job's own shell, as far as their text says; bash itself is asked whether they do."""

import subprocess
from pathlib import Path

import pytest

from glaunch.setup_lines import leaving

LEAVE = (
    "exec true",
    "[ -e /nowhere ] || exec false",
    "if true; then exec bash -l; fi",
    "exec -a name true",
    "exec 2>&1 true",
    "case x in x) exec true;; esac",
    "cd / && exec env A=1 true",
    "command exec true",
    'export A=1; exec "$BASH" -c :',
    "! exec true",
)
STAY = (
    "exec >said.log 2>&1",
    "exec 3</dev/null",
    "exec {fd}>said.log",
    "exec &>said.log",
    "exec > >(cat >/dev/null) 2>&1",
    "exec >said.log; echo b",
    "exec",
    "(exec true)",
    "exec true & wait",
    "exec true | cat",
    "echo | exec cat",
    "x=$(exec true)",
    "echo exec true",
    "# exec true",
    "echo 'a; exec true'",
    "f() { exec true; }",
    "export PATH=$PATH:/x",
)


@pytest.mark.parametrize("line", [*LEAVE, *STAY])
def test_what_is_said_of_a_line_is_what_bash_does(line: str, tmp_path: Path) -> None:
    here = tmp_path / "here"
    script = f'eval "$1"\nset +e\n: >{here}\n'
    subprocess.run(["bash", "-c", script, "bash", line], cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, timeout=20)
    assert here.exists() == (line in STAY)
    assert bool(leaving([line])) == (line in LEAVE)


def test_the_line_and_the_program_are_named() -> None:
    (said,) = leaving(["source env.sh", "exec scl enable devtoolset-9 bash"])
    assert said.startswith("setup line 'exec scl enable devtoolset-9 bash': exec puts 'scl' in the place of the job's own shell")
    (said,) = leaving(["export HF_TOKEN=hf_1; exec bash"])
    assert "hf_1" not in said
    assert leaving(["echo 'open", 'cat <<"x']) == ()  # bash tells of these itself
