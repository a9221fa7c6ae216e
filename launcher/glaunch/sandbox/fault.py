"""`glaunch sandbox fault`: break something inside, and mend it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from glaunch.errors import GlaunchError, UsageError
from glaunch.sandbox.box import Sandbox

FULL = "/var/tmp/.disk-full"  # noqa: S108  (inside a node: its own disk)


@dataclass(frozen=True, slots=True)
class Slowness:
    """How a slow link is slow; as tc-netem(8) writes it."""

    rate: str = "10mbit"
    delay: str = ""
    loss: str = ""

    def words(self) -> list[str]:
        """For tc(8). A rate alone takes tbf, which every kernel has; delay and loss take netem, which some lack."""
        if self.delay or self.loss:
            pairs = (("rate", self.rate), ("delay", self.delay), ("loss", self.loss))
            return ["netem", "limit", "10000", *(word for key, value in pairs if value for word in (key, value))]
        if not self.rate:
            raise UsageError("a slow link needs a rate, a delay or a loss", hint="--rate 10mbit")
        return ["tbf", "rate", self.rate, "burst", "16kb", "latency", "50ms"]


@dataclass(frozen=True, slots=True)
class Fault:
    """A kind of fault: what it does in words, and how it is made and undone on one node (or on the controller)."""

    words: str
    undone: str
    make: Callable[[Sandbox, str, Slowness], None]
    undo: Callable[[Sandbox, str], None]
    on_nodes: bool = True


class _FaultFailed(GlaunchError):
    """A command of the fault's said no; the message has its words."""


def _tell(box: Sandbox, script: str, *words: str, node: str = "", timeout_s: float = 150.0) -> str:
    """Run a few lines of shell as root; `words` are $0, $1, … Raises GlaunchError with what they said when they fail."""
    done = box.exec(["bash", "-euc", script, *words], node=node, timeout_s=timeout_s)
    if done.code != 0:
        ended = "did not end" if done.code is None else f"ended with {done.code}"
        raise _FaultFailed(f"{' '.join(words)}: the fault's command {ended}: {(done.stderr or done.stdout).strip()}")
    return done.stdout.strip()


def _port(box: Sandbox, node: str) -> str:
    for line in (box.dir / "srv" / "nodes").read_text(encoding="utf-8").splitlines():
        name, _, port, *_ = line.split()
        if name == node:
            return port
    raise UsageError(f"{node!r} is no node of this sandbox", hint=f"its nodes are {box.nodes[0]} to {box.nodes[-1]}")


def _cut_link(box: Sandbox, node: str, _: Slowness) -> None:
    _tell(box, 'ip link set "$0" down', _port(box, node))


def _mend_link(box: Sandbox, node: str) -> None:
    _tell(box, 'ip link set "$0" up', _port(box, node))


def _slow_link(box: Sandbox, node: str, how: Slowness) -> None:
    words = how.words()
    script = 'tc qdisc del dev "$0" root 2>/dev/null || :; tc qdisc add dev "$0" root "$@"'
    try:
        _tell(box, script, _port(box, node), *words)
    except _FaultFailed as failed:
        _unslow_link(box, node)
        if "netem" in words and "kind is unknown" in failed.message:
            raise GlaunchError(
                "this machine's kernel has no netem: links take a rate, no delay and no loss", hint="--rate 10mbit"
            ) from None
        raise
    _tell(box, script, "eth0", *words, node=node)


def _unslow_link(box: Sandbox, node: str) -> None:
    rate = str(box.facts["rate"])
    back = f"tc qdisc add dev $0 root tbf rate {rate} burst 64kb latency 20ms" if rate else ":"
    script = f"tc qdisc del dev $0 root 2>/dev/null || :; {back}"
    _tell(box, script, _port(box, node))
    _tell(box, script, "eth0", node=node)


_END_BY_PIDFILE = """
pid=$(cat "/run/$0.pid" 2>/dev/null) || exit 0
kill "$1" "$pid" 2>/dev/null || exit 0
[ "$1" = -TERM ] || exit 0
for ((i = 0; i < 400; i++)); do [ -e "/proc/$pid" ] || exit 0; sleep 0.05; done
kill -9 "$pid"
while [ -e "/proc/$pid" ]; do sleep 0.05; done
"""


def _stop_slurmd(box: Sandbox, node: str, _: Slowness) -> None:
    _tell(box, _END_BY_PIDFILE, "slurmd", "-TERM", node=node)


def _start_slurmd(box: Sandbox, node: str) -> None:
    _tell(box, 'kill -0 "$(cat /run/$0.pid 2>/dev/null)" 2>/dev/null || $0', "slurmd", node=node)


def _stop_slurmctld(box: Sandbox, _: str, __: Slowness) -> None:
    _tell(box, _END_BY_PIDFILE, "slurmctld", "-TERM")


def _start_slurmctld(box: Sandbox, _: str) -> None:
    # Slurm's state is kept: jobs that ran go on. The log is /srv/log/slurmctld.
    script = """kill -CONT "$(cat /run/$0.pid)" 2>/dev/null || $0
    for ((i = 0; i < 600; i++)); do ! scontrol ping | grep -q 'is UP' || exit 0; sleep 0.1; done; exit 1"""
    _tell(box, script, "slurmctld")


def _hang_slurmctld(box: Sandbox, _: str, __: Slowness) -> None:
    _tell(box, _END_BY_PIDFILE, "slurmctld", "-STOP")


def _power_off(box: Sandbox, node: str, _: Slowness) -> None:
    # The file goes first: without it nothing tries to enter the node. Its end of the link goes with its network, a moment later.
    script = """[ -e "/srv/node/$0" ] || exit 0
    pid=$(cat "/srv/node/$0"); rm "/srv/node/$0"; kill -9 "$pid"
    for ((i = 0; i < 3000; i++)); do ip link show "$1" >/dev/null 2>&1 || exit 0; sleep 0.02; done; exit 1"""
    _tell(box, script, node, _port(box, node))


def _power_on(box: Sandbox, node: str) -> None:
    script = """[ ! -e "/srv/node/$0" ] || exit 0
    setsid -f unshare --net --uts --ipc --mount bash /srv/node.sh "$0" </dev/null >>/srv/log/up 2>&1
    for ((i = 0; i < 1200; i++)); do
        [ ! -e "/srv/node/$0" ] || ! nsenter -t "$(cat "/srv/node/$0")" -m -p test -e /run/slurmd.pid || exit 0
        sleep 0.05
    done; tail -n 3 /srv/log/up; exit 1"""
    _tell(box, script, node)


def _drain(box: Sandbox, node: str, _: Slowness) -> None:
    _tell(box, 'scontrol update NodeName="$0" State=DRAIN Reason="glaunch sandbox fault"', node)


def _resume(box: Sandbox, node: str) -> None:
    _tell(box, 'scontrol update NodeName="$0" State=RESUME', node)


def _fill_disk(box: Sandbox, node: str, _: Slowness) -> None:
    # The disk is made as small as what is on it: full, and no memory is spent on filling it.
    script = 'echo full >"$0"; mount -o remount,size="$(df --output=used -k /tmp | tail -n 1 | tr -d " ")k" /tmp'
    _tell(box, script, FULL, node=node)


def _empty_disk(box: Sandbox, node: str) -> None:
    _tell(box, '. /srv/settings; mount -o remount,size="${DISK_MIB}m" /tmp; rm -f "$0"', FULL, node=node)


FAULTS: Mapping[str, Fault] = {
    "cut-link": Fault("has no link", "has its link back", _cut_link, _mend_link),
    "slow-link": Fault("has a slow link", "has its link's full rate back", _slow_link, _unslow_link),
    "stop-slurmd": Fault("has no slurmd", "has its slurmd back", _stop_slurmd, _start_slurmd),
    "power-off": Fault("has no power: all in it ended at once", "has booted", _power_off, _power_on),
    "drain": Fault("is drained", "is resumed", _drain, _resume),
    "fill-disk": Fault("has a full disk", "has room on its disk again", _fill_disk, _empty_disk),
    "stop-slurmctld": Fault("slurmctld has ended", "slurmctld runs again", _stop_slurmctld, _start_slurmctld, on_nodes=False),
    "hang-slurmctld": Fault(
        "slurmctld is stopped and answers nobody", "slurmctld answers again", _hang_slurmctld, _start_slurmctld, on_nodes=False
    ),
}


def fault(box: Sandbox, kind: str, nodes: tuple[str, ...] = (), *, undo: bool = False, slowness: Slowness | None = None) -> tuple[str, ...]:
    """Make (or undo) a fault of `FAULTS` on each of `nodes`; what was done, in words, a line each.

    Raises UsageError for a node that is not there, or none where one is needed; GlaunchError when it could not be done.
    """
    what = FAULTS[kind]
    if bool(nodes) != what.on_nodes:
        wants = "needs the nodes it is about" if what.on_nodes else "is about the controller, not a node"
        raise UsageError(f"{kind} {wants}", hint=f"glaunch sandbox fault {kind}" + (f" {box.nodes[0]}" if what.on_nodes else ""))
    for node in nodes:
        _port(box, node)
    for target in nodes or ("",):
        if undo:
            what.undo(box, target)
        else:
            what.make(box, target, slowness or Slowness())
    words = what.undone if undo else what.words
    return tuple(f"{target} {words}".strip() for target in nodes or ("",))
