"""What YAML would guess, and what settings read."""

from collections.abc import Iterator
from contextlib import suppress

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from glaunch.errors import ConfigError
from glaunch.parsers.strict_yaml import MAX_DEPTH, Items, Node, Scalar, Table, parse_yaml


@pytest.fixture(autouse=True, params=["libyaml", "plain Python"], scope="module")
def loader(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each test with and without libyaml, which PyYAML may be built without."""
    assert hasattr(yaml, "CSafeLoader")
    with pytest.MonkeyPatch.context() as patch:
        if request.param != "libyaml":
            patch.delattr(yaml, "CSafeLoader")
        yield


def plain(node: Node | None) -> object:
    """A tree without its lines."""
    if isinstance(node, Scalar):
        return node.text
    if isinstance(node, Items):
        return [plain(item) for item in node.items]
    return None if node is None else {name.text: plain(value) for name, value in node.items}


@pytest.mark.parametrize(
    "text", ["12:30:00", "010", "0x1f", "0b11", "1_000", "no", "NO", "yes", "on", "1e3", ".inf", "2024-01-31", "=", "~"]
)
def test_a_plain_text_stays_what_was_written(text: str) -> None:
    assert plain(parse_yaml(f"key: {text}", "f")) == {"key": text}


def test_lines_are_those_of_the_file() -> None:
    root = parse_yaml("# head\n\na:\n  - 1\n  - b: 'x'\n", "f")
    assert isinstance(root, Table)
    (name, items), *_ = root.items
    assert isinstance(items, Items)
    inner = items.items[1]
    assert isinstance(inner, Table)
    assert (name.line, items.line, items.items[0].line, inner.items[0][1]) == (3, 4, 4, Scalar("x", True, 5))


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "~", "--- # nothing\n...\n"])
def test_nothing_is_none(text: str) -> None:
    assert parse_yaml(text, "f") is None


def test_null_is_only_what_stands_without_quotes() -> None:
    root = parse_yaml("a:\nb: ~\nc: null\nd: 'null'\ne: ''\nf: NULL", "f")
    assert isinstance(root, Table)
    assert [isinstance(node, Scalar) and node.null for _, node in root.items] == [True, True, True, False, False, False]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3", "f:3: 'a' stands already on line 1"),
        ("a: {x: 1,\n 'x': 2}", "f:2: 'x' stands already on line 1"),
        ("a: &x [1]\nb: *x", "f:1: the anchor &x"),
        ("b: *x", "f:1: the alias *x"),
        ("a: 1\nb: !!python/object/apply:os.system [id]", "f:2: the tag "),
        ("a: !!int '3'", "f:1: the tag "),
        ("a: 1\n---\nb: 2", "f:3: a second document"),
        ("[1]: 2", "f:1: a list or table as a name"),
        ("{{a: 1}: 2}: 3", "f:1: a list or table as a name"),
        ("a: [1\nb: 2", "f:2: no YAML"),
        ("a: 1\n\tb: 2", "f:2: no YAML"),
        ("a: b: c", "f:1: no YAML"),
        ("a: 1\nb: \x00", "f:2: the character U+0000"),
        ("a: \x1b[31m", "f:1: the character U+001B"),
        ("a: \ud800", "f:1: the character U+D800"),
    ],
)
def test_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_yaml(text, "f")
    assert caught.value.message.startswith(message)


def test_a_tab_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_yaml("a:\n\tb: 2", "f")
    assert "tabs" in caught.value.hint


def test_an_alias_bomb_is_refused_at_its_first_anchor() -> None:
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))
    with pytest.raises(ConfigError, match="anchor &a0"):
        parse_yaml(bomb, "f")


@pytest.mark.parametrize(("opened", "closed"), [("[", "]"), ("{a: ", "}"), ("{? ", ": 1}")])
def test_depth_has_an_end(opened: str, closed: str) -> None:
    assert MAX_DEPTH < 500
    with pytest.raises(ConfigError, match=r"levels|as a name"):
        parse_yaml(opened * 500 + "1" + closed * 500, "f")


KEPT = st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn", "Zl", "Zp"], exclude_characters="\ufeff")


@given(st.dictionaries(st.text("abcXYZ_09", min_size=1), st.text(KEPT, max_size=8)))
def test_any_quoted_text_comes_back(values: dict[str, str]) -> None:
    lines = [f"'{name}': '{value}'\n" for name, value in ((name, value.replace("'", "''")) for name, value in values.items())]
    assert plain(parse_yaml("".join(lines), "f")) == (values or None)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused_with_its_place(text: str) -> None:
    with suppress(ConfigError):
        parse_yaml(text, "f")
        return
    with pytest.raises(ConfigError, match=r"^f:\d+: "):
        parse_yaml(text, "f")
