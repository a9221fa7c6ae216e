"""Fabrics of any depth: paths, pods, islands, JSON."""

import json
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glaunch.errors import ParseError, UsageError
from glaunch.fabric import Fabric, Switch, build_fabric, flat_fabric, synthetic
from glaunch.fabric_json import fabric_document, fabric_from_json
from glaunch.hostlist import natural_key

UNEVEN = build_fabric(
    {"core": None, "spine2": "core", "spine10": "core", "l1": "spine2", "l2": "spine2", "l10": "spine10", "edge": "core", "far": None},
    {"l1": ["n1", "n2"], "l2": ["n3"], "l10": ["n4"], "edge": ["login"], "far": ["x1", "n1"]},
    "by hand",
)


def test_tiers_are_counted_from_below() -> None:
    assert {switch.name: switch.tier for switch in UNEVEN.switches} == {
        "core": 2,
        "spine2": 1,
        "spine10": 1,
        "l1": 0,
        "l2": 0,
        "l10": 0,
        "edge": 0,
        "far": 0,
    }
    assert UNEVEN.tiers == 3
    assert Fabric((), "nothing").tiers == 0


def test_the_order_of_switches_is_natural_and_leaves_come_before_switches() -> None:
    assert UNEVEN.roots == ("far", "core")
    assert UNEVEN.children["core"] == ("edge", "spine2", "spine10")
    assert UNEVEN.leaves == ("far", "edge", "l1", "l2", "l10")
    assert sorted(["n10", "n9", "n09", "m"], key=natural_key) == ["m", "n09", "n9", "n10"]


def test_paths_and_hops() -> None:
    assert UNEVEN.path("n1", "n1") == ()
    assert UNEVEN.path("n1", "n2") == ("l1",)
    assert UNEVEN.path("n1", "n3") == ("l1", "spine2", "l2")
    assert UNEVEN.path("n1", "n4") == ("l1", "spine2", "core", "spine10", "l10")
    assert UNEVEN.path("login", "n4") == ("edge", "core", "spine10", "l10")
    assert [UNEVEN.hops("n1", other) for other in ("n1", "n2", "n3", "n4", "login", "x1", "unknown")] == [0, 1, 3, 5, 4, None, None]


def test_the_pod_is_the_switch_above_the_leaf_or_the_leaf_itself() -> None:
    assert [UNEVEN.pod_of(node) for node in ("n1", "n4", "login", "x1", "unknown")] == ["spine2", "spine10", "core", "far", ""]
    assert UNEVEN.path_up("n4") == ("l10", "spine10", "core")
    assert UNEVEN.path_up("unknown") == ()


def test_a_node_under_two_leaves_counts_under_the_first() -> None:
    assert UNEVEN.leaf_of["n1"] == "l1"
    assert UNEVEN.leaves[UNEVEN.leaf_row["n1"]] == "l1"
    assert "unknown" not in UNEVEN.leaf_row


def test_hops_are_a_metric_of_the_tree() -> None:
    fabric = synthetic("core:1 spine:2 leaf:3 node:2")
    r = random.Random(1)
    for _ in range(300):
        a, b, c = (r.choice(sorted(fabric.leaf_of)) for _ in range(3))
        ab, bc, ac = fabric.hops(a, b), fabric.hops(b, c), fabric.hops(a, c)
        assert ab is not None
        assert bc is not None
        assert ac is not None
        assert ab == fabric.hops(b, a)
        assert ac <= ab + bc


def test_synthetic() -> None:
    fabric = synthetic("core:1 spine:2 leaf:2 node:3")
    assert fabric.switches[0] == Switch("leaf1", 0, "spine1", ("n001", "n002", "n003"))
    assert fabric.switches[3] == Switch("leaf4", 0, "spine2", ("n010", "n011", "n012"))
    assert fabric.switches[-1] == Switch("core1", 2, None)
    assert fabric.source == "core:1 spine:2 leaf:2 node:3"
    assert (len(fabric.switches), fabric.tiers, fabric.roots, fabric.flat) == (7, 3, ("core1",), False)
    assert synthetic("rack:3 gpu:1").roots == ("rack1", "rack2", "rack3")
    assert max(synthetic("core:1 leaf:100 node:100").leaf_of) == "n10000"


@given(st.lists(st.integers(1, 4), min_size=2, max_size=5), st.integers(1, 300))
def test_only_the_first_nodes_stand_and_no_switch_without_one(counts: list[int], limit: int) -> None:
    shape = " ".join(f"t{tier}:{count}" for tier, count in enumerate(counts))
    fabric, whole = synthetic(shape, limit), synthetic(shape)
    assert len(fabric.nodes) == min(limit, len(whole.nodes))
    assert all(switch.nodes or fabric.children[switch.name] for switch in fabric.switches)
    assert {switch.name: switch.parent for switch in fabric.switches}.items() <= {
        switch.name: switch.parent for switch in whole.switches
    }.items()
    if limit >= len(whole.nodes):
        assert fabric == whole


@pytest.mark.parametrize(
    "shape", ["", "node:4", "leaf node:4", "leaf:0 node:4", "leaf:2 leaf:4", "leaf:2,node:4", "leaf:-1 node:2", "a:9999 b:9999 c:9"]
)
def test_a_shape_that_cannot_be_read_is_refused(shape: str) -> None:
    with pytest.raises(UsageError) as refused:
        synthetic(shape)
    assert repr(shape) in refused.value.message


def test_a_flat_fabric_says_that_it_is_made_up() -> None:
    fabric = flat_fabric(["n1", "n2"])
    assert fabric.flat
    assert fabric.hops("n1", "n2") == 1
    assert fabric.pod_of("n1") == fabric.leaf_of["n1"]


@pytest.mark.parametrize(
    ("parents", "nodes"),
    [
        ({"a": "b"}, {}),
        ({"a": "a"}, {}),
        ({"a": "b", "b": "c", "c": "a", "d": "a"}, {}),
        ({"a": None, "b": "a"}, {"a": ["n1"]}),
    ],
)
def test_what_is_no_tree_is_refused(parents: dict[str, str | None], nodes: dict[str, list[str]]) -> None:
    with pytest.raises(UsageError):
        build_fabric(parents, nodes, "by hand")


@pytest.mark.parametrize("fabric", [UNEVEN, flat_fabric(["n1", "x-ib", "n1-2]"]), replace(UNEVEN, notes=("a", "b")), Fabric((), "nothing")])
def test_json_and_back(fabric: Fabric) -> None:
    text = json.dumps(fabric_document(fabric))
    assert fabric_from_json(json.loads(text), where="fabric.json") == fabric


def test_json_is_compact() -> None:
    data = fabric_document(synthetic("core:1 leaf:2 node:512"))
    assert data["schema"] == "glaunch.fabric/1"
    assert len(json.dumps(data)) < 400


GOOD = {"name": "l1", "tier": 0, "parent": None, "nodes": "n[1-2]"}


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "glaunch.fabric/2"},
        {"switches": None},
        {"switches": [GOOD, GOOD]},
        {"switches": [{**GOOD, "nodes": "n[1-"}]},
        {"switches": [{**GOOD, "nodes": ["n1"]}]},
        {"switches": [{**GOOD, "parent": "l2"}]},
        {"switches": [{**GOOD, "parent": "l1"}]},
        {"switches": [{**GOOD, "tier": 1}]},
        {"switches": ["l1"]},
        {"flat": "no"},
    ],
)
def test_json_that_is_no_fabric_is_refused(change: dict[str, object]) -> None:
    good = {"schema": "glaunch.fabric/1", "source": "s", "flat": False, "notes": [], "switches": [GOOD]}
    assert fabric_from_json(good, where="fabric.json").leaves == ("l1",)
    with pytest.raises(ParseError) as refused:
        fabric_from_json({**good, **change}, where="fabric.json")
    assert refused.value.where == "fabric.json"


def test_json_that_is_no_object_is_refused() -> None:
    with pytest.raises(ParseError):
        fabric_from_json([], where="fabric.json")
