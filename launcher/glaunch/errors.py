"""Everything that glaunch tells instead of doing: one tree, caught in one place (`cli`).

A message names the value, what was seen, and (as `hint`) the next thing to type.
"""


class GlaunchError(Exception):
    """Something a person must know; `exit_code` is what the process ends with."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  {self.hint}" if self.hint else self.message


class UsageError(GlaunchError):
    """The command line asks for something that cannot be meant."""

    exit_code = 2


class Interrupted(GlaunchError):
    """A ^C, and what it left: the message says it."""

    exit_code = 130


class ConfigError(UsageError):
    """A settings file says something that cannot be meant; the message starts with FILE:LINE."""


class ParseError(GlaunchError):
    """A foreign text is not in its format; `where` is FILE:LINE (or COMMAND:LINE), `expected` what should stand there."""

    def __init__(self, where: str, seen: str, expected: str, *, hint: str = "") -> None:
        super().__init__(f"{where}: expected {expected}, got {seen[:120]!r}", hint=hint)
        self.where = where
        self.seen = seen
        self.expected = expected


class DiskError(GlaunchError):
    """A file cannot be read or written: a full disk, a used-up quota, a folder that is closed."""


class NeverFits(GlaunchError):
    """The request is more than this cluster or a limit of it can ever give; the message names the limit."""


class SlurmError(GlaunchError):
    """A Slurm command said no; its own words are in the message."""

    def __init__(self, message: str, *, argv: tuple[str, ...] = (), stderr: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.argv = argv
        self.stderr = stderr


class ControllerSilent(SlurmError):
    """The controller did not answer in time: what happened is unknown, and nothing was tried again."""

    exit_code = 5
