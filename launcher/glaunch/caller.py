"""Who calls, from where, and what the command means there."""

import grp
import os
import pwd
import re
import shutil
import sys
from collections.abc import Mapping
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


def caller_of(request: Request, settings: Settings, environ: Mapping[str, str], *, must_exist: bool) -> Caller:
    """The caller's facts; raises UsageError for a script that is not there (unless planning from a capture: its files may be elsewhere)."""
    script = request.command[0]
    return Caller(
        user=user_name(),
        groups=frozenset(map(_group, os.getgroups())),
        work_dir=_work_dir(environ),
        program=_program(script, settings, environ, must_exist=must_exist) + request.command[1:],
        job_name=re.sub(r"[\x00-\x1f\x7f]", "_", re.sub(r"\.(py|sh)$", "", Path(script).name) or "job")[:128],
        environ=environ,
    )


def _work_dir(environ: Mapping[str, str]) -> str:
    """The folder as the user sees it ($PWD, which keeps the automounter's or a link's name) where that is this folder."""
    here = environ.get("PWD", "")
    if here and os.path.isabs(here) and os.path.exists(here) and os.path.samefile(here, os.getcwd()):
        return here
    return os.getcwd()


def _program(script: str, settings: Settings, environ: Mapping[str, str], *, must_exist: bool) -> tuple[str, ...]:
    """A .py file runs with the Python of the caller's PATH (not glaunch's own); anything else is run as it is."""
    path = Path(script)
    if script.endswith(".py"):
        if must_exist and not path.is_file():
            raise UsageError(f"there is no script {script!r} in {os.getcwd()}", hint=_near(path))
        return _python(settings, environ), script
    if "/" in script:
        if must_exist and not path.is_file():
            raise UsageError(f"there is no program {script!r}", hint=_near(path))
        if must_exist and not os.access(path, os.X_OK):
            raise UsageError(f"{script!r} is not executable", hint=f"chmod +x {script}, or name what runs it: glaunch … bash {script}")
        return (script,)
    if not must_exist or shutil.which(script, path=environ.get("PATH")):
        return (script,)
    if path.is_file():
        start = f"./{script}"
        if not os.access(path, os.X_OK):
            raise UsageError(f"{script!r} is not executable", hint=f"chmod +x {script}, or name what runs it: glaunch … bash {script}")
        return (start,)
    raise UsageError(f"there is no command {script!r} on PATH and no file of that name in {os.getcwd()}", hint=_near(path))


def _python(settings: Settings, environ: Mapping[str, str]) -> str:
    wanted = settings.text("python")
    if "/" in wanted:
        return wanted
    folders = environ.get("PATH", os.defpath).split(os.pathsep)
    # A centre's module may have put glaunch's own environment on PATH; the user's packages are not in it.
    own = os.path.join(sys.prefix, "bin")
    if sys.prefix != sys.base_prefix and environ.get("VIRTUAL_ENV") != sys.prefix:
        folders = [folder for folder in folders if os.path.realpath(folder) != os.path.realpath(own)]
    return shutil.which(wanted, path=os.pathsep.join(folders)) or wanted


def _near(path: Path) -> str:
    from difflib import get_close_matches

    try:
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
