"""Kept answers, captures, and other names for people and machines."""

import json
import os
import re
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glaunch import config
from glaunch.cluster import Cluster
from glaunch.errors import SlurmError, UsageError
from glaunch.gateways.allowance import with_accounting
from glaunch.gateways.capture import Asker, Recorded, asker_of, read_capture, record, replay, taken_at_s, write_capture
from glaunch.gateways.kept import Answer, Kept, cluster_key, read_cluster
from glaunch.gateways.mask import Mask
from glaunch.gateways.process import Completed
from glaunch.gateways.slurm import QUESTIONS, SlurmCommands
from glaunch.history import History
from glaunch.hostlist import expand
from glaunch.parsers.slurm_accounting import ACCOUNT_FIELDS, QOS_FIELDS, USER_FIELDS, parse_accounting
from glaunch.pipeline import World, see
from glaunch.placement.eligible import eligible
from glaunch.placement.partition import choose_partition
from glaunch.request import Request

ADA = Asker("ada", frozenset({"staff"}))
DEMO = Path(__file__).resolve().parents[2] / "site" / "captures" / "demo16"


def conf(folder: Path) -> dict[str, str]:
    (folder / "slurm.conf").write_text("ClusterName=x\n")
    return {"SLURM_CONF": str(folder / "slurm.conf")}


def test_an_answer_is_kept_for_a_while(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "kept", environ=conf(tmp_path))
    kept.put("config", Answer("é\udcff\n", 1000.0))
    assert kept.get("config", 1060.0, 60.0) == Answer("é\udcff\n", 1000.0)
    assert kept.get("config", 1061.0, 60.0) is None
    assert kept.get("config", 999.0, 60.0) is None
    assert kept.get("topology", 1000.0, 60.0) is None
    (path,) = (tmp_path / "kept").iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_another_configuration_has_other_answers(tmp_path: Path) -> None:
    environ = conf(tmp_path)
    Kept(tmp_path / "kept", environ=environ).put("config", Answer("x", 1.0))
    assert Kept(tmp_path / "kept", environ={**environ, "SLURM_CLUSTERS": "red"}).get("config", 1.0, 9) is None
    assert Kept(tmp_path / "kept", environ=environ, told_by="pyslurm").get("config", 1.0, 9) is None
    os.utime(environ["SLURM_CONF"], (5, 5))
    assert Kept(tmp_path / "kept", environ=environ).get("config", 1.0, 9) is None
    nowhere = Kept(tmp_path / "none", environ={"SLURM_CONF": "/nonexistent"})
    nowhere.put("config", Answer("x", 1.0))
    assert nowhere.get("config", 1.0, 9) is None
    assert not (tmp_path / "none").exists()
    assert cluster_key({}, [str(tmp_path / "slurm.conf")])


@given(st.binary(max_size=60))
def test_a_broken_file_is_as_if_it_were_not_there(tmp_path_factory: pytest.TempPathFactory, junk: bytes) -> None:
    folder = tmp_path_factory.mktemp("kept")
    kept = Kept(folder / "kept", environ=conf(folder))
    kept.put("config", Answer("x", 1.0))
    (path,) = (folder / "kept").iterdir()
    path.write_bytes(junk)
    assert kept.get("config", 1.0, 9) is None


@pytest.mark.parametrize("change", [{"taken_at_s": 10**400}, {"taken_at_s": float("nan")}, {"text": None}, {"text": ["x"]}])
def test_a_strange_value_in_it_is_as_if_it_were_not_there(tmp_path: Path, change: Mapping[str, object]) -> None:
    kept = Kept(tmp_path / "kept", environ=conf(tmp_path))
    kept.put("config", Answer("x", 1.0))
    (path,) = (tmp_path / "kept").iterdir()
    path.write_bytes(zlib.compress(json.dumps({**json.loads(zlib.decompress(path.read_bytes())), **change}).encode()))
    assert kept.get("config", 1.0, 9) is None
    path.write_bytes(zlib.compress(b"[" * 200_000))
    assert kept.get("config", 1.0, 9) is None
    path.unlink()
    os.mkfifo(path)
    assert kept.get("config", 1.0, 9) is None


@pytest.mark.parametrize("question", ["config", "partitions", "topology", "version", "nodes"])
def test_an_answer_that_is_kept_and_cannot_be_read_is_asked_for_anew(tmp_path: Path, question: str) -> None:
    kept = Kept(tmp_path / "kept", environ=conf(tmp_path))
    world = World(
        counted(DEMO)[0], config.load(home=tmp_path, cwd=tmp_path, environ={}, etc=tmp_path), (), {}, History(tmp_path / "state", "h"), kept
    )
    sound = see(world, max_age_s=60.0)
    kept.put(question, Answer("what nobody can read", time.time()))
    again = see(world, max_age_s=60.0)
    assert (again[0].nodes, again[0].partitions, again[0].slurm_version) == (sound[0].nodes, sound[0].partitions, sound[0].slurm_version)
    assert again[1].switches == sound[1].switches
    found = kept.get(question, time.time(), 60.0)
    assert found is not None
    assert found.text != "what nobody can read"


def test_a_folder_that_cannot_be_written_is_no_reason_to_fail(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("a file")
    Kept(tmp_path / "kept", environ=conf(tmp_path)).put("config", Answer("x", 1.0))
    assert (tmp_path / "kept").read_text() == "a file"


def counted(folder: Path) -> tuple[SlurmCommands, list[Recorded]]:
    asked: list[Recorded] = []
    return SlurmCommands(record(replay(folder), asked, 0.0), environ={}), asked


def test_what_is_kept_is_not_asked(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "kept", environ=conf(tmp_path))

    def questions(now_s: float, **words: float) -> list[str]:
        gateway, asked = counted(DEMO)
        read_cluster(gateway, now_s, kept, **words)
        by_argv = {argv: question for question, argv in QUESTIONS.items()}
        return sorted(by_argv[entry.done.argv] for entry in asked)

    assert questions(1000.0) == sorted(QUESTIONS)
    assert questions(1001.0) == ["nodes", "reservations"]
    assert questions(1002.0, nodes_max_age_s=60) == ["nodes", "reservations"]
    assert questions(1062.0, nodes_max_age_s=60) == ["reservations"]
    assert questions(1062.0) == ["nodes", "reservations"]
    assert questions(1063.0, nodes_max_age_s=60) == ["nodes", "reservations"]
    assert questions(9000.0) == sorted(QUESTIONS)


def test_the_capture_that_ships_can_be_planned_from() -> None:
    cluster, topology = read_cluster(SlurmCommands(replay(DEMO), environ={}), taken_at_s(DEMO))
    assert topology.count("SwitchName=") == 7
    request = Request(("train.py",), tasks=64)
    answer = eligible(request, cluster, choose_partition(request, cluster), now_s=taken_at_s(DEMO), time_limit_s=3600)
    assert (answer.layout.nodes, answer.layout.gpu_type, len(answer.nodes), len(answer.could_ever)) == (8, "h100", 13, 16)
    text = "".join(path.read_text() for path in DEMO.rglob("*") if path.is_file())
    assert "=/" not in text.replace("= /hidden", "")
    assert "/work" not in text


def write(folder: Path, *texts: str, plain: bool = False) -> list[str]:
    write_capture(
        folder, [Recorded(Completed(("scontrol", "show", f"x{n}"), 0, text, ""), 1.0) for n, text in enumerate(texts)], plain=plain
    )
    return [entry.done.stdout for entry in read_capture(folder)]


def test_a_capture_comes_back_as_it_was(tmp_path: Path) -> None:
    texts = ["NodeName=a1 NodeAddr=10.1.2.3 Reason=bob broke it [bob@1]\n", "\udcff \r\n", ""]
    assert write(tmp_path / "c", *texts, plain=True) == texts
    with pytest.raises(UsageError, match="not empty"):
        write(tmp_path / "c", "x")


def test_masked_the_names_are_others_and_the_same_ones_everywhere(tmp_path: Path) -> None:
    nodes, switches, more = write(
        tmp_path / "c",
        "NodeName=gpu-a07 NodeAddr=10.1.2.3 NodeHostName=gpu-a07.hpc.example.org OS=Linux 6.1-secret RealMemory=1 State=IDLE+DRAIN "
        "Gres=gpu:h100:8 Reason=bob broke it [bob@1]\nNodeName=cn1 NodeAddr=10.1.2.4 NodeHostName=cn1 State=IDLE\n",
        "SwitchName=leaf1 Level=0 Nodes=gpu-a[07-09],cn[1-3]\n",
        "ReservationName=r Nodes=gpu-a07 Users=bob,alice,root Accounts=red Groups=(null)\n"
        "PartitionName=p AllowAccounts=red,blue AllowGroups=ALL\n"
        "SlurmctldHost[0] = adminbox(10.1.2.3)\n"
        "SlurmUser = carol(77)\nStateSaveLocation = /srv/state\nSlurmctld(primary) at adminbox is UP\n",
    )
    text = nodes + switches + more
    for secret in (
        "gpu-a",
        "cn1",
        "example.org",
        "10.1.2",
        "bob",
        "alice",
        "carol",
        "red",
        "blue",
        "adminbox",
        "/srv",
        "6.1-secret",
        "broke",
    ):
        assert secret not in text, secret
    host = nodes.split()[0].removeprefix("NodeName=")
    assert host in expand(switches.split("Nodes=")[1].strip())
    assert f"Nodes={host} " in more
    assert "Users=user" in more
    assert ",root " in more
    assert "Gres=gpu:h100:8" in nodes
    address = nodes.split("NodeAddr=")[1].split()[0]
    assert f"({address})" in more


HOSTS = st.from_regex(r"[a-z]{1,4}(-[a-z]{1,2})?[0-9]{1,3}(-[a-z][0-9]{1,2})?", fullmatch=True)


@given(st.lists(HOSTS, min_size=1, max_size=8, unique=True))
def test_different_hosts_stay_different(hosts: list[str]) -> None:
    text = "".join(f"NodeName={host} State=IDLE\n" for host in hosts)
    masked = [line.split()[0] for line in Mask([text])(text).splitlines()]
    assert len(set(masked)) == len(hosts)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"commands"', '"other"'),
        ("glaunch.capture/1", "glaunch.capture/9"),
        ('"file": "', '"file": "../'),
        ('"argv": [', '"argv": 1, "a": ['),
    ],
)
def test_what_is_no_capture_is_said(tmp_path: Path, old: str, new: str) -> None:
    write(tmp_path / "c", "x", plain=True)
    index = tmp_path / "c" / "commands.json"
    assert old in index.read_text()
    index.write_text(index.read_text().replace(old, new))
    with pytest.raises(UsageError):
        replay(tmp_path / "c")


def test_a_capture_says_what_it_lacks(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nope"):
        with pytest.raises(UsageError, match="is no capture"):
            replay(folder)
    gateway = SlurmCommands(replay(DEMO), environ={})
    with pytest.raises(SlurmError, match="has no answer of: sbatch"):
        gateway.submit("/x")


def accounting_of(folder: Path, answers: Mapping[str, Completed], **config: str) -> tuple[list[Cluster], list[tuple[str, ...]]]:
    """The cluster with its accounting, asked for four times (the third one anew), and what was asked."""
    asked: list[tuple[str, ...]] = []

    def run(argv: Sequence[str], stdin: str, timeout_s: float) -> Completed:
        asked.append(tuple(argv))
        return answers[argv[3]]

    plain = replace(
        read_cluster(SlurmCommands(replay(DEMO)), 5.0)[0],
        config={"AccountingStorageType": "accounting_storage/slurmdbd", "AccountingStorageEnforce": "limits", **config},
    )
    kept = Kept(folder / "kept", environ=conf(folder))
    seen = [
        with_accounting(plain, SlurmCommands(run), "ada", now_s, kept, anew=anew)
        for now_s, anew in ((0.0, False), (9.0, False), (10.0, True), (311.0, False))
    ]
    return seen, asked


def test_accounting_is_asked_once_an_hour_and_before_a_refusal(tmp_path: Path) -> None:
    qos, user, assoc = ("|".join(names) for names in (QOS_FIELDS, USER_FIELDS, ACCOUNT_FIELDS))
    texts = {"qos": f"{qos}\nnormal{'|' * (len(QOS_FIELDS) - 1)}\n", "user": f"{user}\n", "assoc": f"{assoc}\n"}
    seen, asked = accounting_of(tmp_path, {name: Completed((), 0, text, "") for name, text in texts.items()})
    assert all(one.accounting is not None and list(one.accounting.qos) == ["normal"] for one in seen)
    assert sorted(argv[:4] for argv in asked) == [
        ("sacctmgr", "-P", "show", name) for name in ("assoc", "assoc", "qos", "qos", "user", "user")
    ]
    assert all("name=ada" in argv for argv in asked if argv[3] == "user")


@pytest.mark.parametrize(
    "answer",
    [
        Completed(("sacctmgr",), 1, "", "sacctmgr: error: slurm_persist_conn_open: Connection refused"),
        Completed(("sacctmgr",), None, "", ""),
        Completed(("sacctmgr",), 0, "Name\nnormal\n", ""),
        Completed(("sacctmgr",), 1, "", "You are not running a supported accounting_storage plugin"),
    ],
)
def test_a_database_that_does_not_answer_is_a_note_and_left_alone(tmp_path: Path, answer: Completed) -> None:
    seen, asked = accounting_of(tmp_path, dict.fromkeys(("qos", "user", "assoc"), answer))
    assert all(one.accounting is None and one.accounting_note.startswith("what your account and QOS allow is not known: ") for one in seen)
    assert {argv[3] for argv in asked} == {"qos", "user", "assoc"}
    assert len(asked) == 6, "once, and once more five minutes later"


def test_accounting_that_is_kept_and_cannot_be_read_is_asked_for_anew(tmp_path: Path) -> None:
    Kept(tmp_path / "kept", environ=conf(tmp_path)).put("allowance", Answer("x\fy\fz", 0.0))
    test_accounting_is_asked_once_an_hour_and_before_a_refusal(tmp_path)


def test_nobody_is_asked_where_nothing_is_enforced(tmp_path: Path) -> None:
    assert accounting_of(tmp_path, {}, AccountingStorageEnforce="associations")[1] == []
    assert accounting_of(tmp_path, {}, AccountingStorageType="accounting_storage/none")[1] == []


ANSWERS = {
    "qos": "Name|…\nnormal{}\nsmall|||cluster|||node=4{}\n".format("|" * (len(QOS_FIELDS) - 1), "|" * (len(QOS_FIELDS) - 7)),
    "user": "User|Def Acct|…\nada|Red|c|Red||normal,small|normal{}\n".format("|" * (len(USER_FIELDS) - 7)),
    "assoc": "Cluster|…\nc|root||||\nc|lab of x||root||\nc|Red||lab of x|node=9|\n",
}


def accounted(folder: Path, *, plain: bool, code: int = 0, asker: Asker | None = ADA) -> Path:
    """A capture of what ada was told of accounting, and of a partition for her account and one of her groups."""
    texts = {name: text if code == 0 else "" for name, text in ANSWERS.items()}
    recorded: list[Recorded] = []

    def run(argv: Sequence[str], stdin: str, timeout_s: float) -> Completed:
        return Completed(tuple(argv), code, texts[argv[3]], "ada may not ask" if code else "")

    gateway = SlurmCommands(record(run, recorded, 7.0), environ={})
    if code == 0:
        gateway.allowance("ada")
    else:
        with pytest.raises(SlurmError):
            gateway.allowance("ada")
    partition = "PartitionName=gpu AllowAccounts=red AllowGroups=staff,others"
    recorded.append(Recorded(Completed(("scontrol", "show", "partition"), 0, partition, ""), 7.0))
    write_capture(folder / "c", recorded, plain=plain, asker=asker)
    return folder / "c"


@pytest.mark.parametrize("plain", [True, False])
def test_a_capture_answers_what_accounting_allowed_the_one_who_took_it(tmp_path: Path, plain: bool) -> None:
    folder = accounted(tmp_path, plain=plain)
    asker = asker_of(folder)
    assert asker is not None
    qos, users, accounts = SlurmCommands(replay(folder), environ={}).allowance(asker.user)
    (row,) = (found := parse_accounting(qos, users, accounts, "c")).associations
    assert (row.qos, row.default_qos, found.default_account) == (("normal", "small"), "normal", row.account)
    assert [(one.name == row.account, one.limits.together.get("node")) for one in found.line_of(row.account)] == [
        (True, 9),
        (False, None),
        (False, None),
    ]
    assert found.qos["small"].limits.per_job == {"node": 4}
    text = "".join(path.read_text() for path in folder.iterdir()) + "".join(path.name for path in folder.iterdir())
    names = ("ada", "Red", "red", "lab of x", "staff")
    assert [name for name in names if re.search(rf"\b{name}\b", text)] == (list(names) if plain else [])
    if not plain:
        assert f"AllowAccounts={row.account} " in text, "the same account, whatever its case"
        assert f"AllowGroups={min(asker.groups)}," in text


def test_a_database_that_was_silent_is_silent_in_the_capture_too(tmp_path: Path) -> None:
    folder = accounted(tmp_path, plain=False, code=1)
    asker = asker_of(folder)
    assert asker is not None
    with pytest.raises(SlurmError, match="may not ask") as told:
        SlurmCommands(replay(folder), environ={}).allowance(asker.user)
    assert "ada" not in f"{told.value}{(folder / 'commands.json').read_text()}"


def test_an_older_capture_does_not_say_whose_answers_it_holds() -> None:
    assert asker_of(DEMO) is None
