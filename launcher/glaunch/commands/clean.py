"""`glaunch clean`: remove the folders of old jobs."""

import click

HELP = """Remove the folders of jobs that ended long ago. Only folders that glaunch made, with no run that may still go on.

\b
Examples:
  glaunch clean --dry-run           which would go
  glaunch clean --older-than 7      those that nothing has touched for 7 days
"""


@click.command(help=HELP)
@click.option("--older-than", type=click.FloatRange(0), default=30.0, show_default=True, metavar="DAYS", help="Untouched for so many days.")
@click.option("--dry-run", is_flag=True, help="Only print them.")
@click.argument("folder", required=False, type=click.Path(exists=True, file_okay=False))
def command(older_than: float, dry_run: bool, folder: str | None) -> int:
    import os
    import time
    from pathlib import Path

    from glaunch import pipeline
    from glaunch.commands.looking import ENDED, job_lines, launches
    from glaunch.rundir import clean_candidates, remove

    world = pipeline.open_world()
    job_lines(world, launches(world))  # what is over by now is remembered so
    folders: dict[bool, set[str]] = {True: set(), False: set()}
    for submission in world.history.submissions():
        folders[submission.state in ENDED].add(os.path.realpath(submission.folder))
    root = Path(folder or world.settings.text("rundir.path"))
    found = clean_candidates(root, older_than_s=older_than * 86400, now_s=time.time(), over=frozenset(folders[True]))
    old = [path for path in found if os.path.realpath(path) not in folders[False]]
    for path in old:
        if not dry_run:
            remove(path)
        click.echo(path)
    if not old:
        click.echo(f"nothing to remove below {root}", err=True)
    return 0
