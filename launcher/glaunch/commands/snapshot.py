"""`glaunch snapshot`: a cluster's answers into a folder, for planning without it and for bug reports."""

import os
import time
from pathlib import Path

import click

HELP = """Record what the cluster answers to a plan's questions into DIR (new or empty).

Where accounting enforces limits, that is what it allows you, too: a plan from DIR, whoever makes it, is the one that you get here. Users,
accounts, groups, hosts and addresses get other names, the same ones everywhere, and free texts are left out, unless --plain.

\b
Examples:
  glaunch snapshot bug-1
  glaunch --snapshot bug-1 plan train.py -n 64
"""


@click.command(help=HELP)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--plain", is_flag=True, help="Keep all names and texts as they are.")
def command(folder: Path, plain: bool) -> None:
    from glaunch.caller import group_names, user_name
    from glaunch.errors import SlurmError
    from glaunch.gateways.allowance import counts
    from glaunch.gateways.capture import TOPOLOGY_FILES, Asker, Recorded, record, write_capture
    from glaunch.gateways.process import within
    from glaunch.gateways.slurm import QUESTIONS, SlurmCommands
    from glaunch.parsers.slurm_config import parse_config
    from glaunch.parsers.slurm_partitions import parse_partitions
    from glaunch.topology import names_beside

    recorded: list[Recorded] = []
    slurm = SlurmCommands(surround=lambda surroundings: record(within(surroundings), recorded, time.time()))
    answers = {question: slurm.answer(question) for question in QUESTIONS}
    partitions = (partition.topology for partition in parse_partitions(answers["partitions"]))
    for name in dict.fromkeys((*partitions, *names_beside()[0])):
        if name:
            slurm.answer("topology", name)
    if counts(parse_config(answers["config"])):
        try:
            slurm.allowance(user_name())
        except SlurmError as silent:  # a plan on the cluster then goes without it, and so does one from here
            click.echo(f"without accounting: {silent.message}", err=True)
    beside = Path(os.environ.get("SLURM_CONF", "/etc/slurm/slurm.conf")).parent
    # a login node often has no topology file, or none for everybody: Slurm's own answer is in the capture
    topology = {
        path.name: path.read_bytes().decode(errors="surrogateescape")
        for path in map(beside.joinpath, TOPOLOGY_FILES)
        if path.is_file() and os.access(path, os.R_OK)
    }
    files = write_capture(folder, recorded, plain=plain, topology=topology, asker=Asker(user_name(), group_names()))
    click.echo(folder)
    how = "names as they are" if plain else "users, hosts and addresses renamed; look through it before you send it"
    click.echo(f"{len(files)} files ({how}); plan from it: glaunch --snapshot {folder} plan …", err=True)
