"""The network in a terminal, as a picture and as a page: what is shown, how wide, and nothing hostile in it."""

import html.parser
import re
import shutil
import struct
import subprocess
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glaunch.cluster import Cluster, hidden_nodes
from glaunch.fabric import Fabric, build_fabric, synthetic
from glaunch.hostlist import expand
from glaunch.report.occupancy import KINDS, Occupancy, kind_of, occupancy_document, occupancy_of
from glaunch.report.text import columns
from glaunch.report.topo_page import page_html
from glaunch.report.topo_svg import MOST_SQUARES, WIDTH, map_svg
from glaunch.report.topo_tree import MOST_LINES, tree_text

FOLDER = Path(__file__).resolve().parents[2] / "templates" / "report"
TEMPLATE, SCRIPT = ((FOLDER / name).read_text() for name in ("topo.html.j2", "topo.js"))
SVG = "{http://www.w3.org/2000/svg}"


def occupied(fabric: Fabric, every: int = 3) -> Occupancy:
    """Every third node is busy, every seventh down."""
    names = sorted(fabric.leaf_of)
    kinds = {name: "down" if at % 7 == 6 else "busy" if at % every == 0 else "free" for at, name in enumerate(names)}
    return Occupancy(fabric, kinds, 1_796_000_000.0)


SMALL = synthetic("core:1 spine:2 leaf:2 node:4")
LARGE = synthetic("core:1 pod:32 leaf:32 node:16")


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ("IDLE", "free"),
        ("IDLE+CLOUD+POWERED_DOWN", "free"),
        ("IDLE+DYNAMIC_NORM", "free"),
        ("MIXED", "busy"),
        ("ALLOCATED", "busy"),
        ("IDLE+COMPLETING", "busy"),
        ("IDLE+PLANNED", "busy"),
        ("IDLE+RESERVED", "busy"),
        ("ALLOCATED+DRAIN", "down"),
        ("IDLE+DRAIN", "down"),
        ("DOWN+NOT_RESPONDING", "down"),
        ("IDLE+NOT_RESPONDING", "down"),
        ("IDLE+MAINTENANCE", "down"),
        ("FUTURE", "down"),
        ("SOMETHING_NEW", "busy"),
    ],
)
def test_what_a_state_means(state: str, kind: str) -> None:
    assert kind_of(state) == kind


def test_a_small_tree_shows_each_node_as_a_mark() -> None:
    text = tree_text(occupied(SMALL))
    assert text.splitlines() == [
        "core:1 spine:2 leaf:2 node:4: 16 nodes on 4 leaves, 3 tiers: 9 free, 5 busy, 2",
        "  down",
        "· free  █ busy  × down",
        "",
        "                   free  busy  down",
        "core1                 9     5     2",
        "├─ spine1             5     2     1",
        "│  ├─ leaf1  █··█     2     2     -  n[001-004]",
        "│  └─ leaf2  ··×·     3     -     1  n[005-008]",
        "└─ spine2             4     3     1",
        "   ├─ leaf3  ·█··     3     1     -  n[009-012]",
        "   └─ leaf4  █×·█     1     2     1  n[013-016]",
    ]


@pytest.mark.parametrize("width", [60, 80, 132])
@pytest.mark.parametrize("fabric", [SMALL, LARGE, synthetic("leaf:5 node:70")], ids=["small", "large", "flat"])
def test_the_tree_fits(fabric: Fabric, width: int) -> None:
    occupancy = occupied(fabric)
    for text in (tree_text(occupancy, width), tree_text(occupancy, width, below=fabric.leaves[0], everything=True)):
        assert max(map(columns, text.splitlines())) <= width
        assert len(text.splitlines()) <= MOST_LINES + 10


def test_a_large_tree_is_folded_and_a_part_of_it_unfolds() -> None:
    occupancy = occupied(LARGE)
    text = tree_text(occupancy)
    assert "1,024 leaves folded: glaunch topo show pod1, or --all" in text
    assert "leaf1 " not in text
    assert len([line for line in tree_text(occupancy, below="pod3").splitlines() if "leaf" in line and "[" in line]) == 32
    assert sum("leaf" in line and "[" in line for line in tree_text(occupancy, everything=True).splitlines()) == 1024


@settings(max_examples=40)
@given(st.lists(st.sampled_from(KINDS), min_size=1, max_size=60))
def test_a_bar_has_a_mark_for_every_kind_that_is_there(kinds: list[str]) -> None:
    names = [f"n{number}" for number in range(len(kinds))]
    fabric = build_fabric({"leaf": None}, {"leaf": names}, "x")
    text = tree_text(Occupancy(fabric, dict(zip(names, kinds, strict=True)), 0.0))
    (line,) = [line for line in text.splitlines() if line.startswith("leaf ")]
    bar = line.split()[1]
    assert {"·": "free", "█": "busy", "×": "down", "?": "unknown"}.keys() >= set(bar)
    assert len(set(bar)) == len(set(kinds))
    assert len(bar) == (len(kinds) if len(kinds) <= 24 else 24)


def test_nodes_that_slurm_does_not_show_are_neither_busy_nor_free(cluster_of_16: Cluster) -> None:
    names = [f"n{number}" for number in range(1, 5)]
    hidden = replace(cluster_of_16, nodes=hidden_nodes(names))
    text = tree_text(occupancy_of(hidden, build_fabric({"leaf": None}, {"leaf": names}, "x")))
    assert text.splitlines()[0] == "x: 4 nodes on 1 leaf, 1 tier: 4 unknown"
    assert "? unknown" in text
    assert "????" in text


def test_the_document_counts_what_the_tree_shows(cluster_of_16: Cluster) -> None:
    document = occupancy_document(occupancy_of(cluster_of_16, SMALL))
    assert (document["schema"], document["total"]) == ("glaunch.topo/1", {"free": 13, "busy": 1, "down": 2, "unknown": 0})
    rows = {row["name"]: row for row in document["switches"]}
    assert rows["leaf1"]["nodes"] == {"free": "n[001-002]", "busy": "n003", "down": "n004"}
    assert rows["spine1"]["down"] == 2
    assert document["unplaced"] == "login"


@pytest.fixture
def cluster_of_16() -> Cluster:
    from tests.doctor.test_rules import slurm

    return slurm("n[001-016],login", states={"n003": "MIXED", "n004": "DOWN", "n005": "IDLE+DRAIN"})


# The picture


def parsed(text: str) -> ElementTree.Element:
    """Our own picture as XML. Raises ParseError where it is none."""
    return ElementTree.fromstring(text)  # noqa: S314 - glaunch made it


def tiles(text: str) -> list[ElementTree.Element]:
    return [group for group in parsed(text).iter(f"{SVG}g") if group.get("class") == "leaf"]


@pytest.mark.parametrize("shape", ["core:1 spine:2 leaf:2 node:4", LARGE.source, "leaf:5 node:70", "a:2 b:3 c:2 d:2 node:3"])
def test_the_picture_has_a_square_a_node_and_no_box_leaves_its_frame(shape: str) -> None:
    fabric = synthetic(shape)
    occupancy = occupied(fabric)
    text = map_svg(fabric, occupancy.kinds)
    root = parsed(text)
    squares = Counter(rect.get("class") for rect in root.iter(f"{SVG}rect") if rect.get("rx") == "2")
    assert squares == occupancy.total
    assert len(tiles(text)) == len(fabric.leaves)
    height = float(root.get("height", "0"))
    _inside(root, 0.0, 0.0, WIDTH, height)


def _inside(element: ElementTree.Element, x: float, y: float, width: float, height: float) -> None:
    """Every rectangle lies in the box of the group around it, and no two groups side by side overlap."""
    taken: list[tuple[float, float, float, float]] = []
    for child in element:
        if child.tag != f"{SVG}g":
            continue
        left, top = map(float, re.findall(r"[\d.]+", child.get("transform", "")))
        frame = child.find(f"{SVG}rect")
        assert frame is not None
        own = (float(frame.get("width", "0")), float(frame.get("height", "0")))
        assert left + own[0] <= width + 0.1
        assert top + own[1] <= height + 0.1
        for other_left, other_top, other_width, other_height in taken:
            beside = left >= other_left + other_width or left + own[0] <= other_left
            apart = beside or top >= other_top + other_height or top + own[1] <= other_top
            assert apart
        taken.append((left, top, *own))
        for rect in child.findall(f"{SVG}rect")[1:]:
            assert float(rect.get("x", "0")) + float(rect.get("width", "0")) <= own[0] + 0.1
            assert float(rect.get("y", "0")) + float(rect.get("height", "0")) <= own[1] + 0.1
        _inside(child, left, top, *own)


def test_a_huge_fabric_is_drawn_as_bars() -> None:
    fabric = synthetic("core:1 pod:100 leaf:16 node:16")
    assert len(fabric.leaf_of) > MOST_SQUARES
    text = map_svg(fabric, {})
    assert len(tiles(text)) == 1600
    assert len(text) < 1_000_000
    assert 'rx="2"' not in text


# The page

EVIL = "</script><script>alert(1)</script>\"'><b onmouseover=x>\u202e&"


def evil_fabric() -> Fabric:
    return build_fabric({f"leaf{EVIL}": "top", "l2": "top", "top": None}, {f"leaf{EVIL}": [f"n{EVIL}"], "l2": ["n2"]}, EVIL)


class Tags(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.attributes: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)
        self.attributes += [name for name, _ in attrs]


def test_nothing_hostile_comes_through() -> None:
    page = page_html(occupied(evil_fabric()), TEMPLATE, SCRIPT)
    seen = Tags()
    seen.feed(page)
    assert seen.found.count("script") == 1
    assert "b" not in seen.found
    assert not [name for name in seen.attributes if name.startswith("on")]
    assert "\u202e" not in page
    parsed(map_svg(evil_fabric(), {}))
    assert "\u202e" not in tree_text(occupied(evil_fabric()))


def test_the_page_loads_nothing_and_holds_no_data_in_its_script() -> None:
    page = page_html(occupied(LARGE), TEMPLATE, SCRIPT)
    assert f"<script>{SCRIPT}</script>" in page
    assert page.count("<script") == 1
    assert "default-src 'none'" in page
    assert not re.findall(r"""(?:src|href)=|url\(|@import|https?://(?!www\.w3\.org/2000/svg)""", page)
    assert len(page) < 4_000_000


# In a real browser


def chromium(page: Path, folder: Path, fragment: str = "", *options: str) -> "subprocess.CompletedProcess[str]":
    """What a real browser makes of a page."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("not here: chromium (Debian: chromium)")
    quiet = ("--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync")
    argv = [program, "--headless", "--no-sandbox", *quiet, "--enable-logging=stderr", f"--user-data-dir={folder / 'profile'}"]
    done = subprocess.run(
        [*argv, *(options or ("--dump-dom",)), f"file://{page}{fragment}"], capture_output=True, text=True, timeout=240, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    return done


def opened(page: str) -> list[str]:
    """The names of the switches that are unfolded."""
    return [
        re.sub(r"<[^>]*>", "", name)
        for attributes, name in re.findall(r'<details class="switch"([^>]*)>\s*<summary><span class="name">(.*?)</span>', page)
        if " open" in attributes and "hidden" not in attributes
    ]


def shown(page: str) -> list[str]:
    return [
        name
        for name, rest in re.findall(r'<details class="leaf" data-leaf="\d+" data-name="([^"]*)" data-nodes="[^"]*"([^>]*)>', page)
        if "hidden" not in rest
    ]


@pytest.mark.browser
def test_a_thousand_leaves_are_folded_and_found_in_a_browser(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(page_html(occupied(LARGE), TEMPLATE, SCRIPT))
    folded = chromium(tmp_path / "page.html", tmp_path)
    assert opened(folded.stdout) == ["core1"]
    assert len(shown(folded.stdout)) == 1024
    assert "<form>" in folded.stdout.replace('<form hidden="">', "<hidden>")
    node = LARGE.by_name["leaf77"].nodes[3]
    found = chromium(tmp_path / "page.html", tmp_path, f"#{node}")
    assert shown(found.stdout) == ["leaf77"]
    assert opened(found.stdout) == ["core1", "pod3"]
    assert "1 node, 1 leaf<" in found.stdout
    assert found.stdout.count(' hit"') == 1
    assert 'hit" x=' in found.stdout
    assert "Refused" not in folded.stderr + found.stderr
    assert "Content Security Policy" not in folded.stderr + found.stderr


@pytest.mark.browser
def test_another_script_than_ours_does_not_run(tmp_path: Path) -> None:
    page = page_html(occupied(SMALL), TEMPLATE, SCRIPT)
    (tmp_path / "page.html").write_text(page.replace('"use strict";', '"use strict"; document.title = "changed";', 1))
    done = chromium(tmp_path / "page.html", tmp_path, "#n001")
    assert "changed" not in re.findall(r"<title>(.*?)</title>", done.stdout)
    assert len(shown(done.stdout)) == 4
    assert "Content Security Policy" in done.stderr


@pytest.mark.browser
def test_hostile_names_are_text_in_a_browser(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(page_html(occupied(evil_fabric()), TEMPLATE, SCRIPT))
    done = chromium(tmp_path / "page.html", tmp_path, "#alert")
    assert len(shown(done.stdout)) == 1
    assert "Content Security Policy" not in done.stderr
    assert "Uncaught" not in done.stderr


@pytest.mark.browser
def test_every_node_is_painted_in_its_colour(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(page_html(occupied(SMALL), TEMPLATE, SCRIPT))
    chromium(tmp_path / "page.html", tmp_path, "", f"--screenshot={tmp_path / 'page.png'}", "--window-size=1400,700", "--hide-scrollbars")
    painted = Counter(pixels((tmp_path / "page.png").read_bytes()))
    for kind, colour in (("free", (76, 175, 125)), ("busy", (91, 127, 209)), ("down", (217, 83, 79))):
        assert occupied(SMALL).total[kind] * 60 <= painted[colour] <= occupied(SMALL).total[kind] * 81, kind


def pixels(png: bytes) -> Iterator[tuple[int, int, int]]:
    """The colours of a PNG of 8 bits a channel. **Source:** PNG specification, 9.2 (filters)."""
    at, packed, width, step = 8, b"", 0, 3
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at : at + 8])
        body = png[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, _, depth, colour = struct.unpack(">IIBB", body[:10])
            assert (depth, colour) in {(8, 2), (8, 6)}
            step = 3 if colour == 2 else 4
        packed += body if kind == b"IDAT" else b""
        at += 12 + length
    raw, above = zlib.decompress(packed), bytearray(width * step)
    for start in range(0, len(raw), width * step + 1):
        row = bytearray(raw[start + 1 : start + 1 + width * step])
        _unfilter(raw[start], row, above, step)
        yield from zip(row[::step], row[1::step], row[2::step], strict=True)
        above = row


def _unfilter(kind: int, row: bytearray, above: bytearray, step: int) -> None:
    for index in range(len(row) if kind else 0):
        left = row[index - step] if index >= step else 0
        corner = above[index - step] if index >= step else 0
        up = above[index]
        near = min((left, up, corner), key=lambda one: abs(left + up - corner - one)) if kind == 4 else 0
        row[index] = (row[index] + (0, left, up, (left + up) // 2, near)[kind]) & 255


def test_hostlists_in_the_page_are_the_nodes(cluster_of_16: Cluster) -> None:
    page = page_html(occupancy_of(cluster_of_16, SMALL), TEMPLATE, SCRIPT)
    lists = re.findall(r'<p class="nodes"><span class="(\w+)">\w+</span> <code>(.*?)</code>', page)
    counted = Counter(dict.fromkeys(KINDS, 0))
    for kind, text in lists:
        counted[kind] += len(expand(text))
    assert +counted == Counter({"free": 13, "busy": 1, "down": 2})
    assert "login" in page
