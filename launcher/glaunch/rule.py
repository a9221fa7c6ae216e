"""A rule of the environment as data: when it holds, what it does to variables, why, and who says so."""

from dataclasses import dataclass
from types import MappingProxyType

ANY_CLASS = "any"
"""In `Rule.classes`: every fabric class that a site names."""
SWITCHES = MappingProxyType({"fail_fast": "fabric.fail_fast", "debug": "environment.debug", "container": "container.image"})
"""A rule's switch → the settings key that turns it on."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """One variable that a rule sets."""

    name: str
    value: str
    reason: str
    since: str = ""
    """The library's version from which the value is understood, as a text: `NCCL 2.10`; "" = all that are known."""
    until: str = ""
    """The version from which it is not needed any more."""


@dataclass(frozen=True, slots=True)
class Flag:
    """Names that a rule looks at wherever they are set."""

    names: tuple[str, ...]
    pattern: str
    """Values that it means, as a regular expression (search); "" = all."""
    allowed: tuple[str, ...]
    """Values that are fine all the same."""
    refuse: bool
    """True: a settings file that holds such a value without a reason is refused; else it is only said."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; all that `classes`, the node counts and `needs` say must hold."""

    id: str
    title: str
    reason: str
    source: str
    if_wrong: str
    """What is seen when it is applied where it should not be."""
    classes: tuple[str, ...] = ()
    """Fabric classes; (`any`,) = each that is named; () = also where none is."""
    least_nodes: int = 1
    most_nodes: int | None = None
    needs: tuple[tuple[str, bool], ...] = ()
    """(one of SWITCHES, its state)."""
    assignments: tuple[Assignment, ...] = ()
    removes: tuple[str, ...] = ()
    """Names that are taken out of what a job inherits; a user's explicit value stays."""
    removes_always: tuple[str, ...] = ()
    """Names that stop the program whoever sets them."""
    leaves_out: tuple[str, ...] = ()
    """Names, or beginnings of names that end in `*`, that a site sets for all jobs and that this job has no use for."""
    flags: tuple[Flag, ...] = ()
