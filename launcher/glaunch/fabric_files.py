"""Files about a fabric: the sources that a centre has, and the fabric that was saved from them."""

import json
import os
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from glaunch.errors import ConfigError, GlaunchError
from glaunch.fabric import Fabric
from glaunch.fabric_json import fabric_document, fabric_from_json
from glaunch.network import Network
from glaunch.network_json import network_document, network_from_json
from glaunch.parsers.json_text import read_json
from glaunch.parsers.name_map import NameMap, parse_name_map
from glaunch.parsers.opensm import parse_lfts
from glaunch.parsers.topology_source import Source, parse_source
from glaunch.routes import Routes
from glaunch.settings import Settings

MAX_BYTES = 1 << 30


def read_sources(paths: Iterable[Path], names: Path | None = None, topology: str = "") -> tuple[Source, ...]:
    """What the files say, in their order, with the devices' names from the map file `names`; of a topology.yaml the topology of this name.

    The answer of one node (lldpctl, nvidia-smi) is known by its file's name: HOST.json, HOST.txt. An `include` of a topology.conf is looked
    for in the folder of the file that includes it. Raises ParseError with FILE:LINE, and GlaunchError for a file that cannot be read.
    """
    renaming = NameMap() if names is None else parse_name_map(read_text(names), where=str(names))
    found = [source for path in paths for source in _sources_of(path, topology)]
    return tuple(renaming.applied(source) if isinstance(source, Network) else source for source in found)


def _sources_of(path: Path, topology: str) -> tuple[Source, ...]:
    text = read_text(path)
    host = path.name.rsplit(".", 1)[0] if path.suffix in {".json", ".txt"} else path.name
    sources = parse_source(text, where=str(path), host=host, include=lambda name: read_text(path.parent / name), topology=topology)
    return tuple(_with_network(source, path) if isinstance(source, Fabric) else source for source in sources)


def read_lfts(path: Path) -> Routes:
    """The forwarding tables of a subnet manager. Raises ParseError, and GlaunchError for a file that cannot be read."""
    return parse_lfts(read_text(path), where=str(path))


def read_text(path: Path) -> str:
    """The text of a file, bytes that are no UTF-8 kept. Raises GlaunchError where it cannot be read, or is larger than a dump can be."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise GlaunchError(f"{path}: more than {MAX_BYTES >> 30} GiB")
        return path.read_bytes().decode(errors="surrogateescape")
    except OSError as error:
        raise GlaunchError(f"{path}: cannot be read ({error.strerror})", hint=f"ls -l {path}") from error


def saved_fabric(settings: Settings) -> Fabric:
    """The site's saved fabric, which `fabric.topology` names, without its network: quick to read.

    Raises ConfigError where nothing is there, ParseError for what is no fabric.
    """
    path = Path(settings.text("fabric.topology"))
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        message = f"{settings.where('fabric.topology')}: {path}: cannot be read ({error.strerror})"
        raise ConfigError(message, hint=f"glaunch topo import --output {path} FILE…") from error
    return fabric_from_json(read_json(text, where=str(path)), where=f"{path}:1")


def _network_path(path: Path) -> Path:
    return path.with_name(f"{path.name.removesuffix('.json')}.network.json")


def _with_network(fabric: Fabric, path: Path) -> Fabric:
    """A saved fabric together with the network that lies beside it."""
    beside = _network_path(path)
    if fabric.network is not None or not beside.is_file():
        return fabric
    return replace(fabric, network=network_from_json(read_json(read_text(beside), where=str(beside)), where=f"{beside}:1"))


def save(fabric: Fabric, path: Path) -> tuple[Path, ...]:
    """Write a fabric to `path`, its network (every cable: large, and not needed for a launch) beside it; returns what was written.

    Each file is written whole and put in its place in one step, readable for all. Raises GlaunchError where that cannot be done.
    """
    beside = _network_path(path)
    try:
        if fabric.network is not None:
            _write(beside, json.dumps(network_document(fabric.network)))
        else:
            beside.unlink(missing_ok=True)
        _write(path, json.dumps(fabric_document(replace(fabric, network=None)), indent=1))
    except OSError as error:
        raise GlaunchError(f"{path}: cannot be written ({error.strerror})", hint="--output FILE, in a folder that is yours") from error
    return (path, beside) if fabric.network is not None else (path,)


def save_text(path: Path, text: str) -> Path:
    """Write one file whole, readable for all. Raises GlaunchError where that cannot be done."""
    try:
        _write(path, text)
    except OSError as error:
        raise GlaunchError(f"{path}: cannot be written ({error.strerror})", hint="name a file in a folder that is yours") from error
    return path


def _write(path: Path, text: str) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
