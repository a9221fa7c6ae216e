"""`glaunch topo`: the network as every source tells it."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from glaunch.commands import topo_audit, topo_check, topo_show
from glaunch.commands.words import OneOf

if TYPE_CHECKING:
    from glaunch.fabric import Fabric

FORMATS = ("slurm-tree", "slurm-block", "slurm-yaml", "json", "svg")
FILE = click.Path(path_type=Path, dir_okay=False)

IMPORT = """Put what FILEs say about the network together, and save it as the site's fabric.

Each FILE is known by what stands in it: topology.conf, topology.yaml, `scontrol show topology`,
`ibnetdiscover` (plain or -p), `iblinkinfo`, OpenSM's opensm-subnet.lst, `lldpctl -f json` and `nvidia-smi -q` of a
node (HOST.json, HOST.txt), topograph's models, a fabric file of your own (docs/topology.md). What is measured counts
before what is written, an earlier FILE before a later one; where they differ is said.

\b
Examples:
  glaunch topo import --output fabric.json ib.txt topology.conf
  glaunch topo import --output fabric.json rail*.txt --names node-name-map
"""

EXPORT = """Write the network in a form that Slurm or another glaunch reads.

Without --from it is the site's: the saved fabric (setting fabric.topology) beside Slurm's own topology. What the form
cannot say is named on stderr, and which topologies Slurm has beside this one.

\b
Examples:
  glaunch topo export --format slurm-tree > topology.conf
  glaunch topo export --format slurm-yaml --from ib.txt --from blocks.txt
  glaunch topo export --format slurm-block --name nvl
"""

WAY = """Show the switches on the shortest way between two nodes.

Where the cables are known they count, else the tree. Exit code 1 when nothing joins the two.

\b
Examples:
  glaunch topo path n001 n200
  glaunch topo path n001 n200 --from ib.txt --lfts opensm-lfts.dump
"""


@click.group()
def command() -> None:
    """The network as every source tells it: put together, written for Slurm, asked for a way."""


for verb in (topo_show.command, topo_check.command, topo_audit.command):
    command.add_command(verb)


@command.command("import", help=IMPORT, short_help="Put what files say together, and save it.")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=FILE)
@click.option("--output", metavar="FILE", type=FILE, help="Where to save it; without it where fabric.topology says.")
@click.option(
    "--names", metavar="FILE", type=FILE, help='What devices are really called: 0xGUID "NAME", or "DESCRIPTION" NAME, a line each.'
)
def import_(files: tuple[Path, ...], output: Path | None, names: Path | None) -> None:
    from glaunch import pipeline
    from glaunch.errors import UsageError
    from glaunch.fabric_files import save
    from glaunch.report.topo import dispute_lines, fabric_lines
    from glaunch.topology import fabric_of_files

    settings = pipeline.open_world().settings
    named = settings.text("fabric.topology")
    if output is None and not named:
        raise UsageError("where shall it be saved? The setting fabric.topology names no file", hint="--output FILE")
    fabric = fabric_of_files(files, names)
    target = output or Path(named)
    for path in save(fabric, target):
        click.echo(path)
    for line in (*fabric_lines(fabric), *dispute_lines(fabric.disputes)):
        click.echo(line, err=True)
    if not named or Path(named).absolute() != target.absolute():
        click.echo(f"to use it, in /etc/glaunch/site.yaml or your own settings: fabric.topology: {target.absolute()}", err=True)


@command.command(help=EXPORT, short_help="Write the network for Slurm, as JSON, or as a picture.")
@click.option("--format", "form", type=OneOf(FORMATS), required=True, help="What to write.")
@click.option("--from", "files", metavar="FILE", multiple=True, type=FILE, help="Read this instead of the site's fabric (repeatable).")
@click.option("--names", metavar="FILE", type=FILE, help="What devices are really called, with --from.")
@topo_show.NAME
@topo_show.PARTITION
@click.pass_context
def export(ctx: click.Context, form: str, files: tuple[Path, ...], names: Path | None, topology: str | None, partition: str | None) -> None:
    from glaunch.fabric_json import fabric_document
    from glaunch.writers.slurm_topology import unsaid, write_blocks, write_tree, write_yaml

    fabric, others = _fabric(ctx, files, names, topology, partition)
    if others:
        click.echo(others, err=True)
    if form == "json":
        click.echo(json.dumps(fabric_document(fabric), indent=1))
        return
    if form == "svg":
        from glaunch.report.topo_svg import map_svg

        click.echo(map_svg(fabric, {}), nl=False)
        return
    write = {"slurm-tree": write_tree, "slurm-block": write_blocks, "slurm-yaml": write_yaml}[form]
    click.echo(write(fabric), nl=False)
    for line in unsaid(fabric, form):
        click.echo(f"{form} leaves out {line}", err=True)


@command.command(help=WAY, short_help="The switches between two nodes.")
@click.argument("one", metavar="NODE")
@click.argument("two", metavar="NODE")
@click.option("--from", "files", metavar="FILE", multiple=True, type=FILE, help="Read this instead of the site's fabric (repeatable).")
@click.option("--names", metavar="FILE", type=FILE, help="What devices are really called, with --from.")
@click.option("--lfts", metavar="FILE", type=FILE, help="Also the way of OpenSM's forwarding tables (opensm-lfts.dump), rail by rail.")
@topo_show.NAME
@topo_show.PARTITION
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.pass_context
def path(
    ctx: click.Context,
    one: str,
    two: str,
    files: tuple[Path, ...],
    names: Path | None,
    lfts: Path | None,
    topology: str | None,
    partition: str | None,
    as_json: bool,
) -> int:
    from difflib import get_close_matches

    from glaunch.errors import UsageError
    from glaunch.report.topo import way_document, way_lines
    from glaunch.topology import routed

    fabric, _ = _fabric(ctx, files, names, topology, partition)
    known = {*fabric.leaf_of, *(fabric.network.hosts if fabric.network else ())}
    for node in (one, two):
        if node not in known:
            near = get_close_matches(node, known, 1)
            raise UsageError(f"{fabric.source}: no node is called {node!r}", hint=f"did you mean {near[0]}?" if near else "")
    document = way_document(fabric, one, two, {} if lfts is None else routed(fabric, one, two, lfts))
    click.echo(json.dumps(document, indent=1) if as_json else "\n".join(way_lines(document)))
    return 1 if document["hops"] is None else 0


def _fabric(
    ctx: click.Context, files: tuple[Path, ...], names: Path | None, topology: str | None, partition: str | None
) -> tuple["Fabric", str]:
    """(the files' fabric, else the site's; which other topologies Slurm has, in words)."""
    from glaunch.errors import UsageError
    from glaunch.topology import fabric_of_files, site_fabric

    if files:
        if partition is not None:
            raise UsageError("--partition asks Slurm, and --from reads files", hint="of a topology.yaml: --name NAME")
        return fabric_of_files(files, names, topology or ""), ""
    world, topologies = topo_show.chosen(ctx, topology, partition)
    return site_fabric(world, topologies.asked), topologies.others_in_words()
