"""`glaunch config` as an admin and a user type it."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from glaunch import config
from glaunch.commands.config import command
from glaunch.errors import GlaunchError, UsageError
from glaunch.schema import KEYS

ROOT = Path(__file__).resolve().parents[2]
PRESETS = sorted((ROOT / "site/presets").glob("*.yaml"))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home and a working folder of our own; the site is one that GLAUNCH_SITE names."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv(
        "GLAUNCH_SITE", str(file(tmp_path / "site.yaml", "ssh.port: 2222\npartitions: {gpu: {time: 4:00:00}}\nprotect: {qos: Ask us.}\n"))
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def file(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o644)
    return path


def glaunch(*words: str) -> Result:
    return CliRunner().invoke(command, words)


def answer(*words: str) -> str:
    result = glaunch(*words)
    assert result.exception is None, result.exception
    return result.stdout


def test_show_is_a_settings_file(here: Path) -> None:
    text = answer("show")
    shown = file(here / "shown.yaml", text)
    settings, problems = config.check([shown], home=here, environ={})
    assert (problems, settings is not None) == ((), True)
    assert settings is not None
    now = config.load(home=here, cwd=here, environ={"GLAUNCH_SITE": str(here / "site.yaml")})
    assert {key: settings[key] for key in KEYS} == {key: now[key] for key in KEYS}
    assert settings.for_partition("gpu")["time"] == "4:00:00"


def test_show_origin(here: Path) -> None:
    lines = answer("show", "ssh.port", "qos", "--origin").splitlines()
    assert lines[0].split()[:2] == ["qos:", '""']
    assert lines[0].endswith("(protected: Ask us.)")
    assert lines[1].split() == ["ssh.port:", "2222", "#", f"{here}/site.yaml:1"]


def test_show_a_partition_and_a_section() -> None:
    assert answer("show", "-p", "gpu", "time") == "time: 4:00:00\n"
    assert [line.partition(":")[0] for line in answer("show", "ssh").splitlines()] == [key for key in KEYS if key.startswith("ssh.")]


def test_show_json(here: Path) -> None:
    document = json.loads(answer("show", "--json"))
    assert document["schema"] == "glaunch.settings/1"
    assert document["settings"]["ssh.port"] == {"value": 2222, "where": f"{here}/site.yaml:1"}
    assert document["settings"]["qos"]["protected"] == {"message": "Ask us.", "where": f"{here}/site.yaml:3"}
    assert document["partitions"]["gpu"]["time"]["value"] == "4:00:00"


def test_an_unknown_key_is_told() -> None:
    error = glaunch("show", "ssh.prot").exception
    assert isinstance(error, UsageError)
    assert error.hint == "did you mean 'ssh.port'?"


@pytest.mark.parametrize("preset", PRESETS, ids=lambda path: path.stem)
def test_a_preset_is_listed_printed_and_fine(here: Path, preset: Path) -> None:
    assert f"{preset.stem} " in answer("preset")
    text = answer("preset", preset.stem)
    assert text == preset.read_text()
    assert answer("check", str(file(here / "copy.yaml", text))) == f"{here}/copy.yaml: fine\n"
    assert f"class: {preset.stem}\n" in text
    assert "# source: " in text.replace("    # source", "# source").replace("  # source", "# source")


@pytest.mark.parametrize("preset", PRESETS, ids=lambda path: path.stem)
def test_what_a_preset_offers_in_comments_is_fine_too(here: Path, preset: Path) -> None:
    """Every `NAME: {value: …, reason: …}` of a comment, taken in."""
    offered = [line.strip().lstrip("# ") for line in preset.read_text().splitlines() if "{value: " in line]
    assert offered
    lines = "".join(f"  {line}\n" for line in offered)
    assert answer("check", str(file(here / "all.yaml", f"environment.set:\n{lines}"))) == f"{here}/all.yaml: fine\n"


def test_check_tells_every_problem(here: Path) -> None:
    path = file(here / "new.yaml", "tiem: 3\nssh.port: x\n")
    result = glaunch("check", str(path))
    assert isinstance(result.exception, GlaunchError)
    assert result.exception.message == "2 problems"
    assert result.stdout.splitlines()[:2] == [f"{path}:1: unknown key 'tiem'", "  did you mean 'time'?"]


@pytest.mark.parametrize(
    "text",
    [
        "environment.set: {NCCL_ALGO: Ring}",
        "placement: {mode: pin, allowed: [order]}",
        "partitions: {gpu: {environment.set: {NCCL_PROTO: LL}}}",
    ],
)
def test_check_sees_what_only_shows_in_use(here: Path, text: str) -> None:
    result = glaunch("check", str(file(here / "new.yaml", text)))
    assert isinstance(result.exception, GlaunchError)
    assert result.exception.message == "1 problem"
    assert result.stdout.startswith(f"{here}/new.yaml:1: ")


def test_check_of_what_is_here(here: Path) -> None:
    assert answer("check").splitlines()[-3:] == [
        f"{here}/site.yaml: read",
        f"{here}/.config/glaunch/config.yaml: not there",
        f"{here}/glaunch.yaml: not there",
    ]


def test_keys_lists_every_key() -> None:
    text = answer("keys")
    assert all(f"\n{key}: " in f"\n{text}" for key in KEYS)
