"""`glaunch check`: does Slurm answer here, and through what."""

import json

import click

HELP = """Ask Slurm once for all that a plan needs, and say how it went: version, gateway and why, what was seen, how long it took.

Exit code 0 when all was answered; else the error says what to do (5: the controller did not answer).

\b
Examples:
  glaunch check
  glaunch check --json
  GLAUNCH_SLURM_GATEWAY=commands glaunch check
"""


@click.command(help=HELP)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    from glaunch import pipeline
    from glaunch.caller import terminal_width
    from glaunch.report.contact import contact_document, contact_text

    contact = pipeline.contact(pipeline.open_world(ctx.obj["snapshot"]))
    click.echo(json.dumps(contact_document(contact), indent=1) if as_json else contact_text(contact, terminal_width()), nl=as_json)
