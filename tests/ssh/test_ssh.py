"""The SSH gateway beside a real sshd: what works, and each way in which it does not."""

import contextlib
import dataclasses
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.ssh.conftest import PATIENCE_S

from glaunch.gateways.fan_out import Watchdog
from glaunch.gateways.ssh import SshSettings, open_ssh, ssh_settings, targets
from glaunch.gateways.ssh_socket import SshFailure, Target
from glaunch.settings import Setting, Settings, Value

if TYPE_CHECKING:
    from tests.ssh.conftest import Proxy, Sshd

pytestmark = pytest.mark.sshd

HOST = Target("n001", "127.0.0.1")
SLEEP = "sleep 600 & echo $!; wait"  # ends when its connection does: sshd hangs up its session


@pytest.fixture
def watchdog() -> Iterator[Watchdog]:
    with Watchdog() as one:
        yield one


def said(settings: SshSettings, command: str, watchdog: Watchdog, target: Target = HOST) -> tuple[int, bytes]:
    pieces: list[bytes] = []
    status = open_ssh(settings, watchdog).stream(target, command, pieces.append)
    return status, b"".join(pieces)


def failure(settings: SshSettings, watchdog: Watchdog, command: str = "echo hello", target: Target = HOST) -> SshFailure:
    with pytest.raises(SshFailure) as caught:
        said(settings, command, watchdog, target)
    return caught.value


def test_a_command_runs_and_its_output_and_status_come_back(sshd: "Sshd", watchdog: Watchdog) -> None:
    assert said(sshd.settings(), "printf 'a\\n'; exit 3", watchdog) == (3, b"a\n")
    assert said(sshd.settings(), "head -c 5000000 /dev/zero", watchdog) == (0, bytes(5_000_000))


def test_much_on_stderr_does_not_stop_what_comes_on_stdout(sshd: "Sshd", watchdog: Watchdog) -> None:
    command = "head -c 5000000 /dev/zero >&2; head -c 5000000 /dev/zero; head -c 5000000 /dev/zero >&2"
    status, output = said(sshd.settings(), command, watchdog)
    assert (status, len(output)) == (0, 5_000_000)


def test_host_keys_are_strict(sshd: "Sshd", watchdog: Watchdog) -> None:
    name = f"[127.0.0.1]:{sshd.port}"
    other = " ".join((sshd.folder / "other_host_key.pub").read_text().split()[:2])
    cases = {
        (): ("unknown-host-key", "no key of it is in your known_hosts"),
        (f"{name} {other}",): ("changed-host-key", "another ssh-ed25519 key than"),
        (f"{name} {sshd.host_key()}", f"@revoked {name} {sshd.host_key()}"): ("changed-host-key", "@revoked"),
        (f"@cert-authority * {sshd.host_key()}",): ("unknown-host-key", "certificate authority"),
        (f"{name} ssh-rsa AAAAB3NzaC1yc2E=",): ("unknown-host-key", "only its ssh-rsa key is known"),
        (f"{name} ssh-ed25519 broken",): ("unknown-host-key", ":1: the key is no base64"),
        (f"*,!*127.0.0.1*,!*n001* {sshd.host_key()}",): ("unknown-host-key", "no key of it"),
    }
    for lines, (reason, words) in cases.items():
        seen = failure(sshd.settings(known_hosts=(sshd.known_hosts(*lines),)), watchdog)
        assert (seen.reason, words in seen.message) == (reason, True), (lines, seen)


def test_a_host_is_known_by_its_name_its_address_a_pattern_or_a_hash(sshd: "Sshd", watchdog: Watchdog) -> None:
    hashed = Path(sshd.known_hosts(f"[127.0.0.1]:{sshd.port} {sshd.host_key()}"))
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(hashed)], check=True, timeout=PATIENCE_S, capture_output=True)
    assert hashed.read_text().startswith("|1|")
    for file in (
        str(hashed),
        sshd.known_hosts(f"[n001]:{sshd.port} {sshd.host_key()}"),
        sshd.known_hosts(f"n001,127.0.0.1 {sshd.host_key()}"),
        sshd.known_hosts(f"[127.0.0.*]:{sshd.port} {sshd.host_key()}"),
        sshd.known_hosts("# a remark", "n001 broken", f"n00? {sshd.host_key()}"),
    ):
        assert said(sshd.settings(known_hosts=("/nowhere/known_hosts", file)), "echo hello", watchdog) == (0, b"hello\n")


def test_keys_that_the_host_does_not_take(sshd: "Sshd", watchdog: Watchdog) -> None:
    seen = failure(sshd.settings(keys=(str(sshd.folder / "id_stranger"),)), watchdog)
    assert seen.reason == "auth"
    assert "tried" in seen.message
    assert "id_stranger" in seen.message
    seen = failure(sshd.settings(keys=("/nowhere/id_ed25519",)), watchdog)
    assert seen.reason == "auth"
    assert "no key to try" in seen.message
    # the right one is found behind the wrong one
    both = (str(sshd.folder / "id_stranger"), str(sshd.folder / "id_ed25519"))
    assert said(sshd.settings(keys=both), "echo hello", watchdog) == (0, b"hello\n")


def test_an_encrypted_key_is_left_to_the_agent(sshd: "Sshd", watchdog: Watchdog, tmp_path: Path) -> None:
    locked = tmp_path / "id_ed25519"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", str(locked)], check=True, timeout=PATIENCE_S)
    seen = failure(sshd.settings(keys=(str(locked),)), watchdog)
    assert seen.reason == "auth"
    assert "ssh-add" in seen.message


def test_the_agent_is_asked_first(sshd: "Sshd", watchdog: Watchdog, tmp_path: Path) -> None:
    sock = tmp_path / "agent"
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", str(sock)], stdout=subprocess.DEVNULL)
    try:
        end = time.monotonic() + PATIENCE_S
        add = ["ssh-add", "-q", str(sshd.folder / "id_stranger"), str(sshd.folder / "id_ed25519")]
        while subprocess.run(add, timeout=PATIENCE_S, env={"SSH_AUTH_SOCK": str(sock), "PATH": "/usr/bin:/bin"}).returncode:
            assert time.monotonic() < end
            time.sleep(0.05)
        settings = sshd.settings(keys=(), agent=str(sock))
        assert said(settings, "echo hello", watchdog) == (0, b"hello\n")
    finally:
        agent.terminate()
        agent.wait(PATIENCE_S)
    assert failure(sshd.settings(keys=(), agent=str(sock)), watchdog).reason == "auth"


def test_nobody_listens(sshd: "Sshd", watchdog: Watchdog) -> None:
    seen = failure(sshd.settings(port=1), watchdog)
    assert (seen.reason, "no sshd listens" in seen.message) == ("refused", True)


def test_no_way_and_no_name(sshd: "Sshd", watchdog: Watchdog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RES_OPTIONS", "timeout:1 attempts:1")  # a name server that is silent is not waited for
    with socket.socket() as deaf, contextlib.ExitStack() as callers:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        for _ in range(4):  # its queue is full: it answers nobody any more
            caller = callers.enter_context(socket.socket())
            caller.setblocking(False)
            caller.connect_ex(deaf.getsockname())
        start = time.monotonic()
        seen = failure(sshd.settings(connect_s=0.3, port=deaf.getsockname()[1]), watchdog)
        assert (seen.reason, "no answer within 0.3 s" in seen.message) == ("unreachable", True), seen
        assert time.monotonic() - start < PATIENCE_S / 2  # at connect_s, not at another limit
    assert failure(sshd.settings(), watchdog, target=Target("n003", "no.such.host.invalid")).reason == "unreachable"


def test_a_host_that_says_nothing(proxy: Callable[..., tuple["Proxy", SshSettings]], watchdog: Watchdog) -> None:
    _, settings = proxy(lambda _: "freeze")
    start = time.monotonic()
    seen = failure(dataclasses.replace(settings, banner_s=0.5, auth_s=0.5), watchdog)
    assert (seen.reason, time.monotonic() - start < PATIENCE_S / 2) == ("timeout", True), seen


def test_an_sshd_with_too_many_callers_is_called_again(proxy: Callable[..., tuple["Proxy", SshSettings]], watchdog: Watchdog) -> None:
    one, settings = proxy(lambda _: "cut")
    seen = failure(settings, watchdog)
    assert (seen.reason, one.connections) == ("unreachable", 4)
    # and the third call is answered
    answers = iter(["cut", "cut"])
    two, settings = proxy(lambda _: next(answers, "pass"))
    assert said(settings, "echo hello", watchdog) == (0, b"hello\n")
    assert two.connections == 3


@pytest.mark.parametrize("after", [1, 300, 1500, 2500, 100_000])
def test_a_host_that_freezes(proxy: Callable[..., tuple["Proxy", SshSettings]], watchdog: Watchdog, after: int) -> None:
    _, settings = proxy(lambda seen: "freeze" if seen >= after else "pass")
    start = time.monotonic()
    seen = failure(dataclasses.replace(settings, total_s=1.0), watchdog, "head -c 1000000 /dev/zero")
    assert seen.reason == "timeout", seen
    assert time.monotonic() - start < PATIENCE_S / 2


def test_a_host_that_is_idle_for_too_long(sshd: "Sshd", watchdog: Watchdog) -> None:
    start = time.monotonic()
    assert failure(sshd.settings(idle_s=0.5), watchdog, SLEEP).reason == "timeout"
    assert time.monotonic() - start < PATIENCE_S / 2


def test_a_host_that_always_says_a_little_still_meets_the_deadline(sshd: "Sshd", watchdog: Watchdog) -> None:
    start = time.monotonic()
    seen = failure(sshd.settings(total_s=1.0), watchdog, "i=0; while [ $i -lt 600 ]; do echo; sleep 0.1; i=$((i+1)); done")
    assert seen.reason == "timeout"
    assert 0.9 < time.monotonic() - start < PATIENCE_S / 2


def test_a_connection_that_is_cut_is_no_good_end(proxy: Callable[..., tuple["Proxy", SshSettings]], watchdog: Watchdog) -> None:
    _, settings = proxy(lambda seen: "cut" if seen >= 200_000 else "pass")
    pieces: list[bytes] = []
    outcome = "broken"
    with contextlib.suppress(SshFailure):  # or a clean end, as paramiko sees it: then without a status, and the caller's end mark decides
        outcome = str(open_ssh(settings, watchdog).stream(HOST, "head -c 1000000 /dev/zero", pieces.append))
    assert outcome in ("broken", "-1")
    assert 0 < sum(map(len, pieces)) < 1_000_000


def test_what_the_sink_raises_ends_the_stream(sshd: "Sshd", watchdog: Watchdog) -> None:
    def full(_: bytes) -> None:
        raise SshFailure("too-large", "enough")

    with pytest.raises(SshFailure, match="enough") as caught:
        open_ssh(sshd.settings(), watchdog).stream(HOST, "head -c 100000000 /dev/zero", full)
    assert caught.value.reason == "too-large"


def test_settings_come_from_the_keys_of_the_site() -> None:
    values: dict[str, Value] = {
        "port": 2222,
        "connect_timeout_s": 3,
        "deadline_s": 40,
        "fanout": 4,
        "known_hosts": ("/etc/ssh/ssh_known_hosts",),
    }
    settings = Settings({f"ssh.{name}": Setting(value, "site.yaml:1") for name, value in values.items()})
    found = ssh_settings(settings, user="ada", home="/home/ada", agent="/run/agent")
    assert (found.port, found.connect_s, found.total_s, found.fan_out) == (2222, 3.0, 40.0, 4)
    assert (found.known_hosts, found.agent) == (("/etc/ssh/ssh_known_hosts",), "/run/agent")
    assert found.keys[0] == "/home/ada/.ssh/id_ed25519"


def test_a_host_without_an_address_is_reached_by_its_name() -> None:
    assert targets(("n001", "n002"), {"n001": "10.0.0.1", "n002": ""}) == (Target("n001", "10.0.0.1"), Target("n002", "n002"))
