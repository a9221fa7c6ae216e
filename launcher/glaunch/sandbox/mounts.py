"""The root file system of each host of the sandbox, as an fstab: one mount(8) makes it all, which matters for 128 nodes on two cores.

A host's disk is a tmpfs that is mounted first, at HERE, beside HERE/../base (the machine's root, read-only), HERE/../layer (the sandbox's
own files) and HERE/../bare (what nodes without Python must not see). Its root is HERE/root: an overlay of these with the host's own
changes on top, so that nothing written in it reaches the machine or a neighbour.
"""

from collections.abc import Sequence
from pathlib import Path

PRIVATE = ("/home", "/root", "/tmp", "/var/tmp", "/run", "/srv", "/dev", "/proc", "/sys", "/var/log")  # noqa: S108
"""What hosts of the sandbox have for themselves; a folder of the machine below one of these is seen only when it is bound."""


def fstab(here: str, srv: str, home: str, layers: Sequence[str], points: Sequence[str], binds: Sequence[str], *, proc: bool) -> str:
    """The mounts of one host, to be made with the cwd at `here` (an overlay's names are relative: it takes no comma or colon).

    `points` are file systems below the machine's root (`system_mounts`), `binds` folders shown at the same path, read-only. `proc`: a
    /proc of its own; else the present one, until the host has process ids of its own. **Source:** fstab(5), mount(8), overlayfs.
    """
    root = f"{here}/root"
    lines = [_line("overlay", root, "overlay", f"lowerdir={_lower(layers, '')},upperdir=upper,workdir=work")]
    for number, point in enumerate(points, start=1):
        upper = f"upperdir=uppers/{number},workdir=works/{number}"
        lines.append(_line("overlay", root + point, "overlay", f"lowerdir={_lower(layers, point)},{upper}"))
    own = (("tmp", "/tmp"), ("vartmp", "/var/tmp"), ("log", "/var/log"))  # noqa: S108
    lines += [_bind(f"{here}/{name}", root + target) for name, target in own]
    lines += [_line(name, f"{root}/{name}", "tmpfs", "mode=755,size=256m") for name in ("run", "root")]
    lines.append(_line("proc", f"{root}/proc", "proc", "defaults") if proc else _bind("/proc", f"{root}/proc"))
    # this network's links only, and no cgroups: slurmd is told to do without
    lines.append(_line("sysfs", f"{root}/sys", "sysfs", "defaults"))
    lines += [_bind("/dev", f"{root}/dev"), _bind("/dev/pts", f"{root}/dev/pts")]
    lines.append(_line("shm", f"{root}/dev/shm", "tmpfs", "mode=1777,nosuid,nodev"))  # noqa: S108
    lines += [_bind(home, f"{root}/home"), _bind(srv, f"{root}/srv"), _bind(f"{srv}/munge", f"{root}/run/munge")]
    lines += [_bind(f"{srv}/etc/{name}", f"{root}/etc/{name}") for name in ("slurm", "glaunch")]
    lines += [_bind(path, root + path, "ro") for path in binds]
    return "".join(line + "\n" for line in lines)


def _lower(layers: Sequence[str], point: str) -> str:
    return ":".join(f"../{layer}{point}" for layer in layers)


def _bind(source: str, target: str, mode: str = "rw") -> str:
    return _line(source, target, "none", f"bind,{mode}")


def _line(source: str, target: str, kind: str, options: str) -> str:
    return f"{_escape(source)} {_escape(target)} {kind} {options},x-mount.mkdir 0 0"


def _escape(path: str) -> str:
    """As fstab(5) wants blanks and the like."""
    return "".join(f"\\{ord(char):03o}" if char in " \t\\#" else char for char in path)


def system_mounts(mountinfo: str) -> tuple[str, ...]:
    """File systems that the machine mounts below /usr, /opt, /etc, /var by themselves, outermost first.

    An overlay over / shows what lies under them, so each needs one of its own. **Source:** proc(5), mountinfo.
    """
    found: list[str] = []
    for line in mountinfo.splitlines():
        point = line.split()[4]
        system = point.startswith(("/usr", "/opt", "/etc", "/var", "/bin", "/sbin", "/lib"))
        plain = not any(char in point for char in "\\,:")  # blanks are written \040; an overlay takes none of these
        if system and plain and Path(point).is_dir() and not f"{point}/".startswith(tuple(f"{own}/" for own in PRIVATE)):
            found.append(point)
    return tuple(sorted(dict.fromkeys(found), key=lambda point: point.count("/")))
