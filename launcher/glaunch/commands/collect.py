"""`glaunch collect`: every node's logs, over SSH while the job lives, and after its end those that it did not gather itself."""

import json

import click

HELP = """Bring the logs of every node home: what the ranks wrote to $GLAUNCH_LOG_DIR.

While the job runs they come over SSH. At its end the job gathers them itself, so afterwards only the hosts
that it missed are asked. One archive a host, logs/HOST.tar.gz in the attempt's folder. A host that cannot be
reached is named with its reason; the exit code is then 4.

\b
Examples:
  glaunch collect             of the last job
  glaunch collect 4711
  glaunch collect 4712_3      of one array task
"""


@click.command(help=HELP)
@click.argument("job", required=False)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def command(job: str | None, as_json: bool) -> int:
    from glaunch import aftermath, pipeline
    from glaunch.bundle import gathered_hosts
    from glaunch.caller import terminal_width
    from glaunch.commands.looking import the_run
    from glaunch.document import to_document
    from glaunch.errors import UsageError
    from glaunch.logs import HostLogs
    from glaunch.report.job import bundle_text
    from glaunch.talk import counted, talk
    from glaunch.units import plural

    world, submission, attempt = the_run(pipeline.open_world(), job, "collect")
    if attempt is None:
        raise UsageError(f"job {submission.job_id} has not run yet: there are no logs", hint="glaunch status")

    if attempt.end is None and attempt.start is None:
        raise UsageError(f"job {submission.job_id} has started no rank yet: there are no logs", hint="glaunch status")
    if attempt.end is None:
        talk(f"job {submission.job_id} runs: {plural(len(attempt.log_hosts), 'host')} asked over SSH")

    with counted(len(set(attempt.log_hosts) - gathered_hosts(attempt.path)), "hosts") as one_more:

        def progress(host: HostLogs) -> None:
            if not host.archive:
                talk(f"{host.host}: {host.reason}: {host.detail}")
            one_more()

        bundle = aftermath.fetch(world, attempt, progress)
    if as_json:
        click.echo(json.dumps(to_document("bundle", 1, bundle), indent=1))
    else:
        click.echo(bundle_text(bundle, terminal_width()), nl=False)
    return 4 if bundle.missing else 0
