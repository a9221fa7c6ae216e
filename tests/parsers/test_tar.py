"""The walk over a tar beside the readers and writers that others trust, and beside archives made to hurt."""

import hashlib
import io
import os
import struct
import subprocess
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glaunch.parsers.tar import BrokenTar, Contents, TarTooLarge, contents

NAME = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=60).filter(
    lambda name: name not in (".", "..")
)
PATH = st.lists(NAME, min_size=1, max_size=4).map("/".join)


def walk(data: bytes, max_files: int = 1000, max_bytes: int = 1 << 24) -> Contents:
    return contents(io.BytesIO(data).read, max_files=max_files, max_bytes=max_bytes)


def packed(files: dict[str, bytes], form: int = tarfile.GNU_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form, encoding="utf-8", errors="surrogateescape") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


@given(files=st.dictionaries(PATH, st.binary(max_size=2000), max_size=6), form=st.sampled_from([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]))
def test_what_python_packs_is_seen_as_it_is(files: dict[str, bytes], form: int) -> None:
    found = walk(packed({f"./{name}": data for name, data in files.items()}, form))
    assert [(one.name, one.size_bytes, one.sha256) for one in found.files] == [
        (os.path.normpath(name), len(data), hashlib.sha256(data).hexdigest()) for name, data in files.items()
    ]
    assert found.size_bytes == sum(map(len, files.values()))


@pytest.mark.parametrize("form", ["gnu", "pax", "ustar", "v7"])
def test_what_tar_packs_is_seen_as_it_is(tmp_path: Path, form: str) -> None:
    names = ["a", "sub/b", "x" * 90, "d" * 90 + "/" + "e" * 90] if form != "v7" else ["a", "sub/b", "x" * 90]
    for name in [*names, *(["l" * 250, os.fsdecode(b"latin-\xe9")] if form in ("gnu", "pax") else [])]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(name.encode(errors="surrogateescape") * 100)
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.link(tmp_path / "a", tmp_path / "hard")
    data = subprocess.run(["tar", "--format", form, "-cf", "-", "."], cwd=tmp_path, check=True, capture_output=True, timeout=60).stdout
    found = walk(data)
    expected = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file() and not path.is_symlink()}
    # of two names for one file tar packs the second as a link to the first
    assert len(expected - {one.name for one in found.files}) == 1
    assert {one.name for one in found.files} < expected
    for one in found.files:
        assert one.sha256 == hashlib.sha256((tmp_path / one.name).read_bytes()).hexdigest()


@given(data=st.binary(max_size=3000), cut=st.integers(min_value=0, max_value=20_000))
def test_no_part_of_an_archive_counts_as_one(data: bytes, cut: int) -> None:
    whole = packed({"a": data, "b": b"1"})
    end = len(whole.rstrip(b"\0")) + -len(whole.rstrip(b"\0")) % 512
    with pytest.raises(BrokenTar):
        walk(whole[: min(cut, end)])


@given(st.binary(max_size=4000))
def test_noise_is_no_archive(noise: bytes) -> None:
    if noise[:512] != bytes(512):
        with pytest.raises(BrokenTar):
            walk(noise)


@given(place=st.integers(min_value=0, max_value=511), bit=st.integers(min_value=0, max_value=7))
def test_a_header_with_a_flipped_bit_is_refused(place: int, bit: int) -> None:
    whole = bytearray(packed({"name": b"content"}))
    whole[place] ^= 1 << bit
    try:
        found = walk(bytes(whole))
    except BrokenTar:
        return
    # only the spelling of the checksum itself may change without a trace
    assert 148 <= place < 156
    assert [one.name for one in found.files] == ["name"]


@pytest.mark.parametrize("name", ["/etc/passwd", "../x", "a/../../x", "..", ".", "./", ""])
def test_names_that_lead_elsewhere(name: str) -> None:
    with pytest.raises(BrokenTar):
        walk(_with_name(name.encode()))


def test_one_name_twice() -> None:
    with pytest.raises(BrokenTar, match="twice"):
        walk(_with_name(b"a", more=_with_name(b"./a")))


def _with_name(name: bytes, size: bytes = b"00000000000\0", kind: bytes = b"0", more: bytes = b"") -> bytes:
    header = bytearray(name.ljust(100, b"\0") + b"0000644\0" * 3 + size + b"0" * 11 + b"\0" + b" " * 8 + kind + bytes(355))
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + (more or bytes(1024))


def test_sizes_that_lie() -> None:
    huge = b"\x80" + (1 << 60).to_bytes(11, "big")
    with pytest.raises(TarTooLarge):
        walk(_with_name(b"a", size=huge))
    with pytest.raises(BrokenTar):  # GNU's negative number
        walk(_with_name(b"a", size=b"\xff" * 12))
    for kind in (b"L", b"x", b"g", b"K"):
        with pytest.raises(BrokenTar, match="extension"):
            walk(_with_name(b"a", size=huge, kind=kind))
    for kind in (b"S", b"M", b"V", b"D", b"Z"):  # sparse, continued, labels: never made by a plain tar -c
        with pytest.raises(BrokenTar, match="type"):
            walk(_with_name(b"a", kind=kind))


@pytest.mark.parametrize(
    "record", [b"5 a=b", b"99 path=x\n", b"x path=y\n", b"7 patx\n", b"-1 path=x\n", b"12 size=-10\n", b"13 size=1e10\n"]
)
def test_pax_headers_that_lie(record: bytes) -> None:
    body = record.ljust(512, b"\0")
    header = _with_name(b"pax", size=b"%011o\0" % len(record), kind=b"x", more=body + _with_name(b"a"))
    with pytest.raises(BrokenTar):
        walk(header)


def test_limits() -> None:
    data = packed({f"f{number}": b"x" * 100 for number in range(10)})
    assert len(walk(data, max_files=10, max_bytes=1000).files) == 10
    with pytest.raises(TarTooLarge, match="9 files"):
        walk(data, max_files=9)
    with pytest.raises(TarTooLarge, match="999 bytes"):
        walk(data, max_bytes=999)


def test_a_size_of_eight_gib_and_more_is_read() -> None:
    size = b"\x80" + struct.pack(">xxxQ", 9 << 30)
    with pytest.raises(BrokenTar, match="middle"):
        walk(_with_name(b"a", size=size), max_bytes=1 << 40)
