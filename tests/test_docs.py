"""What the README and docs/ show exists: commands parse, make targets and files are there, links lead somewhere."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from glaunch.cli import VERBS, glaunch, with_verb
from glaunch.errors import UsageError

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
TEXTS = {str(page.relative_to(ROOT)): page.read_text(encoding="utf-8") for page in PAGES}
TOP = ("launcher/", "site/", "templates/", "tests/", "examples/", "docs/", ".ci/", "Makefile", "setup.cfg", "pyproject.toml", "LICENSE")


def blocks(text: str) -> Iterator[str]:
    """The lines of code blocks, fenced or indented by four blanks, continued lines joined."""
    fenced, joined = False, ""
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            joined += line.strip()
            if joined.endswith("\\"):
                joined = joined[:-1]
                continue
            yield joined
            joined = ""


def inline(text: str) -> list[str]:
    """What stands between backticks in the prose, on one line or broken over two."""
    prose = re.sub(r"^(```.*?^```|    .*?$)", "", text, flags=re.MULTILINE | re.DOTALL)
    return [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", prose)]


def commands(text: str) -> Iterator[str]:
    """Every command of glaunch that a page shows."""
    for line in (*blocks(text), *inline(text)):
        line = re.sub(r"\s+#\s.*|\s{3,}.*", "", line.removeprefix("$ "))
        for part in re.split(r"\s(?:\|\||&&|\||;)\s", line):
            found = re.fullmatch(r"(?:[A-Z_]+=\S+ )*(?:\S*/bin/|python3? -m )?(glaunch(?: .*)?)", part)
            if found and not found[1].startswith(("glaunch.", "glaunch-")):
                yield found[1]


def parse(command: click.Command, words: list[str], parent: click.Context | None, name: str) -> None:
    """Let click read the words as it would, down to the last verb, and run nothing. Raises click's own errors."""
    if isinstance(command, click.Group) and not words:  # it shows its help
        return
    try:
        context = command.make_context(name, words, parent=parent)
    except click.exceptions.Exit:  # --help, --version
        return
    if isinstance(command, click.Group):
        rest = [*context._protected_args, *context.args]
        verb, inner, rest = command.resolve_command(context, rest)
        if inner is None:
            raise click.UsageError(f"no verb {verb}")
        parse(inner, rest, context, str(verb))


def parse_line(line: str) -> None:
    """One shown command; placeholders are filled and an ellipsis ends it."""
    words = [re.sub(r"^(?:N|ID|JOB)$", "8", word) for word in shlex.split(line.split("…")[0].strip())]
    if len(words) > 1:
        parse(glaunch, with_verb(words[1:]), None, "glaunch")


SHOWN = sorted({(page, line) for page, text in TEXTS.items() for line in commands(text)})


@pytest.mark.parametrize(("page", "line"), SHOWN, ids=[f"{page}: {line}" for page, line in SHOWN])
def test_every_command_shown_exists(page: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        parse_line(line)
    except (click.ClickException, UsageError) as error:
        pytest.fail(f"{page} shows `{line}`: {error}")


@pytest.mark.parametrize(
    "line", ["glaunch --loud status", "glaunch status --no-such-option", "glaunch sandbox sing", "glaunch plan --ntask x"]
)
def test_a_command_that_does_not_exist_is_seen(line: str) -> None:
    with pytest.raises((click.ClickException, UsageError)):
        parse_line(line)


def test_commands_are_found_where_they_are_written() -> None:
    text = """
A `glaunch plan x -n 8` and `glaunch
status` here, `glaunch.cli` is none.

    glaunch logs -f  # why
    $ FOO=1 /opt/g/bin/glaunch report | head

```sh
python3 -m glaunch \\
  collect
```
"""
    assert list(commands(text)) == ["glaunch logs -f", "glaunch report", "glaunch collect", "glaunch plan x -n 8", "glaunch status"]


def test_every_verb_is_shown_somewhere() -> None:
    shown = {verb for _, line in SHOWN for verb in VERBS if verb in line.split()[1:]}
    assert sorted(set(VERBS) - shown - {"run"}) == []


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", TEXTS)
def test_links_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", TEXTS[page]):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        found = (ROOT / page).parent / path if path else ROOT / page
        assert found.exists(), f"{page} links to {target}"
        if anchor:
            assert anchor in anchors(found.read_text(encoding="utf-8")), f"{page} links to {target}"


@pytest.mark.parametrize("page", TEXTS)
def test_files_named_are_there(page: str) -> None:
    for code in inline(TEXTS[page]):
        if re.fullmatch(r"[\w./-]+", code) and code.startswith(TOP):
            assert (ROOT / code).exists(), f"{page} names {code}"


@pytest.mark.parametrize("page", TEXTS)
def test_make_targets_shown_exist(page: str) -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for code in (*blocks(TEXTS[page]), *inline(TEXTS[page])):
        found = re.match(r"(?:\$ )?make ([a-z-]+)", code)
        if found:
            assert found[1] in targets, f"{page} shows make {found[1]}"


def test_every_page_is_in_the_index() -> None:
    listed = set(re.findall(r"\]\(([\w-]+\.md)\)", TEXTS["docs/index.md"]))
    assert {page.name for page in PAGES if page.parent.name == "docs"} - {"index.md"} <= listed
