"""topology.conf is written as it is read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glaunch.errors import UsageError
from glaunch.fabric import Fabric, Switch, build_fabric, synthetic
from glaunch.parsers.slurm_topology import parse_topology_conf
from glaunch.writers.slurm_topology import write_tree

NAMES = st.text(alphabet="abcxyzé0129.-_@=;%]", min_size=1, max_size=8)


@st.composite
def fabrics(draw: st.DrawFn) -> Fabric:
    """Any forest of switches, lines in any order, leaves with any distinct nodes."""
    names = draw(st.lists(NAMES, min_size=1, max_size=14, unique=True))
    parents: dict[str, str | None] = {names[0]: None}
    for index, name in enumerate(names[1:], 1):
        parents[name] = draw(st.sampled_from([None, *names[:index]]))
    leaves = [name for name in names if name not in parents.values()]
    nodes = draw(st.lists(NAMES, max_size=30, unique=True))
    owner = [draw(st.sampled_from(leaves)) for _ in nodes]
    order = draw(st.permutations(names))
    return build_fabric(
        {name: parents[name] for name in order},
        {leaf: [node for node, at in zip(nodes, owner, strict=True) if at == leaf] for leaf in leaves},
        "topology.conf",
    )


@given(fabrics())
def test_what_is_written_is_read_back(fabric: Fabric) -> None:
    assert parse_topology_conf(write_tree(fabric), where=fabric.source) == fabric


def test_the_text() -> None:
    assert write_tree(synthetic("core:1 spine:2 leaf:2 node:2")) == (
        "SwitchName=leaf1 Nodes=n[001-002]\n"
        "SwitchName=leaf2 Nodes=n[003-004]\n"
        "SwitchName=leaf3 Nodes=n[005-006]\n"
        "SwitchName=leaf4 Nodes=n[007-008]\n"
        "SwitchName=spine1 Switches=leaf[1-2]\n"
        "SwitchName=spine2 Switches=leaf[3-4]\n"
        "SwitchName=core1 Switches=spine[1-2]\n"
    )
    assert write_tree(Fabric((Switch("s 2", 0, None, ("n1",)),), "x")) == 'SwitchName="s 2" Nodes=n1\n'


@pytest.mark.parametrize("name", ['a"b', "a#b", "a\\b", "a\nSwitchName=b", ""])
def test_a_name_that_the_format_cannot_carry_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        write_tree(Fabric((Switch(name, 0, None, ("n1",)),), "x"))


@pytest.mark.parametrize("name", ["a b", "a,b", "a[1-2]", "a{b}"])
def test_a_child_that_reads_as_several_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        write_tree(build_fabric({"top": None, name: "top"}, {name: ["n1"]}, "x"))
