"""Files that are read only where nobody else could have written them: settings name programs that run as the user."""

import os
import pwd
import stat
from pathlib import Path

from glaunch.errors import ConfigError
from glaunch.shipped import shipped

MAX_BYTES = 1 << 20


def trusted_owners() -> frozenset[int]:
    """Whose files are read: root's, the caller's own, and those of the account that installed glaunch (its code runs anyway)."""
    return frozenset({0, os.geteuid(), shipped("site").stat().st_uid})


def read_text(path: Path, trusted: frozenset[int] | None) -> str | None:
    """The text of a settings file; None when there is none.

    `trusted`: who may own it (None: not looked at). Raises ConfigError when it is no plain file, too large, no UTF-8, owned by somebody
    else or writable by others. Symbolic links are followed; what counts is the file that is read, looked at once it is open.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})", hint=f"ls -l {path}") from error
    try:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            raise ConfigError(f"{path}: a settings file is expected, this is none", hint=f"ls -ld {path}")
        if trusted is not None:
            refuse_others(path, info, trusted)
        with open(descriptor, "rb", closefd=False) as stream:
            raw = stream.read(MAX_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(raw) > MAX_BYTES:
        raise ConfigError(f"{path}: more than {MAX_BYTES >> 20} MiB is no settings file", hint=f"ls -l {path}")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}:{line}: the byte 0x{raw[error.start]:02x} is no UTF-8 text", hint=f"file {path}") from error


def refuse_others(path: Path, info: os.stat_result, trusted: frozenset[int]) -> None:
    """Raises ConfigError for a file or folder that is not a `trusted` user's, or that others could write."""
    if info.st_uid not in trusted:
        owner = _name(info.st_uid)
        hint = (
            f"if you trust {owner}: export GLAUNCH_TRUST={owner}"
            if path.name == "glaunch.yaml"
            else f"it should be root's or your own: ls -l {path}"
        )
        raise ConfigError(f"{path}: belongs to {owner}; settings are read from root's files and your own", hint=hint)
    if info.st_mode & 0o022 and not (stat.S_ISDIR(info.st_mode) and info.st_mode & stat.S_ISVTX):
        raise ConfigError(f"{path}: others can write it (mode {info.st_mode & 0o7777:04o})", hint=f"chmod go-w {path}")


def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)
