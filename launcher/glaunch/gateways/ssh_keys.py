"""Who we are to an sshd: the agent's keys and the default key files, tried in the order that worked last."""

import contextlib
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paramiko import PKey, Transport

_MAX_KEYS = 6  # sshd's MaxAuthTries: more would only get us thrown out
_AGENT_S = 10.0


@dataclass(slots=True)
class Identities:
    """Key files loaded once; the agent is asked anew for each connection, since its socket cannot be shared between threads."""

    files: tuple[tuple[str, "PKey"], ...]
    agent: str
    notes: list[str] = field(default_factory=list)
    """Key files that could not be used, and why."""
    _winner: bytes = b""

    @classmethod
    def load(cls, paths: Sequence[str], agent: str) -> "Identities":
        """Read those key files that exist; an encrypted one is left to the agent and noted."""
        keys: list[tuple[str, PKey]] = []
        notes: list[str] = []
        for path in paths:
            try:
                key = _load(path) if Path(path).is_file() else None
            except OSError as error:
                notes.append(f"{path}: {error.strerror}")
                continue
            if isinstance(key, str):
                notes.append(f"{path}: {key}")
            elif key is not None:
                keys.append((path, key))
        return cls(tuple(keys), agent, notes)

    def authenticate(self, transport: "Transport", user: str) -> None:
        """Offer the keys one after the other. Raises paramiko.AuthenticationException that says what was tried and what the host takes."""
        import paramiko

        tried: list[str] = []
        takes: Sequence[str] = ()
        with self._keys() as keys:
            for name, key in keys[:_MAX_KEYS]:
                tried.append(name)
                try:
                    transport.auth_publickey(user, key)
                except paramiko.BadAuthenticationType as error:
                    takes = error.allowed_types
                    break
                except paramiko.AuthenticationException as error:
                    if "timeout" in str(error).lower():
                        raise
                    if not transport.is_active():
                        break
                    continue
                if transport.is_authenticated():
                    self._winner = key.asbytes()
                    return
                takes = ("a second factor",)
                break
        raise paramiko.AuthenticationException(_refusal(user, tried, takes, _banner(transport), self.notes))

    @contextlib.contextmanager
    def _keys(self) -> Iterator[list[tuple[str, "PKey"]]]:
        with _agent_keys(self.agent) as from_agent:
            keys = [*from_agent, *self.files]
            # what opened the last host opens the next: no host has to refuse the others first
            yield sorted(keys, key=lambda one: one[1].asbytes() != self._winner) if self._winner else keys


def _banner(transport: "Transport") -> bytes | None:
    """What sshd said; `get_banner` forgets it when the connection is down, and that is when it is wanted."""
    banner: bytes | None = getattr(transport.auth_handler, "banner", None)
    return banner


def _refusal(user: str, tried: Sequence[str], takes: Sequence[str], banner: bytes | None, notes: Sequence[str]) -> str:
    text = f"permission denied for {user}: tried {', '.join(tried)}" if tried else f"permission denied for {user}: there is no key to try"
    if takes:
        text += f"; the host takes {', '.join(takes)}"
    if notes and not tried:
        text += f"; {'; '.join(notes)}"
    words = (banner or b"").decode(errors="replace").strip()
    return f"{text}; it says: {words[-300:]}" if words else text


def _load(path: str) -> "PKey | str":
    """The key, or why it cannot be used."""
    import paramiko

    for kind in (paramiko.Ed25519Key, paramiko.ECDSAKey, paramiko.RSAKey):
        try:
            key = kind.from_private_key_file(path)
        except paramiko.PasswordRequiredException:
            return "encrypted; add it to an agent (ssh-add)"
        except (paramiko.SSHException, ValueError):
            continue
        certificate = Path(f"{path}-cert.pub")
        if certificate.is_file():
            key.load_certificate(str(certificate))
        return key
    return "not a key that glaunch can read"


@contextlib.contextmanager
def _agent_keys(path: str) -> Iterator[list[tuple[str, "PKey"]]]:
    """The agent's keys while this context lasts; none when there is no agent or it does not answer."""
    if not path:
        yield []
        return
    from paramiko.agent import AgentSSH

    agent = AgentSSH()
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(_AGENT_S)
    try:
        try:
            sock.connect(path)
            agent._connect(sock)  # type: ignore[attr-defined]
            keys = [(f"the agent's {key.get_name()} key", key) for key in agent.get_keys()]
        except (OSError, ValueError) as error:
            del error
            keys = []
        yield list(keys)
    finally:
        sock.close()
