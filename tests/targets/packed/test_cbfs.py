"""coreboot's flash images: stages and payloads as memory, other files as they are."""

import lzma
import struct

import numpy as np
import pytest

from kinst.targets.errors import ImageError
from kinst.targets.packed.memory import memory_of
from kinst.targets.packed.reading import AS_IT_SAYS, Reading
from kinst.targets.packed.unpacking import Unpacked, unpacked
from tests.targets.packed.test_raw import SAMPLES

CODE, DATA = bytes(range(64)), b"data of it"
ELF = (SAMPLES / "kernel-arm64.elf").read_bytes()
PACKED = lzma.compress(CODE, lzma.FORMAT_ALONE)


def file(name: bytes, kind: int, data: bytes, attributes: bytes = b"") -> bytes:
    start = 24 + len(name) + -len(name) % 4 + 4
    head = struct.pack(">8s4I", b"LARCHIVE", len(data), kind, start if attributes else 0, start + len(attributes))
    found = (head + name).ljust(start, b"\0") + attributes + data
    return found.ljust(-(-len(found) // 64) * 64, b"\xff")


def segment(what: bytes, load: int, offset: int = 0, size: int = 0, compression: int = 0) -> bytes:
    return struct.pack(">4sIIQII", what, compression, offset, load, size, size)


def payload() -> bytes:
    table = segment(b"CODE", 0x4000_0000, 112, len(PACKED), 1) + segment(
        b"DATA", 0x4000_1000, 112 + len(PACKED), len(DATA)
    )
    return table + segment(b"BSS ", 0x4000_2000) + segment(b"ENTR", 0x4000_0004) + PACKED + DATA


def rom() -> bytes:
    packed = struct.pack(">4I", 0x42435A4C, 16, 1, len(CODE))
    stage = struct.pack(">IIQII", 0x53746748, 24, 0x5000_0000, 8, 0x1000)
    old = struct.pack("<IQQII", 0, 0x6000_0010, 0x6000_0000, len(CODE), 0x1000)
    files = (
        file(b"fallback/payload", 0x20, payload()),
        file(b"fallback/ramstage", 0x11, PACKED, packed + stage),
        file(b"old", 0x10, old + CODE),
        file(b"kernel", 0x50, ELF),
        file(b"gone", 0, b"x"),
    )
    return b"".join(files).ljust(0x4_0000, b"\xff")


def read(payload: str, machine: str = "arm64", data: bytes = b"") -> Unpacked:
    return unpacked(np.frombuffer(data or rom(), np.uint8), Reading(machine, payload=payload))


@pytest.mark.parametrize(
    ("name", "memory", "entry"),
    [
        ("fallback/payload", [(0x4000_0000, CODE), (0x4000_1000, DATA)], 0x4000_0004),
        ("fallback/ramstage", [(0x5000_0000, CODE)], 0x5000_0008),
        ("old", [(0x6000_0000, CODE)], 0x6000_0010),
    ],
)
def test_stages_and_payloads_are_memory(name: str, memory: list[tuple[int, bytes]], entry: int) -> None:
    found = read(name)
    assert found.packing == f"coreboot image ({name})"
    assert [(span.address, span.data.tobytes()) for span in memory_of(found.data)] == memory
    assert int.from_bytes(found.data[24:32].tobytes(), "little") == entry
    assert found.rebuild is not None
    with pytest.raises(ImageError, match="is read, and not written: take the file out"):
        found.rebuild(found.data)


def test_other_files_are_as_they_are() -> None:
    found = read("kernel", "")
    assert (found.packing, found.data.tobytes()) == ("coreboot image (kernel)", ELF)


def test_without_a_name_they_are_listed() -> None:
    listed = r"there are fallback/payload \(payload\), fallback/ramstage \(stage\), old \(stage\), kernel \(raw\)$"
    with pytest.raises(ImageError, match=f"name what is meant with --payload: {listed}"):
        unpacked(np.frombuffer(rom(), np.uint8), AS_IT_SAYS)
    with pytest.raises(ImageError, match=f"--payload gone: {listed}"):
        read("gone")
    with pytest.raises(ImageError, match="does not say for which machine it is"):
        read("old", "")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (file(b"a", 0x20, segment(b"CODE", 0, 28, 99)), r"truncated: a \(payload\)"),
        (file(b"a", 0x20, segment(b"CODE", 0, 0, 28)), "does not say where it starts"),
        (
            file(b"a", 0x20, segment(b"CODE", 0, 0, 28, 2) + segment(b"ENTR", 0)),
            "compressed in a way that is not known",
        ),
        (file(b"a", 0x10, b"x"), r"truncated: a \(stage\)"),
        (file(b"a", 0x11, b"x"), "does not say where it is loaded"),
        (file(b"a", 0x50, b"x") * 1100, "more than 1,024 files"),
    ],
)
def test_what_is_damaged_says_why(data: bytes, why: str) -> None:
    with pytest.raises(ImageError, match=why):
        read("a", data=data)
