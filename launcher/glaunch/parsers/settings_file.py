"""A settings file (YAML) as typed settings, each with its place; what is wrong is a list."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from glaunch.errors import ConfigError
from glaunch.parsers.setting_value import shown, typed, version_of
from glaunch.parsers.strict_yaml import Node, Scalar, Table, parse_yaml
from glaunch.schema import KEYS, SECTIONS
from glaunch.settings import SITE, TRIAL, USER, Protection, Setting


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
            raise ConfigError(f"{where}:{root.line}: expected keys and values, got {shown(root)}", hint="glaunch config keys")
    except ConfigError as error:
        found.problems.append(error)
        return found
    if root is not None:
        _File(where, layer, version, found).read(root)
    return found


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
        if isinstance(wanted, Scalar) and self.layer < USER and version_of(wanted.text) > _release(self.version):
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
                self._problem(scalar, f"{name!r} holds keys, got {shown(node)}", f"its keys: {keys}")

    def _partitions(self, node: Node) -> None:
        for scalar, inner in self._named(node, "partitions", "a partition's name and its keys"):
            if isinstance(inner, Table):
                self._keys(inner, self.found.sections.setdefault(scalar.text, {}), {})
            elif not (isinstance(inner, Scalar) and inner.null):
                self._problem(scalar, f"expected keys for partition {scalar.text!r}, got {shown(inner)}", "e.g. {time: 4:00:00}")

    def _protect(self, node: Node) -> None:
        for scalar, inner in self._named(node, "protect", "a key and your message"):
            name = scalar.text
            if self.layer not in {SITE, TRIAL}:
                self._problem(scalar, "only a site's file can protect keys", "take `protect` out")
                return
            if name not in KEYS and name not in SECTIONS:
                self._unknown(name, scalar, (*KEYS, *SECTIONS))
            elif not isinstance(inner, Scalar) or not inner.text.strip() or inner.null:
                self._problem(scalar, f"expected a message for users, got {shown(inner)}", "e.g. 'Ask hpc-support'")
            else:
                self.found.protected.append(Protection(name, " ".join(inner.text.split()), self._at(scalar)))

    def _named(self, node: Node, name: str, expected: str) -> Iterator[tuple[Scalar, Node]]:
        if isinstance(node, Table):
            yield from node.items
        elif not (isinstance(node, Scalar) and node.null):
            self._problem(node, f"{name!r} takes {expected}, got {shown(node)}", "")

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


def _release(text: str) -> tuple[int, ...]:
    """The numbers that a version starts with: `0.2.0.dev1` is 0.2.0."""
    match = re.match(r"\d+(\.\d+)*", text)
    return version_of(match[0]) if match else ()
