"""A settings file (YAML), a GLAUNCH_* variable or an option as typed settings, each with its place; what is wrong is a list."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from glaunch.errors import ConfigError, UsageError
from glaunch.hostlist import expand
from glaunch.parsers.strict_yaml import Items, Node, Scalar, Table, parse_yaml
from glaunch.request import DECIDED
from glaunch.schema import KEYS, OWN_KEYS, SECTIONS, Key
from glaunch.settings import SITE, TRIAL, USER, Protection, Row, Setting, Value, table
from glaunch.units import parse_time_s

ONE_JOBS_OWN = frozenset({"array", "distribution", "export", "hold", "job-name", "no-requeue", "nodelist", "ntasks-per-node", "requeue"})
"""sbatch options that make no sense for every job alike."""


@dataclass(slots=True)
class SettingsFile:
    """What one source says; `problems` in the order of the file, empty when all is well."""

    general: dict[str, Setting] = field(default_factory=dict)
    sections: dict[str, dict[str, Setting]] = field(default_factory=dict)
    """Partition → key → setting."""
    protected: list[Protection] = field(default_factory=list)
    problems: list[ConfigError] = field(default_factory=list)


def parse_settings(text: str, where: str, layer: int, version: str) -> SettingsFile:
    """Read one settings file. `version` is glaunch's own, for `min_version`.

    Nothing is raised: what is no YAML, unknown keys and wrong types are in `problems`, each starting with WHERE:LINE.
    """
    found = SettingsFile()
    try:
        root = parse_yaml(text, where)
        if root is not None and not isinstance(root, Table):
            raise ConfigError(f"{where}:{root.line}: expected keys and values, got {_shown(root)}", hint="glaunch config keys")
    except ConfigError as error:
        found.problems.append(error)
        return found
    if root is not None:
        _File(where, layer, version, found).read(root)
    return found


def typed(key: Key, node: Node, where: str, layer: int) -> Setting:
    """The setting that `node` stands for. Raises ConfigError that starts with `where`, the place of the value."""
    if key.kind == "table":
        return _rows(key, node, where, layer)
    if key.kind in {"words", "paths", "lines"}:
        return Setting(_words(key, node, where), where, layer)
    if not isinstance(node, Scalar):
        raise _wrong(key, _shown(node), where)
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


class _File:
    """Walks one file's tree and fills a SettingsFile."""

    def __init__(self, where: str, layer: int, version: str, found: SettingsFile) -> None:
        self.where = where
        self.layer = layer
        self.version = version
        self.found = found

    def read(self, root: Table) -> None:
        """All of the file; a min_version that is not met is the only problem then told, for the rest may be newer than this glaunch."""
        wanted = next((node for name, node in root.items if name.text == "min_version"), None)
        if isinstance(wanted, Scalar) and self.layer < USER and _version(wanted.text) > _release(self.version):
            message = f"{self._at(wanted)}: this site wants glaunch {wanted.text} or newer, this is {self.version}"
            self.found.problems.append(ConfigError(message, hint="load the site's own glaunch, e.g. module load glaunch"))
            return
        inner: dict[str, Callable[[Node], None]] = {"partitions": self._partitions, "protect": self._protect}
        self._keys(root, self.found.general, inner)

    def _keys(self, root: Table, into: dict[str, Setting], inner: dict[str, Callable[[Node], None]]) -> None:
        lines: dict[str, int] = {}
        for name, scalar, node in self._flat(root, ""):
            if name in inner:
                inner[name](node)
            elif name not in KEYS:
                self._unknown(name, scalar, (*KEYS, *SECTIONS, *inner))
            elif name in lines:
                self._problem(scalar, f"{name!r} stands already on line {lines[name]}", "keep one of the two")
            elif KEYS[name].site_only and self.layer >= USER:
                self._problem(scalar, f"{name!r} is for the site's own files", "take the line out")
            elif into is not self.found.general and not KEYS[name].per_partition:
                self._problem(scalar, f"{name!r} cannot differ by partition", "write it outside `partitions`")
            else:
                lines[name] = scalar.line
                self._set(into, name, scalar, node)

    def _set(self, into: dict[str, Setting], name: str, scalar: Scalar, node: Node) -> None:
        try:
            into[name] = typed(KEYS[name], node, self._at(scalar), self.layer)
        except ConfigError as error:
            self.found.problems.append(error)

    def _flat(self, root: Table, prefix: str) -> Iterator[tuple[str, Scalar, Node]]:
        """(dotted name, its scalar, its node) of a tree whose sections are nested, dotted or both."""
        for scalar, node in root.items:
            name = prefix + scalar.text
            if name not in SECTIONS:
                yield name, scalar, node
            elif isinstance(node, Table):
                yield from self._flat(node, name + ".")
            elif not (isinstance(node, Scalar) and node.null):
                keys = ", ".join(key for key in KEYS if key.startswith(name + "."))
                self._problem(scalar, f"{name!r} holds keys, got {_shown(node)}", f"its keys: {keys}")

    def _partitions(self, node: Node) -> None:
        for scalar, inner in self._named(node, "partitions", "a partition's name and its keys"):
            if isinstance(inner, Table):
                self._keys(inner, self.found.sections.setdefault(scalar.text, {}), {})
            elif not (isinstance(inner, Scalar) and inner.null):
                self._problem(scalar, f"expected keys for partition {scalar.text!r}, got {_shown(inner)}", "e.g. {time: 4:00:00}")

    def _protect(self, node: Node) -> None:
        for scalar, inner in self._named(node, "protect", "a key and your message"):
            name = scalar.text
            if self.layer not in {SITE, TRIAL}:
                self._problem(scalar, "only a site's file can protect keys", "take `protect` out")
                return
            if name not in KEYS and name not in SECTIONS:
                self._unknown(name, scalar, (*KEYS, *SECTIONS))
            elif not isinstance(inner, Scalar) or not inner.text.strip() or inner.null:
                self._problem(scalar, f"expected a message for users, got {_shown(inner)}", "e.g. 'Ask hpc-support'")
            else:
                self.found.protected.append(Protection(name, " ".join(inner.text.split()), self._at(scalar)))

    def _named(self, node: Node, name: str, expected: str) -> Iterator[tuple[Scalar, Node]]:
        if isinstance(node, Table):
            yield from node.items
        elif not (isinstance(node, Scalar) and node.null):
            self._problem(node, f"{name!r} takes {expected}, got {_shown(node)}", "")

    def _unknown(self, name: str, scalar: Scalar, known: tuple[str, ...]) -> None:
        self._problem(scalar, f"unknown key {name!r}", suggestion(name, known) or "glaunch config keys lists all keys")

    def _problem(self, node: Node, message: str, hint: str) -> None:
        self.found.problems.append(ConfigError(f"{self._at(node)}: {message}", hint=hint))

    def _at(self, node: Node) -> str:
        return f"{self.where}:{node.line}"


def suggestion(name: str, known: tuple[str, ...], nearness: float = 0.6) -> str:
    """`did you mean 'ssh.port'?`, or "" when nothing is as near as that (1: the same)."""
    import difflib

    near = difflib.get_close_matches(name, known, 1, nearness)
    if not near and nearness < 0.75:
        last = {one.rpartition(".")[2]: one for one in known}
        near = [last[word] for word in difflib.get_close_matches(name.rpartition(".")[2], last, 1, 0.75)]
    return f"did you mean {near[0]!r}?" if near else ""


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
    if key.kind == "version" and text and not _version(text):
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
        raise _wrong(key, _shown(node), where)
    words = []
    for item in node.items:
        if not isinstance(item, Scalar) or not item.text or (key.choices and item.text not in key.choices):
            raise _wrong(key, f"{_shown(item)} in it", where)
        words.append(_plain(item.text, where))
    if key.choices and not words:
        raise _wrong(key, "an empty list", where)
    return tuple(words) if key.kind == "lines" else tuple(dict.fromkeys(words))


def _rows(key: Key, node: Node, where: str, layer: int) -> Setting:
    if isinstance(node, Scalar) and node.null:
        node = Table((), node.line)
    if not isinstance(node, Table):
        raise _wrong(key, _shown(node), where)
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
        raise _wrong(key, f"{_shown(node)} in it", where)
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


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")) if re.fullmatch(r"\d+(\.\d+)*", text) else ()


def _release(text: str) -> tuple[int, ...]:
    """The numbers that a version starts with: `0.2.0.dev1` is 0.2.0."""
    match = re.match(r"\d+(\.\d+)*", text)
    return _version(match[0]) if match else ()


def _shown(node: Node) -> str:
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
