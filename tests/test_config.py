"""Layers, places, what is refused: with real files, as they lie on a machine."""

import os
import socket
from collections.abc import Mapping
from pathlib import Path

import pytest

from glaunch import config
from glaunch.errors import ConfigError
from glaunch.parsers.settings_file import parse_settings
from glaunch.settings import OPTION, PROJECT, SITE, USER, VARIABLE, Settings, Value
from glaunch.trusted_file import MAX_BYTES, read_text


class Machine:
    """A home, a folder of the site and a working folder."""

    def __init__(self, root: Path) -> None:
        self.home, self.etc, self.cwd = root / "home", root / "etc", root / "work"
        self.user, self.project = self.home / ".config/glaunch/config.yaml", self.cwd / "glaunch.yaml"
        for folder in (self.user.parent, self.etc, self.cwd):
            folder.mkdir(parents=True)
            folder.chmod(0o755)

    def site(self, text: str, name: str = "site.yaml") -> Path:
        """A file of the site."""
        return self.write(self.etc / name, text)

    def write(self, path: Path, text: str) -> Path:
        """A file with an installed file's mode."""
        path.write_text(text)
        path.chmod(0o644)
        return path

    def load(self, environ: Mapping[str, str] | None = None, options: Mapping[str, tuple[Value, str]] | None = None) -> Settings:
        """Settings as this machine's user has them."""
        return config.load(home=self.home, cwd=self.cwd, environ=environ or {}, options=options or {}, etc=self.etc)

    def refused(self, environ: Mapping[str, str] | None = None, options: Mapping[str, tuple[Value, str]] | None = None) -> ConfigError:
        """The error that loading ends with."""
        with pytest.raises(ConfigError) as caught:
            self.load(environ, options)
        return caught.value


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_nothing_set_is_what_ships(machine: Machine) -> None:
    settings = machine.load()
    assert settings["ssh.port"] == 22
    assert settings.where("ssh.port").startswith("site/defaults.yaml:")
    assert settings.words("ssh.known_hosts")[0] == f"{machine.home}/.ssh/known_hosts"


def test_each_layer_wins_over_the_one_before(machine: Machine, tmp_path: Path) -> None:
    trial = machine.write(tmp_path / "try.yaml", "# mine\npartition: trial\n")
    environ: dict[str, str] = {}
    options: dict[str, tuple[Value, str]] = {}

    def now() -> tuple[Value, str, int]:
        setting = machine.load(environ, options).entries["partition"]
        return setting.value, setting.where, setting.layer

    first = machine.site("partition: one\n", "10-all.yaml")
    assert now() == ("one", f"{first}:1", SITE)
    second = machine.site("\npartition: two\n", "20-this.yaml")
    assert now() == ("two", f"{second}:2", SITE)
    environ["GLAUNCH_SITE"] = str(trial)
    assert now()[:2] == ("trial", f"{trial}:2")
    machine.write(machine.user, "partition: user\n")
    assert now() == ("user", f"{machine.user}:1", USER)
    machine.write(machine.project, "partition: project\n")
    assert now() == ("project", f"{machine.project}:1", PROJECT)
    environ["GLAUNCH_PARTITION"] = "variable"
    assert now() == ("variable", "GLAUNCH_PARTITION", VARIABLE)
    options["partition"] = ("option", "-p")
    assert now() == ("option", "-p", OPTION)


def test_the_users_file_follows_xdg(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "xdg/glaunch").mkdir(parents=True)
    path = machine.write(tmp_path / "xdg/glaunch/config.yaml", "qos: long\n")
    assert machine.load({"XDG_CONFIG_HOME": str(tmp_path / "xdg")}).where("qos") == f"{path}:1"


def test_glaunch_site_may_be_a_folder_and_must_exist(machine: Machine, tmp_path: Path) -> None:
    folder = tmp_path / "try"
    folder.mkdir(mode=0o755)
    machine.write(folder / "a.yaml", "qos: a\n")
    machine.write(folder / "b.yaml", "qos: b\n")
    assert machine.load({"GLAUNCH_SITE": str(folder)})["qos"] == "b"
    assert machine.refused({"GLAUNCH_SITE": str(tmp_path / "none")}).message.startswith("GLAUNCH_SITE: there is no")


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("qos: x\nrundirr: /x", "2: unknown key 'rundirr'", "did you mean 'rundir'?"),
        ("ssh: {fanuot: 3}", "1: unknown key 'ssh.fanuot'", "did you mean 'ssh.fanout'?"),
        ("fanout: 3", "1: unknown key 'fanout'", "did you mean 'ssh.fanout'?"),
        ("zzzz: 3", "1: unknown key 'zzzz'", "glaunch config keys lists all keys"),
        ("<<: {qos: x}", "1: unknown key '<<'", "glaunch config keys lists all keys"),
        ("rundir: /scratch", "1: 'rundir' holds keys, got '/scratch'", "its keys: rundir.path, rundir.shared, rundir.local"),
        ("ssh:\n  enabled: no", "2: 'ssh.enabled' takes true or false, got 'no'", "write true or false"),
        ("ssh.port: 0o22", "1: 'ssh.port' takes a whole number from 1 to 65535, got '0o22'", ""),
        ("ssh.port: 022", "1: 'ssh.port' takes a whole number from 1 to 65535, got '022'", ""),
        ("ssh.port: 65536", "1: 'ssh.port' takes a whole number from 1 to 65535, got '65536'", ""),
        ("ssh.port: [22]", "1: 'ssh.port' takes a whole number from 1 to 65535, got a list", ""),
        ("time: tomorrow", "1: 'time' takes a time as Slurm writes it, e.g. 90 (minutes), 1:30:00, 2-12, got 'tomorrow'", ""),
        ("placement.mode: best", "1: 'placement.mode' takes one of auto, pin, prefer, order, got 'best'", ""),
        (
            "placement.allowed: order",
            "1: 'placement.allowed' takes a list of pin, prefer, order, got 'order'",
            "write it as a list: [a, b]",
        ),
        (
            "placement.allowed: []",
            "1: 'placement.allowed' takes a list of pin, prefer, order, got an empty list",
            "write it as a list: [a, b]",
        ),
        (
            "placement.allowed: [pni]",
            "1: 'placement.allowed' takes a list of pin, prefer, order, got 'pni' in it",
            "write it as a list: [a, b]",
        ),
        ("ssh: {port: 1}\nssh.port: 2", "2: 'ssh.port' stands already on line 1", "keep one of the two"),
        (
            "logs.node_dir: tmp",
            "1: 'logs.node_dir' takes an absolute path as nodes see it, letters, digits and / . _ - only, got 'tmp'",
            "",
        ),
        ("logs.node_dir: /tmp/$(id)", "1: 'logs.node_dir' takes an absolute path", ""),
        ('account: "a\\nb"', "1: a value of one line is expected, got the character U+000A in 'a\\nb'", ""),
        ("environment.set: {1X: y}", "1: '1X' is no name of a variable", "letters, digits and _ only, no digit first"),
        ("environment.set: {X: [y]}", "1: 'environment.set' takes names and texts, e.g. {NAME: value}, got a list in it", ""),
        ("environment.set: {X: {valeu: y}}", "1: expected {value: …, reason: …}, got the names valeu", ""),
        ("sbatch: {time: 3}", "1: sbatch's 'time' is a key of its own", "write it as 'time'"),
        ("sbatch: {nodes: 3}", "1: sbatch's 'nodes' cannot be set here: glaunch decides it for each job", ""),
        ("sbatch: {--mem: 3}", "1: sbatch's '--mem' cannot be set here: it is no long option of sbatch", ""),
        ("partitions: {gpu: {partition: x}}", "1: 'partition' cannot differ by partition", "write it outside `partitions`"),
        ("partitions: {gpu: {tiem: 4}}", "1: unknown key 'tiem'", "did you mean 'time'?"),
        ("partitions: [gpu]", "1: 'partitions' takes a partition's name and its keys, got a list", ""),
        ("partitions: {gpu: 4}", "1: expected keys for partition 'gpu', got '4'", "e.g. {time: 4:00:00}"),
        ("protect: {tiem: no}", "1: unknown key 'tiem'", "did you mean 'time'?"),
        ("protect: {time: ''}", "1: expected a message for users, got ''", "e.g. 'Ask hpc-support'"),
        ("min_version: new", "1: 'min_version' takes a version, e.g. 0.3, got 'new'", ""),
        ("- a", "1: expected keys and values, got a list", "glaunch config keys"),
    ],
)
def test_refused_with_file_line_and_the_next_thing_to_type(machine: Machine, text: str, message: str, hint: str) -> None:
    path = machine.site(text)
    error = machine.refused()
    assert error.message.startswith(f"{path}:{message}")
    assert error.hint.startswith(hint)
    assert error.exit_code == 2


def test_texts_stay_as_written(machine: Machine) -> None:
    machine.site(
        "account: 0123\nqos: no\ntime: 12:30:00\nsbatch: {constraint: 'a&b', mail-type: FAIL}\nenvironment.set: {A: 010, B: yes, C: ''}"
    )
    settings = machine.load()
    assert [settings[key] for key in ("account", "qos", "time")] == ["0123", "no", "12:30:00"]
    assert settings.table("environment.set") == {"A": "010", "B": "yes", "C": ""}
    assert settings.table("sbatch") == {"constraint": "a&b", "mail-type": "FAIL"}


def test_tables_are_put_together_and_a_line_can_be_taken_back(machine: Machine) -> None:
    site = machine.site("environment:\n  set:\n    A: {value: 1, reason: our\n      switches}\n    B: 2\n")
    mine = machine.write(machine.user, "environment.set:\n  B: null\n  C: 3\n")
    settings = machine.load()
    assert settings.table("environment.set") == {"A": "1", "C": "3"}
    assert [(row.name, row.value, row.where, row.reason, row.layer) for row in settings.rows("environment.set")] == [
        ("A", "1", f"{site}:3", "our switches", SITE),
        ("B", None, f"{mine}:2", "", USER),
        ("C", "3", f"{mine}:3", "", USER),
    ]


def test_partitions(machine: Machine) -> None:
    machine.site(
        "time: 1:00:00\nfabric.class: roce\npartitions:\n"
        "  gpu: {fabric: {class: infiniband}, time: 8:00:00, environment.set: {A: 1}}\n  cpu:\n"
    )
    settings = machine.load()
    gpu = settings.for_partition("gpu")
    assert (settings["fabric.class"], gpu["fabric.class"], gpu["time"], gpu.table("environment.set")) == (
        "roce",
        "infiniband",
        "8:00:00",
        {"A": "1"},
    )
    assert gpu.where("time").endswith("site.yaml:4")
    machine.write(machine.user, "time: 2:00:00\n")
    assert machine.load().for_partition("gpu")["time"] == "2:00:00"
    assert machine.load(options={"time": ("3:00:00", "-t")}).for_partition("gpu")["time"] == "3:00:00"


def test_paths_are_filled_in_where_they_win(machine: Machine) -> None:
    machine.site("rundir: {path: $SCRATCH/jobs, shared: ['${SCRATCH}', ~/x, /~]}")
    settings = machine.load({"SCRATCH": "/scratch/ada"})
    assert (settings["rundir.path"], settings["rundir.shared"]) == ("/scratch/ada/jobs", ("/scratch/ada", f"{machine.home}/x", "/~"))
    assert "$SCRATCH" in machine.refused().message
    machine.write(machine.user, "rundir: {path: jobs, shared: []}")
    assert machine.load()["rundir.path"] == "jobs"


@pytest.mark.parametrize("key", ["placement.allowed", "placement"])
@pytest.mark.parametrize("by", ["user", "partition", "variable", "option", "trial"])
def test_a_protected_key_is_the_sites_alone(machine: Machine, tmp_path: Path, key: str, by: str) -> None:
    site = machine.site(f"placement.allowed: [order]\nprotect:\n  {key}: Ask hpc-support@example.org,\n    please.\n")
    machine.site("placement.allowed: [order, pin]\n", "zz.yaml")
    assert machine.load()["placement.allowed"] == ("order", "pin")
    environ, options = {}, {}
    if by == "user":
        place = f"{machine.write(machine.user, 'placement: {allowed: [pin]}')}:1"
    elif by == "partition":
        place = f"{machine.write(machine.project, 'partitions: {gpu: {placement.allowed: [pin]}}')}:1"
    elif by == "variable":
        place = next(iter(environ := {"GLAUNCH_PLACEMENT_ALLOWED": "pin"}))
    elif by == "trial":
        place = f"{machine.write(tmp_path / 'try.yaml', 'placement.allowed: [pin]')}:1"
        environ["GLAUNCH_SITE"] = place[:-2]
    else:
        options, place = {"placement.allowed": (("pin",), "--allow")}, "--allow"
    error = machine.refused(environ, options)
    assert str(error) == f"{place}: 'placement.allowed' is set by the site alone: Ask hpc-support@example.org, please.\n  fixed in {site}:3"


@pytest.mark.parametrize("text", ["protect: {time: mine}", "min_version: 9.9"])
def test_what_only_a_site_may_say(machine: Machine, text: str) -> None:
    machine.write(machine.user, text)
    assert "site" in machine.refused().message


def test_an_older_glaunch_is_told_first(machine: Machine) -> None:
    path = machine.site("a_new_key: 1\nmin_version: 99.1\n")
    assert machine.refused().message == f"{path}:2: this site wants glaunch 99.1 or newer, this is 0.1.0"
    for version, newer in (("0.2.0.dev1", False), ("0.1.9", True), ("0.2", False), ("0.10", False)):
        assert bool(parse_settings("min_version: 0.2", "f", SITE, version).problems) == newer
    machine.site("min_version: 0.0.9\n")
    assert machine.load()["min_version"] == "0.0.9"


def test_variables(machine: Machine) -> None:
    environ = {
        "GLAUNCH_SSH_ENABLED": "false",
        "GLAUNCH_PLACEMENT_ALLOWED": "order, pin",
        "GLAUNCH_RUNDIR_SHARED": "/a:/b",
        "GLAUNCH_SSH_PORT": "2222",
    }
    settings = machine.load(
        {**environ, "GLAUNCH_QOS": " ", "GLAUNCH_LOG_DIR": "/tmp/x", "GLAUNCH_SHARED": "1", "GLAUNCH_ATTEMPT": "2", "PATH": "/bin"}
    )
    assert [settings[key] for key in ("ssh.enabled", "placement.allowed", "rundir.shared", "ssh.port", "qos")] == [
        False,
        ("order", "pin"),
        ("/a", "/b"),
        2222,
        "",
    ]
    assert (
        str(machine.refused({"GLAUNCH_SSH_PROT": "1"}))
        == "GLAUNCH_SSH_PROT: no key is set by this variable\n  did you mean 'GLAUNCH_SSH_PORT'?"
    )
    assert (
        machine.refused({"GLAUNCH_SSH_PORT": "x"}).message == "GLAUNCH_SSH_PORT: 'ssh.port' takes a whole number from 1 to 65535, got 'x'"
    )
    assert "--env" in machine.refused({"GLAUNCH_ENVIRONMENT_SET": "A=1"}).hint


def test_options_take_values_of_their_kind(machine: Machine) -> None:
    settings = machine.load(
        options={
            "ssh.enabled": (False, "--no-ssh"),
            "ssh.port": (23, "--port"),
            "placement.allowed": (("pin",), "--x"),
            "sbatch": ({"mem": "0"}, "--sbatch"),
        }
    )
    assert [settings[key] for key in ("ssh.enabled", "ssh.port", "placement.allowed", "sbatch")] == [False, 23, ("pin",), {"mem": "0"}]
    assert settings.where("sbatch") == settings.rows("sbatch")[0].where == "--sbatch"
    assert machine.refused(options={"ssh.port": (0, "--port")}).message.startswith("--port: 'ssh.port' takes")
    assert machine.refused(options={"placement.mode": ("best", "--place")}).message.startswith("--place: 'placement.mode' takes one of")


@pytest.mark.parametrize("mode", [0o666, 0o664, 0o646, 0o620])
def test_a_file_that_others_could_write_is_refused(machine: Machine, mode: int) -> None:
    for path in (machine.etc / "site.yaml", machine.user, machine.project):
        machine.write(path, "qos: x").chmod(mode)
        error = machine.refused()
        assert error.message == f"{path}: others can write it (mode {mode:04o})"
        assert error.hint == f"chmod go-w {path}"
        path.unlink()


def test_a_site_folder_that_others_could_write_is_refused_unless_sticky(machine: Machine) -> None:
    machine.site("qos: x")
    machine.etc.chmod(0o777)
    assert machine.refused().message == f"{machine.etc}: others can write it (mode 0777)"
    machine.etc.chmod(0o1777)
    assert machine.load()["qos"] == "x"


def test_a_file_of_somebody_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    path.write_text("qos: x")
    path.chmod(0o644)
    assert read_text(path, frozenset({path.stat().st_uid})) == "qos: x"
    with pytest.raises(ConfigError, match="belongs to "):
        read_text(path, frozenset({path.stat().st_uid + 1}))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away; CI runs as root")
def test_a_projects_file_is_read_once_its_owner_is_trusted(machine: Machine, tmp_path: Path) -> None:
    os.chown(machine.write(machine.project, "qos: x"), 65534, 65534)
    error = machine.refused()
    assert str(error) == (
        f"{machine.project}: belongs to nobody; settings are read from root's files and your own\n"
        "  if you trust nobody: export GLAUNCH_TRUST=nobody"
    )
    for name in ("nobody", "65534"):
        assert machine.load({"GLAUNCH_TRUST": name})["qos"] == "x"
    assert machine.refused({"GLAUNCH_TRUST": "daemon"}).message == error.message
    assert machine.refused({"GLAUNCH_TRUST": "no-such-user"}).message == "GLAUNCH_TRUST: there is no user 'no-such-user'"
    machine.write(machine.user, "trust: [nobody]")
    assert machine.load()["qos"] == "x"
    os.chown(machine.user, 65534, 65534)
    assert machine.refused().hint == f"it should be root's or your own: ls -l {machine.user}"


def test_links_are_followed_to_what_counts(machine: Machine, tmp_path: Path) -> None:
    target = machine.write(tmp_path / "real.yaml", "qos: x")
    (machine.etc / "site.yaml").symlink_to(target)
    assert machine.load().where("qos") == f"{machine.etc}/site.yaml:1"
    target.chmod(0o666)
    assert "others can write it" in machine.refused().message
    target.unlink()
    assert machine.load()["qos"] == ""
    machine.project.symlink_to("glaunch.yaml")
    assert machine.refused().message.startswith(f"{machine.project}: cannot be read")


def test_what_is_no_text_file_is_refused(machine: Machine) -> None:
    path = machine.user
    os.mkfifo(path, 0o600)
    assert machine.refused().message == f"{path}: a settings file is expected, this is none"
    path.unlink()
    path.mkdir(0o755)
    assert machine.refused().message == f"{path}: a settings file is expected, this is none"
    path.rmdir()
    machine.write(path, "").write_bytes(b"\x7fELF\x02\x01\x01\x00")
    assert machine.refused().message.startswith(f"{path}:1: the character U+007F")
    path.write_bytes(b"qos: x\naccount: \xff\xfe\n")
    assert machine.refused().message == f"{path}:2: the byte 0xff is no UTF-8 text"
    path.write_bytes(b"\xef\xbb\xbfqos: \xc3\xa9\n")
    assert machine.load()["qos"] == "é"
    with path.open("r+b") as stream:
        stream.truncate(MAX_BYTES + 1)
    assert "no settings file" in machine.refused().message


def test_a_socket_in_place_of_a_file(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(machine.cwd)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind("glaunch.yaml")
        assert "cannot be read" in machine.refused().message


def test_only_yaml_files_of_the_site_are_read(machine: Machine) -> None:
    machine.site("nonsense", "site.yaml~")
    machine.site("nonsense", ".hidden.yaml")
    machine.site("nonsense", "README")
    assert machine.load()["qos"] == ""
    path = machine.site("qos: x", "more.yml")
    assert machine.refused().message == f"{path}: only files that end in .yaml are read"


def test_no_site_no_home(tmp_path: Path) -> None:
    settings = config.load(home="/nonexistent", cwd=tmp_path, environ={}, etc=tmp_path / "none")
    assert settings["fabric.class"] == ""


def test_check_tells_all_that_is_wrong(machine: Machine) -> None:
    one = machine.site("tiem: 1\nssh.port: x\n", "a.yaml")
    two = machine.site("a: [", "b.yaml")
    settings, problems = config.check([machine.etc, machine.home / "none.yaml"], home=machine.home, environ={})
    assert settings is None
    assert [problem.message.partition(": ")[0] for problem in problems] == [f"{one}:1", f"{one}:2", f"{two}:2", f"{machine.home}/none.yaml"]
