"""`glaunch topo check`: what is wrong with the fabric, each with where it was seen and what to type."""

import json
from pathlib import Path

import click

HELP = """Compare what FILEs say about the network with each other and with Slurm's own view, and say what is wrong.

Without FILEs: the site's saved fabric and the topology file beside slurm.conf. A FILE is anything that `glaunch topo import`
reads. Exit code 0 when nothing is wrong (notes are not), 1 when something is, 5 when the controller did not answer.

\b
Examples:
  glaunch topo check
  glaunch topo check ib.txt topology.conf
  glaunch topo check --files-only new-topology.conf     before slurmctld sees it
"""


@click.command("check", help=HELP, short_help="What is wrong with the network and its description.")
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--names", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False), help="What devices are really called.")
@click.option("--files-only", is_flag=True, help="Do not ask Slurm: look at the FILEs alone.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.pass_context
def command(ctx: click.Context, files: tuple[Path, ...], names: Path | None, files_only: bool, as_json: bool) -> int:
    from glaunch import pipeline
    from glaunch.caller import terminal_width
    from glaunch.doctor.check import examine, wrong
    from glaunch.errors import UsageError
    from glaunch.examination import checkup_of_files, checkup_of_site
    from glaunch.report.check import check_document, check_text

    if files_only and not files:
        raise UsageError("--files-only: there is no FILE on the line", hint="glaunch topo check --files-only topology.conf")
    if files_only:
        checkup = checkup_of_files(files, names)
    else:
        capture = ctx.obj["snapshot"]
        checkup = checkup_of_site(pipeline.open_world(capture), files, names, capture=None if capture is None else Path(capture))
    findings = examine(checkup)
    bad = wrong(findings)
    if as_json:
        click.echo(json.dumps(check_document(checkup, findings, wrong=bad), indent=1))
    else:
        click.echo(check_text(checkup, findings, terminal_width()), nl=False)
    return 1 if bad else 0
