"""The doctor, the tree and the audit on a real Slurm, as its users and its administrator see them."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.cluster.conftest import User, until

from glaunch.sandbox.box import Sandbox

pytestmark = pytest.mark.slurm

TREE = "core:1 spine:2 leaf:2 node:4"
"""n001 to n016, four a leaf, two leaves a pod."""

JOBS: tuple[tuple[str, str, str, int, int], ...] = (
    *((user, f"n{number:03d}", "1", 1, 1) for user in ("ada", "bob") for number in (1, 6, 11)),
    ("ada", "n[001-002]", "2", 1, 1),
    ("ada", "n[005-006]", "2", 1, 1),
    ("bob", "n[003,007]", "2", 2, 1),
    ("bob", "n[003,015]", "2", 2, 2),
    ("ada", "n[001-004]", "4", 1, 1),
    ("ada", "n[001-003,005]", "4", 2, 1),
    ("bob", "n[001,005,009,013]", "4", 4, 2),
    ("bob", "n[009-011]", "4", 1, 1),
    ("ada", "n[001-008]", "8", 2, 1),
    ("ada", "n[005-012]", "8", 2, 2),
    ("bob", "n[001-002,005-006,009-010,013-014]", "8", 4, 2),
    ("bob", "n[013-016]", "4", 1, 1),
    ("ada", "n[001-016]", "16", 4, 2),
    ("ada", "n[004,008,012]", "4", 3, 2),
)
"""Twenty jobs: whose, where, the size class, and the leaves and pods that they lie on, counted by hand."""
FEWEST = {"1": (1, 1), "2": (1, 1), "4": (1, 1), "8": (2, 1), "16": (4, 2)}
"""Leaves and pods that a job of that class needs (every job of the class here; the three-node ones too)."""


@pytest.fixture(scope="module")
def audited(sandboxes: Callable[..., Sandbox]) -> Sandbox:
    """A cluster with accounting on which the twenty jobs ran; users see their own jobs only."""
    box = sandboxes("audited", shape=TREE, accounting=True, slurm_conf=("PrivateData=jobs",))
    for user in ("ada", "bob"):
        lines = [f"sbatch -Q -w '{nodes}' --output=/dev/null --wrap true" for whose, nodes, *_ in JOBS if whose == user]
        done = box.exec(["sh", "-ec", "\n".join(lines)], user, timeout_s=60)
        assert done.code == 0, done.stderr
    sacct = ["sacct", "-a", "-X", "-n", "-S", "now-1hours", "-o", "State"]
    until(lambda: box.exec(sacct).stdout.split().count("COMPLETED") == len(JOBS), 180, "twenty jobs in the database, with their ends")
    return box


def expected(jobs: tuple[tuple[str, str, str, int, int], ...]) -> dict[str, tuple[int, int, int, int, int, int]]:
    """Class → jobs, those at the fewest, leaves, fewest leaves, pods, fewest pods."""
    found: dict[str, tuple[int, int, int, int, int, int]] = {}
    for _, _, size, leaves, pods in jobs:
        best = FEWEST[size]
        row = (1, int((leaves, pods) == best), leaves, best[0], pods, best[1])
        found[size] = tuple(map(sum, zip(found.get(size, (0,) * 6), row, strict=True)))  # type: ignore[assignment]
    return found


def figures(document: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    words = ("jobs", "at_fewest", "leaves", "fewest_leaves", "pods", "fewest_pods")
    assert {row["partition"] for row in document["groups"]} == {"gpu"}
    return {str(row["most_nodes"]): tuple(row[word] for word in words) for row in document["groups"]}


def test_the_audit_counts_what_counting_by_hand_gives(audited: Sandbox) -> None:
    done = audited.exec(["glaunch", "topo", "audit", "--since", "1h", "--json"])
    assert done.code == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["jobs"], document["off_fabric"], document["unseen"]) == (20, 0, [])
    assert figures(document) == expected(JOBS)
    worst = document["worst"]
    assert [(job["user"], job["nodes"], job["leaves"], job["pods"]) for job in worst[:1]] == [("bob", "n[001,005,009,013]", 4, 2)]
    assert {(job["user"], job["nodes"]) for job in worst} == {
        (user, nodes) for user, nodes, size, leaves, pods in JOBS if (leaves, pods) != FEWEST[size]
    }
    shown = audited.exec(["sacct", "-a", "-X", "-n", "-j", worst[0]["id"], "-o", "NodeList%40"]).stdout.split()
    assert shown == [worst[0]["nodes"]]


def test_a_user_is_told_what_she_could_not_see(audited: Sandbox) -> None:
    ada = User(audited)
    done = ada.glaunch("topo", "audit", "--since", "1h", "--json")
    assert done.code == 0, done.stderr
    document = json.loads(done.stdout)
    assert figures(document) == expected(tuple(job for job in JOBS if job[0] == "ada"))
    assert document["unseen"] == ["PrivateData=jobs: only your own jobs are seen; an operator or root sees all"]
    assert "only your own jobs are seen" in " ".join(ada.glaunch("topo", "audit").stdout.split())


def test_a_file_of_sacct_gives_the_same_without_any_slurm(audited: Sandbox) -> None:
    week = audited.exec(["sacct", "-a", "-X", "-P", "-S", "now-1hours", "-o", "JobID,Partition,NNodes,NodeList,Elapsed,State,User"]).stdout
    ada = User(audited)
    ada.write("week.txt", week, 0o644)
    ada.write("tree.conf", audited.exec(["cat", "/etc/slurm/topology.conf"]).stdout, 0o644)
    done = ada.run("env", "SLURM_CONF=/nowhere", "glaunch", "topo", "audit", "--from", "week.txt", "--fabric", "tree.conf", "--json")
    assert done.code == 0, done.stderr
    assert figures(json.loads(done.stdout)) == expected(JOBS)


def test_a_cluster_without_accounting_says_so(ada: User) -> None:
    done = ada.glaunch("topo", "audit")
    assert (done.code, done.stdout) == (2, "")
    assert "keeps no accounting" in done.stderr
    assert "--from FILE" in done.stderr


def test_check_is_quiet_on_a_sound_cluster_and_names_what_is_changed(ada: User) -> None:
    done = ada.glaunch("topo", "check")
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.startswith("nothing is wrong: /etc/slurm/topology.conf")
    ada.box.exec(["scontrol", "update", "NodeName=n003", "Weight=10"])
    try:
        done = ada.glaunch("topo", "check", "--json")
        assert done.code == 1
        (finding,) = json.loads(done.stdout)["findings"]
        assert (finding["code"], finding["where"]) == ("GL430", "scontrol show node")
        assert "n003 Weight=10" in finding["evidence"]
    finally:
        ada.box.exec(["scontrol", "update", "NodeName=n003", "Weight=1"])
    text = ada.run("cat", "/etc/slurm/topology.conf").stdout
    ada.write("new.conf", text.replace("n[001-004]", "n[001-003,005],n099").replace("n[005-008]", "n[004,006-008]"), 0o644)
    done = ada.glaunch("topo", "check", "new.conf", "--json")
    assert done.code == 1
    found = {(finding["code"], finding["where"]) for finding in json.loads(done.stdout)["findings"]}
    assert ("GL402", "new.conf:1") in found
    assert "GL414" in {code for code, _ in found}


def test_show_draws_what_the_nodes_do(ada: User) -> None:
    job = ada.run("sbatch", "--parsable", "-w", "n[001-002]", "--exclusive", "--wrap", "sleep 900").stdout.strip()
    ada.wait_for(job, "RUNNING")
    ada.box.exec(["scontrol", "update", "NodeName=n016", "State=DRAIN", "Reason=test"])
    try:
        text = ada.glaunch("topo", "show").stdout
        assert "██··" in text
        assert "···×" in text
        assert "13 free, 2 busy, 1 down" in " ".join(text.split())
        assert "██··" in ada.glaunch("topo", "show", text.split("██··")[0].split()[-1]).stdout
        document = json.loads(ada.glaunch("topo", "show", "--json").stdout)
        assert document["total"] == {"free": 13, "busy": 2, "down": 1, "unknown": 0}
        done = ada.glaunch("topo", "show", "--html", "page.html", "--svg", "map.svg")
        assert (done.code, done.stdout.split()) == (0, ["page.html", "map.svg"])
        assert 'class="busy"' in (ada.home / "map.svg").read_text()
        assert "n001" in (ada.home / "page.html").read_text()
        done = ada.glaunch("topo", "show", "leav1")
        assert done.code == 2
        assert "did you mean leaf1?" in done.stderr
    finally:
        ada.box.exec(["scontrol", "update", "NodeName=n016", "State=RESUME"])
