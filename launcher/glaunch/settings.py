"""Settings as values that know where they were set."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

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
