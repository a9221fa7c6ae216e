"""What users install: every file is in the wheel, and it runs for all users of a centre from a read-only place, offline.

The wheel is built as a user's installer would build it: sdist of a clean copy of the tree, then the wheel of that sdist. The
wheelhouse of the offline test is our wheel and the packages of this environment packed up again, so that nothing is downloaded:
it proves that the declared dependencies suffice and that nothing is fetched, not that the index holds them.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
SHIPPED = {"glaunch": "launcher/glaunch", "glaunch/templates": "templates", "glaunch/site": "site"}
BACKEND = "import sys; from setuptools import build_meta; getattr(build_meta, 'build_' + sys.argv[1])(sys.argv[2])"
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


def tracked(*paths: str) -> list[str]:
    """The files that git has, or would take with `git add`, below these paths."""
    command = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *paths]
    listing = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [path for path in listing.split("\0") if path and (ROOT / path).is_file()]


def build(kind: str, folder: Path, into: Path) -> Path:
    """Build an sdist or a wheel of the tree in `folder`; the one file that came out."""
    subprocess.run([sys.executable, "-c", BACKEND, kind, str(into)], cwd=folder, check=True, capture_output=True, timeout=120)
    (found,) = into.glob("*.tar.gz" if kind == "sdist" else "*.whl")
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel built from the sdist of a clean copy of the tree."""
    work = tmp_path_factory.mktemp("wheel")
    for path in tracked("."):
        target = work / "tree" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, target)
    with tarfile.open(build("sdist", work / "tree", work)) as sdist:
        if hasattr(tarfile, "data_filter"):
            sdist.extractall(work / "sdist", filter="data")
        else:
            sdist.extractall(work / "sdist")  # noqa: S202 (our own archive; the first 3.10 and 3.11 have no filters)
    (source,) = (work / "sdist").iterdir()
    return build("wheel", source, work)


def test_the_wheel_holds_the_tree_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == {inside + path.removeprefix(folder) for inside, folder in SHIPPED.items() for path in tracked(folder)}
    for folder in SHIPPED:
        assert any(name.startswith(f"{folder}/") for name in names), folder


def test_the_wheel_says_what_it_is(wheel: Path) -> None:
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        texts = {Path(name).name: archive.read(name).decode() for name in archive.namelist() if ".dist-info/" in name}
    assert "Requires-Python: >=3.10" in texts["METADATA"]
    assert "glaunch = glaunch.__main__:main" in texts["entry_points.txt"]
    assert "Apache License" in texts["LICENSE"]


def test_git_ignores_no_shipped_file() -> None:
    command = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "--others", "--ignored", "--exclude-standard", "--", "templates", "site"]
    assert subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout == ""


def test_data_folders_hold_no_python_and_launcher_holds_one_package() -> None:
    """A Python file in a folder called `site` hides the standard module of that name (3.10)."""
    assert [path for path in tracked("templates", "site") if path.endswith(".py")] == []
    assert {path.split("/")[1] for path in tracked("launcher")} == {"glaunch"}


def needed(name: str) -> dict[str, Distribution]:
    """An installed package and all that it needs here, by name, as its metadata says."""
    found = {}
    waiting = [Requirement(name)]
    while waiting:
        requirement = waiting.pop()
        if requirement.name.lower() in found or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        found[requirement.name.lower()] = package = distribution(requirement.name)
        waiting += [Requirement(line) for line in package.requires or ()]
    return found


def pack(package: Distribution, house: Path) -> None:
    """Write an installed package as a wheel again: the files of its RECORD below site-packages, not compressed."""
    text = package.read_text("WHEEL") or ""
    tags = [line.split(": ")[1].split("-") for line in text.splitlines() if line.startswith("Tag: ")]
    tag = "-".join(".".join(sorted({parts[at] for parts in tags})) for at in range(3))
    name = package.metadata["Name"].replace("-", "_")
    with zipfile.ZipFile(house / f"{name}-{package.version}-{tag}.whl", "w") as archive:
        for path in package.files or ():
            if ".." not in path.parts and "__pycache__" not in path.parts and path.name not in {"INSTALLER", "REQUESTED"}:
                archive.write(str(path.locate()), str(path))


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A folder that all users can reach (pytest's own are private)."""
    folder = Path(tempfile.mkdtemp(prefix="glaunch-test-", dir="/var/tmp"))
    folder.chmod(0o755)
    yield folder
    subprocess.run(["chmod", "-R", "u+w", str(folder)], check=True)
    shutil.rmtree(folder)


def wheelhouse(wheel: Path, folder: Path) -> Path:
    """Our wheel beside those of all that it needs."""
    folder.mkdir()
    shutil.copy(wheel, folder)
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (archive.read(name).decode() for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    packages: dict[str, Distribution] = {}
    for line in metadata.splitlines():
        if line.startswith("Requires-Dist: ") and "extra ==" not in line:
            packages |= needed(line.removeprefix("Requires-Dist: "))
    for package in packages.values():
        pack(package, folder)
    return folder


@pytest.fixture(scope="module")
def prefix(wheel: Path, place: Path) -> Path:
    """A virtual environment with glaunch from the wheelhouse alone, every write bit taken away."""
    house, venv = wheelhouse(wheel, place / "house"), place / "opt"
    base = getattr(sys, "_base_executable", sys.executable)
    subprocess.run([base, "-m", "venv", "--without-pip", str(venv)], check=True, timeout=180)
    install = ["--isolated", "--python", str(venv / "bin/python"), "install", "-q", "--no-compile", "--no-cache-dir"]
    offline = ["--no-index", "--find-links", str(house), "glaunch"]
    done = subprocess.run([sys.executable, "-m", "pip", *install, *offline], capture_output=True, text=True, timeout=120, cwd=place)
    assert done.returncode == 0, done.stderr
    shutil.rmtree(house)
    subprocess.run(["chmod", "-R", "a-w,a+rX", str(venv)], check=True)
    if as_other_user([str(venv / "bin/python"), "-c", ""], place).returncode != 0:
        python = os.path.realpath(venv / "bin/python")
        pytest.skip(f"other users cannot run {python}: make the environment of a Python that they can (make PYTHON=…)")
    return venv


def as_other_user(argv: list[str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run as nobody where we are root, in this folder."""
    before = NOBODY if os.geteuid() == 0 else []
    env = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8"} | variables
    return subprocess.run([*before, *argv], cwd=folder, env=env, capture_output=True, text=True, timeout=180)


@pytest.fixture
def crowded(place: Path) -> Path:
    """A user's folder with names in it that must not hide ours."""
    folder = place / "work"
    for path in ("launcher.py", "site/__init__.py", "templates/__init__.py", "launcher/__init__.py"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("raise SystemExit('the wrong file was imported')\n")
    (folder / "glaunch").mkdir(exist_ok=True)
    return folder


def test_runs_offline_and_read_only_for_another_user(prefix: Path, crowded: Path) -> None:
    python = str(prefix / "bin/python")
    whole = "import glaunch.cli, jinja2, numpy, paramiko, rich, yaml; print(glaunch.__file__)"
    for argv in ([str(prefix / "bin/glaunch"), "--version"], [python, "-m", "glaunch", "--version"], [python, "-W", "error", "-c", whole]):
        done = as_other_user(argv, crowded)
        assert (done.returncode, done.stderr) == (0, ""), argv
        assert done.stdout.startswith(("glaunch ", str(prefix))), argv
    assert not [path for path in prefix.rglob("*.pyc") if "glaunch" in path.parts]


def test_its_data_is_found_where_it_is_installed(prefix: Path, crowded: Path) -> None:
    code = "from glaunch.shipped import shipped; print(shipped('site')); print(shipped('templates'))"
    done = as_other_user([str(prefix / "bin/python"), "-c", code], crowded)
    (package,) = prefix.glob("lib/python3*/site-packages/glaunch")
    assert done.stdout.splitlines() == [str(package / "site"), str(package / "templates")], done.stderr


def test_a_path_with_the_users_own_folder_first_hides_nothing(prefix: Path, crowded: Path) -> None:
    if sys.version_info < (3, 11):
        (crowded / "site/__init__.py").unlink()  # it would cost any virtual environment of 3.10 its packages, not only ours
    done = as_other_user([str(prefix / "bin/glaunch"), "--version"], crowded, PYTHONPATH=".")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("glaunch ")
