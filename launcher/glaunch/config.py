"""Reads settings from where they may be set, layer over layer, and the rules that ship with glaunch."""

import pwd
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from glaunch import __version__
from glaunch.errors import ConfigError
from glaunch.network_model import Model
from glaunch.parsers.network_model import parse_network_model
from glaunch.parsers.rules import parse_rules
from glaunch.parsers.setting_value import typed_text, typed_value
from glaunch.parsers.settings_file import SettingsFile, parse_settings, suggestion
from glaunch.rule import Rule
from glaunch.schema import KEYS, variable_of
from glaunch.settings import OPTION, PROJECT, SHIPPED, SITE, TRIAL, USER, VARIABLE, Protection, Setting, Settings, Value, over
from glaunch.shipped import shipped
from glaunch.trusted_file import read_text, refuse_others, trusted_owners

NOT_KEYS = frozenset({"GLAUNCH_SITE", "GLAUNCH_LOG_DIR", "GLAUNCH_DEBUG"})
"""GLAUNCH_* variables with a meaning of their own."""

Options = Mapping[str, tuple[Value, str]]
"""Key → (value, the option as it was typed)."""


def load(
    *,
    home: str | Path,
    cwd: str | Path,
    environ: Mapping[str, str],
    options: Options = MappingProxyType({}),
    etc: str | Path = "/etc/glaunch",
) -> Settings:
    """All layers folded: shipped defaults, `etc`/*.yaml, $GLAUNCH_SITE, the user's file, ./glaunch.yaml, GLAUNCH_*, options.

    Raises ConfigError (FILE:LINE, or the variable or option) at the first thing that cannot be meant: no YAML, an unknown key, a wrong
    type, a key that the site protects, a file that others could write.
    """
    trusted = trusted_owners()
    fold = _Fold()
    fold.add([_parsed(shipped("site") / "defaults.yaml", SHIPPED, None, "site/defaults.yaml")])
    variables = _variables(environ)
    for layer, paths in sources(home=home, cwd=cwd, environ=environ, etc=etc):
        if layer == PROJECT:
            trusted |= _users(variables.general.get("trust", fold.general["trust"]))
        fold.add([_parsed(path, layer, trusted) for path in paths])
    fold.add([variables])
    fold.add([_options(options)])
    return fold.settings(str(home), environ)


def sources(
    *, home: str | Path, cwd: str | Path, environ: Mapping[str, str], etc: str | Path = "/etc/glaunch"
) -> tuple[tuple[int, tuple[Path, ...]], ...]:
    """(layer, its files) beyond what ships, weakest first; the user's and the folder's file are named also where there is none.

    Raises ConfigError for a site folder that others could write and for a GLAUNCH_SITE that names nothing.
    """
    trusted = trusted_owners()
    user = Path(environ.get("XDG_CONFIG_HOME") or Path(home) / ".config") / "glaunch" / "config.yaml"
    trial = environ.get("GLAUNCH_SITE")
    return (
        (SITE, tuple(site_files(Path(etc), trusted))),
        (TRIAL, tuple(_trial_files(trial, trusted)) if trial else ()),
        (USER, (user,)),
        (PROJECT, (Path(cwd) / "glaunch.yaml",)),
    )


def check(paths: Sequence[Path], *, home: str | Path, environ: Mapping[str, str]) -> tuple[Settings | None, tuple[ConfigError, ...]]:
    """Read files (or folders of them) as one site would have them: the settings that come out, or all that is wrong with them.

    Owners and modes are not looked at: a file that is being written is not installed yet.
    """
    found = [file for path in paths for file in _checked(path)]
    problems = [problem for file in found for problem in file.problems]
    if problems:
        return None, tuple(problems)
    fold = _Fold()
    fold.add([_parsed(shipped("site") / "defaults.yaml", SHIPPED, None, "site/defaults.yaml")])
    fold.add(found)
    try:
        return fold.settings(str(home), environ), ()
    except ConfigError as error:
        return None, (error,)


def _checked(path: Path) -> list[SettingsFile]:
    try:
        files = site_files(path, None) if path.is_dir() else [path]
        texts = [(file, read_text(file, None)) for file in files]
        missing = next((file for file, text in texts if text is None), None)
        if missing:
            raise ConfigError(f"{missing}: there is no such file", hint=f"ls {missing.parent}")
    except ConfigError as error:
        return [SettingsFile(problems=[error])]
    return [parse_settings(text or "", str(file), SITE, __version__) for file, text in texts]


def site_files(folder: Path, trusted: frozenset[int] | None) -> list[Path]:
    """The settings files of a site's folder in the order in which they are read; [] when there is no such folder.

    Raises ConfigError for a folder that others could write, and for a `.yml`, which would be passed over in silence.
    """
    try:
        info = folder.stat()
        names = sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith("."))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be read ({error.strerror})", hint=f"chmod a+rX {folder}") from error
    if trusted is not None:
        refuse_others(folder, info, trusted)
    wrong = next((name for name in names if name.endswith(".yml")), None)
    if wrong:
        raise ConfigError(
            f"{folder / wrong}: only files that end in .yaml are read", hint=f"mv {folder / wrong} {folder / wrong[:-4]}.yaml"
        )
    return [folder / name for name in names if name.endswith(".yaml")]


def _users(trust: Setting) -> frozenset[int]:
    """The user ids of the names (or numbers) that `trust` holds. Raises ConfigError for a name that this machine does not know."""
    words = trust.value if isinstance(trust.value, tuple) else ()
    return frozenset(int(word) if word.isdecimal() else _user(word, trust.where) for word in words)


def _user(name: str, where: str) -> int:
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError as error:
        raise ConfigError(f"{where}: there is no user {name!r}", hint=f"getent passwd {name}") from error


def _trial_files(name: str, trusted: frozenset[int]) -> list[Path]:
    path = Path(name)
    if path.is_dir():
        return site_files(path, trusted)
    if not path.exists():
        raise ConfigError(f"GLAUNCH_SITE: there is no {name!r}", hint="name a site file or a folder of them, or unset GLAUNCH_SITE")
    return [path]


def _parsed(path: Path, layer: int, trusted: frozenset[int] | None, shown: str = "") -> SettingsFile:
    text = read_text(path, trusted)
    return SettingsFile() if text is None else parse_settings(text, shown or str(path), layer, __version__)


def _variables(environ: Mapping[str, str]) -> SettingsFile:
    """GLAUNCH_* as settings; an empty one counts as not set. One that is nearly a key's is a problem, any other is somebody else's."""
    found = SettingsFile()
    names = {variable_of(name): key for name, key in KEYS.items() if not key.site_only}
    for name in sorted(environ):
        if not name.startswith("GLAUNCH_") or name in NOT_KEYS or not environ[name].strip():
            continue
        try:
            if name in names:
                found.general[names[name].name] = typed_text(names[name], environ[name], name, VARIABLE)
            elif near := suggestion(name.removeprefix("GLAUNCH_"), tuple(known.removeprefix("GLAUNCH_") for known in names), 0.85):
                raise ConfigError(f"{name}: no key is set by this variable", hint=near.replace("mean '", "mean 'GLAUNCH_"))
        except ConfigError as error:
            found.problems.append(error)
    return found


def _options(options: Options) -> SettingsFile:
    return SettingsFile({name: typed_value(KEYS[name], value, place, OPTION) for name, (value, place) in options.items()})


class _Fold:
    """Layer over layer; what a weaker layer protects, a stronger one cannot set."""

    def __init__(self) -> None:
        self.general: dict[str, Setting] = {}
        self.sections: dict[str, dict[str, Setting]] = {}
        self.protected: list[Protection] = []

    def add(self, files: Iterable[SettingsFile]) -> None:
        """One layer: its files in order. What they protect holds from the next layer on, so a site's second file may refine its first."""
        fresh: list[Protection] = []
        for file in files:
            if file.problems:
                raise file.problems[0]
            for part in (file.general, *file.sections.values()):
                for name, setting in part.items():
                    self._refuse_protected(name, setting)
            _onto(self.general, file.general)
            for partition, section in file.sections.items():
                _onto(self.sections.setdefault(partition, {}), section)
            fresh += file.protected
        self.protected += fresh

    def _refuse_protected(self, name: str, setting: Setting) -> None:
        for one in self.protected:
            if one.covers(name):
                raise ConfigError(f"{setting.where}: {name!r} is set by the site alone: {one.message}", hint=f"fixed in {one.where}")

    def settings(self, home: str, environ: Mapping[str, str]) -> Settings:
        """The end: `~` and `$NAME` in paths filled in."""
        missing = [name for name in KEYS if name not in self.general]
        if missing:
            raise ConfigError(f"site/defaults.yaml:1: {missing[0]!r} is missing", hint="pip install --force-reinstall glaunch")
        general = {name: _filled(KEYS[name].kind, self.general[name], home, environ) for name in KEYS}
        sections = {
            partition: MappingProxyType({name: _filled(KEYS[name].kind, setting, home, environ) for name, setting in section.items()})
            for partition, section in sorted(self.sections.items())
        }
        return Settings(MappingProxyType(general), MappingProxyType(sections), tuple(self.protected))


def _onto(below: dict[str, Setting], above: Mapping[str, Setting]) -> None:
    for name, setting in above.items():
        below[name] = over(below[name], setting) if name in below else setting


def _filled(kind: str, setting: Setting, home: str, environ: Mapping[str, str]) -> Setting:
    if kind == "path" and isinstance(setting.value, str):
        return Setting(_path(setting.value, setting.where, home, environ), setting.where, setting.layer)
    if kind == "paths" and isinstance(setting.value, tuple):
        return Setting(tuple(_path(path, setting.where, home, environ) for path in setting.value), setting.where, setting.layer)
    return setting


def _path(text: str, where: str, home: str, environ: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name not in environ:
            raise ConfigError(f"{where}: ${name} in {text!r} is not set", hint=f"export {name}=…, or write the path out")
        return environ[name]

    path = re.sub(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))", value, text)
    return home + path[1:] if path == "~" or path.startswith("~/") else path


def load_rules() -> tuple[Rule, ...]:
    """The rules that ship with glaunch, in their order."""
    return parse_rules(read_text(shipped("site") / "rules.yaml", None) or "", "site/rules.yaml")


def load_model() -> Model:
    """The numbers of the bandwidth model that ship with glaunch."""
    return parse_network_model(read_text(shipped("site") / "network-model.yaml", None) or "", "site/network-model.yaml")
