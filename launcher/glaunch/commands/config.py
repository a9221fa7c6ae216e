"""`glaunch config`: what holds here, who said so, and a look at a site's file before it is rolled out."""

import json
import os
from pathlib import Path

import click

from glaunch import config
from glaunch.commands.words import OneOf
from glaunch.errors import ConfigError, GlaunchError, UsageError
from glaunch.parsers.settings_file import suggestion
from glaunch.report import settings as report
from glaunch.schema import KEYS, SECTIONS
from glaunch.settings import Settings, placing
from glaunch.shipped import shipped
from glaunch.tuning import tune


@click.group("config", short_help="Show the settings, where they come from, and check a site's file.")
def command() -> None:
    """Settings: what holds here and which line of which file says so; for admins, a look at a site file before roll-out."""


@command.command("show", short_help="Show the settings that hold here; --origin: who set them.")
@click.argument("keys", nargs=-1, metavar="[KEY]...")
@click.option("--origin", is_flag=True, help="Also which file and line, variable or option set each value.")
@click.option("-p", "--partition", metavar="NAME", help="As it is once that partition is taken.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document, origins included.")
def show(keys: tuple[str, ...], origin: bool, partition: str | None, as_json: bool) -> None:
    """Show the settings that hold here: all, or the given keys and sections (`ssh`, `placement.mode`)."""
    settings = _here()
    names = _names(keys)
    if partition:
        settings = settings.for_partition(partition)
    if as_json:
        click.echo(json.dumps(report.as_json(settings, names), indent=2, ensure_ascii=False))
    else:
        click.echo(report.show(settings, names, origin=origin, partitions=not keys and not partition))


@command.command("check", short_help="Look at site files before roll-out, or at all that is read here.")
@click.argument("files", nargs=-1, type=click.Path(readable=False, path_type=Path), metavar="[FILE]...")
def check(files: tuple[Path, ...]) -> None:
    """Check site files (or a folder of them) as if they stood in /etc/glaunch; without FILE, what holds here for you.

    Every problem is one line, FILE:LINE first. Exit code 0: nothing is wrong.
    """
    if not files:
        settings = _here()
        for _, paths in config.sources(home=Path.home(), cwd=Path.cwd(), environ=os.environ):
            for path in paths:
                click.echo(f"{path}: {'read' if path.exists() else 'not there'}")
        problems = _refused(settings)
    else:
        found, wrong = config.check(files, home=Path.home(), environ=os.environ)
        problems = wrong if found is None else _refused(found)
    for problem in problems:
        click.echo(str(problem))
    if problems:
        raise GlaunchError(f"{len(problems)} problem{'s' * (len(problems) > 1)}", hint="docs/settings.md, or: glaunch config keys")
    for path in files:
        click.echo(f"{path}: fine")
        if not path.is_dir() and path.stat().st_mode & 0o022:
            click.echo(f"note: {path} can be written by others; once in place it must not be: chmod go-w", err=True)


@command.command("keys", short_help="List every key, what it means and takes.")
def keys() -> None:
    """List every key: its value when nobody says otherwise, what it means, what it takes."""
    click.echo(report.keys_text())


@command.command("preset", short_help="Print an example site file for a kind of network.")
@click.argument("name", required=False)
def preset(name: str | None) -> None:
    """Print an example site file for a kind of network, to start yours from; without NAME, list them."""
    files = {path.stem: path for path in sorted((shipped("site") / "presets").glob("*.yaml"))}
    if name is None:
        for stem, path in files.items():
            click.echo(f"{stem:<12} {path.read_text(encoding='utf-8').splitlines()[0].lstrip('# ')}")
        return
    if name not in files:
        raise UsageError(f"there is no preset {name!r}", hint=f"one of: {', '.join(files)}")
    click.echo(files[name].read_text(encoding="utf-8"), nl=False)


@command.command("docs", hidden=True)
@click.argument("page", type=OneOf(["settings", "environment"]))
def docs(page: str) -> None:
    """Print the part of docs/PAGE.md that is made from glaunch's own tables."""
    click.echo(report.keys_markdown() if page == "settings" else report.rules_markdown(config.load_rules()))


def _here() -> Settings:
    return config.load(home=Path.home(), cwd=Path.cwd(), environ=os.environ)


def _names(keys: tuple[str, ...]) -> list[str]:
    """The keys that were named, sections spelled out, in the order of the table; all when none was."""
    wanted = set()
    for key in keys:
        inside = {name for name in KEYS if name == key or name.startswith(key + ".")}
        if not inside:
            hint = suggestion(key, (*KEYS, *SECTIONS)) or "glaunch config keys lists all keys"
            raise UsageError(f"unknown key {key!r}", hint=hint)
        wanted |= inside
    return [name for name in KEYS if not keys or name in wanted]


def _refused(settings: Settings) -> tuple[ConfigError, ...]:
    """What only shows when settings are used: a way of placing that is switched off, a variable that a rule refuses."""
    sections = (settings, *(settings.for_partition(name) for name in settings.partitions))
    problems = [problem for one in sections if (problem := _refusal(one))]
    return tuple({problem.message: problem for problem in problems}.values())


def _refusal(settings: Settings) -> ConfigError | None:
    lines = settings.rows("environment.set")
    try:
        placing(settings)
        tune(config.load_rules(), fabric_class=settings.text("fabric.class"), node_count=2, user_env={}, site_env=lines)
    except ConfigError as error:
        return error
    return None
