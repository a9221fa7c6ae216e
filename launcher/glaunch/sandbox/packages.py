"""What a sandbox needs of the distribution, and how it gets there without a service starting."""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from glaunch.errors import GlaunchError
from glaunch.gateways.process import run

_BINARY_FOLDERS = ("usr/local/sbin", "usr/local/bin", "usr/sbin", "usr/bin", "sbin", "bin")
_NEEDED = {
    "slurmctld": "slurmctld", "slurmd": "slurmd", "scontrol": "slurm-client", "munged": "munge",
    "sshd": "openssh-server", "ssh": "openssh-client", "ip": "iproute2", "tc": "iproute2",
    "unshare": "util-linux", "nsenter": "util-linux", "setpriv": "util-linux", "flock": "util-linux", "setsid": "util-linux",
    "pivot_root": "util-linux-extra",  # before Debian 14 in util-linux itself, which is always there
}  # fmt: skip
_NEEDED_FOR_ACCOUNTING = {"slurmdbd": "slurmdbd", "mariadbd": "mariadb-server"}
_SERVICES = {
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "munge": "munge",
    "openssh-server": "ssh",
    "slurmdbd": "slurmdbd",
    "mariadb-server": "mariadb",
}
POLICY = Path("/usr/sbin/policy-rc.d")
_POLICY_TEXT = (
    "#!/bin/sh\n"
    "# Written by `glaunch sandbox up --install` while it installs: no service starts. Remove it if it is still here.\n"
    "exit 101\n"
)


def missing(root: Path, *, accounting: bool) -> tuple[str, ...]:
    """The Debian packages whose programs `root` lacks."""
    needed = {**_NEEDED, **(_NEEDED_FOR_ACCOUNTING if accounting else {})}
    return tuple(dict.fromkeys(package for program, package in needed.items() if not _has(root, program)))


def for_glaunch(root: Path) -> tuple[str, ...]:
    """The Debian packages that glaunch itself runs on and that a root file system of another Slurm lacks; none for the machine's own."""
    if root == Path("/"):
        return ()
    modules = {"click": "click", "jinja2": "jinja2", "numpy": "numpy", "paramiko": "paramiko", "yaml": "yaml", "rich": "rich"}
    installed = root / "usr/lib/python3/dist-packages"
    return tuple(f"python3-{package}" for module, package in modules.items() if not (installed / module).is_dir())


def _has(root: Path, program: str) -> bool:
    return any((root / folder / program).is_file() for folder in _BINARY_FOLDERS)


def place(root: Path) -> str:
    """How messages name the root file system."""
    return "this machine" if root == Path("/") else str(root)


def hint(root: Path) -> str:
    """What to type where packages are lacking."""
    if root != Path("/"):
        return f"glaunch sandbox up --slurm-root {root} --install (there; starts no service)"
    if shutil.which("apt-get") is None:
        return "it is made from Debian's packages; on another system, make a Debian root with debootstrap and use --slurm-root"
    return "glaunch sandbox up --install (installs them; starts no service)"


def slurm_of_its_own() -> str:
    """What shows that a Slurm of the machine's own lives here; "" when nothing does."""
    if Path("/etc/slurm/slurm.conf").exists():
        return "/etc/slurm/slurm.conf"
    ours = os.readlink("/proc/self/ns/pid")
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            name = (entry / "comm").read_text(encoding="utf-8", errors="replace").strip()
            if name in {"slurmctld", "slurmd"} and os.readlink(entry / "ns" / "pid") == ours:
                return f"{name} (process {entry.name})"
        except OSError:
            continue
    return ""


def check_no_slurm_lives_here() -> None:
    """Raise GlaunchError where one does: what is installed beside it may change it."""
    if seen := slurm_of_its_own():
        raise GlaunchError(f"a Slurm lives on this machine ({seen}): nothing was installed", hint="add --yes if that is meant")


def install(lacking: Sequence[str], *, yes: bool, root: Path = Path("/")) -> None:
    """Install Debian packages in `root`; none of their services starts, now or at the next boot.

    Raises GlaunchError where a Slurm of the machine's own lives and `yes` was not said, or when apt-get fails.
    """
    here = root == Path("/")
    if here and not yes:
        check_no_slurm_lives_here()
    apt = ["apt-get"] if here else ["chroot", str(root), "apt-get"]
    with no_service_starts(root / "usr/sbin/policy-rc.d"):
        if not any((root / "var/lib/apt/lists").glob("*Packages*")):
            _run([*apt, "-q", "update"])
        _run([*apt, "-q", "install", "-y", "--no-install-recommends", *lacking])
    if not here:
        return
    for package in lacking:  # Debian enables what it installs: without this a ssh server would listen after the next boot
        if package in _SERVICES and shutil.which("update-rc.d"):
            run(["update-rc.d", _SERVICES[package], "disable"], timeout_s=60)


def _run(words: Sequence[str]) -> None:
    done = run(words, timeout_s=900, env={"DEBIAN_FRONTEND": "noninteractive"})
    if done.code != 0:
        told = "\n".join(f"  {line}" for line in (done.stderr.strip() or done.stdout.strip()).splitlines()[-5:])
        raise GlaunchError(f"{' '.join(words)} failed:\n{told}", hint="apt-get update, then try again")


@contextmanager
def no_service_starts(policy: Path = POLICY) -> Iterator[None]:
    """While it lasts, packages that are installed start nothing.

    A policy that is already there stays as it is, unless a killed run of ours left it.

    **Source:** invoke-rc.d(8); Debian policy, "policy-rc.d".
    """
    left_over = policy.is_file() and policy.read_text(encoding="utf-8", errors="replace") == _POLICY_TEXT
    ours = left_over or not os.path.lexists(policy)
    if ours and not left_over:
        policy.write_text(_POLICY_TEXT, encoding="utf-8")
        policy.chmod(0o755)
    try:
        yield
    finally:
        if ours:
            policy.unlink(missing_ok=True)
