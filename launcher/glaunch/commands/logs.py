"""`glaunch logs`: a job's output, now or as it grows."""

import click

from glaunch.errors import UsageError

HELP = """Print a job's output: the batch script's words and what the ranks of rank 0's host print, each line with its rank.

\b
Examples:
  glaunch logs                   of the last job, as it stands
  glaunch logs -f 4711           and follow it to its end; the exit code is then the job's own
  glaunch logs --host n017       what the ranks on another host print
  glaunch logs --rank 42         what one rank prints
"""


@click.command(help=HELP)
@click.argument("job", required=False)
@click.option("-f", "--follow", is_flag=True, help="Follow the job to its end.")
@click.option("--host", metavar="NAME", help="Another host than rank 0's.")
@click.option("--rank", type=click.IntRange(0), metavar="N", help="One rank, wherever it runs.")
def command(job: str | None, follow: bool, host: str | None, rank: int | None) -> int:
    from pathlib import Path

    from glaunch import aftermath, pipeline
    from glaunch.commands.looking import ENDED, chosen_attempt, the_one
    from glaunch.parsers.labelled import labelled
    from glaunch.recover import reconcile
    from glaunch.talk import say

    world = pipeline.open_world()
    submission = the_one(reconcile(world.slurm, world.history), job)
    if follow and submission.state not in ENDED:
        if host or rank is not None:
            raise UsageError("-f follows rank 0's host", hint="glaunch logs --host NAME prints what is there now")
        return aftermath.come_back(world, submission)
    folder, attempt = Path(submission.folder), chosen_attempt(submission, job)
    if attempt is None:
        raise UsageError(f"job {submission.job_id or submission.name} has not run yet: it has no output", hint="glaunch status")
    if rank is not None:
        host = next((one.host for one in attempt.ranks if one.rank == rank), None)
        if host is None:
            raise UsageError(f"no rank {rank} has run", hint=f"ranks 0 to {len(attempt.ranks) - 1} have")
    if host is not None and host not in attempt.hosts:
        raise UsageError(
            f"the job did not run on {host!r}", hint=f"it ran on {', '.join(attempt.hosts[:8])}{' …' if attempt.hosts[8:] else ''}"
        )
    shown = [] if host else sorted(folder.glob("batch-*.log"))
    for path in (*shown, attempt.path / "out" / f"{host or attempt.hosts[0]}.log"):
        if not path.is_file():
            continue
        text = path.read_bytes().decode(errors="surrogateescape")
        for line in text.splitlines() if rank is None else (one.text for one in labelled(text) if one.rank == rank):
            say(line)
    return 0
