"""A fabric as Slurm's topology.conf.

**Source:** topology.conf(5).
"""

import re

from glaunch.errors import UsageError
from glaunch.fabric import Fabric
from glaunch.hostlist import fold

_UNWRITABLE = re.compile(r"[\"#\\\x00-\x1f]")


def write_tree(fabric: Fabric) -> str:
    """The fabric as topology.conf for TopologyPlugin=topology/tree: a line a switch, in the fabric's own order.

    Read back by `parsers.slurm_topology.parse_topology_conf` it is the same fabric; `source`, `flat` and `notes` are not in it.
    A leaf without nodes is written without `Nodes=`, which Slurm takes from 25.05 on.
    Raises UsageError for a switch name that the format cannot carry (quotes, `#`, backslash, control characters, one that Slurm would
    read as several).
    """
    below: dict[str, list[str]] = {}
    for switch in fabric.switches:
        if switch.parent is not None:
            below.setdefault(switch.parent, []).append(switch.name)
    lines = []
    for switch in fabric.switches:
        words = [f"SwitchName={_quoted(switch.name)}"]
        if switch.name in below:
            words.append(f"Switches={fold(_as_child(name) for name in below[switch.name])}")
        elif switch.nodes:
            words.append(f"Nodes={fold(switch.nodes)}")
        lines.append(" ".join(words))
    return "".join(f"{line}\n" for line in lines)


def _quoted(name: str) -> str:
    if _UNWRITABLE.search(name) or not name:
        raise UsageError(f"topology.conf cannot carry a switch called {name!r}")
    return f'"{name}"' if re.search(r"\s", name) else name


def _as_child(name: str) -> str:
    # A child stands in a hostlist, where these letters mean something.
    if re.search(r"[\s,\[{]", name):
        raise UsageError(f"topology.conf cannot name {name!r} as a child: Slurm reads it as a hostlist")
    return name
