"""What stands in the sandbox's /etc, and which folders of the machine are shown: pure text."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glaunch.errors import GlaunchError, UsageError
from glaunch.sandbox import inner_python, packages, texts
from glaunch.sandbox.layout import design
from glaunch.sandbox.mounts import fstab, system_mounts
from glaunch.sandbox.options import Gpus, SandboxOptions, parse_conf, parse_gpus, parse_rate

NODES = ("n001", "n002", "n003")


def conf(*asked: str, gpus: tuple[Gpus, ...] = (Gpus("h100", 8),), accounting: bool = False) -> list[str]:
    return texts.slurm_conf(NODES, texts.gpus_of(NODES, gpus), "topology/tree", asked, accounting).splitlines()


def test_a_line_that_is_asked_for_replaces_ours() -> None:
    assert "SelectTypeParameters=CR_Core" in conf()
    lines = conf("selecttypeparameters=CR_Core_Memory", "SlurmdTimeout=5")
    assert [line for line in lines if line.lower().startswith("selecttypeparameters=")] == ["selecttypeparameters=CR_Core_Memory"]
    assert "SlurmdTimeout=5" in lines


def test_partitions_are_added_not_replaced() -> None:
    lines = conf("PartitionName=a Nodes=n001", "PartitionName=b Nodes=n002")
    assert sum(line.startswith("PartitionName=") for line in lines) == 3


def test_nodes_can_differ_in_gpus_and_have_none() -> None:
    lines = conf(gpus=(parse_gpus("h100:8"), parse_gpus("n002=a100:4"), parse_gpus("n003=0")))
    assert [line for line in lines if line.startswith("NodeName=n")] == [
        "NodeName=n001 Gres=gpu:h100:8",
        "NodeName=n002 Gres=gpu:a100:4",
        "NodeName=n003",
    ]
    assert not any(line.startswith("GresTypes") for line in conf(gpus=(Gpus("h100", 0),)))
    with pytest.raises(UsageError, match="n009"):
        texts.gpus_of(NODES, [parse_gpus("n009=8")])


@pytest.mark.parametrize("text", ["eight", "h100:", "=8", "h100:8:8", "-1", ""])
def test_what_is_no_number_of_gpus_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="h100:8"):
        parse_gpus(text)


@pytest.mark.parametrize("text", ["SlurmdTimeout", "=5", "A=b\nC=d", "A="])
def test_what_is_no_line_of_slurm_conf_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="SlurmdTimeout=5"):
        parse_conf(text)


def test_rates() -> None:
    assert [parse_rate(text) for text in ("", "400mbit", "1.5gbit", "1Gibit")] == ["", "400mbit", "1.5gbit", "1Gibit"]
    with pytest.raises(UsageError, match="fast"):
        parse_rate("fast")


def test_the_machines_people_are_not_in_the_sandbox_and_its_daemons_are() -> None:
    people = "root:x:0:0:root:/root:/bin/zsh\nslurm:x:64030:64030::/none:/usr/sbin/nologin\nsshd:x:100:65534::/run/sshd:/usr/sbin/nologin\n"
    people += "carol:x:1000:1000::/home/carol:/bin/bash\nada:x:900:900::/opt/ada:/bin/sh\n+::::::\n"
    group = "root:x:0:\nslurm:x:64030:\ncarol:x:1000:\ndocker:x:999:carol\n"
    files = texts.accounts(people, group)
    assert [line.split(":")[0] for line in files["passwd"].splitlines()] == ["root", "ada", "bob", "slurm", "sshd"]
    assert "ada:*:2001:2001::/home/ada:/bin/bash" in files["passwd"]
    assert "carol:x:1000:" not in files["group"]
    assert len(files["shadow"].splitlines()) == 5


@pytest.mark.parametrize(
    ("fields", "seen"),
    [
        ({"shape": "leaf:2 node:2", "topology": Path("/dev/null")}, "--shape and --topology"),
        ({"shape": "leaf:2 node:2", "nodes": 9}, "the switches have 4 nodes"),
        ({"nodes": 5000}, "too many"),
        ({"slurm_conf": ("no line",)}, "no line of slurm.conf"),
        ({"uplink": "fast"}, "no rate"),
        ({"ssh_users": ("root", "carol")}, "carol"),
        ({"slurm_root": Path("/dev")}, "no root file system"),
    ],
)
def test_options_that_do_not_go_together(fields: dict[str, object], seen: str) -> None:
    with pytest.raises(UsageError, match=seen):
        design(SandboxOptions(**fields))  # type: ignore[arg-type]


def test_block_topologies_get_their_plugin(tmp_path: Path) -> None:
    file = tmp_path / "topology.conf"
    file.write_text("BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-8]\nBlockSizes=4\n")
    plan = design(SandboxOptions(topology=file))
    assert (plan.switches.plugin, plan.switches.file) == ("topology/block", "topology.conf")
    assert plan.nodes == tuple(f"n{i}" for i in range(1, 9))


def test_a_shape_of_blocks_is_a_topology_of_blocks() -> None:
    plan = design(SandboxOptions(shape="block:3 node:4"))
    assert plan.switches.plugin == "topology/block"
    assert (
        plan.switches.text
        == "BlockName=block1 Nodes=n[001-004]\nBlockName=block2 Nodes=n[005-008]\nBlockName=block3 Nodes=n[009-012]\nBlockSizes=4\n"
    )
    assert design(SandboxOptions(shape="block:4 node:2")).switches.text.endswith("BlockSizes=2,4\n")


def test_a_topology_yaml_goes_to_slurm_as_it_is_and_its_largest_topology_has_the_nodes(tmp_path: Path) -> None:
    file = tmp_path / "mine"
    file.write_text(
        "- topology: any\n  cluster_default: true\n  flat: true\n- topology: nvl\n  block:\n    block_sizes: [2]\n"
        "    blocks:\n      - block: b1\n        nodes: n[1-2]\n      - block: b2\n        nodes: n[3-4]\n"
    )
    plan = design(SandboxOptions(topology=file))
    assert (plan.switches.file, plan.switches.text) == ("topology.yaml", file.read_text())
    assert plan.nodes == ("n1", "n2", "n3", "n4")


def test_an_fstab_escapes_what_fstab_needs_escaped() -> None:
    text = fstab("/var/tmp/with blank,comma:colon/mnt/disk", "/srv", "/home", ("layer", "base"), ["/usr"], ["/opt/a#b"], proc=True)
    rows = [line.split() for line in text.splitlines()]
    assert {len(row) for row in rows} == {6}
    assert rows[0][1] == "/var/tmp/with\\040blank,comma:colon/mnt/disk/root"
    assert rows[0][3].startswith("lowerdir=../layer:../base,")
    assert rows[1][3].startswith("lowerdir=../layer/usr:../base/usr,")
    assert rows[-1][:2] == ["/opt/a\\043b", "/var/tmp/with\\040blank,comma:colon/mnt/disk/root/opt/a\\043b"]


def test_file_systems_of_the_system_are_found_and_others_are_not() -> None:
    lines = [
        f"36 35 98:0 / {point} rw,noatime master:1 - ext4 /dev/root rw"
        for point in ("/", "/usr/lib", "/usr", "/proc", "/home", "/var/log", "/data")
    ]
    assert system_mounts("\n".join(lines)) == ("/usr", "/usr/lib")


@given(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts)), max_size=8))
def test_outermost_keeps_exactly_what_no_other_contains(paths: list[str]) -> None:
    kept = inner_python.outermost(paths)
    for path in paths:
        assert sum(path == top or path.startswith(top + "/") for top in kept) == 1
    assert set(kept) <= set(paths)


def test_the_wrapper_survives_a_blank_and_a_quote_in_the_path() -> None:
    python = inner_python.Outer("/opt/it's here/bin/python", ("/opt/it's here",), ("/opt/it's here/lib",), "/opt/it's here/lib/glaunch")
    assert "'/opt/it'\"'\"'s here/bin/python'" in inner_python.wrapper(python, other_root=False)
    compile(inner_python.starter(python, other_root=False), "starter", "exec")


def test_missing_packages_are_named_by_package(tmp_path: Path) -> None:
    (tmp_path / "usr/sbin").mkdir(parents=True)
    for name in ("slurmctld", "slurmd", "munged", "sshd"):
        (tmp_path / "usr/sbin" / name).touch()
    assert packages.missing(tmp_path, accounting=True) == (
        "slurm-client",
        "openssh-client",
        "iproute2",
        "util-linux",
        "util-linux-extra",
        "slurmdbd",
        "mariadb-server",
    )
    assert f"--slurm-root {tmp_path} --install" in packages.hint(tmp_path)


def test_no_service_starts_while_packages_are_installed(tmp_path: Path) -> None:
    policy = tmp_path / "policy-rc.d"
    with packages.no_service_starts(policy):
        assert "exit 101" in policy.read_text()
        assert policy.stat().st_mode & 0o111
    assert not policy.exists()


def test_a_policy_of_the_machines_own_stays(tmp_path: Path) -> None:
    policy = tmp_path / "policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")
    with packages.no_service_starts(policy):
        pass
    assert policy.read_text() == "#!/bin/sh\nexit 101\n"


def test_a_policy_that_a_killed_run_of_ours_left_goes(tmp_path: Path) -> None:
    policy = tmp_path / "policy-rc.d"
    with packages.no_service_starts(policy):
        left = policy.read_text()
    policy.write_text(left)
    with pytest.raises(GlaunchError), packages.no_service_starts(policy):
        raise GlaunchError("apt-get failed")
    assert not policy.exists()
