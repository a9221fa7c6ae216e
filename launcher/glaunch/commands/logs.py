"""`glaunch logs`: a job's output, now or as it grows."""

import click

from glaunch.commands.words import Whole
from glaunch.errors import UsageError

HELP = """Print a job's output: the batch script's words and what the ranks of rank 0's host print, each line with its rank.

\b
Examples:
  glaunch logs                   of the last job, as it stands
  glaunch logs -f 4711           and follow it to its end; the exit code is then the job's own
  glaunch logs --host n017       what the ranks on another host print; -f follows them
  glaunch logs --rank 42         what one rank prints
"""


@click.command(help=HELP)
@click.argument("job", required=False)
@click.option("-f", "--follow", is_flag=True, help="Follow the job to its end.")
@click.option("--host", metavar="NAME", help="Another host than rank 0's.")
@click.option("--rank", type=Whole(0), metavar="N", help="One rank, wherever it runs.")
def command(job: str | None, follow: bool, host: str | None, rank: int | None) -> int:
    from pathlib import Path

    from glaunch import aftermath, pipeline
    from glaunch.attempt import batch_logs
    from glaunch.commands.looking import ENDED, chosen_attempt, launches, name_others, the_jobs
    from glaunch.parsers.labelled import labelled
    from glaunch.talk import say

    world = pipeline.open_world()
    parts = the_jobs(launches(world), job)
    if follow and any(part.state not in ENDED for part in parts):
        if rank is not None:
            raise UsageError("-f follows a host's ranks, not one rank", hint="glaunch logs --rank N prints what is there now")
        return aftermath.come_back(world.on(parts[0].cluster), parts, host=host or "")
    submission, attempt = next(((part, run) for part in reversed(parts) if (run := chosen_attempt(part, job))), (parts[-1], None))
    if attempt is None:
        raise UsageError(f"job {submission.job_id} has not run yet: it has no output", hint="glaunch status")
    if rank is not None:
        host = next((one.host for one in attempt.ranks if one.rank == rank), None)
        if host is None:
            raise UsageError(f"no rank {rank} has run", hint=f"ranks 0 to {len(attempt.ranks) - 1} have")
    if host is not None and host not in attempt.hosts:
        raise UsageError(
            f"the job did not run on {host!r}", hint=f"it ran on {', '.join(attempt.hosts[:8])}{' …' if attempt.hosts[8:] else ''}"
        )
    name_others("logs", parts, submission)
    logs = () if host else batch_logs(Path(submission.folder), attempt.job_id, attempt.task)
    for path in (*logs, *(attempt.path / "out" / f"{name}.log" for name in ((host,) if host else attempt.hosts[:1]))):
        text = path.read_bytes().decode(errors="surrogateescape") if path.is_file() else ""
        for line in labelled(text):
            if rank is None or line.rank == rank:
                say(line.text if line.rank is None or rank is not None else f"{line.rank}: {line.text}")
    return 0
