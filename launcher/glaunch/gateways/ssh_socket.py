"""A TCP connection to an sshd that neither waits for nor sends late, and the words for why there is none."""

import contextlib
import socket
import time
from collections.abc import Generator
from dataclasses import dataclass

from glaunch.errors import GlaunchError
from glaunch.gateways.fan_out import Watchdog


class SshFailure(GlaunchError):
    """Why a host gave nothing: `reason` as in `logs.HostLogs`, the message what was seen."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Target:
    """A host by its Slurm name and by the address at which ssh reaches it (NodeAddr)."""

    host: str
    address: str


class SshSocket(socket.socket):
    """Acknowledges at once: with Nagle on the other side each small answer would wait 40 ms for a delayed ACK."""

    def recv(self, bufsize: int, flags: int = 0, /) -> bytes:
        data = super().recv(bufsize, flags)
        if hasattr(socket, "TCP_QUICKACK"):  # Linux; not sticky, so after each read
            with contextlib.suppress(OSError):
                self.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        return data


@contextlib.contextmanager
def connected(target: Target, port: int, limit_s: float, watchdog: Watchdog, deadline: float) -> Generator[SshSocket, None, None]:
    """As a context: a connection that the watchdog shuts at the deadline. Raises SshFailure (refused, unreachable) when there is none.

    Every address of the target is tried in turn, each for `limit_s` at most.
    """
    try:
        found = socket.getaddrinfo(target.address, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise SshFailure("unreachable", f"{target.address}: no such host ({error})") from error
    failure = SshFailure("unreachable", f"{target.address}: no address")
    for family, kind, protocol, _, address in found:
        with SshSocket(family, kind, protocol) as sock, watchdog.guard(deadline, lambda sock=sock: shut(sock)):  # type: ignore[misc]
            try:
                sock.settimeout(max(0.1, min(limit_s, deadline - time.monotonic())))
                sock.connect(address)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            except OSError as error:
                failure = _failure(error, f"{target.address} port {port}", limit_s)
                continue
            yield sock
            return
    raise failure


def _failure(error: OSError, where: str, limit_s: float) -> SshFailure:
    if isinstance(error, ConnectionRefusedError):
        return SshFailure("refused", f"{where}: connection refused: no sshd listens there")
    if isinstance(error, TimeoutError):
        return SshFailure("unreachable", f"{where}: no answer within {limit_s:g} s")
    return SshFailure("unreachable", f"{where}: {error.strerror or error}")


def shut(sock: socket.socket) -> None:
    """End all that waits on the socket, at once and without waiting."""
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
