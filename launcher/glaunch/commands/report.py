"""`glaunch report`: what became of a job, from its folder."""

import json

import click

HELP = """Say what became of a job: the nodes it got beside the planned ones, the rank order, which rank failed where,
which hosts' logs are missing; each finding with its line.

\b
Examples:
  glaunch report              of the last job
  glaunch report 4711 --json
  glaunch report 4712_3       of one array task
"""


@click.command(help=HELP)
@click.argument("job", required=False)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def command(job: str | None, as_json: bool) -> int:
    from pathlib import Path

    from glaunch import aftermath, pipeline
    from glaunch.caller import terminal_width
    from glaunch.commands.looking import the_run
    from glaunch.evidence import report_of
    from glaunch.report.documents import report_document
    from glaunch.report.job import job_text
    from glaunch.talk import talk

    world, submission, attempt = the_run(pipeline.open_world(), job, "report")
    folder = Path(submission.folder)
    report = report_of(folder, attempt, aftermath.look_up(world, submission.job_id, folder, attempt))
    page = aftermath.save_report(folder, attempt, report)
    if as_json:
        click.echo(json.dumps(report_document(report), indent=1))
    else:
        click.echo(job_text(report, terminal_width()), nl=False)
        talk(f"the same as a page: {page}")
    return 0
