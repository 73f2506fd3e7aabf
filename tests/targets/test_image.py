"""ELF files: real ones as readelf has them, and damaged, hostile or foreign ones, which get one clear line each."""

import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kinst.targets.elf.header import PT_LOAD, FileKind
from kinst.targets.errors import ImageError, KinstError
from kinst.targets.image import Image, module_name, open_debug_symbols, open_image, open_to_run
from tests.images import CACHE, SMALL, real_image
from tests.targets import inputs
from tests.targets.inputs import functions_of, real_bytes, section_header
from tests.writers.elf import EM_RISCV, Part, Symbol, elf64

READABLE = [name for name in SMALL if not name.endswith(("arm32", "mips64", "ppc"))]
LARGE_IN_CACHE = [name for name in ("linux-amd64", "linux-arm64") if (CACHE / name / "image.elf").exists()]


@pytest.fixture
def opensbi() -> Image:
    return open_image(real_image("opensbi-1.6"))


def error_of(content: bytes | bytearray, path: Path) -> str:
    """What reading the bytes says, less the file's name. It must be one line."""
    path.write_bytes(content)
    with pytest.raises(ImageError) as caught:
        open_image(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    return text.removeprefix(f"{path}: ")


# Real images.


@pytest.mark.parametrize("name", READABLE)
def test_tables_are_those_that_readelf_prints(name: str) -> None:
    image = open_image(real_image(name))
    printed = subprocess.run(["readelf", "-SlW", image.path], capture_output=True, text=True, check=True).stdout
    rows = [
        line.split("]", 1)[1].split() for line in printed.splitlines() if line.strip().startswith("[") and "]" in line
    ]
    rows = [row for row in rows[1:] if len(row) > 5 and row[0].startswith((".", "__"))]
    ours = {section.name: (section.address, section.offset, section.size) for section in image.sections}
    assert rows
    for row in rows:
        assert ours[row[0]] == (int(row[2], 16), int(row[3], 16), int(row[4], 16))
    loads = [line.split()[1:6] for line in printed.splitlines() if line.strip().startswith("LOAD")]
    assert [[int(field, 16) for field in row] for row in loads] == [
        [one.offset, one.address, one.load_address, one.file_size, one.size]
        for one in image.segments
        if one.kind == PT_LOAD
    ]


@pytest.mark.parametrize(
    ("name", "kind", "machine", "relocated"),
    [
        ("opensbi-1.1", FileKind.EXEC, "riscv64", 283),
        ("opensbi-1.6", FileKind.DYN, "riscv64", 532),
        ("u-boot-riscv64", FileKind.EXEC, "riscv64", 8270),
        ("u-boot-arm64", FileKind.DYN, "arm64", 7019),
        ("u-boot-amd64", FileKind.EXEC, "amd64", 4036),
        ("gnumach", FileKind.EXEC, "amd64", 0),
        ("xen-arm64", FileKind.EXEC, "arm64", 0),
    ],
)
def test_what_a_real_image_is(name: str, kind: FileKind, machine: str, relocated: int) -> None:
    image = open_image(real_image(name))
    assert (image.kind, image.facts.name, len(image.relocated)) == (kind, machine, relocated)


def test_read_only_data_of_an_executable_segment_is_no_code(opensbi: Image) -> None:
    text, rodata = opensbi.section(".text"), opensbi.section(".rodata")
    assert text is not None
    assert rodata is not None
    assert [(one.address, one.offset, one.size) for one in opensbi.code_regions] == [
        (text.address, text.offset, text.size)
    ]
    assert opensbi.segments[1].address <= rodata.address < opensbi.segments[1].address + opensbi.segments[1].size


def test_without_sections_a_whole_executable_segment_is_code(tmp_path: Path) -> None:
    data = real_bytes("opensbi-1.6")
    struct.pack_into("<Q", data, inputs.E_SHOFF, 0)
    struct.pack_into("<HH", data, inputs.E_SHNUM, 0, 0)
    path = tmp_path / "bare.elf"
    path.write_bytes(data)
    image = open_image(path)
    assert [(one.offset, one.size) for one in image.code_regions] == [(0x1000, 0x271E0)]
    assert len(image.relocated) == 532  # found through PT_DYNAMIC
    assert np.array_equal(image.relocated, open_image(real_image("opensbi-1.6")).relocated)


def test_a_first_segment_with_the_headers_and_a_last_one_of_bss_only(tmp_path: Path) -> None:
    """As linkers lay them out by default; of .bss alone they align the offset, beyond the end of the file."""
    code = Part(".text", 0x80001000, b"\x13\0\0\0" * 64, 5)
    data, path = bytearray(elf64(EM_RISCV, code.address, [code])), tmp_path / "linked.elf"
    struct.pack_into("<IIQQQQQQ", data, 64, PT_LOAD, 5, 0, 0x80000000, 0x80000000, 0x1100, 0x1100, 0x1000)
    struct.pack_into("<IIQQQQQQ", data, 120, PT_LOAD, 6, 0xFFE8, 0x8001FFE8, 0x8001FFE8, 0, 8, 0x10000)
    path.write_bytes(data)
    image = open_image(path)
    assert [(one.address, one.offset, one.file_size, one.size) for one in image.segments] == [
        (0x80000000, 0, 0x1100, 0x1100),
        (0x8001FFE8, 0xFFE8, 0, 8),
    ]
    assert image.read(code.address, 4) == code.content[:4]


@pytest.mark.parametrize("name", ["gnumach", "xen-arm64", "u-boot-riscv64"])
def test_addresses_and_offsets_agree(name: str) -> None:
    image = open_image(real_image(name))
    edges = [
        address
        for one in image.segments
        if one.kind == PT_LOAD
        for address in (one.address, one.address + one.file_size - 1, one.address + one.file_size, one.address - 1)
        if 0 <= address < 1 << 64
    ]
    one_by_one = [image.offset_of(address) for address in edges]
    assert image.offsets_of(np.array(edges, np.uint64)).tolist() == [-1 if at is None else at for at in one_by_one]
    assert any(at is None for at in one_by_one)
    region = image.code_regions[-1]
    assert image.read(region.address, 16) == image.data[region.offset : region.offset + 16].tobytes()


def test_reading_outside_the_file_is_an_error(opensbi: Image) -> None:
    bss = opensbi.section(".bss")
    assert bss is not None
    for address, size in ((bss.address, 4), (1 << 40, 1), (opensbi.code_regions[0].address, 1 << 40)):
        with pytest.raises(ImageError, match="not in the file"):
            opensbi.read(address, size)


def test_kept_relocations_of_a_linked_kernel_are_not_to_be_applied(tmp_path: Path) -> None:
    """ld --emit-relocs leaves .rela.text without SHF_ALLOC: the very bytes of .rela.dyn mean nothing then."""
    data, image = real_bytes("opensbi-1.1"), open_image(real_image("opensbi-1.1"))
    assert len(image.relocated) == 283
    struct.pack_into("<Q", data, section_header(image, ".rela.dyn") + inputs.SH_FLAGS, 0)
    struct.pack_into("<I", data, image.header.phoff + 2 * 56, 0)  # and no PT_DYNAMIC that names it
    (tmp_path / "kept.elf").write_bytes(data)
    assert len(open_image(tmp_path / "kept.elf").relocated) == 0


def test_module_is_the_file_without_its_ending_or_what_was_asked_for(opensbi: Image) -> None:
    assert opensbi.module == "image"
    assert open_image(opensbi.path, module="fw").module == "fw"
    assert [module_name(Path(name)) for name in ("fw_jump.elf", "zfs.ko", "zfs.ko.debug", "vmlinux-6.1", ".elf")] == [
        "fw_jump", "zfs", "zfs", "vmlinux-6.1", ".elf",
    ]  # fmt: skip


@pytest.mark.parametrize("name", LARGE_IN_CACHE)
def test_a_vmlinux_opens_in_seconds_and_without_a_second_copy(name: str) -> None:
    """LIEF reads the file once, which is the peak. Measured 0.5 to 1.7 s and 657 MB for the 588 MB of amd64."""
    program = (
        "import sys, pathlib; from kinst.targets.image import open_image;"
        "image = open_image(pathlib.Path(sys.argv[1]));"
        "status = pathlib.Path('/proc/self/status').read_text();"  # getrusage would count what the parent had
        "print(len(image.symbols), status.split('VmHWM:')[1].split()[0])"
    )
    path = real_image(name)
    run = [sys.executable, "-c", program, str(path)]
    output = subprocess.run(
        run, capture_output=True, text=True, check=True, env=os.environ | {"PYTHONPATH": ".typing:."}
    )
    symbols, kilobytes = map(int, output.stdout.split())
    assert symbols > 100_000
    assert kilobytes * 1024 < path.stat().st_size * 1.1 + (150 << 20)


# What is no image.


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "the file is empty"),
        (b"\x7fEL", "3 bytes are not even an ELF header"),
        (b"\x7fELF" + bytes(40), "truncated"),
        (b"hello, world\n" * 10, "no ELF magic"),
        (b"\x1f\x8b\x08" + bytes(100), "damaged"),
        (b"\xfd7zXZ\0" + bytes(100), "damaged"),
        (b"MZ" + bytes(100), "PE/EFI image"),
        (b"\xd0\x0d\xfe\xed" + bytes(100), "device tree"),
        (b"!<arch>\n" + bytes(100), "archive"),
    ],
)
def test_other_files(content: bytes, expected: str, tmp_path: Path) -> None:
    assert expected in error_of(content, tmp_path / "file")


@pytest.mark.parametrize(
    ("name", "expected"),
    [("u-boot-arm32", "32-bit ELF"), ("u-boot-mips64", "an image for MIPS"), ("u-boot-ppc", "32-bit ELF")],
)
def test_real_images_of_other_machines(name: str, expected: str) -> None:
    with pytest.raises(ImageError, match=expected):
        open_image(real_image(name))


def test_paths_that_cannot_be_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    cases = {tmp_path: "is a directory", tmp_path / "none": "No such file", tmp_path / "fifo": "not a regular file"}
    for path, expected in cases.items():
        with pytest.raises(ImageError, match=expected):
            open_image(path)
    with pytest.raises(ImageError, match="not a regular file"):
        open_image(Path("/dev/zero"))
    with pytest.raises(ImageError, match="null"):
        open_image(Path("a\0b"))


# Damaged headers. Offsets are those of the fields; "S" and "P" are the headers of .text, .symtab and segment 0.


@pytest.mark.parametrize(
    ("offset", "form", "value", "expected"),
    [
        (4, "B", 1, "32-bit ELF"),
        (4, "B", 9, "no ELF class"),
        (5, "B", 2, "big-endian"),
        (20, "I", 7, "version 7"),
        (inputs.E_TYPE, "H", 4, "a core dump"),
        (inputs.E_TYPE, "H", 0, "no type"),
        (inputs.E_TYPE, "H", 0xFE00, "unknown"),
        (inputs.E_MACHINE, "H", 0xF00D, "61453"),
        (inputs.E_MACHINE, "H", 3, "i386"),
        (inputs.E_PHENTSIZE, "H", 55, "a program header of 55 bytes"),
        (inputs.E_PHNUM, "H", 0xFFFF, "too many program headers"),
        (inputs.E_PHNUM, "H", 0xFFFE, "program header table ends"),
        (inputs.E_PHNUM, "H", 0, "no program headers"),
        (inputs.E_PHOFF, "Q", 1 << 63, "program header table ends"),
        (inputs.E_SHENTSIZE, "H", 1, "a section header of 1 bytes"),
        (inputs.E_SHNUM, "H", 0xFEFF, "section header table ends"),
        (inputs.E_SHOFF, "Q", (1 << 64) - 1, "section header table ends"),
        (inputs.E_SHSTRNDX, "H", 999, "section names"),
        (inputs.E_SHSTRNDX, "H", 2, "section names"),
    ],
)
def test_damaged_header(offset: int, form: str, value: int, expected: str, tmp_path: Path) -> None:
    data = real_bytes("gnumach")
    struct.pack_into(f"<{form}", data, offset, value)
    assert expected in error_of(data, tmp_path / "image")


@pytest.mark.parametrize(
    ("segment", "field", "value", "expected"),
    [
        (0, inputs.P_OFFSET, 1 << 62, "segment 0 ends at file offset"),
        (0, inputs.P_FILESZ, 1 << 63, "segment 0 ends at file offset"),
        (0, inputs.P_MEMSZ, 1, "segment 0 has 0xc000 bytes in the file but 0x1 in memory"),
        (1, inputs.P_MEMSZ, 1 << 40, "past the last address"),
        (2, inputs.P_VADDR, 0xFFFFFFFF81090000, "segments 1 and 2 overlap at address"),
        (2, inputs.P_OFFSET, 0xE000, "segments 1 and 2 share file bytes"),
        (1, inputs.P_VADDR, 0xFFFFFFFF81000000, "is not where a segment has it"),
    ],
)
def test_damaged_segment(segment: int, field: int, value: int, expected: str, tmp_path: Path) -> None:
    data, image = real_bytes("gnumach"), open_image(real_image("gnumach"))
    struct.pack_into("<Q", data, image.header.phoff + 56 * segment + field, value)
    assert expected in error_of(data, tmp_path / "image")


@pytest.mark.parametrize(
    ("section", "field", "form", "value", "expected"),
    [
        (".debug_info", inputs.SH_SIZE, "Q", (1 << 64) - 1, "the file ends at"),
        (".debug_info", inputs.SH_OFFSET, "Q", (1 << 64) - 1, "the file ends at"),
        (".text", 0, "I", 1 << 31, "outside the string table"),
        (".text", inputs.SH_ADDR, "Q", 0x1000, "is not where a segment has it"),
        (".text", inputs.SH_SIZE, "Q", 0x8CA6D, "is not where a segment has it"),
        (".rodata", inputs.SH_FLAGS, "Q", 6, None),
        (".symtab", inputs.SH_ENTSIZE, "Q", 16, "a symbol of .symtab has 16 bytes"),
        (".symtab", inputs.SH_SIZE, "Q", 25, "no multiple of 24"),
        (".symtab", inputs.SH_LINK, "I", 12345, "no string table"),
        (".symtab", inputs.SH_LINK, "I", 2, "no string table"),
        (".strtab", inputs.SH_SIZE, "Q", 10, "the name of symbol"),
    ],
)
def test_damaged_section(section: str, field: int, form: str, value: int, expected: str | None, tmp_path: Path) -> None:
    data, image = real_bytes("gnumach"), open_image(real_image("gnumach"))
    struct.pack_into(f"<{form}", data, section_header(image, section) + field, value)
    if expected is not None:
        assert expected in error_of(data, tmp_path / "image")
    else:  # odd, but nothing contradicts it
        (tmp_path / "image").write_bytes(data)
        assert len(open_image(tmp_path / "image").code_regions) == 3


def test_two_executable_sections_over_one_address(tmp_path: Path) -> None:
    parts = [Part(".a", 0x80000000, b"\x13\0\0\0" * 64, 5), Part(".b", 0x80001000, b"\x13\0\0\0" * 64, 5)]
    data = bytearray(elf64(EM_RISCV, 0x80000000, parts))
    (tmp_path / "whole").write_bytes(data)
    image = open_image(tmp_path / "whole")
    assert len(image.code_regions) == 2
    at = image.header.shoff + 64 * 2
    struct.pack_into("<QQ", data, at + inputs.SH_ADDR, 0x80000010, image.code_regions[0].offset + 0x10)
    struct.pack_into("<Q", data, at + inputs.SH_SIZE, 0x20)
    assert "overlap at 0x80000010" in error_of(data, tmp_path / "image")


def test_cut_at_every_header_boundary(opensbi: Image, tmp_path: Path) -> None:
    whole = opensbi.path.read_bytes()
    tables = (
        [*range(65)]
        + [opensbi.header.phoff + 56 * row for row in range(1, opensbi.header.phnum + 1)]
        + [opensbi.header.shoff + 64 * row for row in range(opensbi.header.shnum)]
        + [edge for one in opensbi.sections for edge in (one.offset, one.offset + one.size)]
    )
    cuts = sorted({cut for cut in tables if cut < len(whole)})
    assert len(cuts) > 90
    for cut in cuts:
        message = error_of(whole[:cut], tmp_path / "cut.elf")
        assert message.startswith("truncated" if cut else "not an ELF image"), (cut, message)


HEADER_BYTES = st.lists(
    st.tuples(st.integers(0, 64 + 5 * 56 + 15 * 64 - 1), st.sampled_from([0, 1, 2, 0x40, 0x7F, 0x80, 0xFE, 0xFF])),
    min_size=1,
    max_size=12,
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(read=st.sampled_from([open_image, open_to_run]), changes=HEADER_BYTES)
def test_any_damage_to_the_headers_is_read_or_refused(
    read: Callable[[Path], Image],
    changes: list[tuple[int, int]],
    opensbi: Image,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Never another exception, never a word on stdout or stderr (LIEF's), never much memory."""
    data = bytearray(opensbi.path.read_bytes())
    places = [*range(64 + 5 * 56), *range(opensbi.header.shoff, opensbi.header.shoff + 15 * 64)]
    for place, value in changes:
        data[places[place]] = value
    path = tmp_path / "damaged.elf"
    path.write_bytes(data)
    try:
        image = read(path)
        functions = functions_of(image)
    except KinstError as error:
        assert "\n" not in str(error)
    else:
        ends = functions.address + functions.size
        assert (ends[:-1] <= functions.address[1:]).all()
    assert capfd.readouterr() == ("", "")


# Debug files.


def test_symbols_of_a_separate_debug_file(tmp_path: Path) -> None:
    whole = open_image(real_image("xen-arm64"))
    bare = inputs.stripped("xen-arm64", tmp_path / "bare.elf")
    assert len(bare.symbols) == 0
    assert len(open_debug_symbols(whole.path, bare)) == len(whole.symbols)
    with pytest.raises(ImageError, match="no symbol table"):
        open_debug_symbols(bare.path, bare)


def test_debug_file_of_another_build(tmp_path: Path) -> None:
    data, image = real_bytes("xen-arm64"), open_image(real_image("xen-arm64"))
    note = image.section(".note.gnu.build-id")
    assert note is not None
    data[note.offset + 16] ^= 0xFF
    (tmp_path / "other.debug").write_bytes(data)
    with pytest.raises(ImageError, match="build-id"):
        open_debug_symbols(tmp_path / "other.debug", image)


def test_debug_file_of_other_addresses(tmp_path: Path) -> None:
    """Without build-ids the places of the code decide."""
    code = Part(".text", 0x80000000, b"\x13\0\0\0" * 64, 5)
    symbols = [Symbol("f", 0x80000000, 16)]
    (tmp_path / "a").write_bytes(elf64(EM_RISCV, 0x80000000, [code]))
    moved = Part(".text", 0x80200000, code.content, 5)
    (tmp_path / "b").write_bytes(elf64(EM_RISCV, 0x80200000, [moved], [Symbol("f", 0x80200000, 16)]))
    (tmp_path / "c").write_bytes(elf64(EM_RISCV, 0x80000000, [code], symbols))
    image = open_image(tmp_path / "a")
    with pytest.raises(ImageError, match=r"made from another build: \.text is at 0x80200000"):
        open_debug_symbols(tmp_path / "b", image)
    assert open_debug_symbols(tmp_path / "c", image).address_of("f") == 0x80000000


# Modules.


def test_a_module_that_is_not_linked_has_file_offsets_for_addresses(tmp_path: Path) -> None:
    data = bytearray(elf64(EM_RISCV, 0, [Part(".text", 0, b"\x13\0\0\0" * 64, 5)], [Symbol("f", 16, 32)]))
    struct.pack_into("<H", data, inputs.E_TYPE, 1)
    struct.pack_into("<Q", data, inputs.E_PHOFF, 0)
    struct.pack_into("<H", data, inputs.E_PHNUM, 0)
    (tmp_path / "zfs.ko").write_bytes(data)
    image = open_image(tmp_path / "zfs.ko")
    assert (image.kind, image.module) == (FileKind.REL, "zfs")
    (region,) = image.code_regions
    assert region.address == region.offset
    assert image.symbols.address_of("f") == region.address + 16
    functions = functions_of(image)
    assert functions.row_at(region.address + 20) is not None
    assert image.read(region.address, 4) == b"\x13\0\0\0"
