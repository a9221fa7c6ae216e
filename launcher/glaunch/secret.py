"""Which values are secrets, and how they are shown. A secret travels by the environment alone: no file and no line of text holds it."""

import re
from collections.abc import Sequence

HIDDEN = "(not shown)"
"""What stands where a secret's value would."""

_NAME = re.compile(
    r"(?i)secret|passw|passphrase|credential|authorization|cookie|private|sshpass"
    r"|(?:key|token)s?(?![a-z])|(?:^|_)(?:pass|auth|dsn)(?:$|_(?!sock))|[a-z]_pwd$"
)
"""`HF_TOKEN`, `WANDB_API_KEY`, `PGPASSWORD`, `MYSQL_PWD`, `REGISTRY_AUTH`; not `PWD`, `SSH_AUTH_SOCK`, `TOKENIZERS_PARALLELISM`."""
_WORD = re.compile(r"--?([A-Za-z][\w.-]*)(?:=(.+))?", re.DOTALL)
_PASSWORD = re.compile(r"(?<=://)([^/\s:@]*):[^/\s@]+(?=@)")
"""`ada:secret` of `postgres://ada:secret@host/db`."""
_SETS = re.compile(r"""\b([A-Za-z_]\w*)=(?![\s$])("[^"]*"|'[^']*'|[^\s;&|]+)""")
_PLAIN = re.compile(r"(?i)(?:true|false|none|null|auto|[+-]?[0-9][0-9_.,e+-]*)?")
"""Values that give nothing away."""


def is_secret(name: str) -> bool:
    """Whether a variable's name says that its value is a secret. Rather one too many: a secret still arrives, it is only not written."""
    return bool(_NAME.search(name))


def shown(name: str, value: str) -> str:
    """`NAME=value` for people and files; a secret's value is not in it."""
    return f"{name}={HIDDEN if is_secret(name) else value}"


def secret_words(argv: Sequence[str]) -> tuple[str, ...]:
    """The options of a command line whose values look like secrets: `--api-key` of `--api-key=abc` and of `--api-key abc`."""
    return tuple(dict.fromkeys(option for _, option in _secret_values(argv)))


def _secret_values(argv: Sequence[str]) -> list[tuple[int, str]]:
    """(the place of the word that holds the value, the option) of each."""
    found = []
    for at, word in enumerate(argv):
        match = _WORD.fullmatch(word)
        if match is None or not is_secret(match[1].replace("-", "_").replace(".", "_")):
            continue
        value = match[2] if match[2] is not None else next(iter(argv[at + 1 : at + 2]), "")
        if not value.startswith("-") and not _PLAIN.fullmatch(value) and "/" not in value:
            found.append((at if match[2] is not None else at + 1, word.partition("=")[0]))
    return found


def shown_words(argv: Sequence[str]) -> tuple[str, ...]:
    """The words of a command line for people and documents: without the values of `secret_words`, and without passwords in addresses."""
    words = list(argv)
    for at, option in _secret_values(argv):
        words[at] = f"{option}={HIDDEN}" if words[at].startswith(f"{option}=") else HIDDEN
    return tuple(_PASSWORD.sub(rf"\g<1>:{HIDDEN}", word) for word in words)


def shown_line(line: str) -> str:
    """A line of shell for people and documents: `export HF_TOKEN=abc` without the value."""
    return _SETS.sub(lambda found: shown(found[1], found[2]), line)


def shown_list(text: str) -> str:
    """A list of names and NAME=VALUE, as --export takes it, without the values of secrets."""
    words = (word.partition("=") for word in text.split(","))
    return ",".join(shown(name, value) if equals else name for name, equals, value in words)
