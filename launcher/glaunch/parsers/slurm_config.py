"""`scontrol show config`, and the version of a Slurm command."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from glaunch.errors import ParseError

COMMAND = "scontrol show config"


def parse_config(text: str) -> Mapping[str, str]:
    """Key → value as Slurm writes them, `(null)` as ""; lines without ` = ` (headings, "Slurmctld(primary) at … is UP") are left out.

    Raises ParseError where there is no configuration at all. **Source:** scontrol(1), "show config"; seen with Slurm 21.08 to 26.05.
    """
    pairs: dict[str, str] = {}
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals and re.fullmatch(r"[A-Za-z_][\w.\[\]/]*\s*", key):
            value = value.strip()
            pairs.setdefault(key.strip(), "" if value == "(null)" else value)
    if not pairs:
        raise ParseError(f"{COMMAND}:1", text, "KEY = VALUE")
    return MappingProxyType(pairs)


def parse_version(text: str) -> tuple[int, ...]:
    """(22, 5, 8) of `slurm-wlm 22.05.8`, `slurm 25.11.8-0pre1`. Raises ParseError where no version is seen."""
    match = re.search(r"\b(\d\d)\.(\d\d)(?:\.(\d+))?", text)
    if not match:
        raise ParseError("sinfo --version:1", text.strip(), "a version such as slurm 24.11.5")
    return tuple(int(group) for group in match.groups() if group is not None)
