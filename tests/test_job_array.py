"""An array and its parts: each task is in one part once, under an index that Slurm takes."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plans import GATHERING, load_templates, make_plan

from glaunch.array_parts import after_part, part_of
from glaunch.errors import UsageError
from glaunch.job_array import ArrayPart, JobArray, limits_of, parse_array, split
from glaunch.plan import Option
from glaunch.request import Request
from glaunch.script import render


@pytest.mark.parametrize(
    ("text", "max_size", "parts"),
    [
        ("0-1999%50", 1001, (("0-999%50", 0, "0-999"), ("0-999%50", 1000, "1000-1999"))),
        ("1-2000", 1001, (("1-1000", 0, "1-1000"), ("1-1000", 1000, "1001-2000"))),
        ("1,5,9-2000:3%10", 1001, (("1,5,9-999:3%10", 0, "1,5,9-999:3"), ("2-998:3%10", 1000, "1002-1998:3"))),
        ("3,999999", 1001, (("3", 0, "3"), ("999", 999000, "999999"))),
        ("7-1000007:1000000", 1001, (("7", 0, "7"), ("7", 1000000, "1000007"))),
        ("0-1000", 1001, ()),
    ],
)
def test_parts_begin_at_round_indexes(text: str, max_size: int, parts: tuple[tuple[str, int, str], ...]) -> None:
    assert split(parse_array(text), max_size) == tuple(ArrayPart(*part) for part in parts)


RUN = st.tuples(st.integers(0, 400), st.integers(0, 200), st.integers(1, 60)).map(lambda one: f"{one[0]}-{one[0] + one[1]}:{one[2]}")


@settings(max_examples=200)
@given(st.lists(RUN, min_size=1, max_size=4), st.integers(8, 300), st.none() | st.integers(7, 50))
def test_every_task_is_in_one_part_once_under_an_index_that_slurm_takes(runs: list[str], max_size: int, max_tasks: int | None) -> None:
    array = parse_array(",".join(runs) + "%3")
    wanted = {index for run in array.runs for index in run}
    assert (array.count, array.lowest, array.highest) == (len(wanted), min(wanted), max(wanted))
    parts = split(array, max_size, max_tasks)
    if not parts:
        assert max(wanted) < max_size
        assert max_tasks is None or len(wanted) <= max_tasks
        return
    seen: list[int] = []
    for part in parts:
        theirs = parse_array(part.indexes)
        indexes = {index for run in theirs.runs for index in run}
        assert theirs.cap == 3
        assert max(indexes) < max_size
        assert max_tasks is None or len(indexes) <= max_tasks
        assert {index + part.offset for index in indexes} == {index for run in parse_array(part.tasks).runs for index in run}
        seen += [index + part.offset for index in indexes]
    assert sorted(seen) == sorted(wanted)


def test_what_is_no_array_is_refused_with_an_example() -> None:
    for text in ("", "a", "1-", "5-1", "1-9:0", "1%0", "1%", "0-9%x", "1,,2", "-1", "1 2"):
        with pytest.raises(UsageError, match="--array"):
            parse_array(text)
    with pytest.raises(UsageError, match="more than 100 submissions"):
        split(parse_array("0-999999999"), 1001)
    with pytest.raises(UsageError, match="no job arrays"):
        split(parse_array("1-3"), 1)


def test_the_limits_are_read_from_slurms_configuration() -> None:
    assert limits_of({"MaxArraySize": "1001", "SchedulerParameters": "defer,max_array_tasks=500"}) == (1001, 500)
    assert limits_of({"SchedulerParameters": "Max_Array_Tasks=5, max_array_tasks=500,"}) == (None, 5), "Slurm takes the first"
    assert limits_of({"SchedulerParameters": "(null)"}) == (None, None)
    assert split(JobArray((range(5000),)), None) == ()


def test_a_part_has_its_own_folder_and_indexes_and_its_program_sees_the_array_that_was_asked_for() -> None:
    plan = make_plan("/home/ada/jobs/try-sub-1", ("./a.out",), more=(Option("array", "0-24%2"),))
    request = Request(("./a.out",), array="0-24%2", dependency="afterok:7")
    whole = replace(plan, request=request, parts=split(parse_array("0-24%2"), 11))
    last = part_of(whole, 2)
    assert (last.submission_id, last.folder) == ("sub-1-3", "/home/ada/jobs/try-sub-1-3")
    options = {option.name: option.value for option in last.directives}
    assert options["array"] == "0-4%2"
    assert options["output"] == "/home/ada/jobs/try-sub-1-3/batch-%A_%a.log"
    assert after_part(whole, "12")[0].value == "afterok:7,afterany:12"
    assert after_part(replace(whole, request=replace(request, dependency="afterok:7?afterok:8")), "12")[0].value == "afterany:12"
    program = render(last, load_templates(), version="1.2.3", gathering=GATHERING)["command.sh"]
    assert "export SLURM_ARRAY_TASK_ID=$((gl_index + 20))" in program
    assert "SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_MAX=24 SLURM_ARRAY_TASK_COUNT=25 SLURM_ARRAY_TASK_STEP=1" in program
    assert "SLURM_ARRAY" not in render(plan, load_templates(), version="1.2.3", gathering=GATHERING)["command.sh"]


def test_a_launcher_of_ranks_and_its_ranks_both_read_the_program_and_the_index_is_raised_once(tmp_path: Path) -> None:
    plan = make_plan("/home/ada/jobs/try-sub-1", ("./a.out",), more=(Option("array", "0-24"),))
    whole = replace(plan, request=Request(("./a.out",), array="0-24"), parts=split(parse_array("0-24"), 11))
    program = render(part_of(whole, 2), load_templates(), version="1.2.3", gathering=GATHERING)["command.sh"]
    (tmp_path / "command.sh").write_text(program)
    read = f"gl_attempt=/j/12.3.1-2; . {tmp_path}/command.sh"
    line = f"{read}; sh -c '{read}; echo $SLURM_ARRAY_TASK_ID $SLURM_ARRAY_TASK_COUNT'"
    environ = {"PATH": "/usr/bin:/bin", "SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_TASK_COUNT": "5"}
    done = subprocess.run(["sh", "-euc", line], env=environ, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "23 25\n"
