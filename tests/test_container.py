"""Containers: how images are named for each runtime, what is refused, and the exact lines that reach srun and Apptainer.

Pyxis is not in Debian, and Apptainer only in its unstable part: here both, and srun, are stand-ins that note their words and then run what
stands behind them. The golden files hold those words.
"""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.plans import GATHERING, load_templates, make_plan
from tests.test_script import SCONTROL, SRUN

from glaunch import rundir
from glaunch.config import load
from glaunch.container import container_of
from glaunch.errors import ConfigError, UsageError
from glaunch.launch_form import launch_of
from glaunch.plan import Container, Plan, RankLayout
from glaunch.request import Caller, Request
from glaunch.script import render
from glaunch.settings import Settings
from glaunch.tuning import Variable

GOLDEN = Path(__file__).parent / "golden" / "container"
LAYOUT = RankLayout(1, 1, 1, 1, "h100")
CALLER = Caller("ada", frozenset(), "/home/ada/work", ("python3", "train.py"), "train", {"HOME": "/home/ada"})


def settings_of(tmp_path: Path, text: str = "") -> Settings:
    etc = tmp_path / "etc"
    etc.mkdir(exist_ok=True)
    (etc / "site.yaml").write_text(text)
    (etc / "site.yaml").chmod(0o644)
    return load(home=tmp_path, cwd=tmp_path, environ={}, etc=etc)


def contained(tmp_path: Path, image: str, site: str = "") -> Container:
    container = container_of(Request(("train.py",)), settings_of(tmp_path, f"container.image: '{image}'\n{site}"), CALLER, ("NCCL_DEBUG",))
    assert container is not None
    return container


@pytest.mark.parametrize(
    ("image", "pyxis", "apptainer"),
    [
        ("ubuntu:24.04", "ubuntu:24.04", "docker://ubuntu:24.04"),
        ("docker://ubuntu", "ubuntu", "docker://ubuntu"),
        ("nvcr.io/nvidia/pytorch:24.05-py3", "nvcr.io#nvidia/pytorch:24.05-py3", "docker://nvcr.io/nvidia/pytorch:24.05-py3"),
        ("nvcr.io#nvidia/pytorch:24.05-py3", "nvcr.io#nvidia/pytorch:24.05-py3", "docker://nvcr.io/nvidia/pytorch:24.05-py3"),
        ("docker://me@reg.example.org:5000#a/b:1", "me@reg.example.org:5000#a/b:1", "docker://reg.example.org:5000/a/b:1"),
        ("localhost:5000/a", "localhost:5000#a", "docker://localhost:5000/a"),
        ("pytorch/pytorch", "pytorch/pytorch", "docker://pytorch/pytorch"),
        ("a/b@sha256:" + "0" * 64, "a/b@sha256:" + "0" * 64, "docker://a/b@sha256:" + "0" * 64),
    ],
)
def test_an_image_of_a_registry_as_each_runtime_names_it(tmp_path: Path, image: str, pyxis: str, apptainer: str) -> None:
    container = contained(tmp_path, image)
    assert (container.file, container.pyxis, container.apptainer, container.runtime) == ("", pyxis, apptainer, "auto")


@pytest.mark.parametrize(
    ("image", "file", "runtime"),
    [
        ("/apps/x.sqsh", "/apps/x.sqsh", "auto"),
        ("./x.sqsh", "/home/ada/work/x.sqsh", "auto"),  # pyxis takes a path only with / or ./ before it
        ("x.sqsh", "/home/ada/work/x.sqsh", "auto"),
        ("../images/x.sif", "/home/ada/images/x.sif", "apptainer"),
        ("~/x.sif", "/home/ada/x.sif", "apptainer"),
        ("/apps/rootfs", "/apps/rootfs", "auto"),
    ],
)
def test_an_image_that_is_a_file(tmp_path: Path, image: str, file: str, runtime: str) -> None:
    container = contained(tmp_path, image)
    assert (container.file, container.pyxis, container.runtime) == (file, file, runtime)


def test_a_site_without_internet_names_a_mirror_or_a_file(tmp_path: Path) -> None:
    site = """
container.images: {pytorch: /apps/images/pytorch-24.05.sqsh, ours: nvcr.io/nvidia/cuda:12.4}
container.mirrors: {docker.io: registry.example.org/hub, nvcr.io: https://registry.example.org/}
"""
    assert contained(tmp_path, "pytorch", site).file == "/apps/images/pytorch-24.05.sqsh"
    assert contained(tmp_path, "ours", site).pyxis == "registry.example.org#nvidia/cuda:12.4"
    assert contained(tmp_path, "ubuntu:24.04", site).apptainer == "docker://registry.example.org/hub/library/ubuntu:24.04"
    assert contained(tmp_path, "a/b", site).pyxis == "registry.example.org#hub/a/b"
    assert contained(tmp_path, "quay.io/a/b", site).pyxis == "quay.io#a/b"


@pytest.mark.parametrize(
    ("image", "site", "said"),
    [
        ("two words", "", "neither a file nor an image"),
        ("ubuntu;reboot", "", "neither a file nor an image"),
        ("/a b.sqsh", "", "pyxis takes no blank"),
        ("x.sif", "container.runtime: pyxis", "pyxis cannot read such a file"),
        ("oras://reg/x", "container.runtime: pyxis", "pyxis cannot read this kind"),
        ("ubuntu", "container.mounts: ['/a b']", "neither has a blank"),
        ("ubuntu", "container.mounts: ['/a:relative']", "DST is absolute"),
        ("ubuntu", "container.mounts: ['/a:/b:ro;x']", "no flag of a mount"),
        ("ubuntu", "container.env: ['A=1']", "no name of a variable"),
    ],
)
def test_what_a_runtime_cannot_take_is_refused(tmp_path: Path, image: str, site: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        contained(tmp_path, image, site)


def test_no_container_where_none_is_named(tmp_path: Path) -> None:
    assert container_of(Request(("x",)), settings_of(tmp_path), CALLER, ()) is None
    assert container_of(Request(("x",)), settings_of(tmp_path, "container.image: none"), CALLER, ()) is None
    with pytest.raises(UsageError, match="--container-mounts without a container"):
        container_of(Request(("x",), container_mounts=("/a",)), settings_of(tmp_path), CALLER, ())


def test_the_line_adds_to_what_the_settings_name_unless_the_site_keeps_it(tmp_path: Path) -> None:
    request = Request(("train.py",), modules=("mine",), setup=("source b",))
    site = "launch.modules: [gcc]\nlaunch.setup: [source a]\n"
    launch = launch_of(request, settings_of(tmp_path, site), CALLER, LAYOUT, ())
    assert (launch.modules, launch.setup) == (("gcc", "mine"), ("source a", "source b"))
    with pytest.raises(ConfigError, match="is set by the site alone: Ask us"):
        launch_of(request, settings_of(tmp_path, site + "protect: {launch.setup: Ask us}\n"), CALLER, LAYOUT, ())
    with pytest.raises(UsageError, match="a value of one line"):
        launch_of(Request(("x",), setup=("a\nb",)), settings_of(tmp_path), CALLER, LAYOUT, ())


# --- The words that reach the runtimes.

NOTING_SRUN = SRUN.replace(
    "#!/bin/sh\n",
    r"""#!/bin/sh
[ "${1-}" != --help ] || { [ "$FOUND" != pyxis ] || echo '      --container-image=[USER@][REGISTRY#]IMAGE[:TAG]|PATH'; exit; }
{ printf 'srun'; for word in "$@"; do printf ' %s' "$(printf '%s' "$word" | head -n 1)"; done; echo; } >>"$NOTED"
""",
)
APPTAINER = r"""#!/bin/sh
{ printf 'apptainer'; for word in "$@"; do printf ' %s' "$word"; done; echo; } >>"$NOTED"
case $1 in
pull) : >"$2" && exit ;;
esac
until case $1 in *.sif | *.sqsh) true ;; *) false ;; esac do shift; done
[ -r "$1" ] || { echo "no image $1"; exit 255; }
shift
exec "$@"
"""
OWN = "$name $file $prefix $runtime $did $host $folder"
"""Names that a user's environment may have too: a shell that sets one changes what the program sees."""
DEBUG = Variable("NCCL_DEBUG", "WARN", "R64", "say what went wrong, and nothing else", "NCCL guide, NCCL_DEBUG")
TOKEN = Variable("HF_TOKEN", "(not shown)", "--env", "asked for with --env", "", withheld=True)


def plan_of(base: Path, found: str, image: str, form: str = "srun") -> Plan:
    site = f"container: {{image: '{image}', mounts: [/scratch, '/data:/in:ro'], env: [CUDA_HOME], node_dir: {base}}}\n"
    caller = replace(CALLER, work_dir=str(base), program=("sh", "-c", f'echo "$HF_TOKEN $NCCL_DEBUG ${{gl_enter-}} $(pwd)"; echo {OWN}'))
    settings = settings_of(base, site + f"container.runtime: {found}\ncontainer.options: [--extra=1]\nlaunch.form: {form}\n")
    launch = launch_of(Request(("sh",)), settings, caller, LAYOUT, ("NCCL_DEBUG", "HF_TOKEN"))
    plan = make_plan(str(base / "job"), caller.program, nodes=1, per_node=1, variables=(DEBUG, TOKEN), work_dir=str(base))
    return replace(plan, launch=launch)


@pytest.mark.parametrize(
    ("name", "found", "image", "form"),
    [
        ("pyxis", "pyxis", "nvcr.io/nvidia/pytorch:24.05-py3", "srun"),
        ("apptainer", "apptainer", "nvcr.io/nvidia/pytorch:24.05-py3", "srun"),
        ("apptainer-file", "apptainer", "image.sqsh", "srun"),
        ("pyxis-exec", "pyxis", "ubuntu", "exec"),
    ],
)
def test_the_words_that_reach_srun_and_the_runtime(name: str, found: str, image: str, form: str, tmp_path: Path) -> None:
    """Once a node the image is brought, then every rank starts inside. To take a change over: GLAUNCH_GOLDEN=write pytest …"""
    base = tmp_path
    (base / "image.sqsh").touch()
    (base / "bin").mkdir()
    for program, text in (("srun", NOTING_SRUN), ("scontrol", SCONTROL), ("apptainer", APPTAINER), ("enroot", "#!/bin/sh\nexit 0\n")):
        (base / "bin" / program).write_text(text)
        (base / "bin" / program).chmod(0o755)
    plan = plan_of(base, found, image, form)
    texts = render(plan, load_templates(), version="1.2.3", gathering=replace(GATHERING, node_dir=str(base), before_limit_s=0)).texts
    rundir.create(base / "job", {"schema": "glaunch.intent/1"})
    rundir.write_texts(base / "job", texts)
    env = {"PATH": f"{base / 'bin'}:{os.environ['PATH']}", "SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n001", "SLURMD_NODENAME": "n001"}
    env |= {"NOTED": str(base / "noted"), "FOUND": found, "HF_TOKEN": "s3cret"} | dict.fromkeys(OWN.replace("$", "").split(), "mine")
    done = subprocess.run(["sh", base / "job" / "job.sbatch"], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "comes onto 1 node, by " in done.stderr
    said = (base / "job" / "7.0.0" / "out" / "n001.log").read_text()
    assert said == f"s3cret WARN  {base}\nmine mine mine mine mine mine mine\n"
    noted = (base / "noted").read_text()
    assert "s3cret" not in noted + "".join(text for _, text in texts)
    assert list(base.glob("glaunch.*")) == []  # neither an image nor a log folder is left on the node
    written = dict(texts)
    for part, text in (("steps.txt", noted), ("container.sh", written["container.sh"]), ("job.sbatch", written["job.sbatch"])):
        text = text.replace(str(base), "/BASE")
        golden = GOLDEN / name / part
        if os.environ.get("GLAUNCH_GOLDEN") == "write":
            golden.parent.mkdir(parents=True, exist_ok=True)
            golden.write_text(text)
        assert text == golden.read_text()


def test_a_path_that_cannot_be_shown_in_a_container_is_refused(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "auto", "ubuntu")
    with pytest.raises(UsageError, match="job folder '/a b': a container takes no path"):
        render(replace(plan, folder="/a b"), load_templates(), version="1", gathering=GATHERING)
