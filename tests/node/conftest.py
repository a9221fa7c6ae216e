"""A real Slurm for the tests of what runs on nodes, and jobs on it as a plain user."""

import itertools
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.plans import GATHERING, load_templates, make_plan

from glaunch import rundir
from glaunch.attempt import AttemptFolder, attempts
from glaunch.gateways.process import Completed
from glaunch.plan import Option
from glaunch.sandbox.box import Sandbox
from glaunch.script import Gathering, render
from glaunch.tuning import Variable

ADA = 2001


@dataclass
class Jobs:
    """Submissions of ada's on a sandbox, each in a folder of its own."""

    box: Sandbox
    number: Iterator[int] = field(default_factory=itertools.count)

    def ada(self, *command: str, timeout_s: float = 120.0, env: dict[str, str] | None = None) -> Completed:
        return self.box.exec(command, "ada", timeout_s=timeout_s, env=env)

    def make(
        self,
        argv: tuple[str, ...],
        *,
        name: str = "",
        gathering: Gathering = GATHERING,
        nodes: int = 2,
        per_node: int = 2,
        tasks: int | None = None,
        time: str = "5",
        more: Sequence[Option] = (),
        variables: Sequence[Variable] = (),
        work_dir: str = "/home/ada",
        form: str = "srun",
        options: Sequence[str] = (),
        mpi: str = "auto",
        starter: Sequence[str] | None = None,
    ) -> Path:
        """Write a submission's folder as glaunch does; its path out here."""
        name = name or f"job{next(self.number)}"
        plan = make_plan(
            f"/home/ada/{name}",
            argv,
            nodes=nodes,
            per_node=per_node,
            tasks=tasks,
            time=time,
            more=more,
            variables=variables,
            work_dir=work_dir,
            form=form,
            options=options,
            mpi=mpi,
            starter=starter,
        )
        folder = self.box.home("ada") / name
        rundir.create(folder, {"schema": "glaunch.intent/1"})
        rundir.write_texts(folder, render(plan, load_templates(), version="test", gathering=gathering).texts)
        for path in (folder, *folder.rglob("*")):
            os.chown(path, ADA, ADA)
        return folder

    def submit(self, folder: Path, *options: str, by_hand: bool = False, env: dict[str, str] | None = None) -> str:
        """sbatch as glaunch does it (with the submission's id), or by hand; the job's id."""
        script = f"/home/ada/{folder.name}/job.sbatch"
        done = self.ada("sbatch", "--parsable", *options, script, *(() if by_hand else ("sub-1",)), env=env)
        assert done.code == 0, done.stderr
        return done.stdout.strip()

    def end(self, folder: Path, count: int = 1, timeout_s: float = 90.0) -> tuple[AttemptFolder, ...]:
        """Wait until so many runs of a submission have written their end."""
        deadline = time.monotonic() + timeout_s
        while True:
            runs = attempts(folder)
            if sum(run.end is not None for run in runs) >= count:
                return runs
            assert time.monotonic() < deadline, f"no end of {folder.name} after {timeout_s} s:\n{self.log(folder)}"
            time.sleep(0.1)

    def run(self, folder: Path, *options: str, by_hand: bool = False, env: dict[str, str] | None = None) -> AttemptFolder:
        """Submit and wait for the end."""
        self.submit(folder, *options, by_hand=by_hand, env=env)
        return self.end(folder)[-1]

    def until(self, folder: Path, pattern: str, text: str, timeout_s: float = 60.0, count: int = 1) -> None:
        """Wait until so many files of the submission hold a text."""
        deadline = time.monotonic() + timeout_s
        while sum(text in path.read_text(errors="replace") for path in folder.glob(pattern)) < count:
            assert time.monotonic() < deadline, f"{pattern} never said {text!r}:\n{self.log(folder)}"
            time.sleep(0.1)

    def log(self, folder: Path) -> str:
        """What the batch scripts said."""
        return "".join(path.read_text(errors="replace") for path in sorted(folder.glob("batch-*.log")))


@pytest.fixture(scope="session")
def jobs(cluster: Sandbox) -> Jobs:
    """On the cluster that all tests of a run share."""
    return Jobs(cluster)


@pytest.fixture(scope="session")
def no_python(sandboxes: Callable[..., Sandbox]) -> Jobs:
    """On a sandbox whose nodes have no Python."""
    return Jobs(sandboxes("no-python", nodes=4, no_python=True))
