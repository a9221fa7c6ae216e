"""known_hosts beside ssh-keygen, which is what OpenSSH itself believes."""

import base64
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glaunch.parsers.known_hosts import parse

KEY = base64.b64encode(b"\0\0\0\x0bssh-ed25519\0\0\0 " + bytes(range(32))).decode()
OTHER = base64.b64encode(b"\0\0\0\x0bssh-ed25519\0\0\0 " + bytes(32)).decode()


def line(names: str, key: str = KEY, marker: str = "") -> str:
    return f"{marker + ' ' if marker else ''}{names} ssh-ed25519 {key}"


def knows(text: str, host: str, port: int = 22) -> bool:
    return bool(parse([("known_hosts", text)]).lookup([host], port).keys)


def test_names_patterns_and_ports() -> None:
    text = "\n".join(["# remark", "", line("n001,10.77.1.1"), line("[gw]:2222"), line("gpu*,!gpu13"), line("N?X")])
    assert all(knows(text, host) for host in ("n001", "10.77.1.1", "N001", "gpu1", "gpu", "nyx"))
    assert not any(knows(text, host) for host in ("n002", "gpu13", "nyyx", "agpu1", "gw"))
    assert knows(text, "gw", 2222)
    assert not knows(text, "gw", 2223)
    assert knows(text, "n001", 2222), "as in OpenSSH, the name without its port counts where the one with it is unknown"


def test_where_a_key_was_read() -> None:
    trust = parse([("one", line("n001")), ("two", "\n" + line("n001", OTHER))]).lookup(["n001"])
    assert [key.where for key in trust.keys] == ["one:1", "two:2"]
    assert trust.names(base64.b64decode(OTHER)) == trust.keys[1]
    assert trust.names(b"") is None


def test_markers_are_no_trust() -> None:
    index = parse([("k", "\n".join([line("n001", KEY, "@cert-authority"), line("n001", OTHER, "@revoked"), line("n001", KEY, "@new")]))])
    trust = index.lookup(["n001"])
    assert (len(trust.keys), len(trust.authorities), len(trust.revoked)) == (0, 1, 1)
    assert index.problems == ["k:3: unknown marker @new"]


def test_what_cannot_be_read_is_said_and_trusted_by_nobody() -> None:
    index = parse([("k", "n001\nn001 ssh-rsa\nn001 ssh-rsa !!!\n|1|x ssh-rsa AAAA\n|2|AAAA|AAAA ssh-rsa AAAA\n@revoked\n")])
    assert [problem.split(":")[1] for problem in index.problems] == ["1", "2", "3", "4", "5", "6"]
    assert index.lookup(["n001"]).keys == ()


@settings(max_examples=25)
@given(
    hosts=st.lists(st.from_regex(r"\A[a-z0-9][a-z0-9.-]{0,10}\Z"), min_size=1, max_size=6, unique=True),
    chosen=st.integers(0, 63),
    hashed=st.booleans(),
)
def test_as_ssh_keygen_finds_them(tmp_path_factory: pytest.TempPathFactory, hosts: list[str], chosen: int, hashed: bool) -> None:
    folder = tmp_path_factory.mktemp("k")
    listed = [host for index, host in enumerate(hosts) if chosen >> index & 1]
    text = "".join(line(host) + "\n" for host in listed)
    file = folder / "known_hosts"
    file.write_text(text)
    if listed and hashed:
        subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(file)], check=True, capture_output=True, timeout=60)
    for host in hosts[:3]:
        oracle = subprocess.run(["ssh-keygen", "-F", host, "-f", str(file)], capture_output=True, timeout=60, check=False).returncode == 0
        assert knows(file.read_text(), host) == oracle == (host in listed)


def test_eight_thousand_hosts_are_read_once_and_found_at_once(tmp_path: Path) -> None:
    text = "\n".join(line(f"n{number:05d},10.0.{number // 256}.{number % 256}") for number in range(8192))
    start = time.process_time()
    index = parse([("k", text)])
    assert all(index.lookup([f"10.0.{number // 256}.{number % 256}"]).keys for number in range(8192))
    assert time.process_time() - start < 2  # paramiko's own reader needs sixteen seconds for it
