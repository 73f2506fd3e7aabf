"""Functions: of images with symbols, and how well those of stripped ones are found, against the symbols they had."""

import struct
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from kinst.targets.elf.symbols import STT_FUNC, STT_OBJECT
from kinst.targets.functions.found import Evidence, Functions
from kinst.targets.functions.frames import frame_ranges
from kinst.targets.functions.named_functions import NamedFunctions, data_in_code, named_functions
from kinst.targets.functions.startup import entry_point, startup32
from kinst.targets.image import Image, open_image
from tests.images import CACHE, real_image
from tests.targets.inputs import functions_of, stripped, symbol_table
from tests.writers.elf import EM_AARCH64, EM_RISCV, EM_X86_64, Part, Symbol, elf64

SMALL = ["opensbi-1.1", "opensbi-1.6", "u-boot-riscv64", "u-boot-arm64", "u-boot-amd64", "gnumach", "xen-arm64"]
LARGE = [name for name in ("linux-amd64", "linux-arm64", "linux-riscv64") if (CACHE / name / "image.elf").exists()]
CODE = 0x80000000


@pytest.mark.parametrize("name", SMALL)
def test_functions_are_in_order_apart_and_inside_code(name: str) -> None:
    image = open_image(real_image(name))
    found = functions_of(image)
    end = found.address + found.size
    assert len(found) > 400
    assert (end[:-1] <= found.address[1:]).all()
    assert (found.size > 0).all()
    assert len(found.names) == len(found)
    inside = np.zeros(len(found), np.bool_)
    for region in image.code_regions:
        inside |= (found.address >= region.address) & (end <= region.address + region.size)
    assert inside.all()
    step = np.uint64(image.facts.instruction_alignment)
    assert (found.address % step == 0).all()


def test_row_at_an_address() -> None:
    found = functions_of(open_image(real_image("gnumach")))
    row = found.names.index("vm_fault")
    start, size = int(found.address[row]), int(found.size[row])
    assert [found.row_at(address) for address in (start, start + size - 1)] == [row, row]
    assert found.row_at(0) is None
    assert found.row_at((1 << 64) - 1) is None
    assert found.row_at(start + size) != row


def test_all_symbols_of_an_image_are_found_under_their_names() -> None:
    for name in ("gnumach", "xen-arm64"):
        image = open_image(real_image(name))
        found, symbols = functions_of(image), named_functions(image, image.symbols)
        certain = symbols.is_certain
        place = np.searchsorted(found.address, symbols.address[certain])
        assert (found.address[place] == symbols.address[certain]).all()
        assert {found.names[row] for row in place} == {
            name for name, known in zip(symbols.names, certain, strict=True) if known
        }
        assert (found.evidence[place] == Evidence.SYMBOL).all()


def test_tables_among_the_code_of_a_kernel_are_no_functions() -> None:
    """GNU Mach keeps tables in .text, with labels like those of code, and page tables in an executable section."""
    found = functions_of(open_image(real_image("gnumach")))
    image = open_image(real_image("gnumach"))
    for label in ("recover_table", "null_idt", "p4table", "gdt64"):
        address = image.symbols.address_of(label)
        assert address is not None
        row = found.row_at(address)
        assert row is None, (label, found.names[row])
    for label in ("splx_cli", "spl"):  # labels too, of code
        assert label in found.names


def test_the_32_bit_start_of_a_multiboot_kernel_is_not_taken_for_64_bit_code() -> None:
    image = open_image(real_image("gnumach"))
    region = startup32(image)
    assert region is not None
    assert region.address == 0x1000000
    assert entry_point(image) is None
    assert functions_of(image).row_at(image.entry) is None
    assert startup32(open_image(real_image("xen-arm64"))) is None


# How well functions of stripped images are found.


def quality(image: Image, truth: NDArray[np.uint64]) -> tuple[Functions, NDArray[np.bool_]]:
    """The functions and which of them start where a symbol or an FDE says that one does."""
    found = functions_of(image)
    return found, np.isin(found.address, truth)


def truth_of(whole: Image) -> NamedFunctions:
    return named_functions(whole, whole.symbols)


def bytes_of_code(starts: NDArray[np.uint64], ends: NDArray[np.uint64], low: int, size: int) -> NDArray[np.bool_]:
    covered = np.zeros(size + 1, np.int32)
    inside = (starts >= low) & (starts < low + size)
    np.add.at(covered, (starts[inside] - np.uint64(low)).astype(np.intp), 1)
    np.add.at(covered, np.minimum((ends[inside] - np.uint64(low)).astype(np.intp), size), -1)
    found: NDArray[np.bool_] = np.cumsum(covered[:-1]) > 0
    return found


@pytest.mark.parametrize(
    ("name", "keep_frames", "recall"),
    [("gnumach", True, 0.99), ("gnumach", False, 0.975), ("xen-arm64", True, 0.96)],
)
def test_functions_of_stripped_kernels(name: str, keep_frames: bool, recall: float, tmp_path: Path) -> None:  # noqa: FBT001
    whole = open_image(real_image(name))
    truth = truth_of(whole)
    found, right = quality(stripped(name, tmp_path / "stripped.elf", keep_frames=keep_frames), truth.address)
    assert right.mean() > 0.99
    for evidence in (Evidence.FDE, Evidence.CALL):
        sure = found.evidence == evidence
        assert not sure.any() or right[sure].mean() > 0.95  # a handful of Mach's functions are found by calls alone
    assert np.isin(truth.address[truth.is_certain], found.address).mean() > recall


@pytest.mark.parametrize("name", ["gnumach", "xen-arm64"])
def test_what_is_found_in_stripped_kernels_is_code(name: str, tmp_path: Path) -> None:
    """Byte for byte: of 1000 bytes in functions at most one is none of a symbol's, and they are nearly all there is."""
    whole = open_image(real_image(name))
    truth, found = truth_of(whole), functions_of(stripped(name, tmp_path / "stripped.elf"))
    wrong = missing = total = 0
    for region in whole.code_regions:
        place = (region.address, region.size)
        real = bytes_of_code(truth.address, truth.end, *place)
        ours = bytes_of_code(found.address, found.address + found.size, *place)
        if region == startup32(whole):
            assert not ours.any()
            continue
        wrong += int(np.count_nonzero(ours & ~real))
        missing += int(np.count_nonzero(real & ~ours))
        total += int(np.count_nonzero(real))
    assert wrong < total / 1000
    assert missing < total / 30


@pytest.mark.long
@pytest.mark.parametrize("name", LARGE)
def test_functions_of_stripped_linux(name: str, tmp_path: Path) -> None:
    """The scale that the tool is for: more than 40,000 functions found, 99 of 100 right, in seconds."""
    whole = open_image(real_image(name))
    known = np.union1d(truth_of(whole).address, frame_ranges(whole).functions[:, 0])
    path = tmp_path / "stripped.elf"
    _strip_large(whole, path)
    found, right = quality(open_image(path), known)
    path.unlink()
    assert len(found) > 40_000
    assert right.mean() > 0.985
    for evidence, least in ((Evidence.CALL, 0.995), (Evidence.POINTER, 0.98), (Evidence.ENTRY_POINT, 0)):
        chosen = found.evidence == evidence
        assert right[chosen].mean() >= least if chosen.any() else evidence is Evidence.ENTRY_POINT


def _strip_large(whole: Image, path: Path) -> None:
    """What is loaded, and the section table moved behind it without symbols and frames."""
    end = max(segment.offset + segment.file_size for segment in whole.segments)
    data = bytearray(whole.data[:end].tobytes())
    rows = bytearray()
    for section in whole.sections:
        if section.flags & 2:
            row = whole.header.shoff + 64 * section.index
            rows += whole.data[row : row + 4].tobytes()[:0] + bytes(4) + whole.data[row + 4 : row + 64].tobytes()
    data += bytes(-len(data) % 8)
    header = bytearray(data[:64])
    header[40:48] = len(data).to_bytes(8, "little")
    header[60:62] = (len(rows) // 64).to_bytes(2, "little")
    header[62:64] = bytes(2)
    data[:64] = header
    path.write_bytes(data + rows)


@pytest.mark.parametrize("name", LARGE)
def test_functions_of_linux_with_symbols(name: str) -> None:
    image = open_image(real_image(name))
    found = functions_of(image)
    assert len(found) > 44_000
    assert (found.evidence == Evidence.SYMBOL).mean() > 0.98
    rows = [row for row, text in enumerate(found.names) if text == "vfs_read"]
    assert len(rows) == 1
    assert image.symbols.address_of("vfs_read") == int(found.address[rows[0]])


# Rules of the discovery, each on a few instructions.


def words(*values: int) -> bytes:
    return b"".join(value.to_bytes(4, "little") for value in values)


def found_in(
    machine: int, code: bytes, tmp_path: Path, data: bytes = b"", symbols: tuple[Symbol, ...] = ()
) -> list[tuple[int, int, Evidence]]:
    """Offset, size and evidence of each function of some code; `data` is a data section behind it."""
    parts = [Part(".text", CODE, code, 5)] + ([Part(".data", CODE + 0x2000, data, 6)] if data else [])
    path = tmp_path / "code.elf"
    path.write_bytes(elf64(machine, CODE, parts, symbols))
    found = functions_of(open_image(path))
    return [
        (int(start) - CODE, int(size), Evidence(kind))
        for start, size, kind in zip(found.address.tolist(), found.size.tolist(), found.evidence.tolist(), strict=True)
    ]


NOP, RET, STP, B_PLUS_8, CBZ_PLUS_8, MOV = 0xD503201F, 0xD65F03C0, 0xA9BF7BFD, 0x14000002, 0xB4000040, 0xD2800000


def bl(distance: int) -> int:
    return 0x94000000 | distance // 4 & 0x3FFFFFF


def test_call_targets_and_the_entry_point(tmp_path: Path) -> None:
    code = words(bl(12), RET, NOP, MOV, RET, NOP, NOP, NOP)
    assert found_in(EM_AARCH64, code, tmp_path) == [(0, 8, Evidence.ENTRY_POINT), (12, 8, Evidence.CALL)]


def test_a_jump_target_is_a_label(tmp_path: Path) -> None:
    code = words(CBZ_PLUS_8, RET, MOV, B_PLUS_8, RET, MOV, RET)
    assert found_in(EM_AARCH64, code, tmp_path) == [(0, 28, Evidence.ENTRY_POINT)]


def test_data_behind_a_function_is_not_in_it(tmp_path: Path) -> None:
    text = b"not code, but text that\0"
    assert found_in(EM_AARCH64, words(MOV, RET) + text, tmp_path) == [(0, 8, Evidence.ENTRY_POINT)]


def test_a_prologue_behind_a_return(tmp_path: Path) -> None:
    code = words(MOV, RET, STP, MOV, RET)
    assert found_in(EM_AARCH64, code, tmp_path) == [(0, 8, Evidence.ENTRY_POINT), (8, 12, Evidence.PROLOGUE)]


def test_a_prologue_that_a_branch_leads_to_is_shrink_wrapped(tmp_path: Path) -> None:
    code = words(CBZ_PLUS_8, RET, STP, MOV, RET)
    assert found_in(EM_AARCH64, code, tmp_path) == [(0, 20, Evidence.ENTRY_POINT)]


def test_a_word_of_data_that_is_an_address_of_code(tmp_path: Path) -> None:
    code = words(MOV, RET, MOV, RET)
    pointer = (CODE + 8).to_bytes(8, "little")
    assert found_in(EM_AARCH64, code, tmp_path, bytes(8) + pointer) == [
        (0, 8, Evidence.ENTRY_POINT),
        (8, 8, Evidence.POINTER),
    ]
    into_the_middle = (CODE + 12).to_bytes(8, "little")
    assert found_in(EM_AARCH64, code, tmp_path, into_the_middle) == [(0, 8, Evidence.ENTRY_POINT)]


def test_code_without_symbols_between_code_with_symbols(tmp_path: Path) -> None:
    named = words(*[MOV] * 15, RET) * 8
    code = named[:256] + words(STP, MOV, RET, NOP) + named[256:]
    symbols = (Symbol("first", CODE, 256), Symbol("second", CODE + 272, len(named) - 256))
    assert found_in(EM_AARCH64, code, tmp_path, symbols=symbols) == [
        (0, 256, Evidence.SYMBOL),
        (256, 12, Evidence.PROLOGUE),
        (272, 256, Evidence.SYMBOL),
    ]


def test_amd64_goes_on_behind_bytes_that_do_not_decode(tmp_path: Path) -> None:
    call = b"\xe8\x1b\0\0\0\xc3"
    code = call + b"\x06\x07\x06\x17\x1f\x06" + b"\xcc" * 4 + b"\x06" * 16 + b"\x31\xc0\xc3" + b"\x90" * 13
    assert found_in(EM_X86_64, code, tmp_path) == [(0, 6, Evidence.ENTRY_POINT), (32, 3, Evidence.CALL)]


@pytest.mark.parametrize(("early", "augmentation"), [(1, b"zRS"), (0, b"zRS"), (0, b"zR")])
def test_a_signal_frame_may_begin_a_byte_before_its_function(early: int, augmentation: bytes, tmp_path: Path) -> None:
    """Nopl 0(%rax), mov $15, %rax; syscall, as glibc's __restore_rt: the byte before is the end of the padding."""
    code = bytes.fromhex("31c0c3 660f1f440000 0f1f840000000000 48c7c00f000000 0f05 0f1f8000000000")
    start = 17
    cie = struct.pack("<II", 16, 0) + b"\x01" + augmentation + b"\0" + b"\x01\x78\x10\x01\x1b"
    cie = cie.ljust(20, b"\0")
    frames = CODE + 0x2000
    place = frames + len(cie) + 8
    record = struct.pack("<IIiI", 16, len(cie) + 4, CODE + start - early - place, 9 + early) + bytes(4)
    parts = [Part(".text", CODE, code, 5), Part(".eh_frame", frames, cie + record, 4)]
    path = tmp_path / "code.elf"
    path.write_bytes(elf64(EM_X86_64, CODE, parts))
    found = functions_of(open_image(path))
    assert list(zip((found.address - np.uint64(CODE)).tolist(), found.size.tolist(), strict=True)) == [(0, 3), (17, 9)]
    assert found.evidence.tolist() == [Evidence.ENTRY_POINT, Evidence.FDE]


def test_what_looks_like_a_beginning_behind_bytes_that_do_not_decode_is_chance(tmp_path: Path) -> None:
    """A table among the code: ret and push %rbp happen to be in it. Behind a function they are what they look like."""
    table = b"\x31\xc0\xc3" + b"\xcc" * 6 + bytes.fromhex("0607ae c3 55 1afb ff6f02 c3") + b"\xcc" * 7
    real = b"\x31\xc0\xc3" + b"\xcc" * 6 + bytes.fromhex("c3 55 4889e5 5d c3") + b"\xcc" * 7
    assert found_in(EM_X86_64, table, tmp_path) == [(0, 3, Evidence.ENTRY_POINT)]
    assert (10, 6, Evidence.PROLOGUE) in found_in(EM_X86_64, real, tmp_path)


def test_the_pe_header_of_a_kernel_is_data(tmp_path: Path) -> None:
    """Linux for riscv64 begins with a jump over it, and has labels in it that look like those of code."""
    pe = b"PE\0\0" + struct.pack("<HHIIIHH", 0x5064, 2, 0, 0, 0, 16, 0x206)
    code = bytes.fromhex("6f00c00a") + bytes(0x38) + struct.pack("<I", 0x40) + pe + bytes(256)
    path = tmp_path / "code.elf"
    whole, other, short = [[CODE + 0x40, 24 + 16 + 2 * 40]], code.replace(b"PE", b"EP"), code[:16]
    for content, expected in ((code, whole), (other, []), (short, []), (code[:0x50], [])):
        path.write_bytes(elf64(EM_RISCV, CODE, [Part(".text", CODE, content, 5)]))
        assert data_in_code(open_image(path)).tolist() == expected


def test_compressed_riscv_code(tmp_path: Path) -> None:
    """c.addi sp,-16; c.sdsp ra,8; jal +8; c.ldsp; c.addi; ret -- then a leaf: c.li a0,0; ret."""
    code = bytes.fromhex("41 11 06 e4 ef 00 80 00 a2 60 82 80 01 45 82 80".replace(" ", ""))
    assert found_in(EM_RISCV, code, tmp_path) == [(0, 12, Evidence.ENTRY_POINT), (12, 4, Evidence.CALL)]


def test_a_label_that_is_code_has_its_name(tmp_path: Path) -> None:
    path = tmp_path / "code.elf"
    path.write_bytes(elf64(EM_AARCH64, CODE, [Part(".text", CODE, words(MOV, RET, MOV, RET), 5)]))
    labels = symbol_table({"table": (CODE + 4, 0, 0, 1), "leaf": (CODE + 8, 0, 0, 1)})
    found = functions_of(open_image(path), labels)
    assert found.names == (f"sub_{CODE:x}", "leaf")
    assert found.evidence.tolist() == [Evidence.ENTRY_POINT, Evidence.LABEL]


def test_data_of_a_section_that_is_executable_for_some_code_in_it_is_no_code(tmp_path: Path) -> None:
    """Linux 7.2 for amd64: relocate_kernel() is in .data, which is executable therefore."""
    call, named = words(bl(0x2040)), words(*[MOV] * 15, RET) * 8
    looks_like_code = words(STP, MOV, RET, NOP)
    data = looks_like_code * 64 + words(*[MOV] * 7, RET) + looks_like_code * 2
    path = tmp_path / "data.elf"
    parts = [Part(".text", CODE, call + named[4:], 5), Part(".data", CODE + 0x2000, data, 7)]
    path.write_bytes(elf64(EM_AARCH64, CODE, parts))
    start, moving = CODE + 0x2000, CODE + 0x2400
    symbols = {
        "start": (CODE, len(named), STT_FUNC, 1),
        "jiffies": (start, 0x200, STT_OBJECT, 1),
        "relocate": (moving, 32, STT_FUNC, 1),
    }
    assert functions_of(open_image(path), symbol_table(symbols)).address.tolist() == [CODE, moving]
    del symbols["jiffies"]
    assert len(functions_of(open_image(path), symbol_table(symbols)).address) > 2  # for all that is known, it is code
