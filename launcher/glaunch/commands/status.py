"""`glaunch status`: what became of this user's launches."""

import json

import click

HELP = """Show your launches: which wait and why, which run and where, how they ended.

Finds again what a glaunch that was killed had submitted, and lifts a pin that it left behind. Submits nothing.

\b
Examples:
  glaunch status              the last ten
  glaunch status 4711         one of them, by job id, name or submission id
  glaunch status --all --json
"""


@click.command(help=HELP)
@click.argument("job", required=False)
@click.option("--all", "show_all", is_flag=True, help="All that are remembered, not the last ten.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def command(job: str | None, show_all: bool, as_json: bool) -> int:
    from glaunch import pipeline
    from glaunch.caller import table_width
    from glaunch.commands.looking import job_lines, launches, the_one
    from glaunch.document import to_document
    from glaunch.meant import find_all, slurms_word
    from glaunch.report.jobs import jobs_text

    world = pipeline.open_world()
    submissions = launches(world)
    job = slurms_word(submissions, job)
    chosen = (find_all(submissions, job) or (the_one(submissions, job),)) if job else submissions if show_all else submissions[-10:]
    lines = job_lines(world, chosen[::-1])
    if as_json:
        click.echo(json.dumps({"schema": "glaunch.status/1", "jobs": [to_document("job_line", 1, line) for line in lines]}, indent=1))
    elif not lines:
        click.echo("nothing was launched yet from this account: glaunch train.py -n 64", err=True)
    else:
        click.echo(jobs_text(lines, table_width()), nl=False)
    return 0
