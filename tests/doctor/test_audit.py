"""Past jobs on a fabric: the figures are those that counting by hand gives, and those of another way to count."""

import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glaunch.doctor.audit import audit
from glaunch.errors import ParseError
from glaunch.fabric import Fabric, build_fabric, synthetic
from glaunch.hostlist import expand, fold
from glaunch.parsers.past_jobs import FIELDS, parse_past_jobs
from glaunch.past_jobs import PastJobs
from glaunch.report.audit import audit_document, audit_text

FABRIC = synthetic("core:1 spine:2 leaf:2 node:4")
"""n001 to n016: four nodes a leaf, two leaves a pod, two pods."""

WEEK = """\
JobID|Partition|NNodes|NodeList|Elapsed|State|User
1|gpu|1|n001|01:00:00|COMPLETED|ada
2|gpu|4|n[001-004]|01:00:00|COMPLETED|ada
3|gpu|4|n[001,005,009,013]|02:00:00|FAILED|bob
4_7|gpu|3|n[001-002,005]|1-00:00:00|CANCELLED by 1000|bob
5|long|8|n[005-012]|00:30:00|TIMEOUT|ada
6|long|2|n[001,009]|00:00:10|COMPLETED|ada
7|gpu|2|None assigned|00:00:00|PENDING|ada
8|gpu|2|old[1-2]|01:00:00|COMPLETED|ada
"""


def jobs(text: str = WEEK) -> PastJobs:
    return parse_past_jobs(text, where="week.txt")


def test_the_figures_are_those_counted_by_hand() -> None:
    found = audit(FABRIC, jobs())
    assert (found.jobs, found.never_ran, found.off_fabric, found.unknown_nodes) == (7, 1, 1, ("old1", "old2"))
    assert (found.leaves, found.pods) == (4, 2)
    rows = {
        (row.partition, row.least_nodes, row.most_nodes): (
            row.jobs,
            row.at_fewest,
            row.leaves,
            row.fewest_leaves,
            row.pods,
            row.fewest_pods,
        )
        for row in found.groups
    }
    assert rows == {
        ("gpu", 1, 1): (1, 1, 1, 1, 1, 1),
        ("gpu", 3, 4): (3, 1, 1 + 4 + 2, 3, 1 + 2 + 1, 3),
        ("long", 2, 2): (1, 0, 2, 1, 2, 1),
        ("long", 5, 8): (1, 0, 2, 2, 2, 1),
    }
    (mixed,) = [one for one in found.groups if (one.partition, one.most_nodes) == ("gpu", 4)]
    assert (mixed.node_s, mixed.apart_node_s) == (3600 * 4 + 7200 * 4 + 86400 * 3, 7200 * 4 + 86400 * 3)
    assert [one.id for one in found.worst] == ["3", "6", "4_7", "5"]
    worst = found.worst[0]
    assert (worst.leaves, worst.fewest_leaves, worst.pods, worst.fewest_pods, worst.user, worst.state) == (4, 1, 2, 1, "bob", "FAILED")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_page_fits_and_says_what_was_left_out(width: int) -> None:
    text = audit_text(audit(FABRIC, jobs()), "of the last 7 d", ("PrivateData=jobs: only your own jobs are seen",), width)
    assert all(len(line) <= width for line in text.splitlines()), text
    for words in ("7 jobs of the last 7 d", "4 (80 %)", "PrivateData=jobs", "1 job left out", "old1, old2", "4_7", "that never had a node"):
        assert words in re.sub(r"\n\s*", " ", text)


def test_nothing_ran() -> None:
    found = audit(FABRIC, jobs(WEEK.splitlines()[0]))
    assert (found.jobs, found.groups, found.worst) == (0, (), ())
    assert "0 jobs of week.txt" in audit_text(found, "of week.txt", ())
    assert audit_document(found, ("x",))["unseen"] == ["x"]


def islands() -> Fabric:
    """Leaves of 3, 2 and 2 nodes in one island, of 6 in another."""
    nodes = {"a": ["n1", "n2", "n3"], "b": ["n4", "n5"], "c": ["n6", "n7"], "d": [f"n{number}" for number in range(8, 14)]}
    return build_fabric({"a": "top", "b": "top", "c": "top", "d": None, "top": None}, nodes, "made")


def fewest(fabric: Fabric, size: int) -> int:
    """By trying: the fewest leaves of one island that hold so many nodes; over all islands where none does."""
    island = {leaf: fabric.path_of_leaf(leaf)[-1] for leaf in fabric.leaves}
    for same in (True, False):
        for number in range(1, len(fabric.leaves) + 1):
            for chosen in itertools.combinations(fabric.leaves, number):
                room = sum(len(fabric.by_name[leaf].nodes) for leaf in chosen)
                if room >= size and (not same or len({island[leaf] for leaf in chosen}) == 1):
                    return number
    raise AssertionError(size)


@pytest.mark.parametrize("fabric", [FABRIC, islands()], ids=["tree", "islands"])
@settings(max_examples=50)
@given(data=st.data())
def test_leaves_and_fewest_leaves_agree_with_trying_all(fabric: Fabric, data: st.DataObject) -> None:
    nodes = sorted(fabric.leaf_of)
    chosen = data.draw(st.lists(st.lists(st.sampled_from(nodes), min_size=1, unique=True), min_size=1, max_size=6))
    text = "".join(f"{number}|p|{len(names)}|{fold(names)}|00:01:00|COMPLETED|u\n" for number, names in enumerate(chosen))
    found = audit(fabric, parse_past_jobs(text, where="x"))
    assert sum(one.jobs for one in found.groups) == len(chosen)
    assert sum(one.leaves for one in found.groups) == sum(len({fabric.leaf_of[name] for name in names}) for names in chosen)
    assert sum(one.fewest_leaves for one in found.groups) == sum(fewest(fabric, len(names)) for names in chosen)
    assert sum(one.pods for one in found.groups) == sum(len({fabric.pod_of(name) for name in names}) for names in chosen)
    assert sum(one.node_s for one in found.groups) == sum(60 * len(names) for names in chosen)
    for job in found.worst:
        assert job.node_count == len(expand(job.nodes))
        # A job over two islands may use fewer leaves than the fewest within one.
        assert job.leaves > job.fewest_leaves or job.pods > job.fewest_pods


@pytest.mark.parametrize(
    ("text", "where", "expected"),
    [
        ("JobID|Partition|NodeList|Elapsed|State\n", "w:1", "a field User"),
        ("JobID|Partition|NNodes|NodeList|Elapsed|State|User\n1|p|1|n1|00:00:01|X\n", "w:2", "7 fields apart by |"),
        ("JobID|Partition|NNodes|NodeList|Elapsed|State|User\n1|p|1|n1|soon|X|u\n", "w:2", "a time such as"),
        ("hello\n", "w:1", "JobID|Partition"),
    ],
)
def test_what_is_no_list_of_jobs_is_refused_with_its_line(text: str, where: str, expected: str) -> None:
    with pytest.raises(ParseError) as refused:
        parse_past_jobs(text, where="w")
    assert refused.value.where == where
    assert expected in refused.value.expected


def test_other_fields_steps_and_forms_are_read() -> None:
    text = """\
User|JobName|JobID|State|Elapsed|NodeList|Partition|
ada|x|1|RUNNING|1-00:00:01|n1|p|
ada|batch|1.batch|RUNNING|00:00:01|n1|p|
bob|y|2_[3-4]|PENDING|00:00:00|None assigned|p|
"""
    assert parse_past_jobs(text, where="w") == PastJobs(("1",), ("p",), ("n1",), (86401,), ("RUNNING",), ("ada",), 1)
    assert FIELDS == ("JobID", "Partition", "NNodes", "NodeList", "Elapsed", "State", "User")
    assert parse_past_jobs("9|p|1|n1|00:00:05|X|u", where="w") == PastJobs(("9",), ("p",), ("n1",), (5,), ("X",), ("u",))
    assert len(parse_past_jobs("", where="w")) == 0
