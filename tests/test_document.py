"""Nouns as documents and back."""

import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glaunch.document import from_document, to_document
from glaunch.errors import ParseError


class Colour(enum.Enum):
    RED = "red"


@dataclass(frozen=True)
class Part:
    name: str
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Whole:
    part: Part
    pairs: tuple[tuple[str, int], ...]
    table: Mapping[str, str]
    maybe: str | None
    rate: float
    flag: bool
    colour: Colour
    words: frozenset[str]
    other: Part | None = None
    extra: tuple[str, ...] = field(default=())


TEXT = st.text()
PART = st.builds(Part, TEXT, st.lists(st.integers()).map(tuple))
WHOLE = st.builds(
    Whole,
    PART,
    st.lists(st.tuples(TEXT, st.integers())).map(tuple),
    st.dictionaries(TEXT, TEXT),
    st.none() | TEXT,
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.just(Colour.RED),
    st.frozensets(TEXT),
    st.none() | PART,
)


@given(WHOLE)
def test_there_and_back(whole: Whole) -> None:
    text = json.dumps(to_document("whole", 1, whole), allow_nan=False)
    assert from_document(Whole, "whole", 1, json.loads(text), "f") == whole


def test_the_schema_comes_first_and_is_held() -> None:
    document = to_document("part", 2, Part("a"))
    assert next(iter(document.items())) == ("schema", "glaunch.part/2")
    wrongs: list[object] = [
        {**document, "schema": "glaunch.part/1"},
        {**document, "schema": "glaunch.other/2"},
        {"name": "a"},
        [],
        None,
        "x",
    ]
    for wrong in wrongs:
        with pytest.raises(ParseError, match=r"glaunch\.part/2"):
            from_document(Part, "part", 2, wrong, "plan.json")


def test_numbers_of_numpy_are_numbers() -> None:
    part = Part(name="a", sizes=(np.int64(3), np.array([1, 2])))  # type: ignore[arg-type]
    assert to_document("part", 1, part)["sizes"] == [3, [1, 2]]
    numbers = to_document("part", 1, Part(name="a", sizes=(np.float64(0.5), np.bool_(True), float("nan"), float("inf"))))  # type: ignore[arg-type]
    assert json.dumps(numbers["sizes"]) == "[0.5, true, null, null]"


def test_what_has_no_place_in_a_document() -> None:
    for value in (object(), b"bytes", 1j):
        with pytest.raises(TypeError):
            to_document("part", 1, Part(name=value))  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        to_document("part", 1, Part)


def test_older_and_newer_documents_of_one_version_are_read() -> None:
    assert from_document(Part, "part", 1, {"schema": "glaunch.part/1", "name": "a", "new": 1}, "f") == Part("a")
    with pytest.raises(ParseError, match="a field name"):
        from_document(Part, "part", 1, {"schema": "glaunch.part/1"}, "f")


@pytest.mark.parametrize("change", [{"name": 1}, {"name": None}, {"sizes": "12"}, {"sizes": [True]}, {"sizes": ["1"]}, {"sizes": {"a": 1}}])
def test_a_field_of_another_kind_is_named(change: dict[str, object]) -> None:
    with pytest.raises(ParseError, match=rf"plan\.json: {next(iter(change))}"):
        from_document(Part, "part", 1, {"schema": "glaunch.part/1", "name": "a", **change}, "plan.json")
