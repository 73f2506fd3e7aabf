"""FDEs: those of a real kernel against its symbol table, and records made by hand, whole and damaged."""

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kinst.targets.elf.symbols import STT_FUNC
from kinst.targets.functions.frames import frame_ranges
from kinst.targets.image import Image, open_image
from tests.images import real_image
from tests.writers.elf import EM_RISCV, Part, elf64

CODE, FRAMES = 0x80000000, 0x80002000


def image_with(frames: bytes, path: Path, name: str = ".eh_frame") -> Image:
    code = Part(".text", CODE, b"\x13\0\0\0" * 64, 5)
    path.write_bytes(elf64(EM_RISCV, CODE, [code, Part(name, FRAMES, frames, 4)]))
    return open_image(path)


def cie(augmentation: bytes = b"zR", data: bytes = b"\x1b", version: int = 1) -> bytes:
    body = (
        bytes([version]) + augmentation + b"\0" + b"\x01\x7c\x01" + (bytes([len(data)]) + data if augmentation else b"")
    )
    body += bytes(-len(body) % 4)
    return struct.pack("<II", len(body) + 4, 0) + body


def fde(at: int, start: int, size: int, form: str = "<iI") -> bytes:
    """An FDE at offset `at` of the section, of the CIE at 0."""
    body = struct.pack(form, start - (FRAMES + at + 8) if form == "<iI" else start, size) + bytes(4)
    return struct.pack("<II", len(body) + 4, at + 4) + body


def test_a_real_kernel_describes_its_compiled_functions() -> None:
    """Of GNU Mach every C function has an FDE: address and size are the symbol's."""
    image = open_image(real_image("gnumach"))
    ranges = {tuple(row) for row in frame_ranges(image).functions.tolist()}
    symbols = image.symbols
    compiled = (symbols.kind == STT_FUNC) & (symbols.size > 0)
    sized = set(zip(symbols.address[compiled].tolist(), symbols.size[compiled].tolist(), strict=True))
    assert len(ranges) == 1698
    assert len(ranges - sized) == 0


@pytest.mark.parametrize(
    ("head", "form"),
    [
        (cie(), "<iI"),
        (cie(b"zPLR", b"\x03\0\0\0\0\x1b\x1b"), "<iI"),
        (cie(b"zR", b"\x00"), "<QQ"),
        (cie(b"", b""), "<QQ"),
        (cie(b"zR", b"\x03"), "<II"),
        (cie(version=3), "<iI"),
    ],
)
def test_encodings_of_addresses(head: bytes, form: str, tmp_path: Path) -> None:
    first = fde(len(head), CODE, 32, form)
    second = fde(len(head) + len(first), CODE + 64, 8, form)
    image = image_with(head + first + second + bytes(4), tmp_path / "a")
    assert frame_ranges(image).functions.tolist() == [[CODE, 32], [CODE + 64, 8]]


def test_what_is_not_code_is_no_range(tmp_path: Path) -> None:
    head = cie(b"zR", b"\x00")
    rows, at = b"", len(head)
    for start, size in ((CODE, 0), (CODE + 0x100, 4), (0, 16), (CODE, 1 << 60), (CODE + 8, 8)):
        rows += fde(at + len(rows), start, size, "<QQ")
    assert frame_ranges(image_with(head + rows, tmp_path / "a")).functions.tolist() == [[CODE + 8, 8]]


def test_an_unknown_encoding_and_a_missing_cie_are_skipped(tmp_path: Path) -> None:
    indirect = cie(b"zR", b"\x9b")
    assert len(frame_ranges(image_with(cie(b"zR", b"\x3b") + fde(20, CODE, 8), tmp_path / "a")).functions) == 0
    assert len(frame_ranges(image_with(fde(4096, CODE, 8), tmp_path / "b")).functions) == 0
    assert len(frame_ranges(image_with(indirect, tmp_path / "c")).functions) == 0


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.lists(st.tuples(st.integers(0, 63), st.integers(0, 255)), max_size=6), cut=st.integers(0, 64))
def test_damage_is_never_more_than_a_lost_range(changes: list[tuple[int, int]], cut: int, tmp_path: Path) -> None:
    head = cie()
    frames = bytearray(head + fde(len(head), CODE, 32) + fde(len(head) + 20, CODE + 64, 8))
    for place, value in changes:
        frames[place % len(frames)] = value
    image = image_with(bytes(frames[: max(cut, 1)]), tmp_path / "a")
    found = frame_ranges(image).functions
    assert ((found[:, 0] - np.uint64(CODE)) + found[:, 1] <= 0x100).all()
