"""`scontrol -a -d -o show node` → NodeTable."""

import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glaunch.cluster import GpuCount
from glaunch.errors import ParseError
from glaunch.parsers.slurm_nodes import parse_gpus, parse_nodes, parse_state

SHARED = Path(os.environ.get("GLAUNCH_SHARED") or Path(__file__).resolve().parents[3] / "shared")
CAPTURES = sorted(SHARED.glob("captures/*/*"))

LINE = (
    "NodeName={name} Arch=x86_64 CoresPerSocket=32  CPUAlloc={cpus} CPUEfctv=62 CPUTot=64 CPULoad=0.10 AvailableFeatures=ib,h100 "
    "ActiveFeatures={features} Gres={gres} GresDrain=N/A GresUsed={used} NodeAddr=10.77.1.1 NodeHostName={name}-host Version=22.05.8 "
    "OS=Linux 6.1 #1 SMP  RealMemory=500000 AllocMem={memory} FreeMem=23771 Sockets=2 Boards=1 State={state} ThreadsPerCore=1 TmpDisk=0 "
    "Weight=3 Owner=N/A MCS_label=N/A Partitions=gpu,all  BootTime=1796028678 CfgTRES=cpu=64 AllocTRES={tail}"
)


def line(
    name: str = "n1", state: str = "IDLE", gres: str = "gpu:h100:8", used: str = "gpu:h100:0(IDX:N/A)", tail: str = "", **more: str
) -> str:
    """One node as Slurm prints it."""
    return LINE.format(
        **{"name": name, "state": state, "gres": gres, "used": used, "tail": tail, "cpus": "0", "memory": "0", "features": "ib"} | more
    )


def test_a_node_is_read() -> None:
    text = line(state="MIXED+CLOUD", used="gpu:h100:3(IDX:0-1,5)", cpus="24", memory="1000") + "\n"
    nodes = parse_nodes(text)
    assert nodes.names == ("n1",)
    assert nodes.addresses == ("10.77.1.1",)
    assert nodes.states == ("MIXED+CLOUD",)
    assert (int(nodes.cpus_total[0]), int(nodes.cpus_allocated[0])) == (62, 24)
    assert (int(nodes.memory_total_mib[0]), int(nodes.memory_allocated_mib[0])) == (500000, 1000)
    assert (int(nodes.gpus_total[0]), int(nodes.gpus_allocated[0]), nodes.gpu_types[0]) == (8, 3, "h100")
    assert int(nodes.weights[0]) == 3
    assert nodes.features == (frozenset({"ib"}),)
    assert nodes.partitions == (frozenset({"gpu", "all"}),)


@pytest.mark.parametrize(
    ("gres", "counts"),
    [
        ("(null)", {}),
        ("", {}),
        ("gpu", {"": 1}),
        ("gpu:8", {"": 8}),
        ("gpu:h100", {"h100": 1}),
        ("gpu:h100:8(S:0-1)", {"h100": 8}),
        ("gpu:a100:4(S:0),gpu:v100:2(S:1)", {"a100": 4, "v100": 2}),
        ("gpu:h100:8(IDX:0-3,5,7),shard:h100:32,mps:400", {"h100": 8}),
        ("craynetwork:4,gpu:2K", {"": 2048}),
        ("gpu_mem:16280,gpu:1", {"": 1}),
        ("gpu:nvidia_a100_1g.5gb:7", {"nvidia_a100_1g.5gb": 7}),
        ("gpu:h100:0(IDX:N/A)", {"h100": 0}),
    ],
)
def test_gres(gres: str, counts: dict[str, int]) -> None:
    assert parse_gpus(gres) == counts


def test_slices_shards_and_shares_are_no_gpus() -> None:
    nodes = parse_nodes(line(gres="gpu:a100:2,gpu:a100_1g.5gb:14,gpu:1g.10gb:4,shard:8", used="gpu:a100:1,gpu:a100_1g.5gb:3,shard:0"))
    assert (int(nodes.gpus_total[0]), int(nodes.gpus_allocated[0]), nodes.gpu_types[0]) == (2, 1, "a100")
    assert nodes.gpus_at(0) == (GpuCount("1g.10gb", 4, 0, False), GpuCount("a100", 2, 1), GpuCount("a100_1g.5gb", 14, 3, False))


def test_without_details_a_busy_nodes_gpus_are_taken_to_be_busy() -> None:
    def gpus(state: str) -> int:
        return int(parse_nodes(line(state=state).replace(" GresUsed=gpu:h100:0(IDX:N/A)", "")).gpus_allocated[0])

    assert gpus("IDLE+CLOUD") == 0
    assert gpus("MIXED") == 8


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("IDLE", "IDLE"),
        ("IDLE+DRAIN", "IDLE+DRAIN"),
        ("DOWN*+DRAIN", "DOWN+DRAIN+NOT_RESPONDING"),
        ("IDLE*", "IDLE+NOT_RESPONDING"),
        ("idle~", "IDLE+POWERED_DOWN"),
        ("ALLOCATED#", "ALLOCATED+POWERING_UP"),
        ("MIXED-", "MIXED+PLANNED"),
        ("IDLE+CLOUD+POWERED_DOWN", "IDLE+CLOUD+POWERED_DOWN"),
    ],
)
def test_states(text: str, state: str) -> None:
    assert parse_state(text) == state


PIECES = st.text(st.characters(blacklist_categories=["Cs"])) | st.sampled_from(
    ["\n", " State=IDLE", " Gres=gpu:9", " Reason=", " Partitions=x"]
)
FREE_TEXT = st.lists(PIECES).map("".join)


@given(FREE_TEXT, st.sampled_from(["Reason", "Comment", "Extra"]))
def test_what_people_write_changes_nothing(text: str, key: str) -> None:
    hostile = line(state="DOWN+DRAIN", tail=f" {key}={text.replace(chr(10) + 'NodeName=', '')} [root@1796028678]")
    nodes = parse_nodes(f"{hostile}\n{line('n2')}\n")
    plain = parse_nodes(f"{line(state='DOWN+DRAIN')}\n{line('n2')}\n")
    assert nodes == plain


def test_a_forged_second_line_of_a_node_does_not_count() -> None:
    nodes = parse_nodes(line(state="DOWN", tail=" Reason=x") + "\n" + line(state="IDLE"))
    assert nodes.states == ("DOWN",)


@pytest.mark.parametrize(
    "text", ["hello\n", line().replace("State=IDLE", ""), line().replace("CPUTot=64", "CPUTot=many").replace("CPUEfctv=62 ", "")]
)
def test_what_is_no_node_is_said_with_its_line(text: str) -> None:
    with pytest.raises(ParseError, match=r"scontrol show node:2: expected"):
        parse_nodes(line("n0") + "\n" + text)


def test_no_nodes() -> None:
    assert len(parse_nodes("No nodes in the system\n")) == len(parse_nodes("")) == 0


def test_ten_thousand_nodes_are_read_at_once() -> None:
    text = "\n".join(
        line(f"gpu{number:05d}", tail=" CapWatts=n/a CurrentWatts=0 AveWatts=0 ExtSensorsTemp=n/s") for number in range(10_240)
    )
    started = time.process_time()
    nodes = parse_nodes(text)
    spent = time.process_time() - started
    assert len(nodes) == 10_240
    assert int(nodes.gpus_total.sum()) == 81_920
    assert spent < 0.9, "three times what it takes on two old cores"


@pytest.mark.skipif(not CAPTURES, reason="no captures of other Slurm versions here")
@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: f"{path.parent.name}-{path.name}" if isinstance(path, Path) else "none")
def test_other_versions(capture: Path) -> None:
    nodes = parse_nodes((capture / "scontrol-show-node-d-oneliner.txt").read_text())
    assert nodes.names == tuple(f"n{number}" for number in range(1, 9))
    assert set(nodes.gpu_types) == {"h200"}
    assert set(map(int, nodes.gpus_total)) == {8}
    assert all("batch" in partitions for partitions in nodes.partitions)
    assert all((state == "IDLE") == (allocated == 0) for state, allocated in zip(nodes.states, nodes.cpus_allocated, strict=True))


@pytest.mark.skipif(not (SHARED / "corpus").is_dir(), reason="no corpus of Slurm outputs here")
def test_the_corpus_reads() -> None:
    files = [
        path
        for pattern in ("runs/*/*/scontrol_show_nodes_o.txt", "literals/reframe/*_o.txt")
        for path in (SHARED / "corpus/slurm-output").glob(pattern)
    ]
    assert files
    for path in files:
        assert len(parse_nodes(path.read_text())) > 5, path
