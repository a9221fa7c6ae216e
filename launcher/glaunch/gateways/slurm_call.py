"""How a command of Slurm is called: in which environment, how long it may take, what is said where it is missing."""

import os
import re
from collections.abc import Callable, Mapping, Sequence

from glaunch.errors import SlurmError, UsageError
from glaunch.gateways.process import Completed, Run, Surround, Surroundings, within
from glaunch.gateways.slurm_environment import cluster_of, reading_environment
from glaunch.gateways.slurm_refusals import missing

_JOB_ID = re.compile(r"\d+(?:_(?:\d+|\[[\d,%-]+\])|\+\d+)?")


class SlurmCalls:
    """What all questions to Slurm go through.

    `run` is the seam: a capture or a test answers in its stead. `surround` is the same seam for who must see the environment and the
    folder of each call too. Every call has a timeout.
    """

    def __init__(
        self,
        run: Run | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        surround: Surround = within,
        timeout_s: float = 30.0,
        submit_timeout_s: float = 120.0,
        mark: Callable[[], str] = lambda: f"|{os.urandom(4).hex()}|",
    ) -> None:
        self._environ = dict(os.environ if environ is None else environ)
        self.cluster = cluster_of(self._environ)
        """The cluster that is asked, by name; "" for the one of this host's slurm.conf."""
        self._surround = surround if run is None else lambda _: run
        self._timeout_s = timeout_s
        self._submit_timeout_s = max(submit_timeout_s, timeout_s)
        self._mark = mark
        self._run = self._surround(Surroundings(reading_environment(self._environ)))

    def _ask(self, argv: Sequence[str]) -> Completed:
        return self._call(self._run, argv, self._timeout_s)

    def _call(self, run: Run, argv: Sequence[str], timeout_s: float, stdin: str = "") -> Completed:
        if self._surround is within:
            self._see_configuration(argv)
        try:
            return run(argv, stdin, timeout_s)
        except (FileNotFoundError, PermissionError) as gone:
            raise missing(argv) from gone

    def _see_configuration(self, argv: Sequence[str]) -> None:
        """Slurm's commands, and libslurm, would look for a missing file for a minute."""
        conf = self._environ.get("SLURM_CONF")
        if conf and not os.path.exists(conf):
            raise SlurmError(
                f"SLURM_CONF={conf}: there is no such file", argv=tuple(argv), hint="unset SLURM_CONF, or name the cluster's slurm.conf"
            )


def checked(job_id: str) -> str:
    """A job's id, of an array task or a component too. Raises UsageError for anything else: it goes into a command line."""
    if not _JOB_ID.fullmatch(job_id):
        raise UsageError(f"{job_id!r} is no job id", hint="ids look like 123, 123_4 (array task) or 123+1; see yours: squeue --me")
    return job_id
