"""site/rules.yaml as rules."""

import re

from glaunch.errors import ConfigError
from glaunch.parsers.strict_yaml import Items, Node, Scalar, Table, parse_yaml
from glaunch.rule import ANY_CLASS, SWITCHES, Assignment, Flag, Rule
from glaunch.schema import FABRIC_CLASSES

_TEXTS = ("id", "title", "reason", "source", "if_wrong")


def parse_rules(text: str, where: str) -> tuple[Rule, ...]:
    """The rules of a file in its order. Raises ConfigError `WHERE:LINE: …` for what is no rule."""
    root = parse_yaml(text, where)
    return tuple(_rule(_Part(node, where)) for node in _Part(root, where).items("a list of rules"))


class _Part:
    """A node and how to take it apart, with the place in each error."""

    def __init__(self, node: Node | None, where: str) -> None:
        self.node = node
        self.where = where

    def no(self, expected: str) -> ConfigError:
        return ConfigError(f"{self.where}:{self.node.line if self.node else 1}: expected {expected}")

    def items(self, expected: str) -> tuple[Node, ...]:
        if not isinstance(self.node, Items):
            raise self.no(expected)
        return self.node.items

    def table(self, *names: str) -> dict[str, "_Part"]:
        """Name → part; with `names`, no other name may stand there."""
        if not isinstance(self.node, Table):
            raise self.no("names and values")
        found = {name.text: _Part(node, self.where) for name, node in self.node.items}
        for name, _ in self.node.items:
            if names and name.text not in names:
                raise ConfigError(f"{self.where}:{name.line}: unknown name {name.text!r}; here stand {', '.join(names)}")
        return found

    def text(self) -> str:
        if not isinstance(self.node, Scalar) or not self.node.text.strip():
            raise self.no("a text")
        return " ".join(self.node.text.split())

    def texts(self) -> tuple[str, ...]:
        return tuple(_Part(node, self.where).text() for node in self.items("a list"))


def _rule(part: _Part) -> Rule:
    parts = part.table(*_TEXTS, "when", "set", "removes", "removes_always", "leaves_out", "flags")
    for name in _TEXTS:
        if name not in parts:
            raise part.no(f"{name!r} in each rule")
    texts = {name: parts[name].text() for name in _TEXTS}
    lists = {name: parts[name].texts() if name in parts else () for name in ("removes", "removes_always", "leaves_out")}
    when = parts["when"].table("class", "nodes", *SWITCHES) if "when" in parts else {}
    least, most = _nodes(when["nodes"]) if "nodes" in when else (1, None)
    return Rule(
        id=texts["id"],
        title=texts["title"],
        reason=texts["reason"],
        source=texts["source"],
        if_wrong=texts["if_wrong"],
        classes=_classes(when["class"]) if "class" in when else (),
        least_nodes=least,
        most_nodes=most,
        needs=tuple((name, _flag(when[name])) for name in SWITCHES if name in when),
        assignments=_assignments(parts["set"], texts["reason"]) if "set" in parts else (),
        removes=lists["removes"],
        removes_always=lists["removes_always"],
        leaves_out=lists["leaves_out"],
        flags=tuple(_one_flag(_Part(node, part.where)) for node in parts["flags"].items("a list")) if "flags" in parts else (),
    )


def _classes(part: _Part) -> tuple[str, ...]:
    classes = part.texts()
    for name in classes:
        if name not in (*FABRIC_CLASSES, ANY_CLASS):
            raise part.no(f"fabric classes ({', '.join((*FABRIC_CLASSES, ANY_CLASS))})")
    return classes


def _nodes(part: _Part) -> tuple[int, int | None]:
    match = re.fullmatch(r"([1-9]\d*)(\+?)", part.text())
    if not match:
        raise part.no("a number of nodes, `1` or `2+`")
    return int(match[1]), None if match[2] else int(match[1])


def _flag(part: _Part) -> bool:
    if part.text() not in {"true", "false"}:
        raise part.no("true or false")
    return part.text() == "true"


def _assignments(part: _Part, reason: str) -> tuple[Assignment, ...]:
    found = []
    for name, inner in part.table().items():
        if isinstance(inner.node, Table):
            parts = inner.table("value", "reason", "since", "until")
            texts = {key: parts[key].text() if key in parts else "" for key in ("since", "until")}
            value = parts["value"].text() if "value" in parts else inner.text()
            found.append(Assignment(name, value, parts["reason"].text() if "reason" in parts else reason, **texts))
        else:
            found.append(Assignment(name, inner.text(), reason))
    return tuple(found)


def _one_flag(part: _Part) -> Flag:
    parts = part.table("names", "pattern", "allowed", "refuse")
    if "names" not in parts:
        raise part.no("'names' in each flag")
    pattern = parts["pattern"].text() if "pattern" in parts else ""
    try:
        re.compile(pattern)
    except re.error as error:
        raise parts["pattern"].no("a regular expression") from error
    allowed = parts["allowed"].texts() if "allowed" in parts else ()
    return Flag(parts["names"].texts(), pattern, allowed, _flag(parts["refuse"]) if "refuse" in parts else False)
