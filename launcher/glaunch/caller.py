"""Who calls, from where, and what the command means there."""

import grp
import os
import pwd
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from glaunch.errors import GlaunchError, UsageError
from glaunch.request import Caller, Request
from glaunch.settings import Settings


def user_name() -> str:
    """The name of the user that runs glaunch, or the number where it has none."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def group_names() -> frozenset[str]:
    """The groups of that user."""
    return frozenset(map(_group, os.getgroups()))


def login_host() -> str:
    """This host's short name."""
    return os.uname().nodename.split(".")[0] or "localhost"


def state_folder(environ: Mapping[str, str]) -> Path:
    """Where this user's history and kept answers are: a relative XDG_STATE_HOME is as if it were not set.

    **Source:** XDG Base Directory Specification 0.8: "All paths set in these environment variables must be absolute".
    """
    named = environ.get("XDG_STATE_HOME", "")
    return (Path(named) if os.path.isabs(named) else Path.home() / ".local" / "state") / "glaunch"


def home_folder() -> Path:
    """The user's home. Raises GlaunchError where neither HOME nor the user database knows one."""
    try:
        return Path.home()
    except RuntimeError as unknown:
        raise GlaunchError(f"user {user_name()} has no home folder", hint="export HOME=/a/folder/of/yours") from unknown


def here_folder() -> Path:
    """The folder that this process is in. Raises UsageError where it was removed meanwhile."""
    try:
        return Path.cwd()
    except OSError as gone:
        raise UsageError(f"the folder that you are in cannot be used any more ({gone.strerror})", hint="cd to another one") from gone


def terminal_width() -> int:
    """Columns to write in: the terminal's, at most 100; 80 where there is none."""
    return min(100, shutil.get_terminal_size((80, 24)).columns)


def table_width() -> int:
    """Columns for a table: all that the terminal has; without one, for a file or another program, as many as it takes."""
    return shutil.get_terminal_size((80, 24)).columns if sys.stdout.isatty() else sys.maxsize


def caller_of(request: Request, settings: Settings, environ: Mapping[str, str], *, must_exist: bool) -> Caller:
    """The caller's facts; raises UsageError for a script that is not there (unless planning from a capture: its files may be elsewhere)."""
    script = request.command[0]
    if must_exist:
        _image_there(settings.text("container.image"))
    place = _Place(settings, environ, must_exist, *_software(request, settings))
    return Caller(
        user=user_name(),
        groups=group_names(),
        work_dir=_work_dir(environ),
        program=_program(script, place) + request.command[1:],
        job_name=re.sub(r"[\x00-\x1f\x7f]", "_", re.sub(r"\.(py|sh)$", "", Path(script).name) or "job")[:128],
        environ=environ,
    )


def _work_dir(environ: Mapping[str, str]) -> str:
    """The folder as the user sees it ($PWD, which keeps the automounter's or a link's name) where that is this folder."""
    here = environ.get("PWD", "")
    if here and os.path.isabs(here) and os.path.exists(here) and os.path.samefile(here, os.getcwd()):
        return here
    return os.getcwd()


@dataclass(frozen=True, slots=True)
class _Place:
    """What the words of a command may mean here."""

    settings: Settings
    environ: Mapping[str, str]
    must_exist: bool
    modules: bool
    """Modules or lines of one's own come before the program, so PATH is another one there."""
    container: bool
    """The program is in an image: what is on this host says nothing."""


def _image_there(image: str) -> None:
    """An image named from here must be here, as a script must; one with a whole path may lie on the nodes alone."""
    if re.fullmatch(r"\.{1,2}/.+|[^:/]+\.(sqsh|squashfs|sqfs|sif|simg|img)", image, re.DOTALL) and not os.path.exists(image):
        raise UsageError(f"there is no image {image!r} in {os.getcwd()}", hint=_near(Path(image)))


def _software(request: Request, settings: Settings) -> tuple[bool, bool]:
    """(whether the job changes its PATH before the program, whether it runs in a container)."""
    modules = bool(request.modules or request.setup or settings.words("launch.modules") or settings.words("launch.setup"))
    return modules, settings.text("container.image") not in {"", "none"}


def _program(script: str, place: _Place) -> tuple[str, ...]:
    """A .py file runs with the Python of the caller's PATH (not glaunch's own); anything else is run as it is.

    What only the job can find (after its modules, in its container) keeps its bare name.
    """
    path = Path(script)
    must_exist = place.must_exist and not (place.container and path.is_absolute())
    if script.endswith(".py"):
        if must_exist and not path.is_file():
            raise UsageError(f"there is no script {script!r} in {os.getcwd()}", hint=_near(path))
        return _python(place), script
    if "/" in script:
        if must_exist and not path.is_file():
            raise UsageError(f"there is no program {script!r}", hint=_near(path))
        if must_exist and not os.access(path, os.X_OK):
            raise UsageError(f"{script!r} is not executable", hint=f"chmod +x {script}, or name what runs it: glaunch … bash {script}")
        return (script,)
    if not must_exist or place.container or shutil.which(script, path=place.environ.get("PATH")):
        return (script,)
    if path.is_file():
        start = f"./{script}"
        if not os.access(path, os.X_OK):
            raise UsageError(f"{script!r} is not executable", hint=f"chmod +x {script}, or name what runs it: glaunch … bash {script}")
        return (start,)
    if place.modules:
        return (script,)
    raise UsageError(f"there is no command {script!r} on PATH and no file of that name in {os.getcwd()}", hint=_near(path))


def _python(place: _Place) -> str:
    wanted, environ = place.settings.text("python"), place.environ
    if "/" in wanted or place.container:
        return wanted
    folders = environ.get("PATH", os.defpath).split(os.pathsep)
    # A centre's module may have put glaunch's own environment on PATH; the user's packages are not in it.
    own = os.path.join(sys.prefix, "bin")
    if sys.prefix != sys.base_prefix and environ.get("VIRTUAL_ENV") != sys.prefix:
        folders = [folder for folder in folders if os.path.realpath(folder) != os.path.realpath(own)]
    found = shutil.which(wanted, path=os.pathsep.join(folders)) or wanted
    # An active environment is what its owner wants, whatever modules put before it on PATH; else the modules' own Python is.
    active = [prefix for name in ("VIRTUAL_ENV", "CONDA_PREFIX") if (prefix := environ.get(name))]
    return wanted if place.modules and not any(found.startswith(prefix.rstrip("/") + "/") for prefix in active) else found


def _near(path: Path) -> str:
    from difflib import get_close_matches

    try:
        if path.is_dir():
            return "it is a folder: name the program in it"
        names = [entry.name for entry in (path.parent or Path()).iterdir()]
    except OSError:
        return "cd to its folder first, or give its path"
    close = get_close_matches(path.name, names, 1)
    return f"did you mean {path.parent / close[0]}?" if close else "cd to its folder first, or give its path"


def _group(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
