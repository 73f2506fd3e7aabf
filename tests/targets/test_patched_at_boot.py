"""What a kernel patches by itself: tables made by hand, and those of real kernels against their decoded code."""

import struct
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from kinst.rewriter.arch.registry import dissector
from kinst.targets.functions.sweeping import Swept, sweep_spans
from kinst.targets.image import Image, open_image
from kinst.targets.instruction import Flow, Reason
from kinst.targets.kernels.patched_at_boot import boot_patched_ranges
from tests.images import CACHE, real_image
from tests.targets.inputs import functions_of
from tests.writers.elf import EM_AARCH64, EM_RISCV, EM_X86_64, Part, Symbol, elf64

CODE, TABLE = 0x80000000, 0x80010000
LARGE = [name for name in ("linux-amd64", "linux-arm64", "linux-riscv64") if (CACHE / name / "image.elf").exists()]


def ranges_of(
    path: Path, machine: int, section: str, table: bytes, code: bytes = bytes(256), symbols: tuple[Symbol, ...] = ()
) -> list[tuple[int, int]]:
    """Offset into the code and size of each range."""
    path.write_bytes(elf64(machine, CODE, [Part(".text", CODE, code, 5), Part(section, TABLE, table, 4)], symbols))
    return [(int(start) - CODE, int(size)) for start, size, _ in boot_patched_ranges(open_image(path))]


def relative(field: int, target: int) -> bytes:
    """An s32 at offset `field` of the table that leads to an offset of the code."""
    return struct.pack("<i", CODE + target - (TABLE + field))


def test_no_tables_no_ranges(tmp_path: Path) -> None:
    assert ranges_of(tmp_path / "a", EM_RISCV, ".rodata", bytes(64)) == []
    for name in ("opensbi-1.6", "u-boot-arm64", "gnumach"):
        assert len(boot_patched_ranges(open_image(real_image(name)))) == 0


@pytest.mark.parametrize(("size", "length_at"), [(12, 10), (14, 12), (13, 10)])
def test_alternatives_of_amd64_in_every_version(size: int, length_at: int, tmp_path: Path) -> None:
    table = b""
    for number, (site, length, copied, copied_length) in enumerate([(16, 5, 128, 3), (40, 2, 140, 0), (60, 9, 150, 9)]):
        row = bytearray(size)
        row[0:4], row[4:8] = relative(number * size, site), relative(number * size + 4, copied)
        row[length_at : length_at + 2] = bytes([length, copied_length])
        table += row
    assert ranges_of(tmp_path / "a", EM_X86_64, ".altinstructions", table) == [
        (16, 5), (40, 2), (60, 9), (128, 3), (150, 9),
    ]  # fmt: skip


def test_alternatives_of_arm64_and_their_callbacks(tmp_path: Path) -> None:
    table = relative(0, 8) + relative(4, 64) + struct.pack("<HBB", 7, 8, 8)
    table += relative(12, 32) + relative(16, 96) + struct.pack("<HBB", 0x8007, 4, 0)  # a callback: nothing is copied
    assert ranges_of(tmp_path / "a", EM_AARCH64, ".altinstructions", table) == [(8, 8), (32, 4), (64, 8)]


def test_alternatives_of_riscv_since_6_4_and_before(tmp_path: Path) -> None:
    new = relative(0, 8) + relative(4, 64) + struct.pack("<HHI", 0, 260, 1)
    assert ranges_of(tmp_path / "a", EM_RISCV, ".alternative", new, bytes(512)) == [(8, 260), (64, 260)]
    old = struct.pack("<QQQQQ", CODE + 8, CODE + 64, 0x489, 12, 2)
    assert ranges_of(tmp_path / "b", EM_RISCV, ".alternative", old) == [(8, 12), (64, 12)]


def test_static_keys(tmp_path: Path) -> None:
    code = bytearray(256)
    code[16:18], code[32:37], code[48:50], code[64:69] = b"\x66\x90", b"\x0f\x1f\x44\0\0", b"\xeb\x10", b"\xe9\0\0\0\0"
    table = b"".join(
        relative(16 * row, site) + relative(16 * row + 4, 100) + bytes(8) for row, site in enumerate((16, 32, 48, 64))
    )
    found = ranges_of(tmp_path / "a", EM_X86_64, "__jump_table", table, bytes(code))
    assert found == [(16, 2), (32, 5), (48, 2), (64, 5)]
    assert ranges_of(tmp_path / "b", EM_AARCH64, "__jump_table", table) == [(16, 4), (32, 4), (48, 4), (64, 4)]


def test_room_for_the_function_tracer(tmp_path: Path) -> None:
    table = struct.pack("<QQ", CODE + 16, CODE + 64)
    nops = bytearray(256)
    nops[16:32] = b"\x1f\x20\x03\xd5" * 2 + b"\xc0\x03\x5f\xd6" * 2
    nops[64:76] = b"\x1f\x20\x03\xd5" * 2 + b"\xc0\x03\x5f\xd6"
    assert ranges_of(tmp_path / "a", EM_AARCH64, "__mcount_loc", table, bytes(nops)) == [(16, 8), (64, 8)]
    short = bytes(16) + b"\x01\0" * 4 + b"\x82\x80" + bytes(38) + b"\x01\0" * 4 + b"\x82\x80" + bytes(100)
    for section in ("__mcount_loc", "__patchable_function_entries"):
        assert ranges_of(tmp_path / "b", EM_RISCV, section, table, short) == [(16, 8), (64, 8)]
    assert ranges_of(tmp_path / "c", EM_X86_64, "__mcount_loc", table) == [(16, 5), (64, 5)]


def test_calls_and_returns_of_amd64(tmp_path: Path) -> None:
    code = bytearray(256)
    code[16:21], code[40:46], code[64:70] = b"\xe9" + bytes(4), b"\x2e\xe8" + bytes(4), b"\x0f\x84" + bytes(4)
    table = b"".join(relative(4 * row, site) for row, site in enumerate((16, 40, 64)))
    for section in (".retpoline_sites", ".return_sites"):
        found = ranges_of(tmp_path / "a", EM_X86_64, section, table, bytes(code))
        assert found == [(16, 5), (40, 6), (64, 6)]
    assert ranges_of(tmp_path / "a", EM_X86_64, ".call_sites", table, bytes(code)) == []  # no call there: left alone
    paravirt = struct.pack("<QBB6x", CODE + 16, 1, 6) + struct.pack("<QBB6x", CODE + 40, 2, 7)
    assert ranges_of(tmp_path / "c", EM_X86_64, ".parainstructions", paravirt) == [(16, 6), (40, 7)]


def test_lock_prefixes_may_be_probed_where_the_image_has_them(tmp_path: Path) -> None:
    """3e stands where a kernel on one CPU took the lock away: its copy would lack it when there are more."""
    code = bytearray(256)
    code[16:19], code[32:35], code[48:51] = b"\xf0\xff\x07", b"\x3e\xff\x07", b"\xf0\xff\x0f"
    table = b"".join(relative(4 * row, site) for row, site in enumerate((16, 32, 48)))
    assert ranges_of(tmp_path / "a", EM_X86_64, ".smp_locks", table, bytes(code)) == [(32, 1)]
    absolute = struct.pack("<QQQ", CODE + 16, CODE + 32, CODE + 48)  # as in 2.6.32
    assert ranges_of(tmp_path / "b", EM_X86_64, ".smp_locks", absolute, bytes(code)) == []


@pytest.mark.parametrize(("machine", "sizes"), [(EM_X86_64, (8, 1)), (EM_AARCH64, (16, 4)), (EM_RISCV, (24, 4))])
def test_constants_that_are_known_at_boot(machine: int, sizes: tuple[int, int], tmp_path: Path) -> None:
    table = relative(0, 18) + relative(4, 64)
    for name, size in zip(("runtime_ptr_dentry_hashtable", "runtime_shift_d_hash_shift"), sizes, strict=True):
        assert ranges_of(tmp_path / "a", machine, name, table) == [(18, size), (64, size)]


def test_static_calls_and_their_trampolines(tmp_path: Path) -> None:
    table = relative(0, 16) + bytes(4)
    symbols = (
        Symbol("__SCT__preempt_schedule", CODE + 64, 8),
        Symbol("not__SCT__", CODE + 128, 8),
        Symbol("__start_static_call_sites", TABLE, 0),
        Symbol("__stop_static_call_sites", TABLE + 7, 0),
    )
    assert ranges_of(tmp_path / "a", EM_X86_64, ".static_call_sites", table, symbols=symbols) == [(16, 5), (64, 5)]


@pytest.mark.parametrize(
    ("section", "row", "reason"),
    [
        ("__jump_table", relative(0, 16) + relative(4, 32) + bytes(8), Reason.STATIC_KEY),
        ("__mcount_loc", struct.pack("<Q", CODE + 16), Reason.TRACER_CALL),
        ("__patchable_function_entries", struct.pack("<Q", CODE + 16), Reason.TRACER_CALL),
        (".static_call_sites", relative(0, 16) + bytes(4), Reason.STATIC_CALL),
        (".return_sites", relative(0, 16), Reason.RETURN_THUNK),
        (".retpoline_sites", relative(0, 16), Reason.THUNK),
        (".parainstructions", struct.pack("<QBB6x", CODE + 16, 1, 6), Reason.PATCHED_AT_BOOT),
    ],
)
def test_each_table_is_a_reason(section: str, row: bytes, reason: Reason, tmp_path: Path) -> None:
    assert ranges_of(tmp_path / "a", EM_X86_64, section, row)
    assert boot_patched_ranges(open_image(tmp_path / "a"))[:, 2].tolist() == [reason]


def test_a_table_between_symbols(tmp_path: Path) -> None:
    symbols = (Symbol("__start___bug_table", TABLE, 0), Symbol("__stop___bug_table", TABLE + 24, 0))
    table = relative(0, 16) + bytes(8) + relative(12, 32) + bytes(8) + bytes(100)
    code = bytearray(256)
    code[16:18] = code[32:34] = b"\x0f\x0b"
    assert ranges_of(tmp_path / "a", EM_X86_64, ".rodata", table, bytes(code), symbols) == [(16, 2), (32, 2)]


def test_a_table_of_an_unknown_layout_is_left_out(tmp_path: Path) -> None:
    assert ranges_of(tmp_path / "a", EM_AARCH64, ".altinstructions", bytes(11)) == []
    assert ranges_of(tmp_path / "b", EM_AARCH64, ".altinstructions", b"\xff" * 120) == []


# Real kernels.


def swept(image: Image) -> Swept:
    functions = functions_of(image)
    spans = np.stack([functions.address, functions.address + functions.size], axis=1)
    return sweep_spans(image, spans, dissector(image.facts).dissect)


def starting_at(code: Swept, address: NDArray[np.uint64]) -> NDArray[np.bool_]:
    return np.isin(address, code.address)


def test_alternatives_of_xen_are_whole_instructions() -> None:
    """Xen for arm64 has Linux's table, found by its symbols; half of the ranges are the code that is copied."""
    image = open_image(real_image("xen-arm64"))
    found, code = boot_patched_ranges(image), swept(image)
    text = found[found[:, 0] < image.code_regions[0].address + image.code_regions[0].size]
    assert len(found) == 829
    assert starting_at(code, text[:, 0]).all()
    assert np.isin(text[:, :2].sum(axis=1), code.end).all()
    assert (found[:, 1] % 4 == 0).all()


@pytest.mark.long  # the gate has Xen's, and each table of Linux
@pytest.mark.parametrize("name", LARGE)
def test_what_linux_patches_are_whole_instructions(name: str) -> None:
    image = open_image(real_image(name))
    found, code = boot_patched_ranges(image), swept(image)
    rows = np.searchsorted(code.address, found[:, 0])
    starts = starting_at(code, found[:, 0])
    flows = code.instructions.flow[rows[starts]]
    assert len(found) > 60_000
    assert starts.mean() > 0.83  # the others are replacements, which lie outside of functions
    assert np.isin(found[:, :2].sum(axis=1)[starts], code.end).mean() > 0.998
    assert set(np.unique(flows).tolist()) >= {Flow.NEXT, Flow.JUMP}


# alternatives_smp_unlock(), inlined: movslq (%rbx),%rsi; ...; cmpb $0xf0,(%rsi); jne.
_LOOKS = bytes.fromhex("803ef075")


@pytest.mark.skipif("linux-amd64" not in LARGE, reason="linux-amd64 was not downloaded")
def test_linux_looks_before_it_takes_a_lock_prefix_away() -> None:
    """Why its .smp_locks may be probed: a breakpoint is not what it replaces."""
    image = open_image(real_image("linux-amd64"))
    functions = functions_of(image)
    row = functions.names.index("alternatives_smp_module_add")
    assert _LOOKS in image.read(int(functions.address[row]), int(functions.size[row]))
    table = image.section(".smp_locks")
    assert table is not None
    raw = np.frombuffer(image.read(table.address, table.size), "<i4").astype(np.int64)
    entries = np.uint64(table.address) + np.arange(len(raw), dtype=np.uint64) * np.uint64(4)
    sites = (entries + raw.view(np.uint64))[raw != 0]
    offsets = image.offsets_of(sites)
    assert len(sites) > 8_000
    assert (image.data[offsets] == 0xF0).all()
    assert len(np.intersect1d(sites, boot_patched_ranges(image)[:, 0])) < 10  # what other tables list, too
