"""The container that ranks start in: what the user and the site said, as the two runtimes take it. Pure: no image is looked at.

Pyxis (a plugin of srun) and Apptainer name images differently, and the job may find out only on its nodes which of them is there; so both
names are made here. **Source:** pyxis args.c, `--container-image=[USER@][REGISTRY#]IMAGE[:TAG]|PATH`, a path begins with `/` or `./`;
apptainer-pull(1), `docker://[REGISTRY/]IMAGE[:TAG]`.
"""

import posixpath
import re
from collections.abc import Mapping

from glaunch.errors import UsageError
from glaunch.plan import Container
from glaunch.request import Caller, Request
from glaunch.settings import Settings

NONE = "none"
"""Takes back a container that a settings file names."""
_FILE = re.compile(r"(~?/|\.{1,2}/).*|[^:]*\.(sqsh|squashfs|sqfs|sif|simg|img)", re.DOTALL)
_IMAGE = re.compile(
    r"(?:docker://)?(?:([^@#/\s]+)@(?=[^#]*#))?(?:([A-Za-z0-9.:-]+)#)?([A-Za-z0-9][A-Za-z0-9._/:-]*)(@sha256:[0-9a-f]{64})?"
)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
DOCKER_HUB = "docker.io"


def container_of(request: Request, settings: Settings, caller: Caller, variables: tuple[str, ...]) -> Container | None:
    """The container of this launch, or None. `variables`: what the plan sets, so that no value of the image takes its place.

    Raises UsageError for an image, a mount or a path that the runtimes cannot take.
    """
    named = settings.text("container.image")
    if not named or named == NONE:
        _unused(request)
        return None
    image = settings.table("container.images").get(named, named)
    work_dir = settings.text("container.workdir") or caller.work_dir
    mounts = tuple(_mount(word, caller) for word in (*settings.words("container.mounts"), *request.container_mounts))
    names = (*settings.words("container.env"), *request.container_env)
    for name in names:
        if not _VARIABLE.fullmatch(name):
            raise UsageError(f"--container-env {name!r} is no name of a variable", hint="names only: a value goes with --env NAME=VALUE")
    runtime = settings.text("container.runtime")
    file, pyxis, apptainer = "", "", ""
    if _FILE.fullmatch(image):
        file = pyxis = apptainer = _absolute(image, caller)
        if re.search(r"[\s:,#@]", file):
            raise UsageError(
                f"--container {file!r}: pyxis takes no blank, colon, comma, # or @ in the path of an image", hint="give it a plainer name"
            )
        if file.endswith((".sif", ".simg")):
            if runtime == "pyxis":
                raise UsageError(f"--container {image}: pyxis cannot read such a file", hint="--container-runtime apptainer")
            runtime = "apptainer"
    elif re.match(r"(oras|library|shub|https?)://", image):
        if runtime == "pyxis":
            raise UsageError(
                f"--container {image}: pyxis cannot read this kind of address", hint="docker://…, or --container-runtime apptainer"
            )
        apptainer, runtime = image, "apptainer"
    else:
        pyxis, apptainer = _addresses(image, settings.table("container.mirrors"))
    return Container(
        runtime=runtime,
        named=named,
        file=file,
        pyxis=pyxis,
        apptainer=apptainer,
        mounts=mounts,
        work_dir=work_dir,
        variables=tuple(dict.fromkeys((*variables, *names))),
        options=settings.words("container.options"),
        import_s=settings.number("container.import_timeout_s"),
        node_dir=settings.text("container.node_dir"),
    )


def _unused(request: Request) -> None:
    said = [option for option, value in (("mounts", request.container_mounts), ("env", request.container_env)) if value]
    if said:
        raise UsageError(f"--container-{said[0]} without a container", hint="--container IMAGE, or container.image in a settings file")


def _addresses(image: str, mirrors: Mapping[str, str]) -> tuple[str, str]:
    """An image of a registry as pyxis and as Apptainer name it, from the site's mirror where it has one for that registry."""
    match = _IMAGE.fullmatch(image)
    if match is None:
        raise UsageError(
            f"--container {image!r} is neither a file nor an image of a registry",
            hint="/path/image.sqsh, ./image.sif, ubuntu:24.04, nvcr.io/nvidia/pytorch:24.05-py3",
        )
    user, registry, name, digest = match[1] or "", match[2] or "", match[3], match[4] or ""
    first, slash, rest = name.partition("/")
    if not registry and slash and (first == "localhost" or "." in first or ":" in first):
        registry, name = first, rest
    registry = registry or DOCKER_HUB
    if registry in mirrors:
        path = f"library/{name}" if registry == DOCKER_HUB and "/" not in name else name
        registry, _, below = mirrors[registry].removeprefix("https://").strip("/").partition("/")
        name = f"{below}/{path}" if below else path
    name += digest
    there = "" if registry == DOCKER_HUB else registry
    pyxis = (f"{user}@" if user else "") + (f"{there}#{name}" if there else name)
    return pyxis, "docker://" + (f"{there}/{name}" if there else name)


def _absolute(path: str, caller: Caller) -> str:
    if path.startswith("~/"):
        path = caller.environ.get("HOME", "~") + path[1:]
    return posixpath.normpath(posixpath.join(caller.work_dir, path))


def _mount(word: str, caller: Caller) -> str:
    """`SRC[:DST[:FLAGS]]`, its source absolute. What pyxis cannot take is refused: its list has no quotes."""
    source, _, rest = word.partition(":")
    target, _, flags = rest.partition(":")
    source = _absolute(source, caller) if source else ""
    target = target or source
    if not source.startswith("/") or not target.startswith("/") or re.search(r"[\s,:]", source + target):
        raise UsageError(
            f"--container-mounts {word!r}: a mount is SRC[:DST[:ro]], DST is absolute, and neither has a blank or a comma in it",
            hint="--container-mounts /scratch/ada:/data:ro",
        )
    if flags and not re.fullmatch(r"[a-z][a-z=+-]*", flags):
        raise UsageError(f"--container-mounts {word!r}: {flags!r} is no flag of a mount", hint="ro, rw")
    return f"{source}:{target}" + (f":{flags}" if flags else "")
