"""Hostlists, held against what Slurm itself says."""

import json
import os
import shutil
import subprocess
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glaunch.errors import UsageError
from glaunch.hostlist import MAX_NAMES, MAX_RANGE, expand, fold

SHARED = Path(os.environ.get("GLAUNCH_SHARED", Path(__file__).resolve().parents[2] / "shared"))
CORPUS = SHARED / "corpus" / "hostlist"

NAMES = st.lists(
    st.one_of(
        st.builds("{}{}".format, st.sampled_from(["n", "n", "gpu-", "r1c", "", "é"]), st.integers(0, 120)),
        st.builds(
            lambda prefix, number, width: f"{prefix}{number:0{width}d}", st.sampled_from(["n", "x"]), st.integers(0, 120), st.integers(1, 5)
        ),
        st.text(alphabet="abn01289-.%]@*^!é", min_size=1, max_size=12),
    ),
    max_size=30,
)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ""),
        ("n1", "n1"),
        ("n[1-3]", "n1 n2 n3"),
        ("n[09-11]", "n09 n10 n11"),
        ("n[9-11]", "n9 n10 n11"),
        ("n[099-101]", "n099 n100 n101"),
        ("n[01-3]", "n01 n02 n03"),  # the low end says how wide
        ("n[1-03]", "n1 n2 n3"),
        ("n[5-05]", "n5"),
        ("n[01,1,001]", "n01 n1 n001"),
        ("n[3,1-2],n1", "n3 n1 n2 n1"),  # neither sorted nor made distinct
        ("a,b[1-2],c", "a b1 b2 c"),
        ("a,,b , c\td\ne,", "a b c d e"),
        ("[1-3]", "1 2 3"),
        ("n[1-2][3-4]", "n13 n14 n23 n24"),
        ("n[1-2]-ib", "n1-ib n2-ib"),
        ("n[1-2].x.org,m", "n1.x.org n2.x.org m"),
        ("a-[1-2]-b-[3-4]-c", "a-1-b-3-c a-1-b-4-c a-2-b-3-c a-2-b-4-c"),
        ("100%[1-2]%d[3]%s", "100%1%d3%s 100%2%d3%s"),
        ("n1-2]", "n1-2]"),
        ("@group", "@group"),
        ("ALL", "ALL"),
    ],
)
def test_expand(text: str, names: str) -> None:
    assert expand(text) == tuple(names.split())


def test_of_the_brackets_before_the_last_the_first_runs_fastest() -> None:
    assert expand("r[1-2]c[1-2]s[0-1]") == ("r1c1s0", "r1c1s1", "r2c1s0", "r2c1s1", "r1c2s0", "r1c2s1", "r2c2s0", "r2c2s1")
    four = expand("a[1-2]b[3-4]c[5-6]d[7-8]")
    assert four == tuple(f"a{a}b{b}c{c}d{d}" for c, b, a, d in product("56", "34", "12", "78"))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("n[1-2", "'n[1-2'"),
        ("a,n[", "'n['"),
        ("n[]", "''"),
        ("n[1,]", "''"),
        ("n[1--3]", "'1--3'"),
        ("n[-1]", "'-1'"),
        ("n[3-1]", "'3-1'"),
        ("n[a-c]", "'a-c'"),
        ("n[1-5/2]", "'1-5/2'"),
        ("n[1 - 3]", "'1 - 3'"),
        ("n[１-３]", "'１-３'"),
        ("n[1]]", "'n[1]]'"),
        ("n[[1]]", "'n[[1]]'"),
        ("n[1-999999999]", "'1-999999999'"),
        ("n[0-65536]", "'0-65536'"),
        ("n[0-9999999999999999999999]", "'0-9999999999999999999999'"),
        ("n[1-60000][1-60000]", "'n[1-60000][1-60000]'"),
        ("n[1-999][1-999][1-999][1-999]", "'n[1-999][1-999][1-999][1-999]'"),
        ("switch{leaf1,leaf2}", "'switch{leaf1'"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_its_name(text: str, named: str) -> None:
    with pytest.raises(UsageError) as refused:
        expand(text)
    assert named in refused.value.message


def test_many_ranges_are_no_way_round_the_limit() -> None:
    most = ",".join(["n[1-65536]"] * (MAX_NAMES // MAX_RANGE))
    assert len(expand(most)) == MAX_NAMES
    with pytest.raises(UsageError):
        expand(most + ",n")
    with pytest.raises(UsageError):
        expand(most + ",n[1-2]")


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ("", ""),
        ("n1", "n1"),
        ("n1 n2 n3", "n[1-3]"),
        ("n3 n1 n2", "n[3,1-2]"),
        ("n1 n1", "n[1,1]"),
        ("n8 n9 n10 n11", "n[8-11]"),
        ("n08 n09 n10", "n[08-10]"),
        ("n9 n010", "n[9,010]"),
        ("n009 n10 n11", "n[009,10-11]"),
        ("n0 n00 n000", "n[0,00,000]"),
        ("n1 m1 n2", "n1,m1,n2"),
        ("n1-ib n2-ib", "n1-ib,n2-ib"),
        ("a a", "a,a"),
        ("1 2 3", "[1-3]"),
        ("a1b1 a1b2 a2b1 a2b2", "a1b[1-2],a2b[1-2]"),
        ("n99999999999999999998 n99999999999999999999", "n99999999999999999998,n99999999999999999999"),
    ],
)
def test_fold(names: str, text: str) -> None:
    assert fold(names.split()) == text


def test_a_fold_never_has_a_range_that_slurm_refuses() -> None:
    names = [f"n{number}" for number in range(1, 100_001)]
    assert fold(names) == "n[1-65536,65537-100000]"
    assert expand(fold(names)) == tuple(names)


@given(NAMES)
def test_every_fold_expands_to_what_was_folded(names: list[str]) -> None:
    assert expand(fold(names)) == tuple(names)


@given(st.text(alphabet="n01289[]-, {%é", max_size=20))
def test_any_text_is_names_or_refused(text: str) -> None:
    try:
        names = expand(text)
    except UsageError:
        return
    assert expand(fold(names)) == names


# What Slurm takes and glaunch refuses (it is not what was meant), and folds of a text rather than of names.
DIFFERENT = {"n[99999999999999999998-99999999999999999999]", "n[1 - 3]", "n[1-2][3-4]"}
# Up to 23.02 text after the last bracket is refused; up to 22.05 a bracket may stay open and a newline is part of a name.
LATER = {"n[1-2]-ib", "a-[1-2]-b-[3-4]-c", "node[001-002].example.com", "node[1-3]!node2", "n[1-2]é", "n[1-2", "n1\nn2"}


@pytest.mark.parametrize("version", ["21.08", "22.05", "23.02", "23.11", "24.05", "24.11", "25.05", "25.11", "26.05"])
def test_the_corpus_of_every_release(version: str) -> None:
    path = CORPUS / f"slurm-{version}-hostlist_cases.json"
    if not path.exists():
        pytest.skip(f"no corpus at {path}")
    skipped = DIFFERENT | (LATER if version <= "23.02" else set())
    cases = [case for case in json.loads(path.read_text()) if case["input"] not in skipped]
    assert len(cases) >= 40
    for case in cases:
        try:
            names = expand(case["input"])
        except UsageError:
            names = ()
            assert case["stderr"], case["input"]
        assert list(names) == case["hostnames"], case["input"]
        assert fold(names) == case["hostlist"], case["input"]


@pytest.fixture(scope="module")
def scontrol(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, str]]:
    """scontrol and an environment in which it folds and expands without any cluster."""
    program = shutil.which("scontrol")
    if program is None:
        pytest.skip("no scontrol on this machine")
    conf = tmp_path_factory.mktemp("slurm") / "slurm.conf"
    conf.write_text("ClusterName=none\nSlurmctldHost=localhost\nNodeName=n1\nPartitionName=p Nodes=n1\n")
    return program, {"SLURM_CONF": str(conf), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}


def ask(scontrol: tuple[str, dict[str, str]], what: str, text: str) -> str:
    program, env = scontrol
    done = subprocess.run([program, "show", what, text], env=env, capture_output=True, text=True, timeout=60, check=True)
    assert not done.stderr, done.stderr
    return done.stdout


NUMBERS = st.builds(lambda number, width: f"{number:0{width}d}", st.integers(0, 300), st.integers(1, 4))
RANGES = st.lists(
    st.one_of(
        NUMBERS,
        st.builds(lambda low, span, width: f"{low:0{width}d}-{low + span}", st.integers(0, 120), st.integers(0, 12), st.integers(1, 4)),
    ),
    min_size=1,
    max_size=4,
).map(",".join)
ITEMS = st.builds(
    lambda parts, last: "".join(f"{text}[{ranges}]" for text, ranges in parts) + last,
    st.lists(st.tuples(st.sampled_from(["n", "rack", "x-", "a1b"]), RANGES), max_size=4),
    st.sampled_from(["", "", "n[1-2]", "z[09-11,3]"]),
).filter(lambda item: item and item.count(",") < 8)


@settings(max_examples=60)
@given(items=st.lists(ITEMS, min_size=1, max_size=4))
def test_slurm_expands_alike(scontrol: tuple[str, dict[str, str]], items: list[str]) -> None:
    text = ",".join(items)
    try:
        names = expand(text)
    except UsageError:
        return  # more than a million names: Slurm would go on
    if len(names) < 20_000:
        assert ask(scontrol, "hostnames", text).split() == list(names)


@settings(max_examples=60)
@given(
    names=st.lists(
        st.one_of(st.builds("{}{}".format, st.sampled_from(["n", "m", "a1b"]), NUMBERS), st.sampled_from(["n", "login", "x-ib"])),
        min_size=1,
        max_size=25,
    )
)
def test_slurm_folds_alike(scontrol: tuple[str, dict[str, str]], names: list[str]) -> None:
    assert ask(scontrol, "hostlist", ",".join(names)).strip() == fold(names)
