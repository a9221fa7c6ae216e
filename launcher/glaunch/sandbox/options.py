"""What a sandbox is asked to be."""

import re
from dataclasses import dataclass
from pathlib import Path

from glaunch.errors import UsageError

DEFAULT_DIR = Path("/var/tmp/glaunch-sandbox")  # noqa: S108  (checked before use: root's own, closed to others)
USERS = ("ada", "bob")
"""The plain users; uid 2001 and 2002 inside."""
DEFAULT_NODES = 16
MAX_NODES = 2000


@dataclass(frozen=True, slots=True)
class Gpus:
    """`count` GPUs of `kind` on each of `nodes` (a hostlist; empty: on all that no other entry names)."""

    kind: str
    count: int
    nodes: str = ""


@dataclass(frozen=True, slots=True)
class SandboxOptions:
    """The options of `glaunch sandbox up`, already checked one by one (`up` checks how they fit together)."""

    dir: Path = DEFAULT_DIR
    nodes: int | None = None
    """None: as many as the shape or the topology has, else 16."""
    shape: str = ""
    topology: Path | None = None
    gpus: tuple[Gpus, ...] = (Gpus("h100", 8),)
    slurm_conf: tuple[str, ...] = ()
    """KEY=VALUE; replaces the sandbox's own line of that key, or is added."""
    accounting: bool = False
    no_python: bool = False
    slurm_root: Path | None = None
    rate: str = ""
    """What a node's link carries, as tc writes it (400mbit); empty: no limit."""
    uplink: str = ""
    """The same for the links between switches."""
    binds: tuple[Path, ...] = ()
    site_files: tuple[Path, ...] = ()
    """Copied to /etc/glaunch inside."""
    slurm_files: tuple[Path, ...] = ()
    """Copied to /etc/slurm inside: job_submit.lua, cli_filter.lua, plugstack.conf."""
    ssh_users: tuple[str, ...] = ("root", *USERS)
    disk_mib: int = 1024
    timeout_s: float = 180.0


def parse_gpus(text: str) -> Gpus:
    """`8`, `h100:8`, `n[001-008]=a100:4`, `0`; a count without a kind is of h100.

    Raises UsageError on anything else.
    """
    nodes, equals, what = text.rpartition("=")
    match = re.fullmatch(r"(?:([A-Za-z][A-Za-z0-9_.-]*):)?(\d{1,3})", what)
    if match is None or (equals and not nodes):
        raise UsageError(f"--gpus {text!r} is no number of GPUs", hint="write it as 8, h100:8, or for some nodes only 'n[001-008]=a100:4'")
    return Gpus(match[1] or "h100", int(match[2]), nodes)


def parse_conf(text: str) -> str:
    """A line for slurm.conf, unchanged; raises UsageError when it is not one KEY=VALUE line."""
    if not re.fullmatch(r"[A-Za-z]+\s*=\s*\S[^\n]*", text):
        raise UsageError(f"--slurm-conf {text!r} is no line of slurm.conf", hint="write it as --slurm-conf SlurmdTimeout=5")
    return text


def parse_rate(text: str) -> str:
    """A rate as tc(8) writes it; raises UsageError on anything else."""
    if text and not re.fullmatch(r"\d+(\.\d+)?([kmgt]i?)?(bit|bps)", text, re.IGNORECASE):
        raise UsageError(f"{text!r} is no rate", hint="write it as tc does: 400mbit, 1gbit")
    return text
