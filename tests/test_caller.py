"""What a command means where it is typed, and where only the job can know: after its modules, in its container."""

from pathlib import Path

import pytest

from glaunch.caller import caller_of
from glaunch.config import load
from glaunch.errors import UsageError
from glaunch.request import Request


def program_of(tmp_path: Path, request: Request, environ: dict[str, str], container: str = "") -> tuple[str, ...]:
    settings = load(
        home=tmp_path,
        cwd=tmp_path,
        environ={},
        options={"container.image": (container, "--container")} if container else {},
        etc=tmp_path / "none",
    )
    return caller_of(request, settings, environ, must_exist=True).program


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A folder with a program and a venv; its environment, nothing active."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()
    for folder in ("bin", "v/bin"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "python3").write_text("#!/bin/sh\n")
        (tmp_path / folder / "python3").chmod(0o755)
    return {"PATH": str(tmp_path / "bin")}


def test_the_python_of_path_and_with_modules_the_one_that_they_bring(tmp_path: Path, here: dict[str, str]) -> None:
    assert program_of(tmp_path, Request(("train.py", "-x")), here) == (str(tmp_path / "bin/python3"), "train.py", "-x")
    assert program_of(tmp_path, Request(("train.py",), modules=("python/3.12",)), here) == ("python3", "train.py")
    assert program_of(tmp_path, Request(("train.py",), setup=("source x",)), here) == ("python3", "train.py")


@pytest.mark.parametrize("name", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_an_active_environment_stays_whatever_modules_bring(tmp_path: Path, here: dict[str, str], name: str) -> None:
    active = {name: str(tmp_path / "v"), "PATH": f"{tmp_path / 'v/bin'}:{here['PATH']}"}
    assert program_of(tmp_path, Request(("train.py",), modules=("gcc",)), active) == (str(tmp_path / "v/bin/python3"), "train.py")
    (tmp_path / "x.sif").touch()
    assert program_of(tmp_path, Request(("train.py",)), active, "x.sif") == ("python3", "train.py")  # the image's own


def test_what_is_only_there_later_is_not_looked_for_here(tmp_path: Path, here: dict[str, str]) -> None:
    (tmp_path / "x.sif").touch()
    with pytest.raises(UsageError, match="there is no command 'gmx' on PATH"):
        program_of(tmp_path, Request(("gmx",)), here)
    assert program_of(tmp_path, Request(("gmx",), modules=("gromacs",)), here) == ("gmx",)
    assert program_of(tmp_path, Request(("gmx",)), here, "gromacs/gromacs:2024") == ("gmx",)
    assert program_of(tmp_path, Request(("/opt/app/run",)), here, "x.sif") == ("/opt/app/run",)
    with pytest.raises(UsageError, match=r"there is no script 'trian\.py'"):
        program_of(tmp_path, Request(("trian.py",)), here, "x.sif")


def test_an_image_that_is_named_from_here_is_here(tmp_path: Path, here: dict[str, str]) -> None:
    (tmp_path / "torch.sif").touch()
    for image in ("torch.sif", "./torch.sif", "/apps/none.sif", "docker.io/x/y.img:1", "ubuntu:24.04"):
        assert program_of(tmp_path, Request(("train.py",)), here, image)
    for image in ("./toch.sif", "toch.sif"):
        with pytest.raises(UsageError, match=f"there is no image '{image}' in ") as refused:
            program_of(tmp_path, Request(("train.py",)), here, image)
        assert refused.value.hint == "did you mean torch.sif?"


def test_a_folder_is_no_program(tmp_path: Path, here: dict[str, str]) -> None:
    for folder in ("./v", str(tmp_path / "v"), "v"):
        with pytest.raises(UsageError) as refused:
            program_of(tmp_path, Request((folder,)), here)
        assert refused.value.hint == "it is a folder: name the program in it"
