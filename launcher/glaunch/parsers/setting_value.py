"""One value of a setting, from a file, a GLAUNCH_* variable or an option, as its key takes it; anything else is refused with its place."""

import re

from glaunch.errors import ConfigError, UsageError
from glaunch.hostlist import expand
from glaunch.parsers.strict_yaml import Items, Node, Scalar, Table
from glaunch.request import DECIDED
from glaunch.schema import OWN_KEYS, Key
from glaunch.settings import Row, Setting, Value, table
from glaunch.units import parse_time_s

ONE_JOBS_OWN = frozenset({"array", "distribution", "export", "hold", "job-name", "no-requeue", "nodelist", "ntasks-per-node", "requeue"})
"""sbatch options that make no sense for every job alike."""


def typed(key: Key, node: Node, where: str, layer: int) -> Setting:
    """The setting that `node` stands for. Raises ConfigError that starts with `where`, the place of the value."""
    if key.kind == "table":
        return _rows(key, node, where, layer)
    if key.kind in {"words", "paths", "lines"}:
        return Setting(_words(key, node, where), where, layer)
    if not isinstance(node, Scalar):
        raise _wrong(key, shown(node), where)
    return Setting(_scalar(key, node, where), where, layer)


def typed_text(key: Key, text: str, where: str, layer: int) -> Setting:
    """The setting that a variable's text stands for: words parted by commas, paths by colons. Raises ConfigError."""
    if key.kind in {"table", "lines"}:
        raise ConfigError(
            f"{where}: {key.name!r} takes {key.takes} and cannot be given as a variable",
            hint=f"write it in glaunch.yaml, or use {'--env' if key.kind == 'table' else '--setup'}",
        )
    if key.kind in {"words", "paths"}:
        parts = text.split("," if key.kind == "words" else ":")
        return typed(key, Items(tuple(Scalar(part.strip(), True, 0) for part in parts if part.strip()), 0), where, layer)
    return typed(key, Scalar(text.strip(), True, 0), where, layer)


def typed_value(key: Key, value: Value, where: str, layer: int) -> Setting:
    """The setting that an option's value stands for. Raises ConfigError."""
    if isinstance(value, bool):
        return typed(key, Scalar(str(value).lower(), True, 0), where, layer)
    if isinstance(value, tuple):
        return typed(key, Items(tuple(Scalar(word, True, 0) for word in value), 0), where, layer)
    if value is None or isinstance(value, str | int | float):
        return typed(key, Scalar("" if value is None else str(value), True, 0), where, layer)
    return typed(key, Table(tuple((Scalar(name, True, 0), Scalar(text, True, 0)) for name, text in value.items()), 0), where, layer)


def _scalar(key: Key, node: Scalar, where: str) -> Value:
    text = "" if node.null else node.text
    if key.kind == "flag":
        if text not in {"true", "false"}:
            raise _wrong(key, repr(text), where)
        return text == "true"
    if key.kind == "number":
        if not re.fullmatch(r"0|[1-9][0-9]{0,17}", text) or not key.least <= int(text) <= (key.most or int(text)):
            raise _wrong(key, repr(text), where)
        return int(text)
    _plain(text, where)
    if key.choices and text not in key.choices:
        raise _wrong(key, repr(text), where)
    if key.kind == "folder" and not re.fullmatch(r"(/[A-Za-z0-9._-]+)+", text):
        raise _wrong(key, repr(text), where)
    if key.kind == "version" and text and not version_of(text):
        raise _wrong(key, repr(text), where)
    if key.kind == "time" and text:
        try:
            parse_time_s(text)
        except UsageError as error:
            raise _wrong(key, repr(text), where) from error
    return text


def _words(key: Key, node: Node, where: str) -> tuple[str, ...]:
    if isinstance(node, Scalar) and node.null and not node.quoted:
        node = Items((), node.line)
    if not isinstance(node, Items):
        raise _wrong(key, shown(node), where)
    words = []
    for item in node.items:
        if not isinstance(item, Scalar) or not item.text or (key.choices and item.text not in key.choices):
            raise _wrong(key, f"{shown(item)} in it", where)
        words.append(_plain(item.text, where))
    if key.choices and not words:
        raise _wrong(key, "an empty list", where)
    return tuple(words) if key.kind == "lines" else tuple(dict.fromkeys(words))


def _rows(key: Key, node: Node, where: str, layer: int) -> Setting:
    if isinstance(node, Scalar) and node.null:
        node = Table((), node.line)
    if not isinstance(node, Table):
        raise _wrong(key, shown(node), where)
    source = where.rpartition(":")[0] if node.line else ""
    rows = {}
    for name, value in node.items:
        place = f"{source}:{name.line}" if source else where
        _name_fits(key, name.text, place)
        text, reason = _reasoned(key, value, place)
        if key.name == "placement.penalties" and text is not None and not re.fullmatch(r"[0-9]{1,6}", text):
            raise ConfigError(
                f"{place}: {name.text!r} takes points, a whole number from 0 to 999999, got {text!r}", hint='"gpu[003-004]": 5'
            )
        rows[name.text] = Row(name.text, text, place, reason, layer)
    return table(rows, where, layer)


def _reasoned(key: Key, node: Node, where: str) -> tuple[str | None, str]:
    """(value or None, reason) of `NAME: value` and, for variables and penalties, of `NAME: {value: …, reason: …}`."""
    reason = ""
    if isinstance(node, Table) and key.name in {"environment.set", "placement.penalties"}:
        parts = {name.text: inner for name, inner in node.items}
        if set(parts) - {"value", "reason"} or "value" not in parts or not all(isinstance(part, Scalar) for part in parts.values()):
            raise ConfigError(f"{where}: expected {{value: …, reason: …}}, got the names {', '.join(sorted(parts))}")
        reason = " ".join(inner.text.split()) if isinstance(inner := parts.get("reason"), Scalar) else ""
        node = parts["value"]
    if not isinstance(node, Scalar):
        raise _wrong(key, f"{shown(node)} in it", where)
    return (None if node.null else _plain(node.text, where)), reason


def _name_fits(key: Key, name: str, where: str) -> None:
    if key.name == "environment.set" and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise ConfigError(f"{where}: {name!r} is no name of a variable", hint="letters, digits and _ only, no digit first")
    if key.name == "placement.penalties":
        try:
            expand(name)
        except UsageError as bad:
            raise ConfigError(f"{where}: {bad.message}", hint=bad.hint) from bad
    if key.name == "sbatch":
        if name in OWN_KEYS:
            raise ConfigError(f"{where}: sbatch's {name!r} is a key of its own", hint=f"write it as {OWN_KEYS[name]!r}")
        per_job = name in DECIDED | ONE_JOBS_OWN
        if per_job or not re.fullmatch(r"[a-z][a-z0-9-]+", name):
            why = "glaunch decides it for each job" if per_job else "it is no long option of sbatch"
            raise ConfigError(f"{where}: sbatch's {name!r} cannot be set here: {why}")


def _plain(text: str, where: str) -> str:
    odd = next((char for char in text if ord(char) < 0x20 or char in "\x7f\x85\u2028\u2029"), None)
    if odd is not None:
        raise ConfigError(f"{where}: a value of one line is expected, got the character U+{ord(odd):04X} in {text[:60]!r}")
    return text


def version_of(text: str) -> tuple[int, ...]:
    """`25.05.1` as numbers that compare; () for what is no version."""
    return tuple(int(part) for part in text.split(".")) if re.fullmatch(r"\d+(\.\d+)*", text) else ()


def shown(node: Node) -> str:
    """What stands there, for a message that says what was seen."""
    if isinstance(node, Scalar):
        return "nothing" if node.null else repr(node.text[:80])
    return "a list" if isinstance(node, Items) else "a table"


_HINTS = {
    "flag": "write true or false",
    "words": "write it as a list: [a, b]",
    "paths": "write it as a list: [/a, /b]",
    "lines": "write it as a list, one command each",
}


def _wrong(key: Key, seen: str, where: str) -> ConfigError:
    return ConfigError(f"{where}: {key.name!r} takes {key.takes}, got {seen}", hint=_HINTS.get(key.kind, ""))
