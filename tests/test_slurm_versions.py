"""The table of what differs between Slurm's versions: in order, asked as it is written, and the same on its page."""

from pathlib import Path

import pytest

from glaunch import slurm_versions
from glaunch.slurm_versions import CHANGES, LISTS_SPARES, REFUSES_TOO_MANY_NODES, SEGMENTS, Change, version_text

PAGE = Path(__file__).resolve().parents[1] / "docs" / "slurm-versions.md"


def test_every_row_is_in_the_table_by_version_and_says_who_says_so() -> None:
    rows = [row for row in vars(slurm_versions).values() if isinstance(row, Change)]
    assert list(CHANGES) == rows
    assert [row.since for row in CHANGES] == sorted(row.since for row in CHANGES)
    assert all(row.what and row.then and row.source for row in CHANGES)


@pytest.mark.parametrize(
    ("version", "spares", "segments"),
    [((), False, False), ((22, 5, 8), False, False), ((23, 2), True, False), ((24, 5, 0), True, True), ((26, 5, 5), True, True)],
)
def test_a_row_knows_the_versions_that_have_it(version: tuple[int, ...], spares: bool, segments: bool) -> None:
    assert (LISTS_SPARES.there(version), SEGMENTS.there(version)) == (spares, segments)


@pytest.mark.parametrize(
    ("version", "there"), [((22, 5, 8), False), ((24, 11, 5), True), ((25, 11, 1), True), ((25, 11, 2), False), ((26, 5, 5), False)]
)
def test_a_row_may_end(version: tuple[int, ...], there: bool) -> None:
    assert REFUSES_TOO_MANY_NODES.there(version) == there
    assert REFUSES_TOO_MANY_NODES.span == "24.11, before 25.11.2"


def test_a_version_is_written_as_slurm_does() -> None:
    assert [version_text(version) for version in ((22, 5, 8), (24, 11), ())] == ["22.05.8", "24.11", ""]


def test_the_page_shows_the_table() -> None:
    rows = [f"| {row.span} | {row.what} | {row.then} | {row.source} |" for row in CHANGES]
    shown = PAGE.read_text(encoding="utf-8").partition("| since |")[2].splitlines()[2:]
    assert shown[: shown.index("") if "" in shown else None] == rows
