"""What a line of the user's own (`launch.setup`, `--setup`) does to the shell that starts the ranks, as far as its text says. Pure."""

import shlex
from collections.abc import Iterable, Sequence

from glaunch.secret import shown_line

_BEFORE_A_COMMAND = frozenset({"then", "do", "else", "elif", "if", "while", "until", "!", "{", "command", "builtin"})
"""Words behind which a shell still expects a command. **Source:** POSIX XCU 2.4; bash(1), command and builtin."""


def leaving(lines: Iterable[str]) -> tuple[str, ...]:
    """A warning for each line in which `exec` puts a program in the place of the job's shell; an `exec` of redirections alone does not."""
    return tuple(
        f"setup line {shown_line(line)!r}: exec puts {program!r} in the place of the job's own shell, "
        "and no rank starts after it; leave exec out"
        for line in lines
        if (program := _becomes(_parts(line)))
    )


def _parts(line: str) -> Sequence[str]:
    """The words and the operators of a line; () where it cannot be read as one, which bash itself will tell."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|()<>")
    lexer.whitespace_split = True
    try:
        return tuple(lexer)
    except ValueError:
        return ()


def _becomes(parts: Sequence[str]) -> str:
    """The program that the shell itself becomes; "" where it stays, as it does in a subshell, a pipe, a background command.

    Of a function nothing is said: whether it is called is not looked at.
    """
    depth, expected = 0, True
    for at, part in enumerate(parts):
        if part == "()":
            return ""
        if set(part) <= set(";&|()"):
            depth = max(0, depth + part.count("(") - part.count(")"))
            expected = part not in {"|", "|&"}
        elif expected and not depth and part == "exec" and not _apart(parts[at + 1 :]):
            program = _program(parts[at + 1 :])
            if program:
                return program
            expected = False
        else:
            expected = expected and part in _BEFORE_A_COMMAND
    return ""


def _apart(rest: Sequence[str]) -> bool:
    """Whether the command ends with `&` or goes on in a pipe: then a shell of its own runs it."""
    end = next((part for part in rest if set(part) <= set(";&|()")), "")
    return end in {"&", "|", "|&"}


def _program(rest: Sequence[str]) -> str:
    """The first word behind exec that is no option and no redirection; "" where none is, or where a redirection goes to a command."""
    words = iter(zip(rest, (*rest, "")[1:], strict=True))
    for part, following in words:
        if set(part) <= set(";&|()") or {part, following} & {">(", "<("}:
            return ""
        if set(part) <= set("<>&"):
            next(words, None)  # where it goes
        elif following[:1] in {"<", ">"} and (part.isdigit() or part.startswith("{")):
            continue  # a file descriptor
        elif part == "-a":
            next(words, None)
        elif not part.startswith("-"):
            return part
    return ""
