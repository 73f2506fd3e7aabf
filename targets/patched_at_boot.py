"""An image -> the code that a Linux kernel (or Xen) in it rewrites or looks up by itself, from the tables it keeps.

Each table lists instructions: to replace on some CPUs (alternatives), to turn into calls or nops (static keys, static
calls, ftrace), to make faster (retpolines, paravirt calls), to write constants into, or known by address (BUG). A
breakpoint there would be overwritten, or would make the kernel panic over an instruction it does not expect, and a
copy elsewhere would stay as it was: sites in what is rewritten are deferred, those in what is only looked up or copied
are refused. Layouts are those of include/linux and arch/*/include/asm of the versions named; a table whose size or
addresses fit no known layout is left out.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.elf.header import SHT_NOBITS, SHT_PROGBITS, FileKind
from kinst.targets.elf.symbols import STT_FUNC
from kinst.targets.image import Image
from kinst.targets.instruction import Reason

Ranges = NDArray[np.uint64]  # (n, 3) address, size and Reason
_NONE: Final[Ranges] = np.zeros((0, 3), np.uint64)

_FITTING: Final = 0.95  # share of a table's addresses that must be code for a layout to be the right one


@dataclass(frozen=True, slots=True)
class _Field:
    """An address in a record: 4 bytes relative to themselves, or 8 absolute ones."""

    offset: int
    is_relative: bool = True


@dataclass(frozen=True, slots=True)
class _Layout:
    """One version of a record. Lengths are fixed (`length`), in the record (`length_at`), or read off the code (0)."""

    size: int
    site: _Field
    length: int = 0
    length_at: int | None = None
    length_width: int = 1
    replacement: _Field | None = None  # code that is copied over the site and never runs where it is
    replacement_length_at: int = 0
    probed_with: int | None = None  # sites that begin with this byte may be probed


@dataclass(frozen=True, slots=True)
class _Table:
    """Where a table is: a section of that name, else between two symbols; and how its records may look."""

    section: str
    symbols: tuple[str, str]
    layouts: tuple[_Layout, ...]
    reason: Reason = Reason.PATCHED_AT_BOOT


_BUG: Final = _Table(
    "__bug_table",
    ("__start___bug_table", "__stop___bug_table"),
    # struct bug_entry: s32 bug_addr_disp [, s32 file_disp, u16 line], u16 flags; without relative pointers 8-byte ones.
    (_Layout(12, _Field(0)), _Layout(8, _Field(0)), _Layout(24, _Field(0, is_relative=False))),
    Reason.BREAKPOINT,
)
_JUMP_LABELS: Final = _Table(
    "__jump_table",
    ("__start___jump_table", "__stop___jump_table"),
    # struct jump_entry: s32 code, s32 target, long key (since 4.19); before: three absolute words.
    (_Layout(16, _Field(0)), _Layout(24, _Field(0, is_relative=False))),
    Reason.STATIC_KEY,
)
_FTRACE: Final = _Table(
    "__mcount_loc",
    ("__start_mcount_loc", "__stop_mcount_loc"),
    (_Layout(8, _Field(0, is_relative=False)),),
    Reason.TRACER_CALL,
)
_COMMON: Final = (_BUG, _JUMP_LABELS, _FTRACE)
_RELATIVE_SITE: Final = (_Layout(4, _Field(0)),)
_TABLES: Final[Mapping[str, tuple[_Table, ...]]] = {
    "amd64": (
        *_COMMON,
        _Table(
            ".altinstructions",
            ("__alt_instructions", "__alt_instructions_end"),
            # struct alt_instr: s32 instr_offset, s32 repl_offset, u16 cpuid [, u16 flags since 6.3], u8 instrlen,
            # u8 replacementlen [, u8 padlen until 5.12].
            tuple(
                _Layout(size, _Field(0), length_at=at, replacement=_Field(4), replacement_length_at=at + 1)
                for size, at in ((12, 10), (14, 12), (13, 10))
            ),
        ),
        # struct paravirt_patch_site: u8 *instr, u8 type, u8 len (until 6.7).
        _Table(
            ".parainstructions",
            ("__parainstructions", "__parainstructions_end"),
            (_Layout(16, _Field(0, is_relative=False), length_at=9),),
        ),
        _Table(".retpoline_sites", ("__retpoline_sites", "__retpoline_sites_end"), _RELATIVE_SITE, Reason.THUNK),
        _Table(".return_sites", ("__return_sites", "__return_sites_end"), _RELATIVE_SITE, Reason.RETURN_THUNK),
        # Not .call_sites, which has all direct calls since 6.2: what redirects them (callthunks.c) looks at the opcode
        # first and leaves alone what is no call any more.
        _Table(
            ".ibt_endbr_seal",
            ("__ibt_endbr_seal", "__ibt_endbr_seal_end"),
            (_Layout(4, _Field(0), length=4),),
            Reason.LANDING_PAD,
        ),
        # Lock prefixes, which a kernel on one CPU turns into 3e (ds), and back. It writes only over f0 and 3e
        # (alternatives_smp_unlock and its inverse), so a breakpoint stays; one as old as 2.6.32 writes without looking,
        # which costs the probe and leaves the instruction as it wants it. The trampoline keeps the lock, right on any
        # number of CPUs: only what an image has without it, a copy of such a kernel's memory, must not run there.
        _Table(
            ".smp_locks", ("__smp_locks", "__smp_locks_end"), (_Layout(4, _Field(0), length=1, probed_with=0xF0),)
        ),
        # struct static_call_site: s32 addr, s32 key.
        _Table(
            ".static_call_sites",
            ("__start_static_call_sites", "__stop_static_call_sites"),
            (_Layout(8, _Field(0)),),
            Reason.STATIC_CALL,
        ),
    ),
    "arm64": (
        *_COMMON,
        _Table(
            ".altinstructions",
            ("__alt_instructions", "__alt_instructions_end"),
            # struct alt_instr: s32 orig_offset, s32 alt_offset, u16 cpucap, u8 orig_len, u8 alt_len (0: a callback).
            (_Layout(12, _Field(0), length_at=10, replacement=_Field(4), replacement_length_at=11),),
        ),
    ),
    "riscv64": (
        *_COMMON,
        _Table(
            ".alternative",
            ("__alt_start", "__alt_end"),
            (
                # struct alt_entry since 6.4: s32 old_offset, s32 alt_offset, u16 vendor_id, u16 alt_len, u32 patch_id.
                _Layout(
                    16, _Field(0), length_at=10, length_width=2, replacement=_Field(4), replacement_length_at=10
                ),
                # Before: void *old_ptr, void *alt_ptr, unsigned long vendor_id, alt_len, unsigned int errata_id.
                _Layout(
                    40, _Field(0, is_relative=False), length_at=24, length_width=2,
                    replacement=_Field(8, is_relative=False), replacement_length_at=24,
                ),
            ),
        ),
    ),
}  # fmt: skip


def boot_patched_ranges(image: Image) -> Ranges:
    """Instructions that the kernel in the image patches or looks up: (n, 3) address, size and the Reason to defer (see
    `DEFERRED`) or to refuse them for, in address order.

    Replacement code, which is copied elsewhere and never runs in place, is among them. Empty for images without such
    tables, for ET_REL files (their tables still lack relocations), and for stripped kernels whose linker script put a
    table into another section: then nothing tells where it is.
    """
    if image.kind is FileKind.REL:
        return _NONE
    found = [_ranges_of(image, table) for table in _TABLES.get(image.facts.name, ())]
    found += [_patchable_entries(image), _static_call_trampolines(image), *_runtime_constants(image)]
    return np.unique(np.concatenate(found), axis=0)


def _ranges_of(image: Image, table: _Table) -> Ranges:
    place = _place(image, table)
    if place is None:
        return _NONE
    for layout in table.layouts:
        ranges = _read(image, place, layout, table.reason)
        if ranges is not None:
            return ranges
    return _NONE


def _place(image: Image, table: _Table) -> tuple[int, int] | None:
    """(address, size) of a table."""
    section = image.section(table.section)
    if section is not None and section.kind != SHT_NOBITS and section.size:
        return section.address, section.size
    start, end = (image.symbols.address_of(name) for name in table.symbols)
    if start is None or end is None or end <= start:
        return None
    first, last = image.offset_of(start), image.offset_of(end - 1)
    return (start, end - start) if first is not None and last is not None and last - first == end - start - 1 else None


def _read(image: Image, place: tuple[int, int], layout: _Layout, reason: Reason) -> Ranges | None:
    """What a table lists, if it can have this layout: whole records, and nearly all addresses are in code."""
    address, size = place
    if size % layout.size:
        return None
    rows = np.frombuffer(image.read(address, size), np.uint8).reshape(-1, layout.size)
    starts = np.uint64(address) + np.arange(len(rows), dtype=np.uint64) * np.uint64(layout.size)
    sites = _addresses(image, rows, starts, layout.site)
    sizes = _lengths(image, rows, sites, layout, is_ftrace=reason is Reason.TRACER_CALL)
    is_code = _in_code(image, sites)
    if not len(sites) or np.mean(is_code) < _FITTING:
        return None
    if layout.probed_with is not None:
        is_code &= _heads(image, sites, 1)[:, 0] != layout.probed_with
    found = [_with_reason(np.stack([sites, sizes], axis=1)[is_code], reason)]
    if layout.replacement is not None:
        copied = _addresses(image, rows, starts, layout.replacement)
        length = _byte_lengths(rows, layout.replacement_length_at, layout.length_width)
        copies = np.stack([copied, length], axis=1)[_in_code(image, copied)]
        found.append(_with_reason(copies, Reason.REPLACEMENT))
    ranges = np.concatenate(found)
    return ranges[ranges[:, 1] > 0]


def _addresses(image: Image, rows: NDArray[np.uint8], starts: NDArray[np.uint64], field: _Field) -> NDArray[np.uint64]:
    width = 4 if field.is_relative else 8
    raw = np.ascontiguousarray(rows[:, field.offset : field.offset + width])
    places = starts + np.uint64(field.offset)
    if field.is_relative:
        return places + raw.view("<i4")[:, 0].astype(np.int64).view(np.uint64)
    values = raw.view("<u8")[:, 0].astype(np.uint64)
    # In a position-independent kernel (arm64) the words may be 0 in the file: the relocations hold the addresses.
    table = image.relocations
    order = np.argsort(table.address, kind="stable")
    at = np.searchsorted(table.address, places, sorter=order)
    if len(order):
        row = order[np.minimum(at, len(order) - 1)]
        stored = (table.address[row] == places) & table.relative[row]
        values[stored] = table.addend[row[stored]]
    return values


def _in_code(image: Image, address: NDArray[np.uint64]) -> NDArray[np.bool_]:
    inside = np.zeros(len(address), np.bool_)
    for region in image.code_regions:
        inside |= address - np.uint64(region.address) < np.uint64(region.size)  # wraps round below: not less
    return inside


def _byte_lengths(rows: NDArray[np.uint8], offset: int, width: int) -> NDArray[np.uint64]:
    found = rows[:, offset].astype(np.uint64)
    return found if width == 1 else found | rows[:, offset + 1].astype(np.uint64) << np.uint64(8)


def _lengths(
    image: Image, rows: NDArray[np.uint8], sites: NDArray[np.uint64], layout: _Layout, *, is_ftrace: bool
) -> NDArray[np.uint64]:
    if layout.length_at is not None:
        return _byte_lengths(rows, layout.length_at, layout.length_width)
    if layout.length:
        return np.full(len(sites), layout.length, np.uint64)
    return _nop_lengths(image, sites) if is_ftrace else _instruction_lengths(image, sites)


# By first byte: what the kernel's tables list on amd64. jmp rel8, the 2-byte nop (66 90) and ud2 (0f 0b) have 2 bytes,
# calls and jumps 5, nopl 5 (0f 1f 44), jcc 6 (0f 8x), what has a cs prefix for alignment 6.
_AMD64_LENGTHS: Final = {0xEB: 2, 0x66: 2, 0x2E: 6, 0x90: 1, 0xCC: 1, 0xC3: 1}
_LONGEST_LEAD: Final = 16


def _heads(image: Image, sites: NDArray[np.uint64], width: int) -> NDArray[np.uint8]:
    """(n, width) bytes at each site; zeros where the file ends or has none."""
    offsets = image.offsets_of(sites)
    at = np.minimum(np.maximum(offsets, 0)[:, np.newaxis] + np.arange(width), len(image.data) - 1)
    found: NDArray[np.uint8] = np.where((offsets >= 0)[:, np.newaxis], image.data[at], np.uint8(0))
    return found


def _instruction_lengths(image: Image, sites: NDArray[np.uint64]) -> NDArray[np.uint64]:
    heads = _heads(image, sites, 2)
    if image.facts.instruction_alignment == 4:
        return np.full(len(sites), 4, np.uint64)
    if image.facts.instruction_alignment == 2:  # riscv: the low two bits tell (unprivileged ISA, 1.5)
        return np.where(heads[:, 0] & 3 == 3, np.uint64(4), np.uint64(2))
    lengths = np.full(len(sites), 5, np.uint64)
    for first, length in _AMD64_LENGTHS.items():
        lengths[heads[:, 0] == first] = length
    lengths[(heads[:, 0] == 0x0F) & (heads[:, 1] == 0x0B)] = 2
    lengths[(heads[:, 0] == 0x0F) & (heads[:, 1] >> 4 == 8)] = 6
    return lengths


# The nop that fills the room for a tracer; amd64 has one call or one nop of 5 bytes instead.
_NOPS: Final = {4: b"\x1f\x20\x03\xd5", 2: b"\x01\x00"}


def _nop_lengths(image: Image, sites: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Of the nops that start at each site: -fpatchable-function-entry=N leaves 8 bytes of them, on some versions 16.

    From N,M on (arm64 since 6.2) the listed address is M nops before the entry: a literal stands there, and the site
    itself is behind it.
    """
    nop = _NOPS.get(image.facts.instruction_alignment)
    if nop is None:
        return np.full(len(sites), 5, np.uint64)
    heads = _heads(image, sites, _LONGEST_LEAD).reshape(len(sites), -1, len(nop))
    is_nop = (heads == np.frombuffer(nop, np.uint8)).all(axis=2)
    run = np.where(is_nop.all(axis=1), is_nop.shape[1], np.argmin(is_nop, axis=1))
    lengths: NDArray[np.uint64] = np.maximum(run, 1).astype(np.uint64) * np.uint64(len(nop))
    return lengths


def _patchable_entries(image: Image) -> Ranges:
    """__patchable_function_entries, where no linker script gathered it into __mcount_loc."""
    table = _Table("__patchable_function_entries", ("", ""), _FTRACE.layouts)
    place = _place(image, table) if image.section(table.section) is not None else None
    found = None if place is None else _read(image, place, table.layouts[0], Reason.TRACER_CALL)
    return _NONE if found is None else found


# Bytes that are written for an address and for a shift count, from where a record leads. amd64: the immediate of movabs
# and of shr; arm64: four movz and movk, one lsr; riscv64: lui, lui, addiw, addiw, slli, add, and one srliw.
_CONSTANT_SIZES: Final = {"amd64": (8, 1), "arm64": (16, 4), "riscv64": (24, 4)}


def _runtime_constants(image: Image) -> Iterator[Ranges]:
    """runtime_const_ptr() and runtime_const_shift_right_32() (since 6.11): a section of relative addresses for each
    constant, ``runtime_ptr_dentry_hashtable``, for example."""
    sizes = _CONSTANT_SIZES[image.facts.name]
    for section in image.sections:
        for prefix, size in zip(("runtime_ptr_", "runtime_shift_"), sizes, strict=True):
            if section.name.startswith(prefix) and section.kind == SHT_PROGBITS and section.size:
                layout = _Layout(4, _Field(0), length=size)
                found = _read(image, (section.address, section.size), layout, Reason.RUNTIME_CONSTANT)
                if found is not None:
                    yield found


def _static_call_trampolines(image: Image) -> Ranges:
    """``__SCT__name: jmp function`` (ARCH_DEFINE_STATIC_CALL_TRAMP): the kernel rewrites the jump."""
    symbols = image.symbols
    if symbols.address_of("__start_static_call_sites") is None:
        return _NONE
    strings = np.frombuffer(symbols.strings + bytes(8), np.uint8)
    starts = symbols.name.astype(np.intp)
    named = np.ones(len(symbols), np.bool_)
    for index, letter in enumerate(b"__SCT__"):
        named &= strings[starts + index] == letter
    address = np.unique(symbols.address[named & (symbols.kind == STT_FUNC)])
    return _with_reason(np.stack([address, np.full(len(address), 5, np.uint64)], axis=1), Reason.STATIC_CALL)


def _with_reason(ranges: NDArray[np.uint64], reason: Reason) -> Ranges:
    return np.insert(ranges, 2, np.uint64(reason), axis=1)
