"""A walk over a tar stream that trusts nothing in it: headers in, (name, size, SHA-256) of regular files out.

Nothing is written anywhere, no name is used as a path, and what a header claims is believed only as far as the caller's limits go.
**Source:** POSIX pax(1), "ustar Interchange Format" and "pax Extended Header"; GNU tar manual, "Basic Tar Format" (types L, K and S).
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

BLOCK = 512
_EXTENSION_MAX = 1 << 20  # a long name or a pax header beyond this is an attack or a broken file
_CHUNK = 1 << 17

Read = Callable[[int], bytes]
"""read(n): exactly n bytes, fewer only at the end."""


@dataclass(frozen=True, slots=True)
class Member:
    """One regular file of an archive."""

    name: str
    """Relative, without `./`; bytes that are no UTF-8 are surrogates."""
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Contents:
    """What one archive holds: its regular files, and the bytes of all its members."""

    files: tuple[Member, ...]
    size_bytes: int


class BrokenTar(ValueError):
    """The stream is no whole, plain tar; the message says what was seen."""


class TarTooLarge(BrokenTar):
    """More files or bytes than the caller's limits allow."""


def contents(read: Read, *, max_files: int, max_bytes: int) -> Contents:
    """Walk a tar to its end.

    `max_bytes` counts all content as it comes out of the stream. Raises BrokenTar when a block is short or a checksum wrong, a name is
    absolute or climbs with `..`, a name comes twice, or the end mark is missing; TarTooLarge past a limit.
    """
    files: list[Member] = []
    names: set[str] = set()
    others = total = 0  # others: links, pipes, devices
    for kind, name, size in _headers(read):
        total += size
        if total > max_bytes:
            raise TarTooLarge(f"more than {max_bytes} bytes of content")
        if kind == "folder":
            _drop(read, size)
            continue
        if kind == "other":
            others += 1
            _drop(read, size)
        else:
            path = _safe(name)
            if path in names:
                raise BrokenTar(f"{path!r} comes twice")
            names.add(path)
            files.append(Member(path, size, _digest(read, size)))
        if len(files) + others > max_files:
            raise TarTooLarge(f"more than {max_files} files")
    return Contents(tuple(files), total)


def _safe(name: str) -> str:
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts or "\0" in name or not parts:
        raise BrokenTar(f"unsafe name {name!r}")
    return "/".join(parts)


def _headers(read: Read) -> Iterator[tuple[str, str, int]]:
    """(file, folder or other; name; size) of each member; the caller consumes the content before asking on."""
    long_name: str | None = None
    pax: dict[str, str] = {}
    while True:
        block = _exact(read, BLOCK)
        if block == bytes(BLOCK):
            return
        kind, name, size = _header(block)
        if kind == "L":
            long_name = _text(_extension(read, size).split(b"\0", 1)[0])
        elif kind in "Kg":  # a long link target, or defaults that concern no name or size
            _extension(read, size)
        elif kind == "x":
            pax = _records(_extension(read, size))
        else:
            if "size" in pax:
                size = _pax_size(pax["size"])
            yield _sort_of(kind), pax.get("path", long_name if long_name is not None else name), size
            long_name, pax = None, {}


def _sort_of(kind: str) -> str:
    if kind in "12346":  # links, devices, pipes: no content may follow
        return "other"
    if kind == "5":
        return "folder"
    if kind in "\x0007":
        return "file"
    raise BrokenTar(f"a member of type {kind!r}")


def _header(block: bytes) -> tuple[str, str, int]:
    checksum = _number(block[148:156])
    if checksum != sum(block) - sum(block[148:156]) + 8 * 32:
        raise BrokenTar("a header's checksum is wrong")
    name = block[:100].split(b"\0", 1)[0]
    if block[257:263] == b"ustar\0" and block[345] != 0:
        name = block[345:500].split(b"\0", 1)[0] + b"/" + name
    kind = chr(block[156])
    size = 0 if kind in "123456" else _number(block[124:136])
    return kind, _text(name), size


def _number(raw: bytes) -> int:
    if raw[0] == 0x80:  # GNU's base-256, for 8 GiB and more
        return int.from_bytes(raw[1:], "big")
    digits = raw.strip(b" \0")
    if not all(48 <= digit <= 55 for digit in digits):
        raise BrokenTar(f"{raw!r} is no octal number")
    return int(digits or b"0", 8)


def _records(raw: bytes) -> dict[str, str]:
    """pax records, `LENGTH KEY=VALUE\\n`."""
    records: dict[str, str] = {}
    while raw:
        length, _, _ = raw.partition(b" ")
        if not length.isdigit() or not len(length) < int(length) <= len(raw) or raw[int(length) - 1] != 0x0A:
            raise BrokenTar("a pax header cannot be read")
        key, equals, value = raw[len(length) + 1 : int(length) - 1].partition(b"=")
        if not equals:
            raise BrokenTar("a pax header cannot be read")
        records[_text(key)] = _text(value)
        raw = raw[int(length) :]
    return records


def _pax_size(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise BrokenTar(f"a pax header with size {text!r}")
    return int(text)


def _extension(read: Read, size: int) -> bytes:
    if size > _EXTENSION_MAX:
        raise BrokenTar(f"a header extension of {size} bytes")
    content = _exact(read, size)
    _exact(read, -size % BLOCK)
    return content


def _digest(read: Read, size: int) -> str:
    digest = hashlib.sha256()
    left = size
    while left:
        piece = _exact(read, min(left, _CHUNK))
        digest.update(piece)
        left -= len(piece)
    _exact(read, -size % BLOCK)
    return digest.hexdigest()


def _drop(read: Read, size: int) -> None:
    left = size + -size % BLOCK
    while left:
        left -= len(_exact(read, min(left, _CHUNK)))


def _exact(read: Read, size: int) -> bytes:
    if not size:
        return b""
    piece = read(size)
    if len(piece) != size:
        raise BrokenTar("the archive ends in the middle")
    return piece


def _text(raw: bytes) -> str:
    return raw.decode(errors="surrogateescape")
