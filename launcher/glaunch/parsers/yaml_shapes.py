"""YAML of a known shape: the tree of `strict_yaml` with what was expected where something else stands.

Scalars are texts as written (`0001` stays 0001, `no` stays no); every refusal is a ParseError with FILE:LINE.
"""

import re
from collections.abc import Iterable, Mapping

from glaunch.errors import ConfigError, ParseError, UsageError
from glaunch.hostlist import expand
from glaunch.parsers.strict_yaml import Items, Node, Scalar, Table, parse_yaml


def read_yaml(text: str, *, where: str) -> Node | None:
    """The tree of a YAML text; None for one with nothing in it. Raises ParseError for what is no YAML, and for anchors, tags, aliases."""
    try:
        return parse_yaml(text, where)
    except ConfigError as bad:
        place = re.match(re.escape(where) + r":\d+", bad.message)
        at = place[0] if place else where
        raise ParseError(at, bad.message[len(at) :].lstrip(": "), "plain YAML", hint=bad.hint) from bad


def table(node: Node | None, where: str, what: str, keys: Iterable[str] | None = None) -> Mapping[str, Node]:
    """The entries of a mapping, which may hold these keys only (None: any)."""
    if not isinstance(node, Table):
        raise ParseError(at(node, where), seen(node), what)
    allowed = None if keys is None else tuple(keys)
    for name, value in node.items:
        if allowed is not None and name.text not in allowed:
            raise ParseError(f"{where}:{name.line}", name.text, f"{what}: {', '.join(allowed)}", hint=f"it holds {seen(value)}")
    return {name.text: value for name, value in node.items}


def items(node: Node | None, where: str, what: str) -> tuple[Node, ...]:
    """The entries of a list."""
    if not isinstance(node, Items):
        raise ParseError(at(node, where), seen(node), what)
    return node.items


def scalar(node: Node | None, where: str, what: str) -> str:
    """A text; "" for nothing."""
    if not isinstance(node, Scalar):
        raise ParseError(at(node, where), seen(node), what)
    return "" if node.null else node.text


def hostlist(node: Node | None, where: str, what: str) -> tuple[str, ...]:
    """The names of a hostlist; () where nothing stands."""
    text = scalar(node, where, what) if node is not None else ""
    try:
        return expand(text)
    except UsageError as bad:
        raise ParseError(at(node, where), text, "a hostlist", hint=bad.message) from bad


def flag(node: Node | None, where: str, what: str) -> bool:
    """true or false, as YAML writes it."""
    text = scalar(node, where, what).lower()
    if text not in {"true", "false", "yes", "no", "on", "off"}:
        raise ParseError(at(node, where), text, f"{what}: true or false")
    return text in {"true", "yes", "on"}


def at(node: Node | None, where: str) -> str:
    """FILE:LINE of a node."""
    return f"{where}:{node.line if node is not None else 1}"


def seen(node: Node | None) -> str:
    """A node in a few words."""
    if isinstance(node, Scalar):
        return node.text
    if isinstance(node, Items):
        return "a list"
    return "nothing" if node is None else "a mapping of " + ", ".join(name.text for name, _ in node.items)
