"""`glaunch plan`: what would be submitted, and why; nothing is."""

from typing import Any

import click

from glaunch.commands.options import LaunchCommand, how_it_was_read, launch_options, request_from

HELP = """Show all that `run` would submit: nodes, order, options, environment, each with its reason. Submits nothing.

\b
Examples:
  glaunch plan train.py -n 64
  glaunch plan -v -N 8 train.py --lr 1e-3            the script too
  glaunch --snapshot DIR plan train.py -n 64         without a cluster
"""


@click.command(cls=LaunchCommand, help=HELP)
@launch_options
@click.pass_context
def command(ctx: click.Context, **params: Any) -> None:  # noqa: ANN401 - click hands options of every type
    show_plan(ctx, params)


def show_plan(ctx: click.Context, params: dict[str, Any]) -> None:
    """Decide and show (also `run --dry-run`)."""
    from glaunch import pipeline

    request = request_from(params)
    world = pipeline.open_world(ctx.obj["snapshot"])
    plan = pipeline.decide_only(world, request)
    if params["as_json"]:
        click.echo(pipeline.plan_json(plan))
        return
    click.echo(how_it_was_read(ctx.meta["glaunch.words"]), err=True)
    click.echo(pipeline.plan_text(plan, pipeline.terminal_width(), verbose=params["verbose"]))
    if params["verbose"]:
        click.echo("\n" + pipeline.script_text(plan))
