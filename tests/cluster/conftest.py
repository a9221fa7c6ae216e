"""A plain user on a real Slurm: what she types, what she sees, and a cluster that is idle again after each test."""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from glaunch.attempt import AttemptFolder, attempts
from glaunch.gateways.process import Completed
from glaunch.sandbox.box import Sandbox

PROGRAM = """\
#!/bin/sh
# One rank: says where it is, writes a log on its node, lasts as long as it is told (SLEEP seconds, or until the file GATE is there), and
# ends with the code that it is asked for.
echo "rank $RANK of $WORLD_SIZE on $(uname -n), local $LOCAL_RANK, node $NODE_RANK, args: $*"
echo "$RANK" >"$GLAUNCH_LOG_DIR/$(uname -n)-$RANK.log"
sleep "${SLEEP:-0}"
[ -z "${GATE-}" ] || until [ -e "$GATE" ]; do sleep 0.1; done
[ "$RANK" != "${FAIL-}" ] || exit "${CODE:-0}"
"""
GATEWAY = {"GLAUNCH_SLURM_GATEWAY": "commands"} if find_spec("pyslurm") else {}
"""The pyslurm beside Slurm 26.05 is not made for it (`tests/versions/root.sh`), of which every command would tell."""
FINAL = frozenset({"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL"})


@dataclass(frozen=True)
class User:
    """A plain user of the sandbox; files are written and read out here, commands run inside."""

    box: Sandbox
    name: str = "ada"

    @property
    def home(self) -> Path:
        """Her home, out here; /home/NAME inside."""
        return self.box.home(self.name)

    def glaunch(self, *words: str, env: Mapping[str, str] | None = None, timeout_s: float = 240) -> Completed:
        """Type a line that begins with `glaunch`."""
        return self.run("glaunch", *words, env={**GATEWAY, **(env or {})}, timeout_s=timeout_s)

    def run(self, *words: str, env: Mapping[str, str] | None = None, timeout_s: float = 120) -> Completed:
        """Type any line."""
        return self.box.exec(words, self.name, timeout_s=timeout_s, env=env)

    def write(self, name: str, text: str, mode: int = 0o755) -> Path:
        """A file of hers."""
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        self.box.exec(["chown", "-R", f"{self.name}:", f"/home/{self.name}/{name.split('/')[0]}"])
        return path

    def job(self, job_id: str) -> dict[str, str]:
        """What `scontrol show job` says, key by key; {} for an unknown job."""
        return dict(re.findall(r"(\w+)=(\S*)", self.run("scontrol", "--local", "show", "job", job_id).stdout))

    def wait_for(self, job_id: str, *states: str, timeout_s: float = 120) -> dict[str, str]:
        """Until the job is in one of these states (a final one if none is named)."""
        wanted = frozenset(states) or FINAL
        return until(lambda: ((job := self.job(job_id)).get("JobState") in wanted and job) or None, timeout_s, f"job {job_id} in {wanted}")

    def run_again(self, job_id: str, restarts: int, timeout_s: float = 60) -> None:
        """Until a requeued job runs again. It would wait for two minutes; a word against that is lost until its old nodes are free."""

        def runs() -> bool:
            job = self.job(job_id)
            if job["Restarts"] == str(restarts) and job["JobState"] not in {"PENDING", "COMPLETING"}:
                return True
            self.run("scontrol", "update", f"JobId={job_id}", "StartTime=now")
            return False

        until(runs, timeout_s, f"job {job_id} runs again")

    def gate(self) -> Path:
        """A file that is not there yet, out here: a job with `--env GATE=/home/NAME/gate` lasts until it is touched."""
        gate = self.home / "gate"
        gate.unlink(missing_ok=True)
        return gate

    def folder(self, job_id: str) -> Path:
        """The job's folder, out here."""
        script = self.job(job_id)["Command"]
        return self.out_here(script).parent

    def out_here(self, inside: str) -> Path:
        """Where a path of her home is found out here."""
        return self.home / Path(inside).relative_to(f"/home/{self.name}")

    def attempts(self, job_id: str) -> tuple[AttemptFolder, ...]:
        """The attempts of a job."""
        return attempts(self.folder(job_id))


def until(look: Callable[[], "dict[str, str] | str | bool | None"], timeout_s: float, what: str) -> "dict[str, str]":
    """Look until the answer is true; fail after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        seen = look()
        if seen:
            return seen if isinstance(seen, dict) else {}
        time.sleep(0.1)
    pytest.fail(f"not within {timeout_s} s: {what}")


def job_id_of(done: Completed) -> str:
    """The id in what a launch said."""
    found = re.search(r"job (\d+) submitted", done.stderr)
    assert found, f"no id in {done.stderr!r}"
    return found[1]


def idle(box: Sandbox) -> None:
    """End all jobs, undo what tests change, and wait until every node is idle."""
    box.exec(["scancel", "--user=ada"])
    box.exec(["scancel", "--user=bob"])
    box.exec(["scancel", "--user=root"])
    box.exec(["scontrol", "update", "PartitionName=gpu", "State=UP"])
    count = str(len(box.nodes))
    until(lambda: box.exec(["squeue", "-h"]).stdout == "", 60, "no job left, not even a completing one")
    until(lambda: box.exec(["sinfo", "-h", "-t", "idle", "-o", "%D"]).stdout.strip() == count, 60, "all nodes idle")


@pytest.fixture
def ada(cluster: Sandbox) -> Iterator[User]:
    """ada on the shared sandbox of 16 nodes, with her program in place; what a test of another folder left there is over."""
    user = User(cluster)
    idle(cluster)
    user.write("prog.sh", PROGRAM)
    yield user
    idle(cluster)


@pytest.fixture
def no_python(sandboxes: Callable[..., Sandbox]) -> Iterator[User]:
    """ada on a sandbox whose nodes have no Python at all."""
    box = sandboxes("no-python", nodes=4, no_python=True)
    user = User(box)
    user.write("prog.sh", PROGRAM)
    yield user
    idle(box)
