"""One command on one host over SSH: our own socket, strict host keys, a deadline that holds.

paramiko is used below its client class: `SSHClient` can dead-lock in garbage collection, and every one of its calls can wait for ever.
Here one watchdog shuts the socket down at the deadline, which ends any call within a tenth of a second; and since a connection that was
cut looks like a clean end of file, the caller must see its own end mark before it believes anything.
"""

import contextlib
import logging
import random
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from glaunch.gateways.fan_out import Watchdog
from glaunch.gateways.ssh_keys import Identities
from glaunch.gateways.ssh_socket import SshFailure, Target, connected, shut
from glaunch.parsers.known_hosts import KnownHosts, Trust, parse
from glaunch.settings import Settings

if TYPE_CHECKING:
    from paramiko import Channel, Transport

_WINDOW = 2 << 20  # enough for a LAN; below 1 MiB a stream crawls
_PACKET = 1 << 16
_CHUNK = 1 << 17
_LOOK_S = 0.25
_JOIN_S = 2.0
_TRIES = 4  # only where sshd dropped us before it said who it is (MaxStartups)
_NO_JOB = ("pam_slurm", "no active jobs", "access denied by pam")


@dataclass(frozen=True, slots=True)
class SshSettings:
    """How to reach hosts. Times are seconds; `total_s` is the deadline for one host, all together."""

    user: str
    known_hosts: tuple[str, ...]
    """Files, read once; those that do not exist are passed over."""
    keys: tuple[str, ...]
    """Private key files; those that do not exist are passed over, encrypted ones left to the agent."""
    agent: str = ""
    """The agent's socket (SSH_AUTH_SOCK); "" for none."""
    port: int = 22
    connect_s: float = 10.0
    banner_s: float = 15.0
    auth_s: float = 20.0
    idle_s: float = 30.0
    total_s: float = 300.0
    fan_out: int = 16


def ssh_settings(settings: Settings, *, user: str, home: str, agent: str = "") -> SshSettings:
    """The site's and the user's settings `ssh.*`, with the key files that OpenSSH would look at; `agent` is SSH_AUTH_SOCK."""
    return SshSettings(
        user,
        known_hosts=settings.words("ssh.known_hosts"),
        keys=tuple(f"{home}/.ssh/{name}" for name in ("id_ed25519", "id_ecdsa", "id_rsa")),
        agent=agent,
        port=settings.number("ssh.port"),
        connect_s=float(settings.number("ssh.connect_timeout_s")),
        total_s=float(settings.number("ssh.deadline_s")),
        fan_out=settings.number("ssh.fanout"),
    )


@dataclass(slots=True)
class Ssh:
    """What all connections of one fan-out share: settings, known hosts and keys, read once."""

    settings: SshSettings
    known: KnownHosts
    identities: Identities
    watchdog: Watchdog

    def stream(self, target: Target, command: str, sink: Callable[[bytes], None]) -> int:
        """Run `command` and push what it prints into `sink`; its exit status (-1: none came).

        Raises SshFailure with the class of what went wrong; what `sink` raises passes through. Nothing of a connection is left afterwards.
        """
        deadline = time.monotonic() + self.settings.total_s
        attempt = 0
        while True:
            attempt += 1
            try:
                return self._once(target, command, sink, deadline)
            except _Dropped as dropped:
                pause_s = random.uniform(0.1, 0.3) * 2**attempt  # noqa: S311
                if attempt == _TRIES or self.watchdog.stopped or time.monotonic() + pause_s > deadline:
                    detail = f"{target.address}: sshd closed the connection at once ({dropped}), {attempt} times"
                    raise SshFailure("unreachable", detail) from None
                self.watchdog.pause(pause_s)

    def _once(self, target: Target, command: str, sink: Callable[[bytes], None], deadline: float) -> int:
        import paramiko

        settings = self.settings
        try:
            with (
                connected(target, settings.port, settings.connect_s, self.watchdog, deadline) as sock,
                _transport(sock, target, self) as transport,
                contextlib.closing(transport.open_session(timeout=settings.auth_s)) as channel,
            ):
                status = _read(channel, command, sink, settings.idle_s)
        except (SshFailure, _Dropped, paramiko.SSHException, EOFError, OSError) as error:
            self._in_time(target, deadline)
            raise _classified(error, target) from error
        self._in_time(target, deadline)  # a connection that we cut looks like a clean end
        return status

    def _in_time(self, target: Target, deadline: float) -> None:
        if self.watchdog.stopped:
            raise SshFailure("not-attempted", f"{target.address}: interrupted")
        if time.monotonic() >= deadline:
            raise SshFailure("timeout", f"{target.address}: not done within {self.settings.total_s:g} s")


class _Dropped(Exception):
    """sshd closed the connection before it spoke: too many at once, usually."""


def open_ssh(settings: SshSettings, watchdog: Watchdog) -> Ssh:
    """Read known hosts and keys. Absent files are passed over; what cannot be read is in `known.problems` and `identities.notes`."""
    texts = []
    problems = []
    for name in settings.known_hosts:
        try:
            texts.append((name, Path(name).read_text(encoding="utf-8", errors="surrogateescape")))
        except FileNotFoundError:  # noqa: PERF203
            continue
        except OSError as error:
            problems.append(f"{name}: {error.strerror}")
    known = parse(texts)
    known.problems.extend(problems)
    return Ssh(settings, known, Identities.load(settings.keys, settings.agent), watchdog)


@contextlib.contextmanager
def _transport(sock: socket.socket, target: Target, ssh: Ssh) -> Iterator["Transport"]:
    """An authenticated transport on a host whose key is known; closed at the end."""
    import paramiko

    _silence()
    settings = ssh.settings
    transport = paramiko.Transport(sock, default_window_size=_WINDOW, default_max_packet_size=_PACKET)
    transport.set_log_channel("glaunch.ssh")
    transport.banner_timeout = settings.banner_s
    transport.handshake_timeout = settings.banner_s
    transport.auth_timeout = settings.auth_s
    transport.channel_timeout = settings.auth_s
    try:
        trust = ssh.known.lookup(tuple(dict.fromkeys((target.address, target.host))), settings.port)
        _prefer(transport, trust)
        _greet(transport, settings)
        key = transport.get_remote_server_key()
        check_host_key(trust, key.get_name(), key.asbytes(), target, ssh.known.problems)
        ssh.identities.authenticate(transport, settings.user)
        yield transport
    finally:
        shut(sock)  # first, so that closing does not wait for the reader's next look
        transport.close()
        transport.packetizer.complete_handshake()  # ends the timer thread of a handshake that never ended
        if transport.ident is not None:
            transport.join(_JOIN_S)


def _greet(transport: "Transport", settings: SshSettings) -> None:
    """Banner and key exchange. Raises _Dropped where the other side hung up at once, TimeoutError where it kept silent."""
    import paramiko

    limit_s = settings.banner_s + settings.auth_s
    start = time.monotonic()
    try:
        transport.start_client(timeout=limit_s)
    except (paramiko.SSHException, EOFError, OSError) as error:
        if time.monotonic() - start > 0.9 * settings.banner_s:
            raise TimeoutError("no SSH banner") from error
        if isinstance(error, (EOFError, ConnectionError)) or "banner" in str(error):
            raise _Dropped(str(error) or type(error).__name__) from error
        raise
    if time.monotonic() - start >= limit_s:  # paramiko returns all the same
        raise TimeoutError("no end of the key exchange")


def _silence() -> None:
    logger = logging.getLogger("glaunch.ssh")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
        logger.propagate = False


def _prefer(transport: "Transport", trust: Trust) -> None:
    """Fast ciphers first, and those host key types first for which a key is known, as OpenSSH does."""
    options = transport.get_security_options()
    ciphers = tuple(options.ciphers)
    first = tuple(name for name in ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com") if name in ciphers)
    options.ciphers = (*first, *(name for name in ciphers if name not in first))
    known = {key.type for key in trust.keys}
    if "ssh-rsa" in known:
        known |= {"rsa-sha2-512", "rsa-sha2-256"}
    types = tuple(options.key_types)
    options.key_types = (*(name for name in types if name in known), *(name for name in types if name not in known))


def check_host_key(trust: Trust, kind: str, blob: bytes, target: Target, problems: Sequence[str] = ()) -> None:
    """Raise SshFailure unless this very key is known for the host and not revoked; `problems` are lines that could not be read."""
    for revoked in trust.revoked:
        if revoked.blob == blob:
            raise SshFailure("changed-host-key", f"{target.address} showed a {kind} key that {revoked.where} marks @revoked")
    if trust.names(blob) is not None:
        return
    same_type = next((key for key in trust.keys if key.type == kind), None)
    if same_type is not None:
        raise SshFailure("changed-host-key", f"{target.address} showed another {kind} key than {same_type.where} says")
    if trust.authorities:
        raise SshFailure(
            "unknown-host-key",
            f"{target.address}: {trust.authorities[0].where} trusts a certificate authority for it, which glaunch cannot check; "
            "add the host's own key",
        )
    others = ", ".join(sorted({key.type for key in trust.keys}))
    known = f"only its {others} key is known" if others else "no key of it is in your known_hosts"
    unread = f"; {problems[0]}" if problems else ""
    raise SshFailure("unknown-host-key", f"{target.address} showed a {kind} key, and {known}; connect once with ssh and check it{unread}")


def _read(channel: "Channel", command: str, sink: Callable[[bytes], None], idle_s: float) -> int:
    channel.settimeout(_LOOK_S)
    channel.exec_command(command)
    channel.shutdown_write()
    last = time.monotonic()
    while True:
        try:
            data = channel.recv(_CHUNK)
        except TimeoutError:
            data = None
        # both streams share one window: an stderr that nobody reads would stop the other
        while channel.recv_stderr_ready():
            channel.recv_stderr(_CHUNK)
            last = time.monotonic()
        if data:
            last = time.monotonic()
            sink(data)
        elif data == b"":
            return channel.recv_exit_status() if channel.status_event.wait(idle_s) else -1
        elif time.monotonic() - last > idle_s:
            raise TimeoutError(f"nothing came for {idle_s:g} s")


def _classified(error: Exception, target: Target) -> Exception:
    """The failure that an exception means."""
    import paramiko

    where = target.address
    if isinstance(error, _Dropped):
        return error
    if isinstance(error, SshFailure):
        return SshFailure(error.reason, error.message if error.message.startswith(where) else f"{where}: {error.message}")
    if isinstance(error, TimeoutError) or "timeout" in str(error).lower():
        return SshFailure("timeout", f"{where}: {error or 'nothing came for too long'}")
    if isinstance(error, paramiko.ChannelException):
        return SshFailure("refused", f"{where}: sshd opens no session ({error.text})")
    if isinstance(error, paramiko.AuthenticationException):
        refused = any(word in str(error).lower() for word in _NO_JOB)  # a centre that lets nobody in without a job there
        return SshFailure("refused" if refused else "auth", f"{where}: {error}")
    return SshFailure("broken", f"{where}: {error or type(error).__name__}")


def targets(hosts: Sequence[str], addresses: Mapping[str, str]) -> tuple[Target, ...]:
    """Hosts with their addresses; a host that has none is reached by its name."""
    return tuple(Target(host, addresses.get(host) or host) for host in hosts)
