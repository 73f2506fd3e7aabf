"""What kernels are told at the start, read back as the specifications say."""

import struct
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from kinst.rewriter.rewriting import Source, open_source, plan_probes
from kinst.rewriter.write import write_image
from kinst.runtime.boards.multiboot import (
    Information,
    has_multiboot_header,
    multiboot_information,
    pvh_entry,
    pvh_information,
)
from kinst.runtime.boards.pc_amd64 import memory_map
from kinst.targets.elf_header import SECTION_HEADER, SHT_STRTAB, SHT_SYMTAB
from kinst.targets.image import open_image
from kinst.targets.probe import parse_probe_names
from tests.images import real_image
from tests.runtime.test_pc_amd64 import SAMPLES, console

SAMPLE = SAMPLES / "kernel-amd64.elf"
AT, FREE = 0x1_0000, 0x20_0001


def content(information: Information, address: int, size: int) -> bytes:
    for piece in information.pieces:
        if piece.address <= address and address + size <= piece.address + len(piece.data):
            return piece.data[address - piece.address :][:size]
    raise AssertionError(f"{address:#x} is not written")


def string(information: Information, address: int) -> bytes:
    return next(piece.data for piece in information.pieces if piece.address == address).removesuffix(b"\0")


def test_headers_are_recognised() -> None:
    assert has_multiboot_header(open_image(real_image("gnumach")))
    assert pvh_entry(open_image(real_image("gnumach"))) is None
    assert has_multiboot_header(open_image(SAMPLE))
    assert pvh_entry(open_image(SAMPLE)) == 0x10_0000
    assert not has_multiboot_header(open_image(real_image("u-boot-amd64")))


def test_multiboot_information() -> None:
    image = open_image(real_image("gnumach"))
    information = multiboot_information(image, "a=b c", memory_map(64 << 20), AT, FREE)
    fields = struct.unpack_from("<17I", content(information, AT, 68))
    assert fields[0] == 0x265
    assert fields[1:3] == (639, (63 << 20) >> 10)
    assert (string(information, fields[4]), string(information, fields[16])) == (b"a=b c", b"kinst-run")
    rows = content(information, fields[12], fields[11])
    assert fields[11] == 24 * 5
    assert struct.unpack_from("<IQQI", rows) == (20, 0, 0x9FC00, 1)
    assert struct.unpack_from("<IQQI", rows, 24 * 3) == (20, 1 << 20, 63 << 20, 1)


def sections(information: Information) -> np.ndarray:
    count, size, address, names = struct.unpack_from("<4I", content(information, AT + 28, 16))
    assert size == SECTION_HEADER.itemsize
    assert names < count
    return np.frombuffer(content(information, address, count * size), SECTION_HEADER)


def test_symbols_are_loaded_behind_the_image() -> None:
    image = open_image(real_image("gnumach"))
    information = multiboot_information(image, "", memory_map(64 << 20), AT, FREE)
    loaded = [row for row in sections(information) if row["kind"] in (SHT_SYMTAB, SHT_STRTAB)]
    assert len(loaded) == 3
    for row in loaded:
        address, offset, size = (int(row[name]) for name in ("address", "offset", "size"))
        assert address >= FREE
        assert content(information, address, size) == image.data[offset : offset + size].tobytes()
    spans = sorted((piece.address, piece.address + len(piece.data)) for piece in information.pieces)
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))


@pytest.mark.parametrize("symbols", [False, True])
def test_a_patched_image_is_told_the_same(tmp_path: Path, symbols: bool) -> None:  # noqa: FBT001
    original, out = real_image("gnumach"), tmp_path / "patched.elf"
    plan = plan_probes(open_source(Source(original)), parse_probe_names("kinst::printf:"))[1]
    write_image(plan, out, trampoline_symbols=symbols)
    told = [multiboot_information(open_image(path), "", memory_map(64 << 20), AT, FREE) for path in (original, out)]
    assert told[0] == told[1]


def test_pvh_information() -> None:
    information = pvh_information("quiet", memory_map(64 << 20), AT)
    fields = struct.unpack_from("<IIIIQQQQII", content(information, AT, 56))
    assert fields[:2] == (0x336E_C578, 1)
    assert string(information, fields[5]) == b"quiet"
    assert fields[8] == 5
    assert struct.unpack_from("<QQII", content(information, fields[7], 24 * 5), 72) == (1 << 20, 63 << 20, 1, 0)


def test_the_sample_starts_by_pvh_too(tmp_path: Path) -> None:
    """Without its multiboot header; both protocols arrive at the same place in the same mode."""
    data = bytearray(SAMPLE.read_bytes())
    magic = data.index(struct.pack("<I", 0x1BAD_B002))
    data[magic : magic + 4] = bytes(4)
    changed = tmp_path / "kernel.elf"
    changed.write_bytes(data)
    assert not has_multiboot_header(open_image(changed))
    assert console(changed, until=b"never") == console(SAMPLE, until=b"never")
