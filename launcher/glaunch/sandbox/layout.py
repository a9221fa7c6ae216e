"""The folder of a sandbox: all that can be written down before anything starts."""

import json
import math
import os
import shlex
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from glaunch import __version__
from glaunch.errors import UsageError
from glaunch.sandbox import inner_python, texts
from glaunch.sandbox.box import PATH
from glaunch.sandbox.mounts import fstab, system_mounts
from glaunch.sandbox.network import Network, lay_out
from glaunch.sandbox.options import DEFAULT_NODES, MAX_NODES, USERS, Gpus, SandboxOptions, parse_conf, parse_rate
from glaunch.sandbox.switches import Switches, read, switches_of

SCRIPTS = ("root.sh", "init.sh", "keep.sh", "build.sh", "accounting.sh", "node.sh")
HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Design:
    """What an `up` will make: the options, decided."""

    options: SandboxOptions
    switches: Switches
    nodes: tuple[str, ...]
    gpus: Mapping[str, Gpus]
    network: Network
    root: Path
    """The root file system that hosts see: `/`, or the chroot."""


def design(options: SandboxOptions) -> Design:
    """Decide what was asked; raises UsageError where options do not go together or name what is not there."""
    for line in options.slurm_conf:
        parse_conf(line)
    for rate in (options.rate, options.uplink):
        parse_rate(rate)
    if strangers := set(options.ssh_users) - {"root", *USERS}:
        raise UsageError(f"--ssh-users: {min(strangers)!r} is nobody in the sandbox", hint=f"its people are root, {', '.join(USERS)}")
    if options.topology and options.shape:
        raise UsageError("--shape and --topology both say what the switches are", hint="give one of them")
    if any(path.name == "slurm.conf" for path in options.slurm_files):
        raise UsageError("--slurm-file slurm.conf: the sandbox writes that itself", hint="change a line of it: --slurm-conf KEY=VALUE")
    switches = switches_of(options, default_shape(options.nodes or DEFAULT_NODES))
    fabric = switches.fabric
    nodes = fabric.nodes
    if not nodes:
        raise UsageError(f"{options.topology} names no nodes", hint="a line of a leaf is SwitchName=leaf1 Nodes=n[001-004]")
    if options.nodes and options.nodes != len(nodes):
        raise UsageError(f"--nodes {options.nodes}, but the switches have {len(nodes)} nodes", hint="leave --nodes out")
    if len(nodes) > MAX_NODES:
        raise UsageError(f"{len(nodes)} nodes are too many for one machine", hint=f"{MAX_NODES} at most")
    root = (options.slurm_root or Path("/")).resolve()
    if not (root / "etc" / "passwd").is_file():
        raise UsageError(
            f"{root} is no root file system: it has no etc/passwd", hint="docs/sandbox.md says how one is made with debootstrap"
        )
    gpus = texts.gpus_of(nodes, options.gpus)
    return Design(options, switches, nodes, gpus, lay_out(fabric, options.uplink), root)


def default_shape(nodes: int) -> str:
    """Three tiers that fit `nodes`: leaves of 4 (8 above 64 nodes, 16 above 512), about as many spines as leaves under each."""
    per_leaf = 4 if nodes <= 64 else 8 if nodes <= 512 else 16
    leaves = math.ceil(nodes / per_leaf)
    per_spine = math.ceil(math.sqrt(leaves))
    return f"core:1 spine:{math.ceil(leaves / per_spine)} leaf:{per_spine} node:{per_leaf}"


def write(plan: Design, folder: Path) -> None:
    """Fill `folder`, which exists and is empty but for the mark and what the guard writes there."""
    srv, options = folder / "srv", plan.options
    for name in ("state", "munge", "ssh", "node", "net", "etc/slurm", "etc/glaunch", "layer/etc/ssh"):
        (srv / name).mkdir(parents=True, exist_ok=True)
    for path in (folder / "mnt", folder / "home", *(folder / "home" / user for user in ("root", *USERS))):
        path.mkdir()
    for user in ("root", *USERS):
        (folder / "home" / user).chmod(0o700)
        (folder / "home" / user / ".ssh").mkdir(mode=0o700)
    for name in SCRIPTS:
        shutil.copyfile(HERE / name, srv / name)
    _write_etc(plan, srv)
    for site_file in options.site_files:
        (srv / "etc" / "glaunch" / site_file.name).write_text(read(site_file, "--site"), encoding="utf-8")
    for slurm_file in options.slurm_files:
        (srv / "etc" / "slurm" / slurm_file.name).write_text(read(slurm_file, "--slurm-file"), encoding="utf-8")
    key = srv / "munge" / "key"
    key.touch(mode=0o400)
    key.write_bytes(os.urandom(1024))
    network = plan.network
    (srv / "net" / "switches").write_text(network.ip_batch, encoding="utf-8")
    (srv / "net" / "rates").write_text(network.tc_batch, encoding="utf-8")
    (srv / "net" / "neighbours").write_text(network.neighbours, encoding="utf-8")
    rows = "".join(f"{host.name} {host.address} {host.port} {host.bridge} {host.mac}\n" for host in network.hosts)
    (srv / "nodes").write_text(rows, encoding="utf-8")
    _write_settings(plan, folder)
    short = folder / "exec"
    short.write_text((HERE / "exec.sh").read_text(encoding="utf-8"), encoding="utf-8")
    short.chmod(0o755)


def _write_etc(plan: Design, srv: Path) -> None:
    options, layer = plan.options, srv / "layer" / "etc"
    files = {
        srv / "etc/slurm/slurm.conf": texts.slurm_conf(plan.nodes, plan.gpus, plan.switches.plugin, options.slurm_conf, options.accounting),
        srv / "etc/slurm/gres.conf": texts.gres_conf(plan.nodes, plan.gpus),
        srv / "etc/slurm" / plan.switches.file: plan.switches.text,
        srv / "etc/glaunch/sandbox.yaml": texts.SITE,
        layer / "hosts": texts.hosts(plan.network.hosts),
        layer / "nsswitch.conf": texts.NSSWITCH,
        layer / "resolv.conf": "",
        layer / "ssh/sshd_config": texts.sshd_config(options.ssh_users),
        layer / "ssh/ssh_config": "",
    }
    if options.accounting:
        files[srv / "etc/slurm/slurmdbd.conf"] = texts.slurmdbd_conf(options.slurm_conf)
    known = [(plan.root / "etc" / name).read_text(encoding="utf-8", errors="surrogateescape") for name in ("passwd", "group")]
    for name, text in texts.accounts(*known).items():
        files[layer / name] = text
    for path, text in files.items():
        path.write_text(text, encoding="utf-8", errors="surrogateescape")
    (layer / "shadow").chmod(0o600)


def _write_settings(plan: Design, folder: Path) -> None:
    srv, options, other_root = folder / "srv", plan.options, plan.options.slurm_root is not None
    python = inner_python.outer()
    asked = tuple(str(path.resolve()) for path in options.binds)
    missing = [path for path in asked if not os.path.isdir(path)]
    if missing:
        raise UsageError(f"--bind {missing[0]}: there is no such folder")
    binds = inner_python.outermost((*inner_python.folders(python, other_root=other_root), *asked))
    points = () if other_root else system_mounts(Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape"))
    for_nodes = inner_python.outermost(asked) if options.no_python else binds
    settings = {
        "RATE": options.rate,
        "ACCOUNTING": "yes" if options.accounting else "no",
        "DISK_MIB": str(options.disk_mib),
        "POINTS": str(len(points)),
        "GPU_FILES": str(max((each.count for each in plan.gpus.values()), default=0)),
        "PATH": PATH,
    }
    own = fstab(f"{folder}/mnt/disk", str(srv), f"{folder}/home", ("layer", "base"), points, binds, proc=True)
    node = fstab("/.sandbox/disk", "/srv", "/home", ("bare", "layer", "base"), points, for_nodes, proc=False)
    files = {
        "settings": "".join(f"export {key}={shlex.quote(value)}\n" for key, value in settings.items()),
        "fstab": own,
        "fstab-node": node,
        "mounts": _lines(points),
        "pythons": _lines(inner_python.python_folders(python) if options.no_python else ()),
        "glaunch": inner_python.wrapper(python, other_root=other_root),
        "glaunch.py": inner_python.starter(python, other_root=other_root),
    }
    for name, text in files.items():
        (srv / name).write_text(text, encoding="utf-8", errors="surrogateescape")


def _lines(paths: Iterable[str]) -> str:
    return "".join(path + "\n" for path in paths)


def mark(plan: Design) -> str:
    """What `status` and readers of the folder are told; JSON."""
    options = plan.options
    facts = {
        "schema": "glaunch.sandbox/1",
        "glaunch": __version__,
        "nodes": len(plan.nodes),
        "switches": len(plan.switches.fabric.switches),
        "tiers": plan.switches.fabric.tiers,
        "users": ["root", *USERS],
        "accounting": options.accounting,
        "python_on_nodes": not options.no_python,
        "slurm_root": str(options.slurm_root or ""),
        "rate": options.rate,
        "uplink": options.uplink,
    }
    return json.dumps(facts, indent=1) + "\n"
