"""ranks.tsv."""

import pytest

from glaunch.errors import ParseError
from glaunch.logs import RankRow
from glaunch.parsers.ranks import parse_ranks


def test_rows_with_and_without_more_columns() -> None:
    assert parse_ranks("0\tn008\t0\t4711\n1\tn008\t1\n") == (RankRow(0, "n008", 0), RankRow(1, "n008", 1))


def test_a_last_line_that_was_not_finished_is_left_out() -> None:
    assert parse_ranks("0\tn008\t0\n1\tn0") == (RankRow(0, "n008", 0),)
    assert parse_ranks("") == ()


@pytest.mark.parametrize("line", ["x\tn1\t0", "0\t\t0", "0 n1 0", "0\tn1", "0\tn1\t-1", ""])
def test_a_line_of_another_kind(line: str) -> None:
    with pytest.raises(ParseError, match=r"12.0.0/ranks.tsv:2"):
        parse_ranks(f"0\tn1\t0\n{line}\n", "12.0.0/ranks.tsv")
