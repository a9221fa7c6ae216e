"""Slurm's compact lists of names: `gpu[01-03,07]` to names (`expand`) and back (`fold`); the natural order of names."""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from glaunch.errors import UsageError

MAX_RANGE = 65536
"""Numbers in one range; Slurm refuses more (`scontrol show hostnames x[0-65536]`)."""
MAX_NAMES = 1 << 20
"""Names in one list: sixteen times the nodes that Slurm can have, and little enough memory for a login node."""
MAX_DIGITS = 18
"""Digits of a number; Slurm turns longer ones into 2^64-1 without a word."""

_ITEM = re.compile(r"(?:[^\s,\[]|\[[^\]]*\]|\[)+")
_NUMBERS = re.compile(r"(\d+)", re.ASCII)
_RANGE = re.compile(r"([0-9]+)(?:-([0-9]+))?")


def expand(text: str) -> tuple[str, ...]:
    """The names of a hostlist: in Slurm's order, duplicates kept, zeros of the low end kept.

    Items stand apart by commas or blanks; empty items are skipped. An item holds any number of brackets, with text before, between
    and after. The last bracket runs fastest; of those before it the *first* runs fastest (Slurm's order: `r[1-2]c[1-2]s[0-1]` begins
    r1c1s0 r1c1s1 r2c1s0). `n1-2]`, `@group`, `ALL` are plain names.

    Refused with UsageError, naming the value: what Slurm refuses (`n[]`, `n[3-1]`, `n[a-b]`, `n[1-2`, more than 65,536 numbers in a
    range), and what Slurm reads as something else than was meant: blanks in brackets (it pads `n[1 - 3]` to n01), numbers of more than
    18 digits, functions such as `switch{leaf1}` (only a controller of 25.05 or later knows what they stand for), more than a million
    names.
    **Source:** `scontrol show hostnames` of Slurm 21.08 to 26.05; scontrol(1), "show hostnames".
    """
    names: list[str] = []
    for match in _ITEM.finditer(text):
        item = match[0]
        if "{" in item:
            raise UsageError(f"{item!r} is a function that only Slurm's controller can expand", hint="name the nodes themselves")
        if "[" in item:
            names.extend(_expand_item(item, MAX_NAMES - len(names)))
        else:
            names.append(item)
        if len(names) > MAX_NAMES:
            raise UsageError(f"{text[:60]!r}… stands for more than {MAX_NAMES} names")
    return tuple(names)


def _expand_item(item: str, room: int) -> list[str]:
    texts = re.split(r"\[[^\]]*\]", item)
    for text in texts:
        if "[" in text:
            raise UsageError(f"hostlist {item!r}: a bracket is not closed", hint="write it as n[1-3,7]")
    if (len(texts) > 2 and any("]" in text for text in texts)) or "]" in texts[-1]:
        raise UsageError(f"hostlist {item!r}: a ']' too many", hint="write it as n[1-3,7]")
    brackets = [_ranges(inner, item) for inner in re.findall(r"\[([^\]]*)\]", item)]
    count = 1
    for ranges in brackets:
        count *= sum(high - low + 1 for low, high, _ in ranges)
    if count > room:
        raise UsageError(f"hostlist {item!r} stands for {count} names; at most {MAX_NAMES} are read")
    heads = [texts[0]]
    if len(brackets) > 1:
        # The prefix's brackets: the last of them is the slowest, so later brackets go to the outer loop.
        heads = [texts[0] + word for word in _words(brackets[0], texts[1])]
        for ranges, tail in zip(brackets[1:-1], texts[2:-1], strict=True):
            heads = [head + word for word in _words(ranges, tail) for head in heads]
    lasts = list(_words(brackets[-1], texts[-1]))
    return [head + last for head in heads for last in lasts]


def _ranges(inner: str, item: str) -> list[tuple[int, int, int]]:
    """(low, high, width) of what stands in one bracket."""
    found = []
    for part in inner.split(","):
        match = _RANGE.fullmatch(part)
        if match is None:
            raise UsageError(f"hostlist {item!r}: {part!r} is no number and no range", hint="write it as n[1-3,7]")
        low_digits, high_digits = match[1], match[2] or match[1]
        if max(len(low_digits), len(high_digits)) > MAX_DIGITS:
            raise UsageError(f"hostlist {item!r}: {part!r} has more than {MAX_DIGITS} digits")
        low, high = int(low_digits), int(high_digits)
        if high < low:
            raise UsageError(f"hostlist {item!r}: the range {part!r} runs down", hint=f"write {high_digits}-{low_digits}")
        if high - low >= MAX_RANGE:
            raise UsageError(f"hostlist {item!r}: {part!r} is more than {MAX_RANGE} numbers, which Slurm refuses")
        found.append((low, high, len(low_digits)))
    return found


def _words(ranges: list[tuple[int, int, int]], tail: str) -> Iterator[str]:
    escaped = tail.replace("%", "%%")
    for low, high, width in ranges:
        form = f"%0{width}d{escaped}"
        for number in range(low, high + 1):
            yield form % number


def fold(names: Iterable[str]) -> str:
    """The hostlist of `names`, order and duplicates kept: `n3,n1,n2` becomes `n[3,1-2]`; "" for no names.

    As `scontrol show hostlist` folds: on the last number of a name only, neighbours only, names that end in a letter not at all.
    Ranges of more than 65,536 numbers are split, so that `expand(fold(names)) == names` and Slurm reads every fold.
    **Source:** scontrol(1), "show hostlist".
    """
    return ",".join(_fold_group(prefix, [digits for _, digits in group]) for prefix, group in groupby(map(_cut, names), _prefix))


def _cut(name: str) -> tuple[str, str]:
    """The name and its last number, which stays as text ("" when there is none, or one too long to count with)."""
    prefix = name.rstrip("0123456789")
    digits = name[len(prefix) :]
    return (name, "") if len(digits) > MAX_DIGITS else (prefix, digits)


def _prefix(cut: tuple[str, str]) -> tuple[str, bool]:
    return cut[0], cut[1] == ""


def _fold_group(key: tuple[str, bool], numbers: list[str]) -> str:
    prefix, plain = key
    if plain:
        return ",".join([prefix] * len(numbers))
    if len(numbers) == 1:
        return prefix + numbers[0]
    parts: list[str] = []
    first = last = numbers[0]
    low = high = int(first)
    for digits in numbers[1:]:
        # The next number belongs to the range only if counting up with the range's own width writes exactly this text.
        if int(digits) == high + 1 and digits == str(high + 1).zfill(len(first)) and high - low < MAX_RANGE - 1:
            high, last = high + 1, digits
            continue
        parts.append(first if low == high else f"{first}-{last}")
        first = last = digits
        low = high = int(digits)
    parts.append(first if low == high else f"{first}-{last}")
    return f"{prefix}[{','.join(parts)}]"


def number_key(digits: str) -> tuple[int, str]:
    """Sort key of a whole number of any length, zeros in front ignored: 9 before 010."""
    significant = digits.lstrip("0")
    return len(significant), significant


def natural_key(name: str) -> tuple[tuple[str | tuple[int, str], ...], str]:
    """Sort key under which n2 comes before n10 (and n02 beside n2, told apart by the text itself)."""
    parts = _NUMBERS.split(name)
    return tuple(number_key(part) if index % 2 else part for index, part in enumerate(parts)), name
