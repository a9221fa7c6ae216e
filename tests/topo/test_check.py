"""The doctor on what the real InfiniBand tools say about a fabric with two faults."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.topo.conftest import READINGS, Faulty
from tests.topo.shapes import fat_tree

from glaunch.doctor.check import examine, wrong
from glaunch.examination import checkup_of_files
from glaunch.hierarchy import fabric_of
from glaunch.writers.slurm_topology import write_tree

pytestmark = pytest.mark.ibsim


@pytest.mark.parametrize("reading", [*READINGS, "opensm"])
def test_both_faults_are_named(faulty: Faulty, reading: str) -> None:
    path = faulty.folder / ("opensm/opensm-subnet.lst" if reading == "opensm" else f"{reading}.txt")
    findings = examine(checkup_of_files([path]))
    assert wrong(findings)
    lines = path.read_text().splitlines()
    for finding in findings:
        if finding.where.rpartition(":")[2].isdigit() and finding.code != "GL413":
            number = int(finding.where.rpartition(":")[2])
            assert finding.evidence.rstrip("…") in " ".join(lines[number - 1].split())
    cut = next(finding for finding in findings if finding.code == "GL421")
    assert cut.title.startswith(f"{faulty.cut[0]} has no cable to s0-0-0; its siblings have 1, on port {faulty.cut[1]}")
    (crossed,) = [finding for finding in findings if finding.code == "GL423"]
    for (node, place), (_, other) in zip(faulty.swapped, reversed(faulty.swapped), strict=True):
        assert f"{node} HCA-{place + 1}" in crossed.title
        assert f"l0-0-r{other} (rail {other})" in crossed.title
    assert crossed.advice.startswith("swap the cables at l0-0-r")
    assert {finding.code for finding in findings if finding.severity != "note"} <= {"GL421", "GL423", "GL413"}


def test_the_open_port_is_the_line_of_the_cut_cable_where_a_tool_lists_it(faulty: Faulty) -> None:
    findings = examine(checkup_of_files([faulty.folder / "iblinkinfo.txt"]))
    assert "Down/ Polling" in next(finding for finding in findings if finding.code == "GL421").evidence


def test_all_dumps_together_say_no_more_than_each(faulty: Faulty) -> None:
    paths = [*(faulty.folder / f"{name}.txt" for name in READINGS), faulty.folder / "opensm/opensm-subnet.lst"]
    findings = examine(checkup_of_files(paths))
    assert sorted(finding.code for finding in findings if finding.severity != "note") == ["GL413", "GL421", "GL423"]


def test_the_command_says_it_and_ends_with_1(faulty: Faulty, tmp_path: Path) -> None:
    shutil.copy(faulty.folder / "ibnetdiscover.txt", tmp_path / "ib.txt")
    sound = fabric_of(faulty.sound)
    (tmp_path / "topology.conf").write_text(write_tree(sound))

    def glaunch(*words: str) -> "subprocess.CompletedProcess[str]":
        argv = [sys.executable, "-m", "glaunch", "topo", "check", "--files-only", *words]
        env = {"PYTHONPATH": str(Path(__file__).resolve().parents[2] / "launcher"), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
        return subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)

    done = glaunch("ib.txt", "topology.conf", "--json")
    assert (done.returncode, done.stderr) == (1, "")
    document = json.loads(done.stdout)
    assert (document["schema"], document["wrong"]) == ("glaunch.check/1", True)
    assert {"GL421", "GL423"} <= {finding["code"] for finding in document["findings"]}
    assert {row["switch"] for row in document["oversubscription"]} == {f"l0-{unit}-r{rail}" for unit in (0, 1) for rail in range(4)}
    assert {row["switch"]: row["ratio"] for row in document["oversubscription"]}["l0-1-r1"] == 5.333
    done = glaunch("topology.conf")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("nothing is wrong: topology.conf (32 nodes on 2 leaves)")
    (tmp_path / "bad.conf").write_text("SwitchName=a Nodes=n1\nSwitchName=b Switches=c\n")
    done = glaunch("bad.conf")
    assert done.returncode == 1
    assert "GL400" in done.stdout
    assert "bad.conf:2" in done.stdout
    done = glaunch()
    assert (done.returncode, done.stdout) == (2, "")


def test_a_sound_fabric_is_right_in_every_reading(tmp_path: Path) -> None:
    from tests.topo.conftest import simulate

    with simulate(fat_tree(1, 1, 2, 2, 3, 3, 0).network, tmp_path) as sim:
        sim.opensm()
        for name, argv in READINGS.items():
            (tmp_path / name).write_text(sim.run(*argv))
    for name in READINGS:
        assert [one for one in examine(checkup_of_files([tmp_path / name])) if one.severity != "note"] == []
