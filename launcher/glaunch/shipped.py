"""The folders that ship with glaunch beside its code."""

from pathlib import Path

from glaunch.errors import ConfigError


def shipped(name: str) -> Path:
    """The folder `name` (`site`, `templates`): inside the package once installed, at the repository's top in a checkout.

    Raises ConfigError when the installation is damaged.
    """
    package = Path(__file__).resolve().parent
    for folder in (package / name, package.parents[1] / name):
        if folder.is_dir():
            return folder
    raise ConfigError(
        f"{package / name}: the folder {name!r} that ships with glaunch is missing", hint="pip install --force-reinstall glaunch"
    )
