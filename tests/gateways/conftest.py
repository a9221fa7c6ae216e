"""A sandbox with accounting for the gateways' tests, used as the plain users ada and bob; RPCs are counted as root.

`live` is one Slurm behind each gateway in turn: its commands, and pyslurm where that is installed.
"""

import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from glaunch.gateways.process import Completed, Run, Surroundings, run
from glaunch.gateways.slurm import SlurmCommands
from glaunch.gateways.slurm_native import PROGRAM, SlurmNative
from glaunch.sandbox.box import Sandbox

PASSED_ON = ("LC_ALL", "SLURM_", "SQUEUE_", "SINFO_", "SACCT_", "SBATCH_", "GLAUNCH_")
BOOKKEEPING = frozenset(
    {"REQUEST_STATS_INFO", "MESSAGE_NODE_REGISTRATION_STATUS", "MESSAGE_EPILOG_COMPLETE", "REQUEST_COMPLETE_BATCH_SCRIPT"}
)
"""RPCs of sdiag itself and of slurmd."""


@dataclass(frozen=True)
class Live:
    """A real Slurm, and what a test does with it."""

    sandbox: Sandbox
    kind: str = "commands"
    """commands or pyslurm: the gateway that `gateway` gives."""

    def surround(self, user: str = "ada") -> Callable[[Surroundings], Run]:
        """The seam: every command runs on the sandbox's login host as `user`, in the folder and with the Slurm variables asked for."""

        def surround(surroundings: Surroundings) -> Run:
            env = {name: value for name, value in (surroundings.environment or {}).items() if name.startswith(PASSED_ON)}

            def run_inside(argv: Sequence[str], stdin: str, timeout_s: float) -> Completed:
                words = [*(["env", f"--chdir={surroundings.folder}"] if surroundings.folder else []), *argv]
                done = run(self.sandbox.argv(words, user, env=env), stdin, timeout_s)
                return Completed(tuple(argv), done.code, done.stdout, done.stderr)

            return run_inside

        return surround

    def gateway(
        self, user: str = "ada", environ: Mapping[str, str] | None = None, *, timeout_s: float = 120, submits: bool = False
    ) -> SlurmCommands:
        """The gateway as `user` has it on the login host; what pyslurm cannot do there is an error, not a reason to ask the commands."""
        if self.kind == "commands":
            return SlurmCommands(environ=environ or {}, surround=self.surround(user), timeout_s=timeout_s)

        def say(line: str) -> None:
            assert "do not see this job" in line, line

        program = self.sandbox.argv([sys.executable, str(PROGRAM)], user)
        return SlurmNative(
            fall_back=False,
            say=say,
            submits=submits,
            program=program,
            environ=environ or {},
            surround=self.surround(user),
            timeout_s=timeout_s,
        )

    def ask(self, *argv: str, user: str = "root") -> str:
        """What a command inside prints; it must succeed."""
        done = self.sandbox.exec(argv, user, timeout_s=120)
        assert done.code == 0, done
        return done.stdout

    def script(self, name: str, text: str, user: str = "ada") -> str:
        """A program of the user's in the home; its path inside."""
        path = f"/home/{user}/{name}"
        done = self.sandbox.exec(
            ["sh", "-c", f"mkdir -p '{os.path.dirname(path)}' && cat > '{path}' && chmod +x '{path}'"], user, stdin=f"#!/bin/sh\n{text}\n"
        )
        assert done.code == 0, done
        return path

    @contextmanager
    def rpcs(self) -> Iterator[Counter[str]]:
        """What the controller is asked inside the block, by type; filled when the block ends."""
        counted: Counter[str] = Counter()
        self._counted()
        self.ask("sdiag", "--reset")
        yield counted
        counted.update(self._counted())

    def _counted(self) -> Counter[str]:
        """What the controller has counted. It counts a question after its answer is gone: two readings must be the same."""
        before = None
        while (now := self._reading()) != before:
            before = now
            time.sleep(0.2)
        return now

    def _reading(self) -> Counter[str]:
        section = self.ask("sdiag").split("statistics by message type")[1].split("\n\n")[0]
        found = re.findall(r"^\s*(\w+)\s*\(\s*\d+\)\s*count:(\d+)", section, re.M)
        return Counter({name.removeprefix("REQUEST_"): int(count) for name, count in found if name not in BOOKKEEPING})

    def quiet(self) -> None:
        """No job runs, waits or completes, and every node is idle: what an earlier test has left is ended, and waited for."""
        for user in ("ada", "bob"):
            self.ask("scancel", "--user", user)
        states: list[str] = []

        def idle() -> bool:
            states[:] = re.findall(r" State=(\S+)", self.ask("scontrol", "-o", "show", "nodes"))
            return not self.ask("squeue", "--noheader", "--all") and set(states) == {"IDLE"}

        try:
            self.until(idle, within_s=90)
        except AssertionError:
            raise AssertionError(f"it does not become quiet: {states}\n{self.ask('squeue')}") from None

    @staticmethod
    def until(what: Callable[[], bool], *, within_s: float = 60.0) -> None:
        """Wait for something that Slurm does by and by."""
        end = time.monotonic() + within_s
        while not what():
            assert time.monotonic() < end, "it did not come about"
            time.sleep(0.1)


PYSLURM = pytest.param("pyslurm", marks=pytest.mark.needs_pyslurm)
GATEWAYS = ("commands", PYSLURM)


@pytest.fixture(scope="session")
def accounting_box(sandboxes: Callable[..., Sandbox]) -> Sandbox:
    """One cluster of 8 nodes with 8 h100 each, on three tiers, with accounting, for all tests of this folder."""
    return sandboxes("accounting", shape="core:1 spine:2 leaf:2 node:2", accounting=True)


@pytest.fixture(scope="session", params=GATEWAYS)
def live(request: pytest.FixtureRequest, accounting_box: Sandbox) -> Live:
    """That cluster behind each gateway."""
    return Live(accounting_box, request.param)
