"""Which environment variables a job needs on this fabric, and why. Nothing is set without a reason."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable that the script exports."""

    name: str
    value: str
    origin: str
    """The rule (`R14`), the setting's place (`/etc/glaunch/site.yaml:12`) or `--env`."""
    reason: str
    source: str


@dataclass(frozen=True, slots=True)
class Environment:
    """All that is set, and what was left alone because the user had set it already."""

    variables: tuple[Variable, ...]
    kept: tuple[Variable, ...]
    """Rules that gave way: name, the user's own value, origin `your environment`, and the rule's reason."""
    notes: tuple[str, ...]
