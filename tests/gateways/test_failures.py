"""What stands between a user and Slurm, on the real thing and through each gateway: one clear line and its advice, within the deadline."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.gateways.conftest import GATEWAYS

from glaunch.gateways.choose import installed
from glaunch.gateways.process import Completed
from glaunch.sandbox.box import Sandbox

pytestmark = pytest.mark.slurm
through_each = pytest.mark.parametrize("gateway", GATEWAYS)

DEADLINE_S = 3
"""Where Slurm does not answer."""
PATIENCE_S = 40
"""Where it answers, on a busy machine. munge is tried for 2 s before libslurm says that it is not there."""
LIMIT_S = 150
"""For all of it; a glaunch that goes beyond it is stopped, and then has no exit code."""


def check(
    box: Sandbox, gateway: str, conf: str = "/etc/slurm/slurm.conf", user: str = "ada", *, deadline_s: int = PATIENCE_S
) -> tuple[Completed, float]:
    """What `glaunch check` says with this slurm.conf, and how long it took."""
    env = {"GLAUNCH_SLURM_GATEWAY": gateway, "GLAUNCH_SLURM_TIMEOUT_S": str(deadline_s), "SLURM_CONF": conf}
    began = time.monotonic()
    done = box.exec(["glaunch", "check"], user, env=env, timeout_s=LIMIT_S)
    return done, time.monotonic() - began


def told(done: Completed) -> list[str]:
    """stderr without the note that this pyslurm was made for another Slurm."""
    return [line for line in done.stderr.splitlines() if "it is used all the same" not in line]


@pytest.fixture(scope="module")
def confs(accounting_box: Sandbox) -> Path:
    """ada's folder of broken copies of slurm.conf, out here; /home/ada/confs inside."""
    folder = accounting_box.home("ada") / "confs"
    folder.mkdir(exist_ok=True)
    good = (accounting_box.dir / "srv/etc/slurm/slurm.conf").read_text()
    broken = {
        "key": good + "Frobnicate=1\n",
        "dead": good + "SlurmctldPort=1\nMessageTimeout=2\n",
        "munge": good + "AuthInfo=socket=/nonexistent/munge.socket\n",
        "name": good.replace("SlurmctldHost=ctl", "SlurmctldHost=nowhere"),
        "good": good,
    }
    for name, text in broken.items():
        (folder / f"{name}.conf").write_text(text)
    for name in ("topology.conf", "gres.conf", "cgroup.conf"):
        if (accounting_box.dir / "srv/etc/slurm" / name).exists():
            (folder / name).write_text((accounting_box.dir / "srv/etc/slurm" / name).read_text())
    return folder


@through_each
@pytest.mark.parametrize(
    ("conf", "code", "says", "hint"),
    [
        ("/nowhere/slurm.conf", 1, "SLURM_CONF=/nowhere/slurm.conf: there is no such file", "unset SLURM_CONF"),
        ("key", 5, "slurm.conf has a line that this Slurm cannot read", "load that Slurm"),
        ("dead", 5, "", "scontrol ping"),
        ("munge", 5, "munge, which proves to Slurm who you are, does not answer on this host", "munge -n | unmunge"),
        ("name", 5, "does not know the name of Slurm's controller", "grep SlurmctldHost"),
    ],
    ids=["no-file", "key", "dead", "munge", "name"],
)
def test_what_is_wrong_is_one_line_and_what_to_do(
    accounting_box: Sandbox, confs: Path, gateway: str, conf: str, code: int, says: str, hint: str
) -> None:
    path = conf if conf.startswith("/") else f"/home/ada/{confs.name}/{conf}.conf"
    deadline_s = DEADLINE_S if conf == "dead" else PATIENCE_S
    done, _ = check(accounting_box, gateway, path, deadline_s=deadline_s)
    lines = told(done)
    assert (done.code, done.stdout, len(lines)) == (code, "", 2), done
    assert says in lines[0]
    assert hint in lines[1]
    assert len(lines[0]) < 300


@through_each
def test_no_configuration_anywhere(accounting_box: Sandbox, gateway: str) -> None:
    # root, in a mount namespace in which /etc/slurm is empty
    inner = f"mount -t tmpfs none /etc/slurm && exec env -u SLURM_CONF GLAUNCH_SLURM_GATEWAY={gateway} glaunch check"
    done = accounting_box.exec(["unshare", "--mount", "sh", "-c", inner], timeout_s=LIMIT_S)
    lines = told(done)
    assert (done.code, len(lines)) == (5, 2), done
    assert "Slurm finds no slurm.conf here" in lines[0]
    assert "export SLURM_CONF=" in lines[1]


@through_each
def test_a_controller_that_hangs(accounting_box: Sandbox, gateway: str) -> None:
    before, usual_s = check(accounting_box, gateway)
    assert before.code == 0, before
    pid = accounting_box.exec(["cat", "/run/slurmctld.pid"]).stdout.strip()
    accounting_box.exec(["kill", "-STOP", pid])
    try:
        done, took_s = check(accounting_box, gateway, deadline_s=DEADLINE_S)
    finally:
        accounting_box.exec(["kill", "-CONT", pid])
    lines = told(done)
    assert (done.code, len(lines)) == (5, 2), done
    assert f"did not answer within {DEADLINE_S} s" in lines[0]
    assert "scontrol ping" in lines[1]
    # it waits for one answer alone; on a busy machine its own start takes long
    assert DEADLINE_S <= took_s < 2 * DEADLINE_S + 10 + 5 * usual_s
    assert check(accounting_box, gateway)[0].code == 0


def programs(box: Sandbox) -> set[str]:
    """The processes of pyslurm's that run inside."""
    found = "for one in /proc/[0-9]*; do grep -q 'pyslurm_[p]rogram' $one/cmdline 2>/dev/null && echo $one; done"
    return set(box.exec(["sh", "-c", found]).stdout.split())


@pytest.fixture
def nothing_left(accounting_box: Sandbox) -> Iterator[None]:
    """No program of pyslurm's outlives its glaunch."""
    before = programs(accounting_box)
    yield
    end = time.monotonic() + 60
    while programs(accounting_box) - before:
        assert time.monotonic() < end, "a pyslurm_program still runs"
        time.sleep(0.1)


@through_each
@pytest.mark.usefixtures("nothing_left")
def test_check_says_what_it_went_through(accounting_box: Sandbox, gateway: str) -> None:
    done, _ = check(accounting_box, gateway)
    assert done.code == 0, done
    assert f"asked by    {gateway} (" in done.stdout
    assert "8 nodes, 1 partition, 0 reservations" in done.stdout
    assert ("docs/gateway.md" in done.stdout) == (gateway == "pyslurm")
    assert os.linesep.join(told(done)) == ""


@pytest.mark.needs_pyslurm
def test_a_pyslurm_of_another_version_is_told_and_not_used(accounting_box: Sandbox, slurm_version: tuple[int, int]) -> None:
    found = installed()
    assert found is not None
    fits = tuple(map(int, found.split(".")[:2])) == slurm_version
    done, _ = check(accounting_box, "auto")
    assert done.code == 0, done
    assert f"asked by    {'pyslurm' if fits else 'commands'} (pyslurm {found} is" in done.stdout
    assert ("Slurm's commands are used instead" in done.stderr) != fits
