"""A frozen noun as a JSON document and back: the one way, so that all documents read alike.

Every document starts with `"schema": "glaunch.NOUN/VERSION"`; field names are the noun's own (snake_case, units in names).
A change that breaks a reader raises the version.
"""

import dataclasses
import enum
import numbers
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, TypeVar, Union, cast

from glaunch.errors import ParseError

T = TypeVar("T")


def to_document(noun: str, version: int, value: object) -> dict[str, Any]:
    """The dataclass `value` as a dict that `json.dumps` takes as it is.

    Tuples become lists, sets sorted lists, mappings objects, enums their values, numpy's numbers and arrays plain ones.
    Raises TypeError for anything that JSON has no word for.
    """
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        raise TypeError(f"{value!r} is no dataclass")
    return {"schema": f"glaunch.{noun}/{version}", **_fields(value)}


def _fields(value: object) -> dict[str, Any]:
    return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(cast("Any", value))}


def _plain(value: object) -> object:
    if value is None or isinstance(value, (str, bool)):
        return value.value if isinstance(value, enum.Enum) else value
    if isinstance(value, enum.Enum):
        return _plain(value.value)
    if isinstance(value, numbers.Number):
        return _number(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _fields(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, AbstractSet):
        return sorted((_plain(item) for item in value), key=str)
    to_list = getattr(value, "tolist", None)  # numpy's arrays and bool, without importing numpy
    if callable(to_list):
        return _plain(to_list())
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    raise TypeError(f"{value!r} ({type(value).__name__}) has no place in a document")


def _number(value: numbers.Number) -> int | float | None:
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        number = float(value)
        return number if number - number == 0 else None  # JSON knows neither NaN nor infinity
    raise TypeError(f"{value!r} has no place in a document")


def from_document(kind: type[T], noun: str, version: int, document: object, where: str) -> T:
    """The noun that `to_document` wrote; `where` names the file in messages.

    Raises ParseError when the schema is another or a field is missing or of a wrong kind. A field that this version does not know is
    left out, and one that has a default may be missing, so that an older or newer glaunch of the same schema version can read it.
    """
    schema = f"glaunch.{noun}/{version}"
    if not isinstance(document, Mapping) or document.get("schema") != schema:
        seen = document.get("schema") if isinstance(document, Mapping) else document
        raise ParseError(where, str(seen), f"a document with schema {schema}", hint="was it written by another version of glaunch?")
    return cast("T", _object(kind, document, where))


def _object(kind: type[object], document: Mapping[str, object], where: str) -> object:
    hints = typing.get_type_hints(kind)
    given: dict[str, object] = {}
    for field in dataclasses.fields(cast("Any", kind)):
        if field.name in document:
            given[field.name] = _typed(hints[field.name], document[field.name], f"{where}: {field.name}")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise ParseError(where, ", ".join(document), f"a field {field.name}")
    return cast("Callable[..., object]", kind)(**given)


def _typed(hint: object, value: object, where: str) -> object:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        return _first_that_fits([one for one in arguments if one is not type(None)], value, where)
    if origin is tuple:
        return _tuple(arguments, _items(value, where), where)
    if origin in (frozenset, set):
        return frozenset(_typed(arguments[0], item, where) for item in _items(value, where))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            raise ParseError(where, repr(value), "an object")
        return {key: _typed(arguments[1], item, f"{where}.{key}") for key, item in value.items()}
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        if not isinstance(value, Mapping):
            raise ParseError(where, repr(value), "an object")
        return _object(hint, value, where)
    return _scalar(hint, value, where)


def _first_that_fits(kinds: Iterable[object], value: object, where: str) -> object:
    wrong = ParseError(where, repr(value), "another kind of value")
    for kind in kinds:
        try:
            return _typed(kind, value, where)
        except ParseError as error:  # noqa: PERF203
            wrong = error
    raise wrong


def _tuple(kinds: tuple[object, ...], items: list[object], where: str) -> tuple[object, ...]:
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        return tuple(_typed(kinds[0], item, f"{where}[{index}]") for index, item in enumerate(items))
    if len(kinds) != len(items):
        raise ParseError(where, repr(items), f"a list of {len(kinds)}")
    return tuple(_typed(kind, item, where) for kind, item in zip(kinds, items, strict=True))


def _items(value: object, where: str) -> list[object]:
    if not isinstance(value, list):
        raise ParseError(where, repr(value), "a list")
    return value


def _scalar(hint: object, value: object, where: str) -> object:
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        try:
            return hint(value)
        except ValueError:
            raise ParseError(where, repr(value), f"one of {', '.join(str(one.value) for one in hint)}") from None
    if not isinstance(hint, type) or not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        raise ParseError(where, repr(value), f"a value of kind {getattr(hint, '__name__', hint)}")
    return value
