"""What kernels are told at the start, read back as the specifications say."""

import struct
from itertools import pairwise
from pathlib import Path

import keystone
import numpy as np
import pytest

from kinst.rewriter.rewriting import Source, open_source, plan_probes
from kinst.rewriter.writing.write import write_image
from kinst.runtime.machine.boards.multiboot import (
    Information,
    multiboot_information,
    pvh_entry,
    pvh_information,
)
from kinst.runtime.machine.boards.multiboot2 import multiboot2_information
from kinst.runtime.machine.boards.pc_amd64 import memory_map
from kinst.targets.elf.header import SECTION_HEADER, SHT_STRTAB, SHT_SYMTAB
from kinst.targets.image import open_image
from kinst.targets.kernels.multiboot import BootHeader, Version, boot_header
from kinst.targets.probe import parse_probe_names
from tests.images import at_hand, real_image
from tests.runtime.machine.test_pc_amd64 import SAMPLES, console
from tests.writers.elf import EM_X86_64, Part, elf64

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
    assert boot_header(open_image(real_image("gnumach"))) == BootHeader(Version.ONE, flags=3)
    assert pvh_entry(open_image(real_image("gnumach"))) is None
    assert boot_header(open_image(SAMPLE)) == BootHeader(Version.ONE)
    assert pvh_entry(open_image(SAMPLE)) == 0x10_0000
    assert boot_header(open_image(real_image("u-boot-amd64"))) is None


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
    assert boot_header(open_image(changed)) is None
    assert console(changed, until=b"never") == console(SAMPLE, until=b"never")


# -- headers in images made for it -------------------------------------------------------------------------------------

BASE = 0x10_0000
# 32-bit code that prints on the serial line: what EAX is, the first word of the command line, low memory as the BIOS
# data area has it; then it switches the machine off. keystone reads all numbers as hexadecimal.
PRINT = """
mov %eax, %ebp; mov $0x3f8, %edx; mov $8, %ecx
digit: rol $4, %ebp; mov %ebp, %eax; and $0xf, %al; add $0x30, %al; cmp $0x3a, %al; jb put; add $0x27, %al
put: out %al, %dx; loop digit
{find}
letter: mov (%esi), %al; inc %esi; test %al, %al; jz done; out %al, %dx; jmp letter
done: movzwl 0x413, %ebp; cmp $0x27f, %ebp; jne off; mov $0x0a, %al; out %al, %dx
off: mov $0x604, %edx; mov $0x2000, %eax; out %ax, %dx
hang: jmp hang
"""
FIND = {  # the command line's address in ESI; version 2's is the first tag's content
    Version.ONE: "mov 0x10(%ebx), %esi",
    Version.TWO: "lea 0x10(%ebx), %esi",
}


def checked(*words: int) -> bytes:
    """A header's first words, their checksum behind them."""
    return struct.pack(f"<{len(words) + 1}I", *words, -sum(words) & 0xFFFF_FFFF)


def header_of(version: Version, *, tags: bytes = b"") -> bytes:
    if version is Version.ONE:
        return checked(version, 0)
    content = tags + struct.pack("<HHI", 0, 0, 8)
    return checked(version, 0, 16 + len(content)) + content


def assembled(version: Version) -> bytes:
    engine = keystone.Ks(keystone.KS_ARCH_X86, keystone.KS_MODE_32)
    engine.syntax = keystone.KS_OPT_SYNTAX_ATT
    return bytes(engine.asm(PRINT.format(find=FIND[version]), BASE)[0])


def kernel(tmp_path: Path, version: Version, header: bytes, at: int, *, link: int = BASE) -> Path:
    """Code at `link` that has its header `at` so many bytes behind its start, in a file behind 64 KiB of data if it is
    linked where it is loaded."""
    text = Part(".text", link, assembled(version).ljust(at, b"\0") + header, 5)
    data = [Part(".data", BASE + 0x10_0000, bytes(0x1_0000), 6)] if link == BASE else []
    path = tmp_path / "guest.elf"
    path.write_bytes(elf64(EM_X86_64, link, [*data, text]))
    return path


@pytest.mark.parametrize("version", Version)
@pytest.mark.parametrize("at", [0x400, 0x2800, 0x7F00])
def test_headers_in_the_first_32_kib_that_are_loaded(tmp_path: Path, version: Version, at: int) -> None:
    """Wherever the file has them. The guest prints its EAX and the first word of its command line."""
    path = kernel(tmp_path, version, header_of(version), at)
    assert boot_header(open_image(path)) == BootHeader(version)
    magic = {Version.ONE: b"2badb002", Version.TWO: b"36d76289"}[version]
    assert console(path, until=b"never") == magic + b"guest.elf console=com0\n"


@pytest.mark.parametrize("version", Version)
def test_headers_behind_32_kib_are_none(tmp_path: Path, version: Version) -> None:
    assert boot_header(open_image(kernel(tmp_path, version, header_of(version), 0x8000))) is None


@pytest.mark.parametrize("version", Version)
def test_address_fields_count(tmp_path: Path, version: Version) -> None:
    """The program headers want it where no PC has memory."""
    at, end = 0x1000, BASE + 0x1100
    fields = struct.pack("<4I", BASE + at, BASE, end, end + 0x1000)
    if version is Version.ONE:
        header = checked(version, 1 << 16) + fields + struct.pack("<I", BASE)
    else:
        tags = struct.pack("<HHI", 2, 0, 24) + fields + struct.pack("<HHII4x", 3, 0, 12, BASE)
        header = header_of(version, tags=tags)
    path = kernel(tmp_path, version, header.ljust(0x100, b"\0"), at, link=0xFFFF_8000_0000_0000)
    found = boot_header(open_image(path))
    assert found is not None
    assert found.load is not None
    assert (found.entry, found.load.address, found.load.size, found.load.room) == (BASE, BASE, 0x1100, 0x2100)
    assert console(path, until=b"never").endswith(b"guest.elf console=com0\n")


def test_version_2_information() -> None:
    image = open_image(real_image("gnumach"))
    information = multiboot2_information(image, "a=b c", memory_map(64 << 20), AT, FREE)
    total, _ = struct.unpack("<II", content(information, AT, 8))
    tags: dict[int, bytes] = {}
    at = AT + 8
    while at < AT + total:
        kind, size = struct.unpack("<II", content(information, at, 8))
        tags[kind] = content(information, at + 8, size - 8)
        at += size + 7 & ~7
    assert (at, list(tags)) == (AT + total, [1, 2, 4, 6, 9, 0])
    assert (tags[1], tags[2], tags[0]) == (b"a=b c\0", b"kinst-run\0", b"")
    assert struct.unpack("<II", tags[4]) == (639, (63 << 20) >> 10)
    assert struct.unpack_from("<IIQQI", tags[6]) == (24, 0, 0, 0x9FC00, 1)
    count, size, names = struct.unpack_from("<III", tags[9])
    assert (size, len(tags[9])) == (64, 12 + count * 64)
    assert names < count


@pytest.mark.skipif(not at_hand("xen-amd64"), reason="xen-amd64 was not downloaded")
@pytest.mark.parametrize("version", Version)
def test_xen_starts_by_both(tmp_path: Path, version: Version) -> None:
    """Its headers are 32 KiB behind the file's start. It skips the first word of the command line of any loader but
    GRUB 2."""
    data = bytearray(real_image("xen-amd64").read_bytes())
    for other in {*Version} - {version}:
        at = data.index(struct.pack("<I", other))
        data[at : at + 4] = bytes(4)
    path = tmp_path / "xen.elf"
    path.write_bytes(data)
    arguments = "no-real-mode console=com1 com1=115200,8n1"
    printed = console(path, until=b"dom0 kernel not specified", command_line=arguments)
    assert b"Bootloader: kinst-run\n" in printed.replace(b"\r", b"")
    assert f"Command line: {arguments}\n".encode() in printed.replace(b"\r", b"")
