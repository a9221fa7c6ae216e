"""`glaunch plan`: what would be submitted, and why; nothing is."""

import json
from typing import Any

import click

from glaunch.commands.options import LaunchCommand, launch_options, options_of, request_from

HELP = """Show all that `run` would submit: nodes, order, options, environment, each with its reason. Submits nothing.

\b
Examples:
  glaunch plan train.py -n 64
  glaunch plan -v -N 8 train.py --lr 1e-3            the script too, and what Slurm's version means for it
  glaunch plan train.py -n 64 --when --compare       what waiting would buy, and what Slurm itself would choose
  glaunch --snapshot DIR plan train.py -n 64         without a cluster
"""


@click.command(cls=LaunchCommand, help=HELP)
@launch_options
@click.option("--when", is_flag=True, help="Read the running jobs too, and say what waiting for them would buy.")
@click.option("--compare", is_flag=True, help="Ask Slurm what it would choose itself (a will-run), and show both.")
@click.pass_context
def command(ctx: click.Context, /, **params: Any) -> None:  # noqa: ANN401 - click hands options of every type
    show_plan(ctx, params)


def show_plan(ctx: click.Context, params: dict[str, Any]) -> None:
    """Decide and show (also `run --dry-run`)."""
    import time

    from glaunch import pipeline
    from glaunch.caller import terminal_width
    from glaunch.report.plan import plan_text, versions_text

    request = request_from(params)
    world = pipeline.open_world(ctx.obj["snapshot"], options_of(params), params["clusters"])
    plan = pipeline.plan(world, request, when=params.get("when", False), compare=params.get("compare", False))
    if params["as_json"]:
        from glaunch.report.documents import plan_document

        click.echo(json.dumps(plan_document(plan), indent=1))
        return
    click.echo(plan_text(plan, terminal_width(), time.time(), verbose=params["verbose"]), nl=False)
    if params["verbose"]:
        click.echo(f"\n{versions_text(plan, terminal_width())}", nl=False)
        click.echo(f"\n{'─' * 20} job.sbatch\n{pipeline.script_of(world, plan)['job.sbatch']}", nl=False)
