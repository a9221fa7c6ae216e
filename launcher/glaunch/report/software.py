"""What a program runs in, as lines of `glaunch plan`: its modules, its owner's own lines, its container."""

from glaunch.plan import Container, Launch
from glaunch.report.text import row
from glaunch.secret import shown_line


def software(launch: Launch, width: int) -> list[str]:
    """The rows; none where the program runs in nothing but the environment."""
    lines = row("modules", " ".join(launch.modules), width) if launch.modules else []
    for label, line in zip(("setup", *[""] * len(launch.setup)), map(shown_line, launch.setup), strict=False):
        lines += row(label, line, width)
    return lines + (row("container", _container(launch.container), width) if launch.container else [])


def _container(container: Container) -> str:
    runtime = "pyxis or Apptainer, as its nodes have it" if container.runtime == "auto" else container.runtime
    source = container.file or container.apptainer
    return f"{container.named}{f' ({source})' if source != container.named else ''}, by {runtime}; brought once onto each node"
