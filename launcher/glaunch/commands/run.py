"""`glaunch run`, the verb that is meant when none is given: place, submit, follow, report."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from glaunch.commands.options import LaunchCommand, launch_options, options_of, request_from
from glaunch.commands.plan import show_plan
from glaunch.errors import Interrupted, UsageError

HELP = """Place, submit and follow a job.

With options before the script, all after it belongs to the script. With none before it, the options
right after the script are glaunch's, up to the first word that glaunch does not know or `--`.

A `:` that is a word of its own begins another component of the same job: options and a program again, on
nodes of its own (a heterogeneous job, one world of ranks). Behind a `--` it is the program's own.

Ctrl-C detaches and leaves the job alone. The exit code is the job's own.

\b
Examples:
  glaunch train.py -n 64 --lr 1e-3          train.py gets: --lr 1e-3
  glaunch -N 8 -t 2:00:00 train.py -n 5     train.py gets: -n 5
  glaunch train.py -n 64 --detach           print the job's id and leave
  glaunch ./solver -n 16 -- -v input.dat    any program; `--` ends glaunch's options
  glaunch -N 2 -p gpu train.py : -N 1 -p cpu ./server     two components; ranks count through
"""


@click.command(cls=LaunchCommand, help=HELP)
@launch_options
@click.option("--detach", is_flag=True, help="Print the job's id and leave once its nodes are settled (30 s at most).")
@click.option("--wait", is_flag=True, help="Wait for the end without showing the output.")
@click.option("--parsable", is_flag=True, help="Print the job's id alone, and leave as --detach does.")
@click.option("--dry-run", is_flag=True, help="The same as `glaunch plan`.")
@click.option("--here", is_flag=True, help="Inside an allocation: order, tune and run on its nodes; submit nothing.")
@click.pass_context
def command(ctx: click.Context, /, **params: Any) -> int:  # noqa: ANN401 - click hands options of every type
    if params["dry_run"]:
        show_plan(ctx, params)
        return 0
    if ctx.obj["snapshot"]:
        raise UsageError("a capture runs nothing", hint="glaunch --snapshot DIR plan … shows what would be submitted")
    if params["wait"] and (params["detach"] or params["parsable"]):
        raise UsageError("--wait stays, --detach and --parsable leave", hint="give one of them")
    from glaunch import aftermath, pipeline
    from glaunch.launch import launch
    from glaunch.report.plan import read_as
    from glaunch.talk import talk

    request = request_from(params)
    with _submitting_nothing():
        world = pipeline.open_world(None, options_of(params), params["clusters"])
    for one in (request, *request.components):
        talk(read_as(one.command))
    if params["here"]:
        from glaunch.here import run_here

        return run_here(world, request)
    if allocation := os.environ.get("SLURM_JOB_ID"):
        talk(f"this shell is in allocation {allocation}; a job of its own is submitted (with --here it would run in the allocation)")
    with _submitting_nothing():  # from the question to Slurm on a ^C is deferred
        launched = launch(world, request)
    if params["detach"] or params["parsable"]:
        document = {"schema": "glaunch.launched/1", "job_id": launched.job_id, "folder": str(launched.folder), "name": launched.plan.name}
        if launched.plan.request.clusters:
            document["cluster"] = launched.plan.request.clusters
        parts = [{"job_id": part.job_id, "folder": str(part.folder), "tasks": part.plan.tasks_of_part} for part in launched.parts]
        click.echo(json.dumps({**document, **({"parts": parts} if launched.rest else {})}) if params["as_json"] else launched.job_ids)
        aftermath.settle(world, launched)
        return 0
    end = aftermath.stay(world, launched, show=not params["wait"] and not params["as_json"])
    if params["as_json"]:
        from glaunch.report.documents import report_document

        report_part = (
            report_document(end.report) if end.report is not None else {"schema": "glaunch.report/1", "job": {"id": launched.job_id}}
        )
        click.echo(json.dumps({**report_part, "code": end.code, "told_by": end.told_by}, indent=1))
    return end.code


@contextmanager
def _submitting_nothing() -> Iterator[None]:
    """A ^C in here comes before any submission, and is told so."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted("interrupted; nothing was submitted") from None
