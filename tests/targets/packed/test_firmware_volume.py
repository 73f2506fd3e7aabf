"""EFI firmware volumes: images in files, in compressed sections and in volumes within them."""

import lzma
import re
import struct
import uuid

import numpy as np
import pytest

from kinst.targets.errors import ImageError
from kinst.targets.packed.reading import AS_IT_SAYS, Reading
from kinst.targets.packed.unpacking import unpacked
from tests.targets.packed.test_pe_image import BASE, CODE, pe

LZMA = uuid.UUID("ee4e5898-3914-4259-9d6e-dc7bd79403cf")
CRC32 = uuid.UUID("fc1bcdb0-7d31-49aa-936a-a4600d9dd083")
GUID = uuid.UUID("11111111-2222-3333-4444-555555555555")
PE, TE, NAME, VOLUME, GUIDED = 0x10, 0x12, 0x15, 0x17, 0x02


def section(kind: int, content: bytes, *, is_long: bool = False) -> bytes:
    head = b"\xff\xff\xff" + bytes([kind]) + struct.pack("<I", len(content) + 8) if is_long else b""
    head = head or (len(content) + 4).to_bytes(3, "little") + bytes([kind])
    return (head + content).ljust(-(-(len(head) + len(content)) // 4) * 4, b"\0")


def guided(guid: uuid.UUID, content: bytes) -> bytes:
    return section(GUIDED, guid.bytes_le + struct.pack("<HH", 24, 1) + content)


def named(text: str) -> bytes:
    return section(NAME, text.encode("utf-16-le") + b"\0\0")


def file(*sections: bytes, is_large: bool = False) -> bytes:
    content = b"".join(sections)
    size = len(content) + (32 if is_large else 24)
    head = (
        GUID.bytes_le
        + b"\0\0"
        + bytes([7, is_large])
        + (b"\0\0\0" if is_large else size.to_bytes(3, "little"))
        + b"\xf8"
    )
    found = head + (struct.pack("<Q", size) if is_large else b"") + content
    return found.ljust(-(-len(found) // 8) * 8, b"\xff")


def volume(*files: bytes, size: int = 0x4000) -> bytes:
    head = bytearray(
        bytes(32) + struct.pack("<Q", size) + b"_FVH" + bytes(4) + struct.pack("<HHHH", 72, 0, 0, 0x200) + bytes(16)
    )
    struct.pack_into("<H", head, 50, -sum(struct.unpack("<36H", head)) & 0xFFFF)
    return (bytes(head) + b"".join(files)).ljust(size, b"\xff")


def read(data: bytes, reading: Reading = AS_IT_SAYS) -> tuple[str, bytes]:
    """How it was packed, and the code in it."""
    found = unpacked(np.frombuffer(data, np.uint8), reading)
    return found.packing, found.data.tobytes()


def whole() -> bytes:
    inner = volume(file(named("Deep"), section(PE, pe(0x5064), is_long=True)), size=0x2000)
    packed = guided(LZMA, lzma.compress(section(VOLUME, inner), lzma.FORMAT_ALONE))
    return volume(
        file(named("Plain"), section(PE, pe()), is_large=True),
        file(section(PE, pe(0x8664))),
        file(packed),
        file(guided(CRC32, section(PE, pe()) + named("Summed"))),
    )


@pytest.mark.parametrize("name", ["Plain", "Deep", "Summed", str(GUID)])
def test_the_image_that_is_meant_is_read(name: str) -> None:
    packing, elf = read(whole(), Reading(payload=name))
    assert packing == f"EFI firmware ({name}), PE/EFI image"
    assert CODE in elf


def test_without_a_name_they_are_listed() -> None:
    listed = f"there are Plain, {GUID}, Deep, Summed"
    every = re.escape(f"name what is meant with --payload: {listed}")
    with pytest.raises(ImageError, match=every):
        read(whole())
    with pytest.raises(ImageError, match=f"--payload plain: {listed}"):
        read(bytes(0x8000) + whole() + bytes(0x4000), Reading(payload="plain"))
    with pytest.raises(ImageError, match=every):  # flash: whole blocks, and something before the volume
        read(bytes(0x1000) + whole() + bytes(0xB000))


def test_a_short_header_is_enough() -> None:
    """TE: the PE file's headers, but for what is needed, are left out, and offsets count as if they were there."""
    image, start = pe(), 0xC8
    te = struct.pack("<2sHBBHIIQ16x", b"VZ", 0xAA64, 2, 10, start, 0x1004, 0x1000, BASE) + image[start:]
    packing, elf = read(volume(file(named("Core"), section(TE, te))), Reading(payload="Core"))
    assert packing == "EFI firmware (Core), PE/EFI image"
    assert CODE in elf
    assert int.from_bytes(elf[24:32], "little") == BASE + 0x1004


@pytest.mark.parametrize("at", [32, 48, 50, 60])
def test_a_volume_whose_header_is_damaged_is_none(at: int) -> None:
    data = bytearray(whole())
    data[at] ^= 0x55
    assert read(bytes(data)) == ("", bytes(data))


def test_what_is_decompressed_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kinst.targets.packed.firmware_volume._MOST_CONTENT", 1 << 12)
    with pytest.raises(ImageError, match="EFI firmware: more than 0 MiB when it is decompressed"):
        read(whole(), Reading(payload="Deep"))
