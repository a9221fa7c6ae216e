"""JSON as a text of somebody else's: what is none is refused with its line."""

import json

from glaunch.errors import ParseError


def read_json(text: str, *, where: str) -> object:
    """The values of a JSON text. Raises ParseError with FILE:LINE."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as bad:
        line = next(iter(text.splitlines()[bad.lineno - 1 : bad.lineno]), "the end of the text")
        raise ParseError(f"{where}:{bad.lineno}", line, "JSON", hint=bad.msg) from bad
