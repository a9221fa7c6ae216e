"""Settings as values that know where they were set."""

from collections.abc import Mapping
from dataclasses import dataclass

Value = str | int | float | bool | None | tuple[str, ...] | Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Setting:
    """A value and its origin: `/etc/glaunch/site.yaml:12`, `GLAUNCH_PLACE`, `--place`, `site/defaults.yaml:3`."""

    value: Value
    where: str


@dataclass(frozen=True, slots=True)
class Settings:
    """Dotted key → Setting, all layers folded, the last one that may set a key wins."""

    entries: Mapping[str, Setting]

    def __getitem__(self, key: str) -> Value:
        return self.entries[key].value

    def where(self, key: str) -> str:
        """Where the key's value was set."""
        return self.entries[key].where

    def text(self, key: str) -> str:
        """The value of a key that holds a text."""
        value = self.entries[key].value
        assert isinstance(value, str), key
        return value

    def number(self, key: str) -> int:
        """The value of a key that holds a whole number."""
        value = self.entries[key].value
        assert isinstance(value, int), key
        return value

    def flag(self, key: str) -> bool:
        """The value of a key that holds true or false."""
        value = self.entries[key].value
        assert isinstance(value, bool), key
        return value

    def words(self, key: str) -> tuple[str, ...]:
        """The value of a key that holds a list of texts."""
        value = self.entries[key].value
        assert isinstance(value, tuple), key
        return value

    def table(self, key: str) -> Mapping[str, str]:
        """The value of a key that holds names and texts."""
        value = self.entries[key].value
        assert isinstance(value, Mapping), key
        return value
