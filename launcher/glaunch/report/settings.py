"""Settings, their keys and the environment's rules as text, JSON and Markdown."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from glaunch.rule import ANY_CLASS, SWITCHES, Flag, Rule
from glaunch.schema import KEYS, Key
from glaunch.settings import Setting, Settings, Value


def show(settings: Settings, names: Iterable[str], *, origin: bool, partitions: bool = True) -> str:
    """One line a key, in the form of a settings file; with `origin`, what set it as a comment."""
    lines = list(_lines(settings, ((name, settings.entries[name]) for name in names), "", origin))
    if partitions and settings.partitions:
        lines.append("partitions:")
        for partition, section in settings.partitions.items():
            lines.append(f"  {_scalar(partition)}:")
            lines += _lines(settings, section.items(), "    ", origin)
    return "\n".join(lines)


def _lines(settings: Settings, entries: Iterable[tuple[str, Setting]], indent: str, origin: bool) -> Iterator[str]:
    for name, setting in entries:
        protection = settings.protection(name)
        note = setting.where + (f" (protected: {protection.message})" if protection else "")
        if isinstance(setting.value, Mapping) and setting.rows:
            yield _noted(f"{indent}{name}:", "" if not protection else note, origin)
            for row in setting.rows:
                value = "null" if row.value is None else _scalar(row.value)
                if row.reason and row.value is not None:
                    value = f"{{value: {value}, reason: {_scalar(row.reason)}}}"
                yield _noted(f"{indent}  {row.name}: {value}", row.where, origin)
        else:
            yield _noted(f"{indent}{name}: {text_of(setting.value)}", note, origin)


def _noted(text: str, note: str, origin: bool) -> str:
    return f"{text:<44}  # {note}" if origin and note else text


def text_of(value: Value) -> str:
    """A value as a settings file writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "[" + ", ".join(_scalar(word) for word in value) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {_scalar(text)}" for name, text in value.items()) + "}"
    return _scalar("" if value is None else str(value))


def _scalar(text: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9/_.~$][A-Za-z0-9/_.~$+@=-]*(:[0-9]+)*", text) and text not in {"null", "~"}:
        return text
    return json.dumps(text, ensure_ascii=False)


def as_json(settings: Settings, names: Iterable[str]) -> dict[str, object]:
    """The document `glaunch.settings/1`."""
    return {
        "schema": "glaunch.settings/1",
        "settings": {name: _entry(settings, name, settings.entries[name]) for name in names},
        "partitions": {
            partition: {name: _entry(settings, name, setting) for name, setting in section.items()}
            for partition, section in settings.partitions.items()
        },
    }


def _entry(settings: Settings, name: str, setting: Setting) -> dict[str, object]:
    value = dict(setting.value) if isinstance(setting.value, Mapping) else setting.value
    entry: dict[str, object] = {"value": value, "where": setting.where}
    protection = settings.protection(name)
    if protection:
        entry["protected"] = {"message": protection.message, "where": protection.where}
    if isinstance(setting.value, Mapping):
        entry["lines"] = [{"name": row.name, "value": row.value, "where": row.where, "reason": row.reason} for row in setting.rows]
    return entry


def keys_text() -> str:
    """All keys for a terminal, three lines each."""
    return "\n".join(f"{key.name}: {text_of(key.default)}\n    {key.meaning}\n    takes {_takes(key)}" for key in KEYS.values())


def _takes(key: Key) -> str:
    return key.takes + ("; only in a site's files" if key.site_only else "" if key.per_partition else "; the same for all partitions")


def keys_markdown() -> str:
    """The table of docs/settings.md."""
    lines = ["| key | without a word from you | takes | means |", "|---|---|---|---|"]
    for key in KEYS.values():
        cells = (f"`{key.name}`", f"`{text_of(key.default)}`", _takes(key), key.meaning)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def rules_markdown(rules: Sequence[Rule]) -> str:
    """The rules of docs/environment.md: one section a rule id, one paragraph a case."""
    lines: list[str] = []
    last = ""
    for rule in rules:
        if rule.id != last:
            lines += [f"### {rule.id} {rule.title}", ""]
            last = rule.id
        lines += [f"**{_when(rule)}.** {_does(rule)}", ""]
        lines += [f"- `{one.name}={one.value}`: {one.reason}{_versions(one.since, one.until)}" for one in rule.assignments]
        lines += [] if any(one.reason == rule.reason for one in rule.assignments) else [f"- Why: {rule.reason}"]
        lines += [f"- Seen when it goes wrong: {rule.if_wrong}", f"- Source: {rule.source}", ""]
    return "\n".join(lines).rstrip()


def _when(rule: Rule) -> str:
    if not rule.classes:
        words = "Always"
    elif ANY_CLASS in rule.classes:
        words = "Any class"
    else:
        words = "Class " + ", ".join(rule.classes)
    if rule.most_nodes == 1:
        words += ", one node"
    elif rule.least_nodes > 1:
        words += f", {rule.least_nodes} nodes or more"
    return words + "".join(f", `{SWITCHES[name]}`{'' if state else ' off'}" for name, state in rule.needs)


def _does(rule: Rule) -> str:
    parts = []
    if rule.assignments:
        parts.append("Sets:")
    if rule.removes:
        parts.append(f"Takes {_names(rule.removes)} out of what the job inherits; `--env` and your own settings still win.")
    if rule.removes_always:
        parts.append(f"Takes {_names(rule.removes_always)} out, whoever set it.")
    if rule.leaves_out:
        parts.append(f"Leaves {_names(rule.leaves_out)} of the site's settings out.")
    parts += [_flag_words(flag) for flag in rule.flags]
    return " ".join(parts)


def _flag_words(flag: Flag) -> str:
    values = f" with a value that matches `{flag.pattern}`" if flag.pattern else ""
    fine = f" (`{'`, `'.join(flag.allowed)}` is fine)" if flag.allowed else ""
    act = "refused in a settings file that gives no reason, and told elsewhere" if flag.refuse else "told"
    return f"{_names(flag.names)}{values}{fine}: {act}."


def _names(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _versions(since: str, until: str) -> str:
    words = [f"from {since}"] * bool(since) + [f"not needed from {until}"] * bool(until)
    return f" ({', '.join(words)})" if words else ""
