"""Labelled output of ranks, cut and joined again."""

from hypothesis import given
from hypothesis import strategies as st

from glaunch.parsers.labelled import PIECE, RankLine, labelled, tail_of

LINE = st.one_of(
    st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=60), st.integers(1020, 3100).map(lambda size: "x" * size)
)


def as_slurm_writes(lines: list[tuple[int, str]]) -> str:
    """As slurmstepd 22.05 does, seen there: pieces of 1,024 bytes; a line that fills its last piece is followed by an empty one."""
    out = ""
    for rank, text in lines:
        pieces = [text[start : start + PIECE] for start in range(0, len(text) + 1, PIECE)] or [""]
        out += "".join(f"{rank}: {piece}\n" for piece in pieces)
    return out


@given(st.lists(st.tuples(st.integers(0, 12), LINE), max_size=12))
def test_what_was_cut_is_joined(lines: list[tuple[int, str]]) -> None:
    assert [(line.rank, line.text) for line in labelled(as_slurm_writes(lines))] == lines


def test_pieces_of_two_ranks_between_each_other() -> None:
    text = f"1: {'a' * PIECE}\n0: {'b' * PIECE}\n1: c\n2: short\n0: \n"
    assert list(labelled(text)) == [RankLine(1, "a" * PIECE + "c", 1), RankLine(0, "b" * PIECE, 2), RankLine(2, "short", 4)]


def test_a_line_without_a_label_and_an_end_that_is_missing() -> None:
    text = f"slurmstepd: error: x\n3: {'a' * PIECE}"
    assert list(labelled(text)) == [RankLine(None, "slurmstepd: error: x", 1), RankLine(3, "a" * PIECE, 2)]


def test_the_tail_of_one_rank() -> None:
    text = "".join(f"{rank}: line {number}\n" for number in range(9) for rank in (0, 1))
    assert [line.text for line in tail_of(text, 1, 2)] == ["line 7", "line 8"]
    assert tail_of(text, 7, 2) == ()
