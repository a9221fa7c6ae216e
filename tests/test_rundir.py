"""A job's folder on disk: made once, closed to others, whole or not there, removed only when it is old and ours."""

import os
import re
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.test_attempt import leave_run

from glaunch import rundir
from glaunch.attempt import load_json
from glaunch.errors import GlaunchError, UsageError

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
    assert load_json(folder / "intent.json") == {"schema": "glaunch.intent/1", "argv": ["ü", "\udcff"]}
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


@pytest.mark.parametrize(
    ("program", "work_dir", "looked_at"),
    [
        ("/tmp/venv/bin/python3", "/home/ada", "/tmp/venv/bin"),
        ("./a.out", "/tmp/work", "/tmp/work"),
        ("bin/a.out", "/home/ada", "/home/ada/bin"),
        ("/usr/bin/python3", "/home/ada", ""),
        ("/opt/tools/bin/python3", "/home/ada", ""),
        ("hostname", "/tmp/work", ""),
    ],
)
def test_where_a_program_lies_that_nodes_must_see_too(program: str, work_dir: str, looked_at: str) -> None:
    assert rundir.folder_of_program(program, work_dir) == looked_at


def test_clean_takes_old_ended_folders_of_ours_only(tmp_path: Path) -> None:
    for name in ("old", "running", "never", "foreign", "young"):
        folder = tmp_path / name
        if name == "foreign":
            folder.mkdir()
        else:
            rundir.create(folder, {"schema": "glaunch.intent/1"})
        if name not in ("never", "foreign"):
            run = leave_run(folder, "12.0.0", over=name != "running")
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
