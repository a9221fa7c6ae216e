"""The command line as a process: its first words, how output leaves it, how errors end."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from glaunch import cli, rundir
from glaunch.cli import with_verb
from glaunch.history import History

LAUNCHER = Path(__file__).resolve().parents[1] / "launcher"
DEMO = LAUNCHER.parent / "site" / "captures" / "demo16"


def glaunch(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "glaunch", *words],
        capture_output=True,
        text=True,
        timeout=120,
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
    done = subprocess.run([sys.executable, "-m", "glaunch"], capture_output=True, text=True, timeout=120, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == found


@pytest.mark.parametrize("word", ["train.py", "./plan", "hostname", "xyzzy", "-n"])
def test_what_is_no_verb_is_launched(word: str) -> None:
    assert with_verb([word, "a"]) == ["run", word, "a"]


def at_home(home: Path, *words: str, **env: str) -> "subprocess.CompletedProcess[bytes]":
    whole = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(LAUNCHER), **env}
    return subprocess.run([sys.executable, "-m", "glaunch", *words], env=whole, cwd=home, capture_output=True, timeout=120)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_terminal_of_another_encoding_is_no_fault(tmp_path: Path, encoding: str) -> None:
    done = at_home(tmp_path, "--snapshot", str(DEMO), "plan", "-n", "64", "./a.out", PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "8 nodes × 8 GPUs (h100) = 64 ranks".encode() in done.stdout


def test_a_state_folder_that_cannot_be_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = at_home(tmp_path, "-n", "8", "true", XDG_STATE_HOME=str(tmp_path / "file"))
    assert done.returncode == 1
    assert b"cannot remember what is launched" in done.stderr


def test_plan_and_script_of_a_capture_agree(tmp_path: Path) -> None:
    done = at_home(tmp_path, "--snapshot", str(DEMO), "plan", "-v", "-n", "64", "./a.out")
    assert done.returncode == 0
    assert b'#SBATCH --nodes="8"' in done.stdout


SQUEUE = """#!/bin/sh
[ ! -e ~/over ] || exit 0
for last; do :; done
mark=$(printf %s "$last" | sed 's/^[^:]*:\\([^,]*\\),.*/\\1/')
for value in 7 PENDING 0 0 N/A 1:00 1 "" "" Priority gpu train /x; do printf '%s%s' "$value" "$mark"; done
echo
"""
SACCT = "#!/bin/sh\necho 'Slurm accounting storage is disabled' >&2\nexit 1\n"


def test_clean_leaves_what_slurm_still_knows_whatever_the_folder_is_called(tmp_path: Path) -> None:
    """squeue and sacct are stand-ins: programs of others."""
    programs, real, link = tmp_path / "bin", tmp_path / "real", tmp_path / "link"
    for place in (programs, real):
        place.mkdir()
    link.symlink_to(real)
    for name, text in (("squeue", SQUEUE), ("sacct", SACCT)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    folder = real / "glaunch-jobs" / "train-ab12"
    rundir.create(folder, {"schema": "glaunch.intent/1"})
    (folder / "7.0.0").mkdir()  # a run that was killed hard: it left no exit.json
    history = History(tmp_path / ".local/state/glaunch", "login1")
    history.append("ab12", 1.0, state="submitted", name="train", folder=str(link / "glaunch-jobs" / "train-ab12"), job_id="7", pin="none")
    words = ("clean", "--older-than", "0", str(real / "glaunch-jobs"))
    path = f"{programs}:{os.environ['PATH']}"
    done = at_home(tmp_path, *words, PATH=path)
    assert (done.returncode, done.stdout) == (0, b""), done.stderr
    assert folder.exists()
    (tmp_path / "over").write_text("")
    done = at_home(tmp_path, *words, PATH=path)
    assert (done.returncode, done.stdout) == (0, f"{folder}\n".encode()), done.stderr
    assert not folder.exists()


@pytest.mark.parametrize("words", [("report",), ("collect",), ("logs",), ("logs", "-f"), ("cancel",)])
def test_a_launch_that_slurm_refused_is_no_job_and_says_why(tmp_path: Path, words: tuple[str, ...]) -> None:
    history = History(tmp_path / ".local/state/glaunch", "login1")
    history.append("ab12", 1.0, state="refused", name="train", folder=str(tmp_path / "j"), detail="Slurm refused the job: no such QOS")
    done = at_home(tmp_path, *words, "ab12")
    assert done.returncode == 2
    assert done.stderr == b"glaunch: train is no job (Slurm refused the job: no such QOS)\n  glaunch status\n"


def test_a_ctrl_c_while_glaunch_starts_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    done = at_home(tmp_path, "status", PYTHONPATH=f"{tmp_path}:{LAUNCHER}")
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"glaunch: interrupted\n")


def test_a_second_ctrl_c_right_behind_the_first_is_no_silent_end(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="130"):
        cli._bug(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert capsys.readouterr().err == "glaunch: interrupted\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "-n", "8", "true"), b"glaunch: interrupted; nothing was submitted\n"),
        (("plan", "-n", "8", "true"), b"glaunch: interrupted\n"),
    ],
)
def test_a_ctrl_c_before_the_submission_says_that_there_is_no_job(tmp_path: Path, words: tuple[str, ...], said: bytes) -> None:
    for command in ("scontrol", "sinfo", "squeue"):
        (tmp_path / command).write_text("#!/bin/sh\nkill -s INT $PPID\nexec sleep 20\n")
        (tmp_path / command).chmod(0o755)
    done = at_home(tmp_path, *words, PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert (done.returncode, done.stdout) == (130, b"")
    assert done.stderr.endswith(said), done.stderr


def test_what_others_say_does_not_drive_the_terminal() -> None:
    """A banner of the site's, the words of a refusal: nothing in them is obeyed."""
    from glaunch.talk import shown_plain

    assert shown_plain("\x1b]0;mine\x07 now\r\n\tgo \x9b2J ü") == "\\x1b]0;mine\\x07 now\n go \\x9b2J ü"
