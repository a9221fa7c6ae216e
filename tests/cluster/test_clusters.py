"""Two clusters on one accounting database: all questions about a job go to its own."""

import re
from collections.abc import Callable, Iterator

import pytest
from tests.cluster.conftest import PROGRAM, User, idle, job_id_of, until

from glaunch.sandbox.box import Sandbox

pytestmark = pytest.mark.slurm

OTHER = "/srv/other/slurm.conf"
CHANGES = {
    "ClusterName": "other",
    "StateSaveLocation": "/srv/other/state",
    "SlurmdSpoolDir": "/run/slurmd-other",
    "SlurmctldPidFile": "/run/slurmctld-other.pid",
    "SlurmdPidFile": "/run/slurmd-other.pid",
    "SlurmctldLogFile": "/srv/other/slurmctld.log",
    "SlurmdLogFile": "/srv/other/slurmd-%n.log",
}
MAKE = f"""\
mkdir -p /srv/other/state && cp -n /etc/slurm/*.conf /srv/other && chown -R slurm /srv/other
sacctmgr -i add cluster other && sacctmgr -i add account red cluster=other && sacctmgr -i add user ada account=red cluster=other
SLURM_CONF={OTHER} exec slurmctld -f {OTHER}
"""
END = f"""\
SLURM_CONF={OTHER} scontrol shutdown
for _ in $(seq 100); do pgrep -f '^[^ ]*slurm(ctld|d) .*{OTHER}' >/dev/null || break; sleep 0.3; done
sacctmgr -i delete cluster other; rm -rf /srv/other
"""


@pytest.fixture
def ada(sandboxes: Callable[..., Sandbox]) -> Iterator[User]:
    """ada on the sandbox with accounting; the same hosts are a second cluster too, named other, with daemons of its own."""
    box = sandboxes("accounting", shape="core:1 spine:2 leaf:2 node:2", accounting=True)
    idle(box)
    text = (box.dir / "srv/etc/slurm/slurm.conf").read_text()
    for key, value in CHANGES.items():
        text = re.sub(rf"^{key}=.*", f"{key}={value}", text, flags=re.MULTILINE)
    (box.dir / "srv/other").mkdir()
    (box.dir / "srv/other/slurm.conf").write_text(f"{text}SlurmctldPort=7817\nSlurmdPort=7818\n")
    made = box.exec(["sh", "-c", MAKE], timeout_s=60)
    assert made.code == 0, made.stderr
    for node in box.nodes:
        box.exec(["sh", "-c", f"mkdir -p /run/slurmd-other; SLURM_CONF={OTHER} exec slurmd -N {node} -f {OTHER}"], node=node)
    user = User(box)
    user.write("prog.sh", PROGRAM)
    count = str(len(box.nodes))
    until(lambda: user.run("sinfo", "-M", "other", "-h", "-t", "idle", "-o", "%D").stdout.split()[-1:] == [count], 60, "other is up")
    yield user
    idle(box)
    box.exec(["sh", "-c", END], timeout_s=60)


def test_a_job_goes_to_the_cluster_that_is_named_and_is_looked_for_there(ada: User) -> None:
    done = ada.glaunch("run", "-M", "other", "-N", "1", "--ntasks-per-node", "2", "--env", "SLEEP=300", "--parsable", "./prog.sh")
    job_id, cluster = done.stdout.strip().split(";")
    assert cluster == "other", done.stderr
    assert ada.run("squeue", "-h").stdout == ""  # not here
    until(lambda: "runs" in ada.glaunch("status", done.stdout.strip()).stdout, 60, "it runs, on other")
    assert re.search(rf"^{job_id};other +prog +runs", ada.glaunch("status").stdout, re.M)
    assert ada.glaunch("cancel", "prog").code == 0
    seen = "squeue", "-M", "other", "-h", "-t", "all", "-o", "%T"
    until(lambda: "CANCELLED" in ada.run(*seen).stdout, 60, "cancelled on other")
    ended = ada.glaunch("run", "-n", "1", "--env", "FAIL=0", "--env", "CODE=7", "./prog.sh", env={"SLURM_CLUSTERS": "other"})
    assert ended.code == 7, ended.stderr
    assert f"job {job_id_of(ended)} submitted on other" in ended.stderr
    unknown = ada.glaunch("run", "-M", "nope", "-n", "1", "./prog.sh")
    assert unknown.code == 1
    assert "No cluster 'nope' known by database" in unknown.stderr
