"""A real sshd on loopback with throw-away keys, and a proxy in front of it that misbehaves on purpose."""

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.conftest import free_port

from glaunch.gateways.ssh import SshSettings

PATIENCE_S = 60
"""For what comes about at once on a machine that has nothing else to do."""
ADDRESSES = tuple(f"127.0.0.{number}" for number in range(1, 9))


RELAXED = {
    "total_s": 2.0 * PATIENCE_S,
    "connect_s": float(PATIENCE_S),
    "banner_s": float(PATIENCE_S),
    "auth_s": float(PATIENCE_S),
    "idle_s": float(PATIENCE_S),
}


@dataclass
class Sshd:
    """`port` on every one of ADDRESSES; `folder` holds keys and known_hosts."""

    folder: Path
    port: int
    user: str

    def settings(self, **changes: object) -> SshSettings:
        """Settings with which everything works, changed as a test wants."""
        known, key = str(self.folder / "known_hosts"), str(self.folder / "id_ed25519")
        return SshSettings(**{"user": self.user, "known_hosts": (known,), "keys": (key,), "port": self.port, **RELAXED, **changes})  # type: ignore[arg-type]

    def host_key(self) -> str:
        """Type and key of the server, as known_hosts has them."""
        return " ".join((self.folder / "host_key.pub").read_text().split()[:2])

    def known_hosts(self, *lines: str) -> str:
        """A known_hosts file of its own; returns its path."""
        path = self.folder / f"known_hosts.{time.monotonic_ns()}"
        path.write_text("\n".join(lines) + "\n")
        return str(path)


def keygen(path: Path, *options: str) -> None:
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", path.name, *options, "-f", str(path)], check=True, timeout=PATIENCE_S
    )


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """One sshd for all tests. `id_noisy` is a key whose login shell prints a banner first, `id_stranger` one that it does not know."""
    program = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/sbin")
    assert program, "install openssh-server (apt-get install openssh-server): these tests talk to a real sshd"
    folder = tmp_path_factory.mktemp("sshd")
    for name in ("host_key", "id_ed25519", "id_noisy", "id_stranger", "other_host_key"):
        keygen(folder / name)
    noisy = 'command="echo welcome to the centre; echo careful >&2; exec /bin/sh -c \\"$SSH_ORIGINAL_COMMAND\\"" '
    public = (folder / "id_ed25519.pub").read_text()
    (folder / "authorized_keys").write_text(public + noisy + (folder / "id_noisy.pub").read_text())
    Path("/run/sshd").mkdir(exist_ok=True)
    user = pwd.getpwuid(os.getuid()).pw_name
    for turn in range(5):  # somebody else may take the port at that moment
        port = free_port()
        process = _started(program, folder, port)
        if _listens(process, port):
            break
        process.kill()
        process.wait()
        assert turn < 4, (folder / "log").read_text()
    names = ",".join(f"[{address}]:{port}" for address in ADDRESSES)
    one = Sshd(folder, port, user)
    (folder / "known_hosts").write_text(f"{names} {one.host_key()}\n")
    try:
        yield one
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def _started(program: str, folder: Path, port: int) -> "subprocess.Popen[bytes]":
    (folder / "config").write_text(
        "\n".join(
            [
                *(f"ListenAddress {address}:{port}" for address in ADDRESSES),
                f"HostKey {folder}/host_key",
                f"AuthorizedKeysFile {folder}/authorized_keys",
                "PidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no",
                "PermitRootLogin yes\nMaxStartups 100\nLogLevel VERBOSE",
            ]
        )
    )
    with (folder / "log").open("w") as log:
        return subprocess.Popen([program, "-D", "-e", "-f", str(folder / "config")], stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def _listens(process: "subprocess.Popen[bytes]", port: int) -> bool:
    """Whether it listens on every address; False where it could not have one of them."""
    end, missing = time.monotonic() + PATIENCE_S, list(ADDRESSES)
    while missing and process.poll() is None and time.monotonic() < end:
        try:
            socket.create_connection((missing[0], port), PATIENCE_S).close()
            del missing[0]
        except OSError:  # noqa: PERF203
            if len(missing) < len(ADDRESSES):  # it binds all of them before it answers on the first
                break
            time.sleep(0.02)
    return not missing


@dataclass
class Proxy:
    """Passes bytes from clients to an sshd, and what `fault` says happens to those that come back: its argument is the count so far."""

    target: int
    fault: Callable[[int], str]
    """pass, freeze or cut, after so many bytes of answers."""
    server: socket.socket = field(default_factory=socket.socket)
    connections: int = 0
    _open: list[socket.socket] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)

    @property
    def port(self) -> int:
        return int(self.server.getsockname()[1])

    def __enter__(self) -> "Proxy":
        self.server.bind(("127.0.0.1", 0))
        self.server.listen()
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for one in (self.server, *self._open):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()
        for thread in self._threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.server.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(client)
            if self.fault(0) == "cut":
                client.close()
                continue
            if self.fault(0) == "freeze":
                continue
            behind = socket.create_connection(("127.0.0.1", self.target), PATIENCE_S)
            behind.settimeout(None)
            self._open.append(behind)
            self._start(self._pass, client, behind, lambda _: "pass")
            self._start(self._pass, behind, client, self.fault)

    def _pass(self, source: socket.socket, sink: socket.socket, fault: Callable[[int], str]) -> None:
        seen = 0
        try:
            while data := source.recv(4096):
                seen += len(data)
                what = fault(seen)
                if what == "freeze":
                    self._over.wait(4 * PATIENCE_S)
                    return
                if what == "cut":
                    break
                sink.sendall(data)
        except OSError:
            pass
        for one in (source, sink):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def proxy(sshd: Sshd) -> Iterator[Callable[[Callable[[int], str]], tuple[Proxy, SshSettings]]]:
    """proxy(fault) → the proxy, running, and settings that go through it and know its key."""
    running: list[Proxy] = []

    def make(fault: Callable[[int], str]) -> tuple[Proxy, SshSettings]:
        one = Proxy(sshd.port, fault).__enter__()
        running.append(one)
        known = sshd.known_hosts(f"[127.0.0.1]:{one.port} {sshd.host_key()}")
        return one, sshd.settings(port=one.port, known_hosts=(known,))

    yield make
    for one in running:
        one.__exit__()


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    """What connects must not leave threads behind."""
    before = set(threading.enumerate())
    yield
    end = time.monotonic() + PATIENCE_S
    while (left := {thread for thread in threading.enumerate() if thread not in before}) and time.monotonic() < end:
        time.sleep(0.02)
    assert not left
