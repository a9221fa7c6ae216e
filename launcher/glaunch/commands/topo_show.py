"""`glaunch topo show`: the fabric as a tree, with the free, busy and down nodes of each leaf."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from glaunch.pipeline import World
    from glaunch.topologies import Topologies

HELP = """Show the tree of switches with the free, busy and down nodes of each leaf.

Of a large fabric the leaves are folded; name a SWITCH to see what is below it, or say --all.

\b
Examples:
  glaunch topo show
  glaunch topo show pod3
  glaunch topo show -p nvl                   the topology of that partition, where Slurm has several
  glaunch topo show --html network.html      one page for a browser: fold, search, map
"""
FILE = click.Path(path_type=Path, dir_okay=False)
NAME = click.option("--name", "topology", metavar="NAME", help="Of several topologies of Slurm's (topology.yaml) this one.")
PARTITION = click.option("-p", "--partition", metavar="NAME", help="The topology by which jobs of this partition are placed.")


@click.command("show", help=HELP, short_help="The tree with free, busy and down nodes.")
@click.argument("switch", metavar="[SWITCH]", required=False)
@NAME
@PARTITION
@click.option("--all", "everything", is_flag=True, help="All leaves, however many.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.option("--html", metavar="FILE", type=FILE, help="Write one self-contained page.")
@click.option("--svg", metavar="FILE", type=FILE, help="Write the map alone.")
@click.pass_context
def command(
    ctx: click.Context,
    switch: str | None,
    topology: str | None,
    partition: str | None,
    everything: bool,
    as_json: bool,
    html: Path | None,
    svg: Path | None,
) -> None:
    from difflib import get_close_matches

    from glaunch import pipeline
    from glaunch.caller import terminal_width
    from glaunch.errors import UsageError
    from glaunch.fabric_files import save_text
    from glaunch.report.occupancy import occupancy_document, occupancy_of
    from glaunch.report.text import clean, wrapped
    from glaunch.report.topo_page import page_html
    from glaunch.report.topo_svg import map_svg
    from glaunch.report.topo_tree import tree_text
    from glaunch.shipped import shipped

    world, topologies = chosen(ctx, topology, partition)
    occupancy = occupancy_of(*pipeline.see(world, max_age_s=0, topology=topologies.asked))
    if switch is not None and switch not in occupancy.fabric.by_name:
        near = get_close_matches(switch, occupancy.fabric.by_name, 1)
        raise UsageError(f"no switch is called {switch!r}", hint=f"did you mean {near[0]}?" if near else "glaunch topo show --all")
    if html is not None:
        folder = shipped("templates") / "report"
        script, template = ((folder / name).read_text(encoding="utf-8") for name in ("topo.js", "topo.html.j2"))
        click.echo(save_text(html, page_html(occupancy, template, script)))
    if svg is not None:
        click.echo(save_text(svg, map_svg(occupancy.fabric, occupancy.kinds)))
    if as_json:
        click.echo(json.dumps(occupancy_document(occupancy, topologies), indent=1))
    elif html is None and svg is None:
        click.echo(tree_text(occupancy, terminal_width(), below=switch or "", everything=everything), nl=False)
        others = wrapped(clean(topologies.others_in_words()), terminal_width(), rest="  ") if topologies.others else []
        click.echo("".join(f"{line}\n" for line in ("", *others) if others), nl=False)
    elif topologies.others:
        click.echo(topologies.others_in_words(), err=True)


def chosen(ctx: click.Context, topology: str | None, partition: str | None) -> "tuple[World, Topologies]":
    """(the world, or the capture that the line names; the topology that NAME and PARTITION mean there)."""
    from glaunch import pipeline
    from glaunch.topology import choose_topology

    snapshot = ctx.obj["snapshot"]
    world = pipeline.open_world(snapshot)
    return world, choose_topology(world, topology, partition, Path(snapshot) if snapshot else None)
