"""What a terminal would obey is written out, whatever it is."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glaunch.report.text import clean, columns, cut, pad, table, wrapped

ANY = st.text(st.characters(exclude_categories=()))


@given(ANY)
def test_nothing_that_is_obeyed_is_left(text: str) -> None:
    for letter in clean(text):
        assert unicodedata.category(letter) not in {"Cc", "Cf", "Cs", "Zl", "Zp"}, letter
    assert clean(clean(text)) == clean(text)
    clean(text).encode()  # a surrogate would not go out


@given(st.text(st.characters(categories=("L", "N", "P", "S", "Zs"), exclude_characters="\u115f\u1160\u3164\uffa0")))
def test_what_people_write_is_left_as_it_is(text: str) -> None:
    assert clean(text) == text


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[31m", r"\x1b[31m"),
        ("\x9b", r"\x9b"),
        ("a\nb\tc\r", r"a\nb\tc\r"),
        ("\u202e", r"\u202e"),
        ("\udcff", r"\xff"),
        ("\U000e0041", r"\U000e0041"),
    ],
)
def test_how_it_is_written(raw: str, shown: str) -> None:
    assert clean(raw) == shown


def test_lines_may_stay_lines() -> None:
    assert clean("a\tb\r\n\x1bc\n", lines=True) == "a       b\n\\x1bc\n"


@given(ANY.map(clean), st.integers(1, 40))
def test_cut_to_columns(text: str, width: int) -> None:
    short = cut(text, width)
    assert columns(short) <= width
    assert short == text or short.endswith("…")
    assert columns(pad(short, width)) == width


def test_wide_letters_take_two_columns() -> None:
    assert (columns("日本"), columns("e\u0301"), cut("日本語", 4)) == (4, 1, "日…")


def test_a_path_is_never_broken() -> None:
    path = "/" + "x" * 100
    assert path in wrapped(f"it is {path} here", 40)


def test_a_table_is_cut_only_where_it_must_be() -> None:
    rows = [("12", "waits for nodes or GPUs that are busy (Resources)", "n[001-004,006]", "/home/ada/jobs/train")]
    head = ("job", "state", "nodes", "folder")
    assert table(head, rows, 200)[1] == "12   waits for nodes or GPUs that are busy (Resources)  n[001-004,006]  /home/ada/jobs/train"
    assert table(head, rows, 92)[1].endswith("/home/ada/jobs/train")
    assert table(head, rows, 80)[1] == "12   waits for nodes or GPUs that are bus…  n[001-004,006]  /home/ada/jobs/train"
    assert table(head, rows, 60)[1] == "12   waits for nodes or GPUs that ar…  n[001-004,006]  /home/a…"


def test_a_table_keeps_its_width() -> None:
    lines = table(("a", "b"), [("x" * 100, "y" * 100), ("1", "2")], 60)
    assert [columns(line) <= 60 for line in lines] == [True] * 3
    assert lines[2].split() == ["1", "2"]
