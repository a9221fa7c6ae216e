"""A simulated InfiniBand fabric that the real tools talk to."""

import contextlib
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from tests.topo.shapes import fat_tree, ibsim_text

from glaunch.network import Network

UMAD = "/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so"
TOOLS = ("ibsim", "ibnetdiscover", "iblinkinfo", "opensm")
COMPLETE_S = 120.0
ANSWER_MS = "20000"
"""How long the tools wait for an answer before they ask again; ibsim may be slow on a busy machine, and loses none."""


@dataclass
class Simulated:
    """A running ibsim; `run` asks one of the tools, as seen from the adapter `host`."""

    network: Network
    folder: Path
    process: "subprocess.Popen[str]"
    environ: dict[str, str] = field(default_factory=dict)

    def run(self, *argv: str) -> str:
        """What the tool says."""
        done = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            timeout=COMPLETE_S,
            env={**os.environ, **self.environ, "LD_PRELOAD": UMAD},
            cwd=self.folder,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def cut(self, device: str, port: str) -> None:
        """Pull a cable; returns when the simulator asks for the next command."""
        before = self.prompts()
        if self.process.stdin is not None:
            self.process.stdin.write(f'Unlink "{device}"[{port}]\n')
            self.process.stdin.flush()
        self.wait(before + 1)

    def prompts(self) -> int:
        """How often ibsim has asked for a command."""
        return (self.folder / "ibsim.log").read_text().count("sim>")

    def wait(self, prompts: int) -> None:
        """Until it has asked so often."""
        deadline = time.monotonic() + COMPLETE_S
        while self.prompts() < prompts:
            said = (self.folder / "ibsim.log").read_text()
            assert self.process.poll() is None, said
            assert time.monotonic() < deadline, said
            time.sleep(0.02)

    def opensm(self) -> Path:
        """Let OpenSM route the fabric by its fat-tree; the folder of its files."""
        out = self.folder / "opensm"
        out.mkdir(exist_ok=True)
        self.environ |= {"OSM_TMP_DIR": str(out), "OSM_CACHE_DIR": str(out)}
        self.run("opensm", "-R", "ftree", "-f", str(out / "log"), "--once", "-D", "0x43", "-t", ANSWER_MS)
        return out


@contextlib.contextmanager
def simulate(network: Network, folder: Path) -> Iterator[Simulated]:
    """ibsim on a network; it ends with the block."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if sys.platform != "linux" or missing or not Path(UMAD).exists():
        pytest.skip(f"not here: {', '.join(missing) or UMAD} (Debian: ibsim-utils opensm infiniband-diags)")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "net.txt").write_text(ibsim_text(network))
    first = next(device for device in network.devices if device.kind == "hca")
    # The name of its socket is this machine's, not this folder's.
    environ = {"IBSIM_SOCKNAME": f"glaunch{secrets.token_hex(4)}", "SIM_HOST": f"{first.host} {first.name}"}
    with open(folder / "ibsim.log", "w") as log:
        process = subprocess.Popen(
            ["ibsim", "-s", "net.txt"], cwd=folder, stdin=subprocess.PIPE, stdout=log, stderr=log, text=True, env={**os.environ, **environ}
        )
    try:
        simulated = Simulated(network, folder, process, environ)
        simulated.wait(1)
        yield simulated
    finally:
        process.kill()
        process.wait()
        if process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()


def swapped(network: Network, *places: tuple[str, int]) -> Network:
    """The network with the leaves' ends of two nodes' cables swapped: (node, number of its adapter) twice."""
    first, second = (network.links_of[network.hosts[host][number].id][0] for host, number in places)
    leaf = {first: (second.one, second.one_port), second: (first.one, first.one_port)}
    links = [link if link not in leaf else replace(link, one=leaf[link][0], one_port=leaf[link][1]) for link in network.links]
    return replace(network, links=tuple(links))


@dataclass(frozen=True)
class Faulty:
    """A rail-optimised fabric of 32 nodes x 4 rails with two faults, as the real tools see it."""

    sound: Network
    cut: tuple[str, str]
    """(switch, port) of the cable between a leaf and a spine that was pulled."""
    swapped: tuple[tuple[str, int], tuple[str, int]]
    """(node, number of its adapter) twice: each is cabled to the other's leaf."""
    folder: Path
    """Holds ibnetdiscover.txt, ibnetdiscover-p.txt, iblinkinfo.txt, and opensm/ with OpenSM's files."""


@pytest.fixture(scope="session")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Faulty:
    """Two scalable units of 16 nodes, a leaf a rail, four spines; a cable of leaf l0-1-r1 cut, two of n0-0-5 and n0-0-9 swapped."""
    sound = fat_tree(1, 1, 2, 4, 16, 4, 0).network
    places = (("n0-0-5", 1), ("n0-0-9", 2))
    leaf = sound.id_of["l0-1-r1"]
    port = next(link.one_port for link in sound.links_of[leaf] if link.two in sound.label)
    folder = tmp_path_factory.mktemp("faulty")
    with simulate(swapped(sound, *places), folder) as sim:
        sim.cut("l0-1-r1", port)
        sim.opensm()
        for name, argv in READINGS.items():
            (folder / f"{name}.txt").write_text(sim.run(*argv))
    return Faulty(sound, ("l0-1-r1", port), places, folder)


READINGS: dict[str, tuple[str, ...]] = {
    "ibnetdiscover": ("ibnetdiscover", "-t", ANSWER_MS),
    "ibnetdiscover-p": ("ibnetdiscover", "-p", "-t", ANSWER_MS),
    "iblinkinfo": ("iblinkinfo", "-t", ANSWER_MS),
    "iblinkinfo-l": ("iblinkinfo", "-l", "-t", ANSWER_MS),
}
