"""ranks.tsv."""

import pytest

from glaunch.logs import RankRow
from glaunch.parsers.ranks import parse_ranks


def test_rows_in_the_files_order() -> None:
    assert parse_ranks("8\tn008\t0\t4711\n1\tn007\t1\t12\n") == (RankRow(8, "n008", 0), RankRow(1, "n007", 1))
    assert parse_ranks("") == ()


BROKEN = ("x\tn1\t0\t7", "0\t\t0\t7", "0 n1 0 7", "0\tn1\t0", "0\tn1\t-1\t7", "", "3\tn04\tn1\t0\t7", "3\tn0", "\u0663\tn1\t0\t7")


@pytest.mark.parametrize("line", BROKEN)
def test_a_line_that_is_not_whole_is_left_out(line: str) -> None:
    assert parse_ranks(f"0\tn1\t0\t7\n{line}\n1\tn1\t1\t8\n") == (RankRow(0, "n1", 0), RankRow(1, "n1", 1))
