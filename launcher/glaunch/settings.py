"""Settings as values that know where they were set."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeVar

from glaunch.errors import ConfigError

T = TypeVar("T")

Value = str | int | float | bool | None | tuple[str, ...] | Mapping[str, str]

SHIPPED, SITE, TRIAL, USER, PROJECT, VARIABLE, OPTION = range(7)
"""The layers, weakest first: what ships, /etc/glaunch, $GLAUNCH_SITE, the user's file, the folder's file, GLAUNCH_*, options."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table such as `environment.set`: value None = nothing is set for this name, whatever a weaker layer says."""

    name: str
    value: str | None
    where: str
    reason: str = ""
    layer: int = SHIPPED


@dataclass(frozen=True, slots=True)
class Setting:
    """A value and its origin: `/etc/glaunch/site.yaml:12`, `GLAUNCH_PARTITION`, `--place`, `site/defaults.yaml:3`."""

    value: Value
    where: str
    layer: int = SHIPPED
    rows: tuple[Row, ...] = ()
    """Of a table: its lines in the order of their names, each with its own origin."""


@dataclass(frozen=True, slots=True)
class Protection:
    """A key (or a section: all keys in it) that only the site may set, and the site's own words about it."""

    key: str
    message: str
    where: str

    def covers(self, key: str) -> bool:
        """Whether it is about this key."""
        return key == self.key or key.startswith(self.key + ".")


@dataclass(frozen=True, slots=True)
class Settings:
    """Dotted key → Setting, all layers folded, the last one that may set a key wins."""

    entries: Mapping[str, Setting]
    partitions: Mapping[str, Mapping[str, Setting]] = field(default_factory=lambda: MappingProxyType({}))
    """Partition → what its own sections say, folded likewise."""
    protected: tuple[Protection, ...] = ()

    def __getitem__(self, key: str) -> Value:
        return self.entries[key].value

    def where(self, key: str) -> str:
        """Where the key's value was set."""
        return self.entries[key].where

    def rows(self, key: str) -> tuple[Row, ...]:
        """The lines of a key that holds a table, in the order of their names, with the origin of each; value None takes a name back."""
        return self.entries[key].rows

    def for_partition(self, name: str) -> "Settings":
        """The settings once partition `name` is taken.

        A partition's section wins over the general part of its own and of weaker layers; a stronger layer's general part (the user's
        own file, an option) wins over it. Tables are folded line by line by the same law.
        """
        sections = self.partitions.get(name, {})
        return replace(
            self, entries=MappingProxyType({**self.entries, **{key: over(self.entries[key], own) for key, own in sections.items()}})
        )

    def protection(self, key: str) -> Protection | None:
        """Why only the site may set this key; None where anybody may."""
        return next((one for one in self.protected if one.covers(key)), None)

    def _of(self, key: str, kind: type[T]) -> T:
        value = self.entries[key].value
        if not isinstance(value, kind):
            raise TypeError(f"{key} holds {value!r}, not {kind.__name__}")
        return value

    def text(self, key: str) -> str:
        """The value of a key that holds a text."""
        return self._of(key, str)

    def number(self, key: str) -> int:
        """The value of a key that holds a whole number."""
        return self._of(key, int)

    def flag(self, key: str) -> bool:
        """The value of a key that holds true or false."""
        return self._of(key, bool)

    def words(self, key: str) -> tuple[str, ...]:
        """The value of a key that holds a list of texts."""
        return self._of(key, tuple)

    def table(self, key: str) -> Mapping[str, str]:
        """The value of a key that holds names and texts."""
        return self._of(key, Mapping)  # type: ignore[type-abstract]


def table(rows: Mapping[str, Row], where: str, layer: int) -> Setting:
    """A table's Setting from its lines by name."""
    ordered = tuple(rows[name] for name in sorted(rows))
    value = MappingProxyType({row.name: row.value for row in ordered if row.value is not None})
    return Setting(value, where, layer, ordered)


def over(weak: Setting, strong: Setting) -> Setting:
    """Fold two Settings of one key: the one of the stronger layer wins, `strong` where both are of one layer; tables line by line."""
    if not isinstance(weak.value, Mapping):
        return strong if strong.layer >= weak.layer else weak
    rows = {row.name: row for row in weak.rows}
    for row in strong.rows:
        if row.name not in rows or row.layer >= rows[row.name].layer:
            rows[row.name] = row
    last = strong if strong.layer >= weak.layer and strong.rows else weak
    return table(rows, last.where, last.layer)


def placing(settings: Settings) -> str:
    """How to place after the site's veto: `pin`, `prefer` or `order`; `auto` is `pin`, else `order`, else what is left.

    Raises ConfigError when the way that was asked for is switched off, with the site's own words.
    """
    asked, allowed = settings.text("placement.mode"), settings.words("placement.allowed")
    if asked == "auto":
        return next(way for way in ("pin", "order", *allowed) if way in allowed)
    if asked in allowed:
        return asked
    words = settings.protection("placement.allowed")
    message = f"{settings.where('placement.mode')}: placement {asked!r} is switched off here ({settings.where('placement.allowed')})"
    raise ConfigError(message, hint=words.message if words else f"use {allowed[0]!r} or 'auto'")
