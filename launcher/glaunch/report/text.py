"""The one place where text from jobs, nodes and users becomes safe to look at, and the few shapes that reports are made of."""

import re
import textwrap
import unicodedata
from collections.abc import Mapping, Sequence

_BLANK_LETTERS = re.compile("[\u115f\u1160\u3164\uffa0]")  # letters that no font shows


_CELL_MIN, _LAST_MIN = 32, 20
"""No cell is cut to less; so much of the last column is shown before the others are cut."""


def clean(text: str, *, lines: bool = False) -> str:
    r"""`text` with all that a terminal would obey instead of show written out: ESC becomes `\x1b`, U+202E `\u202e`.

    A byte that was no UTF-8 (a surrogate) becomes `\xNN`. With `lines`, newlines stay and tabs become blanks;
    else both are written out too.
    """
    if lines:
        return "\n".join(clean(line.expandtabs(8)) for line in text.replace("\r\n", "\n").split("\n"))
    if text.isprintable() and not _BLANK_LETTERS.search(text):
        return text
    return "".join(letter if _shown(letter) else _written_out(letter) for letter in text)


def _shown(letter: str) -> bool:
    """Not so: controls, format characters (they turn the direction of writing round), line separators, surrogates, what is not assigned."""
    return (letter.isprintable() or unicodedata.category(letter) == "Zs") and not _BLANK_LETTERS.match(letter)


def _written_out(letter: str) -> str:
    known = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(letter)
    if known:
        return known
    code = ord(letter)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def clean_all(value: object) -> object:
    """`clean` for every text inside a document (mappings, lists), keys too."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(str(key)): clean_all(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean_all(item) for item in value]
    return value


def columns(text: str) -> int:
    """How many columns a terminal needs for it: wide East Asian letters take two, combining ones none."""
    return sum(0 if unicodedata.category(one) in ("Mn", "Me") else 2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text)


def pad(text: str, width: int) -> str:
    """Blanks at the end up to `width` columns."""
    return text + " " * (width - columns(text))


def cut(text: str, width: int) -> str:
    """At most `width` columns; what was cut shows as an ellipsis."""
    if columns(text) <= width:
        return text
    short = ""
    for letter in text:
        if columns(short + letter) > width - 1:
            break
        short += letter
    return short + "…"


def wrapped(text: str, width: int, *, first: str = "", rest: str | None = None) -> list[str]:
    """Lines of at most `width` columns; a longer word (a path) stays whole, so that it can be copied."""
    indent = " " * columns(first) if rest is None else rest
    lines = textwrap.wrap(
        text, max(width, 20), initial_indent=first, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )
    return lines or [first.rstrip()]


def row(label: str, text: str, width: int, *, indent: int = 13) -> list[str]:
    """`label` in a column of `indent`, the (cleaned) text beside it, wrapped."""
    return wrapped(clean(text), width, first=pad(f"  {label}", indent), rest=" " * indent)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Columns side by side, cells cleaned. Where `width` does not hold all, the longest cells are cut, and the last column."""
    whole = [[clean(cell) for cell in one] for one in (head, *rows)]
    full = [max(columns(one[index]) for one in whole) for index in range(len(head))]
    room = width - 2 * (len(head) - 1) - min(full[-1], _LAST_MIN)
    longest = next((most for most in range(max(full), _CELL_MIN, -1) if sum(min(one, most) for one in full[:-1]) <= room), _CELL_MIN)
    cells = [[*(cut(cell, longest) for cell in one[:-1]), one[-1]] for one in whole]
    widths = [min(one, longest) for one in full[:-1]]
    lines = []
    for one in cells:
        start = "  ".join(pad(cell, widths[index]) for index, cell in enumerate(one[:-1]))
        left = width - columns(start) - (2 if start else 0)
        lines.append((f"{start}  " if start else "") + cut(one[-1], max(left, 8)))
    return [line.rstrip() for line in lines]
