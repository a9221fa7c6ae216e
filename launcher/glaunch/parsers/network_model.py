"""site/network-model.yaml as parameters."""

import re

from glaunch.errors import ConfigError
from glaunch.network_model import NAMES, Model, Parameter
from glaunch.parsers.strict_yaml import Node, Scalar, Table, parse_yaml

_VALUES = ("low", "expected", "high")


def parse_network_model(text: str, where: str) -> Model:
    """The parameters of a file, all that the model needs and no others. Raises ConfigError `WHERE:LINE: …`."""
    root = parse_yaml(text, where)
    found = {name: _parameter(node, where) for name, node in _table(root, where).items()}
    missing = [name for name in NAMES if name not in found]
    strange = [name for name in found if name not in NAMES]
    if missing or strange:
        raise ConfigError(f"{where}:1: the model is made of {', '.join(NAMES)}; {(missing or strange)[0]!r} is not as it should be")
    return found


def _parameter(node: Node, where: str) -> Parameter:
    parts = _table(node, where)
    if set(parts) != {*_VALUES, "source"}:
        raise ConfigError(f"{where}:{node.line}: expected {', '.join(_VALUES)} and source")
    low, expected, high = (_number(parts[name], where) for name in _VALUES)
    return Parameter(low, expected, high, " ".join(_text(parts["source"], where).split()))


def _table(node: Node | None, where: str) -> dict[str, Node]:
    if not isinstance(node, Table):
        raise ConfigError(f"{where}:{node.line if node else 1}: expected names and values")
    return {name.text: value for name, value in node.items}


def _text(node: Node, where: str) -> str:
    if not isinstance(node, Scalar) or not node.text.strip():
        raise ConfigError(f"{where}:{node.line}: expected a text")
    return node.text


def _number(node: Node, where: str) -> float:
    text = _text(node, where)
    if not re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text) or not float(text):
        raise ConfigError(f"{where}:{node.line}: expected a number above 0, got {text!r}")
    return float(text)
