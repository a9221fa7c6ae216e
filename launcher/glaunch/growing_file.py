"""A file that a job is still writing."""

from pathlib import Path


class GrowingFile:
    """Reads one file as it is written: whole lines, and the rest at the end. Each text line begins with `prefix`."""

    def __init__(self, path: Path, prefix: str = "") -> None:
        self.path = path
        self.prefix = prefix
        self._offset = 0
        self._rest = b""

    def lines(self, *, last: bool = False) -> list[str]:
        """The lines that came since the last call; with `last` also one without its newline."""
        try:
            with self.path.open("rb") as file:
                file.seek(self._offset)
                new = file.read()
        except OSError:
            # Not there yet, or a network file system that stumbles: the next call reads it.
            return []
        self._offset += len(new)
        *whole, self._rest = (self._rest + new).split(b"\n")
        if last and self._rest:
            whole, self._rest = [*whole, self._rest], b""
        return [self.prefix + line.decode(errors="surrogateescape") for line in whole]
