"""YAML as settings need it: every scalar is the text that was written, every node knows its line, nothing is guessed.

What YAML 1.1 makes of plain texts (12:30:00 → 45000, 010 → 8, no → false, the last of two equal keys) is left out; so are anchors,
aliases, merges, tags and several documents in one file. **Source:** YAML 1.1, https://yaml.org/type/ (int, bool, merge).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from glaunch.errors import ConfigError

if TYPE_CHECKING:
    from yaml.events import Event

MAX_DEPTH = 16


@dataclass(frozen=True, slots=True)
class Scalar:
    """A text as it stands in the file; `quoted` where it was."""

    text: str
    quoted: bool
    line: int

    @property
    def null(self) -> bool:
        """True for nothing, `~` and `null` without quotes."""
        return not self.quoted and self.text in {"", "~", "null"}


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    items: tuple["Node", ...]
    line: int


@dataclass(frozen=True, slots=True)
class Table:
    """Names and what they hold, in the file's order; no name twice."""

    items: tuple[tuple[Scalar, "Node"], ...]
    line: int


Node = Scalar | Items | Table


def parse_yaml(text: str, where: str) -> Node | None:
    """The tree of a YAML text; None for a text that holds nothing but comments.

    Raises ConfigError `WHERE:LINE: …` for what is no YAML and for what settings do not take.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    odd = re.search(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", text)
    if odd:
        raise ConfigError(
            f"{where}:{text.count(chr(10), 0, odd.start()) + 1}: the character U+{ord(odd[0]):04X} does not belong in a text file"
        )
    try:
        return _Reader(where, iter(yaml.parse(text, Loader=loader))).document()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = 1 if mark is None else mark.line + 1
        tabs = "\t" in (text.splitlines() or [""])[min(line, len(text.splitlines())) - 1] if text else False
        problem = getattr(error, "problem", None) or "cannot be read"
        raise ConfigError(f"{where}:{line}: no YAML: {problem}", hint="indent with blanks, not with tabs" if tabs else "") from error


class _Reader:
    """Builds the tree from a parser's events."""

    def __init__(self, where: str, events: Iterator["Event"]) -> None:
        self.where = where
        self.events = events

    def document(self) -> Node | None:
        """The only document of the text."""
        found: list[Node] = []
        for event in self.events:
            kind = type(event).__name__
            if kind in {"StreamStartEvent", "StreamEndEvent", "DocumentStartEvent", "DocumentEndEvent"}:
                continue
            if found:
                raise self._no(event, "a second document in one file", "take out the line ---")
            found.append(self.node(event, 0))
        root = found[0] if found else None
        return None if isinstance(root, Scalar) and root.null else root

    def node(self, event: "Event", depth: int) -> Node:
        """The node that starts with `event`."""
        kind = type(event).__name__
        if kind == "AliasEvent":
            raise self._no(event, f"the alias *{getattr(event, 'anchor', '')}", "write the value out")
        if getattr(event, "anchor", None):
            raise self._no(event, f"the anchor &{getattr(event, 'anchor', '')}", "write the value out where it is needed")
        if getattr(event, "tag", None) is not None:
            raise self._no(event, f"the tag {getattr(event, 'tag', '')}", "leave it out: what a key takes is known")
        if depth > MAX_DEPTH:
            raise self._no(event, f"more than {MAX_DEPTH} levels", "")
        line = _line(event)
        if kind == "ScalarEvent":
            return Scalar(getattr(event, "value", ""), not getattr(event, "implicit", (True, False))[0], line)
        if kind == "SequenceStartEvent":
            return Items(tuple(self.node(item, depth + 1) for item in self._until("SequenceEndEvent")), line)
        return self._table(line, depth)

    def _table(self, line: int, depth: int) -> Table:
        items: list[tuple[Scalar, Node]] = []
        lines: dict[str, int] = {}
        for event in self._until("MappingEndEvent"):
            name = self.node(event, depth + 1)
            if not isinstance(name, Scalar):
                raise self._no(event, "a list or table as a name", "")
            if name.text in lines:
                raise ConfigError(
                    f"{self.where}:{name.line}: {name.text!r} stands already on line {lines[name.text]}", hint="keep one of the two"
                )
            lines[name.text] = name.line
            items.append((name, self.node(next(self.events), depth + 1)))
        return Table(tuple(items), line)

    def _until(self, end: str) -> Iterator["Event"]:
        for event in self.events:
            if type(event).__name__ == end:
                return
            yield event

    def _no(self, event: "Event", what: str, hint: str) -> ConfigError:
        return ConfigError(f"{self.where}:{_line(event)}: {what} is not taken in settings", hint=hint)


def _line(event: "Event") -> int:
    return event.start_mark.line + 1 if event.start_mark else 1
