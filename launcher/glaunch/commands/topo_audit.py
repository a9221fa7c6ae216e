"""`glaunch topo audit`: how near to each other the nodes of past jobs were, and how near they could have been."""

import json
import re
from pathlib import Path

import click

HELP = """For past jobs of everybody: the leaves and pods they used, against the fewest that a job of that size needs.

Whatever launched them. One question to accounting (sacct), or FILE, which that question printed somewhere:
sacct -a -X -P -S now-7days -o JobID,Partition,NNodes,NodeList,Elapsed,State,User

\b
Examples:
  glaunch topo audit
  glaunch topo audit --since 30d --json
  glaunch topo audit --from week.txt --fabric fabric.json     with no Slurm at all
"""
UNITS_S = {"h": 3600, "d": 86400, "w": 7 * 86400}


@click.command("audit", help=HELP, short_help="How near past jobs were, and could have been.")
@click.option("--since", default="7d", metavar="TIME", help="How far back: 12h, 7d, 4w.  [default: 7d]")
@click.option("--from", "listed", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False), help="Jobs from a file of sacct's.")
@click.option(
    "--fabric", "files", metavar="FILE", multiple=True, type=click.Path(path_type=Path, dir_okay=False), help="Not the site's (repeatable)."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.pass_context
def command(ctx: click.Context, since: str, listed: Path | None, files: tuple[Path, ...], as_json: bool) -> int:
    from glaunch import pipeline
    from glaunch.caller import terminal_width
    from glaunch.doctor.audit import audit
    from glaunch.examination import past_jobs_of_file, past_jobs_of_site
    from glaunch.report.audit import audit_document, audit_text
    from glaunch.topology import fabric_of_files, site_fabric
    from glaunch.units import format_span

    age_s = _age_s(since)
    world = pipeline.open_world(ctx.obj["snapshot"])
    fabric = fabric_of_files(files) if files else site_fabric(world)
    jobs, remarks = past_jobs_of_site(world, age_s) if listed is None else (past_jobs_of_file(listed), ())
    found = audit(fabric, jobs)
    if as_json:
        click.echo(json.dumps(audit_document(found, remarks), indent=1))
    else:
        when = f"of {listed}" if listed is not None else f"of the last {format_span(age_s)}"
        click.echo(audit_text(found, when, remarks, terminal_width()), nl=False)
    return 0


def _age_s(text: str) -> int:
    from glaunch.errors import UsageError

    match = re.fullmatch(r"([1-9]\d{0,3})([hdw])", text.strip())
    if match is None:
        raise UsageError(f"--since {text!r} is no span", hint="--since 12h, --since 7d, --since 4w")
    return int(match[1]) * UNITS_S[match[2]]
