"""Files of memory: cores as QEMU writes them, and those that nobody should have written."""

import struct
from pathlib import Path

import numpy as np
import pytest

from kinst.runtime.readout.files import CoreDump, raw_dump
from kinst.runtime.readout.memory import Space, UnreadableError
from kinst.runtime.readout.sources import source_of
from kinst.targets.elf.core import read_core
from kinst.targets.elf.header import ELF_HEADER, PN_XNUM, PROGRAM_HEADER, SECTION_HEADER
from kinst.targets.errors import ImageError, UsageError
from tests.runtime.readout.qemu import emulator
from tests.samples.machines import MACHINES

Piece = tuple[int, int, bytes]  # virtual and physical address, content
HEADERS = ELF_HEADER.size


def core(pieces: list[Piece], *, kind: int = 4, count: int | None = None, sections: int = 0, entry: int = 56) -> bytes:
    """A core of these pieces."""
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    number = len(pieces) if count is None else count
    start = HEADERS + SECTION_HEADER.itemsize
    head = ELF_HEADER.pack(ident, kind, 243, 1, 0, start, sections, 0, HEADERS, entry, number, 64, 0, 0)
    section = bytearray(SECTION_HEADER.itemsize)
    struct.pack_into("<I", section, 44, len(pieces))
    rows, data = np.zeros(len(pieces), PROGRAM_HEADER), b""
    offset = start + rows.nbytes
    for row, (virtual, physical, content) in zip(rows, pieces, strict=True):
        row["kind"], row["address"], row["load_address"] = 1, virtual, physical
        row["offset"], row["file_size"], row["size"] = offset + len(data), len(content), len(content)
        data += content
    return head + bytes(section) + rows.tobytes() + data


def dump(data: bytes) -> CoreDump:
    return CoreDump(Path("core"), read_core(np.frombuffer(data, np.uint8)))


TWO = [(0xFFFF_FFFF_8000_0000, 0x1000, b"abcdefgh"), (0xFFFF_FFFF_8000_0008, 0x9000, b"ijklmnop")]


def test_a_range_may_be_in_several_pieces() -> None:
    memory = dump(core(TWO))
    assert memory.read(Space.VIRTUAL, 0xFFFF_FFFF_8000_0006, 4) == b"ghij"
    assert memory.read(Space.PHYSICAL, 0x9000, 8) == b"ijklmnop"
    with pytest.raises(UnreadableError, match=r"^core: has nothing at physical address 0x1008$"):
        memory.read(Space.PHYSICAL, 0x1006, 4)
    with pytest.raises(UnreadableError, match=r"0x10000000000000000$"):
        memory.read(Space.VIRTUAL, (1 << 64) - 1 + 1, 4)


def test_content_is_found_at_its_physical_addresses(tmp_path: Path) -> None:
    assert list(dump(core(TWO)).find(b"mno")) == [0x9004]
    assert list(dump(core(TWO)).find(b"hij")) == [0x1007]  # as it stands in the file: whoever asks compares more
    path = tmp_path / "raw"
    path.write_bytes(b"abcabc")
    raw = raw_dump("raw", path, 0x500)
    assert list(raw.find(b"bc")) == [0x501, 0x504]


def test_a_core_with_more_pieces_than_its_header_can_say() -> None:
    many = core(TWO, count=PN_XNUM, sections=HEADERS)
    assert dump(many).read(Space.PHYSICAL, 0x1000, 2) == b"ab"


def test_what_a_core_lacks_that_was_cut_off_cannot_be_read() -> None:
    memory = dump(core(TWO)[:-4])
    assert memory.read(Space.PHYSICAL, 0x9000, 4) == b"ijkl"
    with pytest.raises(UnreadableError, match=r"0x9004$"):
        memory.read(Space.PHYSICAL, 0x9000, 5)


DAMAGED = {
    core(TWO, kind=2): "no core: e_type is 2 and not 4",
    core(TWO, entry=32): "damaged: program headers of 32 bytes",
    core(TWO, count=60000): "truncated: its program headers end at ",
    core(TWO, count=PN_XNUM, sections=1 << 40): "truncated: the number of its program headers is not in the file",
    core(TWO)[:20]: "truncated: 20 bytes, an ELF header has 64",
    core(TWO).replace(b"ELF\x02", b"ELF\x01"): "32-bit ELF",
}


@pytest.mark.parametrize("data", DAMAGED)
def test_damaged_cores_are_refused(data: bytes) -> None:
    with pytest.raises(ImageError, match=f"^{DAMAGED[data]}"):
        read_core(np.frombuffer(data, np.uint8))


def test_cores_that_random_bytes_damage_are_read_or_refused() -> None:
    random, whole = np.random.default_rng(13), np.frombuffer(core(TWO), np.uint8)
    for _ in range(300):
        data = whole.copy()
        data[random.integers(0, len(data), 3)] = random.integers(0, 256, 3, dtype=np.uint8)
        try:
            memory = CoreDump(Path("core"), read_core(data))
            memory.read(Space.PHYSICAL, 0x1000, 8)
            list(memory.find(b"efgh"))
        except (ImageError, UnreadableError):
            continue


def test_a_compressed_dump_and_what_is_no_dump_are_refused(tmp_path: Path) -> None:
    kdump = tmp_path / "kdump"
    kdump.write_bytes(b"KDUMP   " + bytes(100))
    with pytest.raises(UsageError, match=r"a compressed kdump file: dump memory as an ELF core$"):
        source_of(str(kdump))
    with pytest.raises(UsageError, match=r"is a directory"):
        source_of(str(tmp_path))


def test_qemus_core_has_what_its_stub_has(tmp_path: Path) -> None:
    with emulator("amd64", tmp_path, "-kernel", str(MACHINES["amd64"].image)) as qemu:
        qemu.wait_for("shutdown")
        with source_of(str(qemu.dump())).open() as memory, source_of(qemu.source).open() as stub:
            content = memory.read(Space.PHYSICAL, 0x10_1000, 8192)
            assert content == stub.read(Space.PHYSICAL, 0x10_1000, 8192)
            assert content == stub.read(Space.VIRTUAL, 0xFFFF_FFFF_8010_1000, 8192)
            assert content != bytes(8192)
