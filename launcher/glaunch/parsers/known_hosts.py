"""known_hosts files as an index: names in a dict, hashed names and patterns in lists.

One look-up of a plain name costs a dict access, so that a file with a line for each of 8,192 nodes is read once in milliseconds.
**Source:** sshd(8), SSH_KNOWN_HOSTS FILE FORMAT.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

DEFAULT_PORT = 22


@dataclass(frozen=True, slots=True)
class HostKey:
    """One line's key: `blob` is the public key as it goes over the wire, `where` its FILE:LINE."""

    type: str
    blob: bytes
    where: str


@dataclass(frozen=True, slots=True)
class Trust:
    """What the files say about one host."""

    keys: tuple[HostKey, ...]
    revoked: tuple[HostKey, ...]
    authorities: tuple[HostKey, ...]
    """@cert-authority lines: a certificate signed by these would be trusted. glaunch does not check certificates."""

    def names(self, blob: bytes) -> HostKey | None:
        """The line that holds this key."""
        return next((key for key in self.keys if key.blob == blob), None)


@dataclass(frozen=True, slots=True)
class _Line:
    marker: str
    key: HostKey


@dataclass(slots=True)
class KnownHosts:
    """The index over all files that were read; filled by `parse`, then only looked up."""

    _plain: dict[str, list[_Line]] = field(default_factory=dict)
    _hashed: list[tuple[bytes, bytes, _Line]] = field(default_factory=list)
    _patterns: list[tuple[tuple[str, ...], _Line]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """Lines that could not be read, as `FILE:LINE: why`; they count as absent, never as trust."""

    def lookup(self, hosts: Sequence[str], port: int = DEFAULT_PORT) -> Trust:
        """Everything that is said about a host under any of its names.

        With another port than 22 the names are `[host]:port`; where none of these has a key, the plain names count, as in OpenSSH.
        Hashed names are only computed when no plain name or pattern gave a key, or for revoked keys.
        """
        names = [name.lower() for name in hosts] if port == DEFAULT_PORT else [f"[{name.lower()}]:{port}" for name in hosts]
        found = self._plain_lines(names)
        hashed = self._hashed_lines(names, only_revoked=any(not line.marker for line in found))
        trust = _trust([*found, *hashed])
        if port != DEFAULT_PORT and not trust.keys:
            fallback = self.lookup(hosts)
            return Trust(fallback.keys, trust.revoked + fallback.revoked, trust.authorities + fallback.authorities)
        return trust

    def _plain_lines(self, names: Iterable[str]) -> list[_Line]:
        lines = [line for name in names for line in self._plain.get(name, ())]
        return lines + [line for patterns, line in self._patterns if any(_matches(patterns, name) for name in names)]

    def _hashed_lines(self, names: Sequence[str], *, only_revoked: bool) -> list[_Line]:
        raw = [name.encode(errors="surrogateescape") for name in names]
        return [
            line
            for salt, digest, line in self._hashed
            if (line.marker == "@revoked" or not only_revoked) and any(hmac.digest(salt, name, hashlib.sha1) == digest for name in raw)
        ]


def _trust(lines: Iterable[_Line]) -> Trust:
    by_marker: dict[str, list[HostKey]] = {"": [], "@revoked": [], "@cert-authority": []}
    for line in lines:
        by_marker[line.marker].append(line.key)
    return Trust(tuple(by_marker[""]), tuple(by_marker["@revoked"]), tuple(by_marker["@cert-authority"]))


def parse(files: Iterable[tuple[str, str]]) -> KnownHosts:
    """(name, text) of each file → the index. A line that cannot be read lands in `problems`."""
    index = KnownHosts()
    for name, text in files:
        for number, line in enumerate(text.split("\n"), 1):
            words = line.split()
            if words and not words[0].startswith("#"):
                _add(index, words, f"{name}:{number}")
    return index


def _add(index: KnownHosts, words: list[str], where: str) -> None:
    marker = words.pop(0) if words[0].startswith("@") else ""
    if marker not in ("", "@revoked", "@cert-authority"):
        index.problems.append(f"{where}: unknown marker {marker}")
        return
    if len(words) < 3:
        index.problems.append(f"{where}: no key")
        return
    try:
        blob = base64.b64decode(words[2], validate=True)
    except (binascii.Error, ValueError):
        index.problems.append(f"{where}: the key is no base64")
        return
    line = _Line(marker, HostKey(words[1], blob, where))
    names = words[0]
    if names.startswith("|"):
        _add_hashed(index, names, line, where)
    elif any(letter in names for letter in "*?!"):
        index._patterns.append((tuple(names.lower().split(",")), line))
    else:
        for name in names.lower().split(","):
            index._plain.setdefault(name, []).append(line)


def _add_hashed(index: KnownHosts, name: str, line: _Line, where: str) -> None:
    parts = name.split("|")
    try:
        if len(parts) != 4 or parts[1] != "1":
            raise ValueError(name)
        index._hashed.append((base64.b64decode(parts[2], validate=True), base64.b64decode(parts[3], validate=True), line))
    except (binascii.Error, ValueError):
        index.problems.append(f"{where}: the hashed name is not |1|salt|hash")


def _matches(patterns: Iterable[str], name: str) -> bool:
    """True when a pattern matches and no negated one does. **Source:** ssh_config(5), PATTERNS."""
    hit = False
    for pattern in patterns:
        if pattern.startswith("!"):
            if _glob(pattern[1:], name):
                return False
        else:
            hit = hit or _glob(pattern, name)
    return hit


def _glob(pattern: str, name: str) -> bool:
    expression = "".join({"*": ".*", "?": "."}.get(letter, re.escape(letter)) for letter in pattern)
    return re.fullmatch(expression, name, re.DOTALL) is not None
