"""A job's folder on disk: made once, closed to others, whole or not there, read back whatever a job has left in it."""

import json
import os
import re
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glaunch import rundir
from glaunch.errors import GlaunchError, ParseError, UsageError
from glaunch.logs import RankRow

MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 0:30 / /home rw shared:2 - nfs4 server:/home rw
24 22 0:31 / /tmp rw - tmpfs tmpfs rw
25 24 0:32 / /tmp/with\\040blank rw - nfs server:/x rw
26 22 0:33 / /scratch rw - lustre mds:/s rw
27 26 0:34 / /scratch rw - overlay overlay rw
"""


def test_create(tmp_path: Path) -> None:
    folder = tmp_path / "jobs" / "train-1"
    rundir.create(folder, {"schema": "glaunch.intent/1", "argv": ["ü", "\udcff"]})
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "intent.json").stat().st_mode) == 0o600
    assert rundir.load_json(folder / "intent.json") == {"schema": "glaunch.intent/1", "argv": ["ü", "\udcff"]}
    with pytest.raises(GlaunchError, match=re.escape(f"{folder} exists already")):
        rundir.create(folder, {})
    assert [path.name for path in folder.iterdir()] == ["intent.json"]


@pytest.mark.parametrize("name", ["new\nline", "tab\t", "back\\slash"])
def test_a_path_that_slurm_cannot_carry_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="Slurm cannot carry"):
        rundir.create(tmp_path / name, {})
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(GlaunchError, match=r"cannot make the job folder .*file/x/y"):
        rundir.create(tmp_path / "file" / "x" / "y", {})


@given(st.binary(max_size=60))
def test_any_bytes_come_back(raw: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "command.sh"
        rundir.write_text(path, raw.decode(errors="surrogateescape"))
        assert path.read_bytes() == raw
        assert os.listdir(folder) == ["command.sh"]


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    rundir.write_text(path, "old")
    (tmp_path / f"plan.json.{os.getpid()}.part").mkdir()
    with pytest.raises(GlaunchError, match="cannot write"):
        rundir.write_text(path, "new")
    assert path.read_text() == "old"


@pytest.mark.parametrize("name", ["../evil", "/tmp/evil", "node/../../evil"])
def test_a_text_outside_the_folder_is_a_fault(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="does not lie"):
        rundir.write_texts(tmp_path / "job", [(name, "")])


def test_load_json(tmp_path: Path) -> None:
    assert rundir.load_json(tmp_path / "none") is None
    (tmp_path / "half").write_text('{"a":\n 1, ')
    with pytest.raises(ParseError, match="half:2"):
        rundir.load_json(tmp_path / "half")
    (tmp_path / "list").write_text("[]")
    with pytest.raises(ParseError, match="a JSON object"):
        rundir.load_json(tmp_path / "list")


def attempt(folder: Path, name: str, *, over: bool = True) -> Path:
    path = folder / name
    (path / "out").mkdir(parents=True)
    (path / "ordered").write_text("n002\nn001\n")
    audit = {"order": "planned", "first": "n002", "master": "n002", "port": 20123, "try": 1, "tasks": 4, "nodes": 2}
    (path / "audit.json").write_text(json.dumps({"schema": "glaunch.audit/1", **audit, "log_dir": "/tmp/x", "began_s": 5}))
    if over:
        end = {"job_id": "14", "code": 143, "signal": 15, "told": "TERM", "began_s": 5, "ended_s": 9}
        (path / "exit.json").write_text(json.dumps({"schema": "glaunch.exit/1", **end}))
    return path


def test_attempts_in_order(tmp_path: Path) -> None:
    for name in ("12.10.0", "12.2.1", "12.2.0", "9.0.0", "12.2.0-2"):
        attempt(tmp_path, name)
    for other in ("node", "12.2", "x12.2.0", "12.2.0.part"):
        (tmp_path / other).mkdir()
    (tmp_path / "13.0.0").write_text("a file")
    runs = rundir.attempts(tmp_path)
    assert [run.path.name for run in runs] == ["9.0.0", "12.2.0", "12.2.0-2", "12.2.1", "12.10.0"]
    assert [(run.job_id, run.task, run.restart, run.run) for run in runs[1:3]] == [("12", 2, 0, 1), ("12", 2, 0, 2)]
    assert rundir.attempts(tmp_path / "none") == ()


def test_an_attempt_says_what_it_knows(tmp_path: Path) -> None:
    path = attempt(tmp_path, "12.0.0")
    (path / "ranks.tsv").write_text("0\tn002\t0\t10\n1\tn002\t1\t11\n2\tn001\t0\t12\n")
    (run,) = rundir.attempts(tmp_path)
    assert run.hosts == ("n002", "n001")
    assert run.ranks[2] == RankRow(2, "n001", 0)
    assert run.start == rundir.AttemptStart("planned", "n002", "n002", 20123, 1, 4, 2, "/tmp/x", 5)
    assert run.end == rundir.AttemptEnd("14", 143, 15, "TERM", 5, 9)


def test_an_attempt_that_was_killed_early(tmp_path: Path) -> None:
    (tmp_path / "12.0.0" / "ranks.d").mkdir(parents=True)
    (run,) = rundir.attempts(tmp_path)
    assert (run.start, run.end, run.hosts, run.ranks) == (None, None, (), ())
    (tmp_path / "12.0.0" / "ranks.d" / "n002").write_text("1\tn002\t1\t11\n0\tn002\t0\t10\n3\tn0")
    (run,) = rundir.attempts(tmp_path)
    assert [place.rank for place in run.ranks] == [0, 1], "a line that is being written is not taken"


@pytest.mark.parametrize(
    ("path", "shared", "local", "said"),
    [
        ("/home/ada/jobs", (), (), None),
        ("/srv/jobs", (), (), None),
        ("/tmp/jobs", (), (), "tmpfs (/tmp)"),
        ("/tmp/with blank/jobs", (), (), None),
        ("/scratch/jobs", (), (), "overlay (/scratch)"),
        ("/tmp/jobs", ("/tmp",), (), None),
        ("/tmp", ("/tmp/",), ("/tmp",), None),
        ("/tmpx/jobs", (), ("/tmp",), None),
        ("/var/tmp/jobs", (), ("/tmp", "/var/tmp"), "below /var/tmp"),
    ],
)
def test_a_folder_that_nodes_cannot_see_is_told(path: str, shared: tuple[str, ...], local: tuple[str, ...], said: str | None) -> None:
    told = rundir.warn_local(path, shared, local, MOUNTS)
    assert (told is None) == (said is None)
    assert said is None or (told is not None and path in told and said in told)


def test_clean_takes_old_ended_folders_of_ours_only(tmp_path: Path) -> None:
    for name in ("old", "running", "never", "foreign", "young"):
        folder = tmp_path / name
        if name == "foreign":
            folder.mkdir()
        else:
            rundir.create(folder, {"schema": "glaunch.intent/1"})
        if name not in ("never", "foreign"):
            run = attempt(folder, "12.0.0", over=name != "running")
            os.utime(run, (1000, 1000))
        os.utime(folder, (5000 if name == "young" else 1000,) * 2)
    (tmp_path / "link").symlink_to(tmp_path / "old")
    found = rundir.clean_candidates(tmp_path, older_than_s=3000, now_s=6000)
    assert [path.name for path in found] == ["never", "old"]
    found = rundir.clean_candidates(tmp_path, older_than_s=3000, now_s=6000, over=frozenset({str(tmp_path / "running")}))
    assert [path.name for path in found] == ["never", "old", "running"]
    rundir.remove(tmp_path / "old")
    assert not (tmp_path / "old").exists()
    for name in ("foreign", "link"):
        with pytest.raises(GlaunchError, match="no job folder of glaunch"):
            rundir.remove(tmp_path / name)
