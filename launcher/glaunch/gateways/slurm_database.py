"""What the accounting database says, through sacct and sacctmgr: no RPC to the controller, and all of it may be missing."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from glaunch.gateways.slurm_call import SlurmCalls, checked
from glaunch.gateways.slurm_refusals import is_silence, refusal

if TYPE_CHECKING:
    from glaunch.job import Job
    from glaunch.past_jobs import PastJobs

ALLOWANCE_TIMEOUT_S = 5.0
"""A slurmdbd answers in 0.4 s; a plan does not wait for one that does not answer."""
PAST_TIMEOUT_S = 300.0
"""A month of a busy centre is read from a busy database."""


class SlurmDatabase(SlurmCalls):
    """The part of the gateway that slurmdbd answers. Raises as SlurmCommands."""

    def allowance(self, user: str) -> tuple[str, ...]:
        """All QOS, this user with her associations, and all accounts, from the accounting database (no RPC to the controller), within a
        short time: what `parse_accounting` reads."""
        from glaunch.parsers.slurm_accounting import ACCOUNT_FIELDS, QOS_FIELDS, USER_FIELDS

        questions = (
            ("sacctmgr", "-P", "show", "qos", f"format={','.join(QOS_FIELDS)}"),
            ("sacctmgr", "-P", "show", "user", f"name={user}", "withassoc", f"format={','.join(USER_FIELDS)}"),
            ("sacctmgr", "-P", "show", "assoc", "user=", f"format={','.join(ACCOUNT_FIELDS)}"),
        )
        from concurrent.futures import ThreadPoolExecutor

        timeout_s = min(ALLOWANCE_TIMEOUT_S, self._timeout_s)
        with ThreadPoolExecutor(max_workers=len(questions)) as pool:
            answers = list(pool.map(lambda argv: self._call(self._run, argv, timeout_s), questions))
        for done in answers:
            if done.code != 0 or is_silence(done) or not done.stdout.strip():
                raise refusal(done, "to show what accounting allows you", timeout_s)
        return tuple(done.stdout for done in answers)

    def accounted(self, ids: Iterable[str]) -> "tuple[Job, ...] | None":
        """Jobs by id from the accounting database (no RPC to the controller), long after Slurm forgot them; None where there is none."""
        wanted = sorted(set(map(checked, ids)))
        return self._sacct(("-j", ",".join(wanted))) if wanted else ()

    def accounted_within(self, age_s: int) -> "tuple[Job, ...] | None":
        """Own jobs of the last `age_s` seconds, from the accounting database, each with the line that submitted it; None: there is none.

        The database's own window lags by up to 4 s; a job asked for by id is there at once.
        """
        return self._sacct(("-S", f"now-{int(age_s)}seconds"))

    def _sacct(self, selection: Sequence[str]) -> "tuple[Job, ...] | None":
        from glaunch.parsers.slurm_jobs import SACCT_FIELDS, parse_sacct

        mark = self._mark()
        where = ("-M", self.cluster) if self.cluster else ()  # the one command that does not read SLURM_CLUSTERS
        done = self._ask(("sacct", *where, "-X", "-n", "-p", f"--delimiter={mark}", *selection, "-o", ",".join(SACCT_FIELDS)))
        if "accounting storage is disabled" in done.stderr:
            return None
        if done.code != 0 or (not done.stdout and is_silence(done)):
            raise refusal(done, "to show past jobs", self._timeout_s)
        return parse_sacct(done.stdout, mark)

    def past_jobs(self, age_s: int) -> "PastJobs | None":
        """All jobs of the last `age_s` seconds that this user may see, everybody's, in one query of the database; None: there is none.

        PrivateData=jobs in slurmdbd.conf leaves a plain user with her own.
        """
        from glaunch.parsers.past_jobs import FIELDS, parse_past_jobs

        argv = ("sacct", "-a", "-X", "-P", "-S", f"now-{int(age_s)}seconds", "-o", ",".join(FIELDS))
        done = self._call(self._run, argv, max(self._timeout_s, PAST_TIMEOUT_S))
        if "accounting storage is disabled" in done.stderr:
            return None
        if done.code != 0 or not done.stdout:
            raise refusal(done, "to show past jobs", PAST_TIMEOUT_S)
        return parse_past_jobs(done.stdout, where="sacct")
