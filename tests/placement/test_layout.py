"""How many ranks on how many nodes."""

import re
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from glaunch.errors import UsageError
from glaunch.placement import layout as layout_module
from glaunch.placement.layout import RankLayout, as_asked, asked_gpus, layout
from glaunch.request import Request


def lay(node_gpus: int = 8, node_cpus: int = 64, **words: object) -> RankLayout:
    command = words.pop("command", ("train.py", "--lr", "1e-3"))
    return layout(Request(command, **words), node_gpus=node_gpus, gpu_type="h100", node_cpus=node_cpus)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "shape"),
    [
        ({"tasks": 64}, (64, 8, 8, 8)),
        ({"tasks": 60}, (60, 8, 8, 8)),
        ({"tasks": 4}, (4, 1, 4, 4)),
        ({"tasks": 1}, (1, 1, 1, 1)),
        ({"nodes": 3}, (24, 3, 8, 8)),
        ({"tasks": 10, "nodes": 4}, (10, 4, 3, 3)),
        ({"tasks": 8, "tasks_per_node": 2}, (8, 4, 2, 2)),
        ({"nodes": 2, "tasks_per_node": 16}, (32, 2, 16, 8)),
        ({"tasks": 8, "gpus_per_node": "4"}, (8, 2, 4, 4)),
        ({"tasks": 8, "gpus_per_node": "h100:4", "tasks_per_node": 8}, (8, 1, 8, 4)),
        ({"tasks": 64, "node_gpus": 0}, (64, 1, 64, 0)),
        ({"tasks": 64, "node_gpus": 0, "cpus_per_task": 4}, (64, 4, 16, 0)),
    ],
)
def test_shapes(words: dict[str, object], shape: tuple[int, int, int, int]) -> None:
    found = lay(**words)  # type: ignore[arg-type]
    assert (found.tasks, found.nodes, found.tasks_per_node, found.gpus_per_node) == shape
    assert found.gpu_type == ("h100" if found.gpus_per_node else "")


def test_the_last_node_carries_what_is_left() -> None:
    assert lay(tasks=60).last_node_tasks == 4


@pytest.mark.parametrize(
    ("words", "says", "hint"),
    [
        ({}, "how many ranks", "glaunch -n 64 train.py --lr 1e-3"),
        (
            {"command": ("a.py", "-n", "16")},
            "how many ranks",
            "-n 16 went to a.py; for glaunch it must stand before it: glaunch … -n 16 a.py",
        ),
        ({"command": ("a.py", "x", "--nodes=4")}, "how many ranks", "--nodes 4 went to a.py"),
        ({"command": ("a.py", "-N4")}, "how many ranks", "-N 4 went to a.py"),
        ({"command": ("a.py", "-n", "x")}, "how many ranks", "glaunch -n 64 a.py -n x"),
        ({"tasks": 9, "nodes": 4}, "do not make 4 nodes", "-n 9 -N 3"),
        ({"tasks": 3, "nodes": 4}, "do not make 4 nodes", "-n 3 -N 3"),
        ({"tasks": 64, "nodes": 4}, "16 on each", "--ntasks-per-node 16"),
        ({"tasks": 8, "nodes": 4, "tasks_per_node": 8}, "do not make", "-n 8 -N 1"),
        ({"tasks": 0}, "-n 0", ""),
        ({"nodes": -1}, "-N -1", ""),
        ({"tasks": 1, "gpus_per_node": "h100:"}, "no number of GPUs", "h100:8"),
        ({"tasks": 1, "gpus_per_node": ":4"}, "no number of GPUs", "h100:8"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_right_line(words: dict[str, object], says: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        lay(**words)  # type: ignore[arg-type]
    assert says in refused.value.message
    assert hint in refused.value.hint


def test_asked_gpus() -> None:
    assert [asked_gpus(Request((), gpus_per_node=text)) for text in (None, "8", "h100:4", "h100", "0")] == [
        None,
        ("", 8),
        ("h100", 4),
        ("h100", 1),
        ("", 0),
    ]


@given(st.integers(1, 5000), st.integers(0, 16), st.integers(1, 256), st.none() | st.integers(1, 300), st.none() | st.integers(1, 32))
def test_every_rank_has_its_place(tasks: int, gpus: int, cpus: int, nodes: int | None, per_node: int | None) -> None:
    try:
        found = lay(node_gpus=gpus, node_cpus=cpus, tasks=tasks, nodes=nodes, tasks_per_node=per_node)
    except UsageError:
        assume(False)
        return
    assert found.tasks == tasks
    assert 1 <= found.last_node_tasks <= found.tasks_per_node
    assert nodes in (None, found.nodes)
    assert per_node in (None, found.tasks_per_node)
    assert found.gpus_per_node <= gpus


@pytest.mark.parametrize(
    ("words", "said", "counted"),
    [
        ({"tasks": 60}, "-n 16", "-n 16 (2 nodes)"),
        ({"nodes": 8}, "-N 2", "-N 2"),
        ({"tasks": 60, "nodes": 8}, "-N 2 -n 16", "-N 2 -n 16"),
    ],
)
def test_a_hint_names_a_size_in_the_options_of_the_line(words: dict[str, int], said: str, counted: str) -> None:
    request = Request(("train.py",), **words)  # type: ignore[arg-type]
    assert as_asked(request, lay(tasks=60), 2) == said
    assert as_asked(request, lay(tasks=60), 2, counted=True) == counted


def test_no_other_module_writes_a_size_into_a_hint() -> None:
    """Whoever writes `-n {…}` by hand says ranks to somebody who counts nodes."""
    launcher = Path(layout_module.__file__).parents[1]
    by_hand = re.compile(r"""(?<![\w-])-[nN] ?\{""")
    found = {path.name for path in launcher.rglob("*.py") if by_hand.search(path.read_text(encoding="utf-8"))}
    assert found == {"layout.py"}
