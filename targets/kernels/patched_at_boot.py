"""An image -> the code that a Linux kernel (or Xen) in it rewrites or looks up by itself, from the tables it keeps.

Each table lists instructions: to replace on some CPUs (alternatives), to turn into calls or nops (static keys, static
calls, ftrace), to make faster (retpolines, paravirt calls), to write constants into, or known by address (BUG). A
breakpoint there would be overwritten, or make the kernel panic over an instruction that it does not expect, and a copy
elsewhere would stay as it was: sites in what is rewritten are deferred, those in what is only looked up or copied are
refused.

`LinuxFacts` says which tables a machine's kernels have; a table whose size or addresses fit no known layout is left
out.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.arch.linux import BootTable, Pointer, RecordLayout
from kinst.targets.columns import unique, unique_rows
from kinst.targets.elf.header import SHT_PROGBITS
from kinst.targets.elf.symbols import STT_FUNC
from kinst.targets.image import Image
from kinst.targets.instruction import Reason
from kinst.targets.kernels.kernel_tables import record_addresses, records_of, table_place
from kinst.targets.patterns import matches

Ranges = NDArray[np.uint64]  # (n, 3) address, size and Reason
_NONE: Final[Ranges] = np.zeros((0, 3), np.uint64)

_AT_ANY_TIME: Final = (Reason.STATIC_KEY, Reason.STATIC_CALL, Reason.TRACER_CALL)
_FITTING: Final = 0.95  # share of a table's addresses that must be code for a layout to be the right one


def boot_patched_ranges(image: Image) -> Ranges:
    """Instructions that the kernel in the image patches or looks up: (n, 3) address, size and the Reason to defer (see
    `DEFERRED`) or to refuse them for, in address order.

    Replacement code, which is copied elsewhere and never runs in place, is among them. Empty for images without such
    tables, and for stripped kernels whose linker script put a table into another section: then nothing shows where it
    is.
    """
    return _listed(image, image.facts.linux.tables)


def writes_while_it_runs(image: Image) -> bool:
    """Whether a kernel in the image can write over its code at any time: static keys, calls, a function tracer. Such a
    kernel sets breakpoints in its own text as well."""
    tables = (one for one in image.facts.linux.tables if Reason[one.reason] in _AT_ANY_TIME)
    return any(table_place(image, one.section, one.symbols) is not None for one in tables)


def written_by_kernel(image: Image) -> Ranges:
    """The same, and what the kernel writes although it may be probed."""
    every = [replace(one, layouts=tuple(map(_every_site, one.layouts))) for one in image.facts.linux.tables]
    return _listed(image, every)


def _every_site(layout: RecordLayout) -> RecordLayout:
    return replace(layout, probed_with=None)


def _listed(image: Image, tables: Iterable[BootTable]) -> Ranges:
    found = [_ranges_of(image, table) for table in tables]
    found += [_static_call_trampolines(image), *_runtime_constants(image)]
    return unique_rows(np.concatenate(found))


def _ranges_of(image: Image, table: BootTable) -> Ranges:
    place = table_place(image, table.section, table.symbols)
    if place is None:
        return _NONE
    # The first layout that fits: versions differ in the size of a record, and a wrong one puts most addresses outside
    # of code.
    for layout in table.layouts:
        ranges = _read(image, place, layout, Reason[table.reason])
        if ranges is not None:
            return ranges
    return _NONE


def _read(image: Image, place: tuple[int, int], layout: RecordLayout, reason: Reason) -> Ranges | None:
    """What a table lists if it can have this layout: whole records, and nearly all addresses in code."""
    if place[1] % layout.size:
        return None
    rows, starts = records_of(image, place, layout.size)
    sites = record_addresses(image, rows, starts, layout.site)
    sizes = _lengths(image, rows, sites, layout, is_ftrace=reason is Reason.TRACER_CALL)
    is_code = image.is_code(sites)
    if not len(sites) or np.mean(is_code) < _FITTING:
        return None
    # Sites that begin with this byte may be probed: the kernel writes only over a lock prefix, and so leaves a
    # breakpoint alone.
    if layout.probed_with is not None:
        is_code &= _heads(image, sites, 1)[:, 0] != layout.probed_with
    found = [_with_reason(np.stack([sites, sizes], axis=1)[is_code], reason)]
    if layout.replacement is not None:
        copied = record_addresses(image, rows, starts, layout.replacement)
        length = _byte_lengths(rows, layout.replacement_length_at, layout.length_width)
        copies = np.stack([copied, length], axis=1)[image.is_code(copied)]
        found.append(_with_reason(copies, Reason.REPLACEMENT))
    ranges = np.concatenate(found)
    return ranges[ranges[:, 1] > 0]


def _byte_lengths(rows: NDArray[np.uint8], offset: int, width: int) -> NDArray[np.uint64]:
    found = rows[:, offset].astype(np.uint64)
    return found if width == 1 else found | rows[:, offset + 1].astype(np.uint64) << np.uint64(8)


def _lengths(
    image: Image, rows: NDArray[np.uint8], sites: NDArray[np.uint64], layout: RecordLayout, *, is_ftrace: bool
) -> NDArray[np.uint64]:
    if layout.length_at is not None:
        return _byte_lengths(rows, layout.length_at, layout.length_width)
    if layout.length:
        return np.full(len(sites), layout.length, np.uint64)
    return _nop_lengths(image, sites) if is_ftrace else _instruction_lengths(image, sites)


_LONGEST_LEAD: Final = 16


def _heads(image: Image, sites: NDArray[np.uint64], width: int) -> NDArray[np.uint8]:
    """(n, width) bytes at each site; zeros where the file ends or has none."""
    offsets = image.offsets_of(sites)
    at = np.minimum(np.maximum(offsets, 0)[:, np.newaxis] + np.arange(width), len(image.data) - 1)
    found: NDArray[np.uint8] = np.where((offsets >= 0)[:, np.newaxis], image.data[at], np.uint8(0))
    return found


def _instruction_lengths(image: Image, sites: NDArray[np.uint64]) -> NDArray[np.uint64]:
    heads = _heads(image, sites, 8).view("<u8")[:, 0]
    lengths = np.zeros(len(sites), np.uint64)
    for pattern, length in image.facts.linux.lengths:
        lengths[(lengths == 0) & matches(heads, (pattern,))] = length
    return lengths


def _nop_lengths(image: Image, sites: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The size of the tracer's place at each site: one instruction, or the nops that start there.
    -fpatchable-function-entry=N leaves 8 bytes of them, on some versions 16.

    With N,M (arm64 since 6.2) the listed address is M nops before the entry: a literal is there, and the site itself is
    after it.
    """
    nop = image.facts.linux.tracer_call
    if isinstance(nop, int):
        return np.full(len(sites), nop, np.uint64)
    heads = _heads(image, sites, _LONGEST_LEAD).reshape(len(sites), -1, len(nop))
    is_nop = (heads == np.frombuffer(nop, np.uint8)).all(axis=2)
    run = np.where(is_nop.all(axis=1), is_nop.shape[1], np.argmin(is_nop, axis=1))
    lengths: NDArray[np.uint64] = np.maximum(run, 1).astype(np.uint64) * np.uint64(len(nop))
    return lengths


def _runtime_constants(image: Image) -> Iterator[Ranges]:
    """runtime_const_ptr() and runtime_const_shift_right_32() (since 6.11): a section of relative addresses for each
    constant, ``runtime_ptr_dentry_hashtable``, for example."""
    sizes = image.facts.linux.runtime_constants
    for section in image.sections:
        for prefix, size in zip(("runtime_ptr_", "runtime_shift_"), sizes, strict=True):
            if section.name.startswith(prefix) and section.kind == SHT_PROGBITS and section.size:
                layout = RecordLayout(4, Pointer(0), length=size)
                found = _read(image, (section.address, section.size), layout, Reason.RUNTIME_CONSTANT)
                if found is not None:
                    yield found


def _static_call_trampolines(image: Image) -> Ranges:
    """``__SCT__name: jmp function`` (ARCH_DEFINE_STATIC_CALL_TRAMP): the kernel rewrites the jump."""
    symbols, length = image.symbols, image.facts.linux.static_call_trampoline
    if length is None or symbols.address_of("__start_static_call_sites") is None:
        return _NONE
    rows = symbols.rows_beginning(b"__SCT__")
    address = unique(symbols.address[rows[symbols.kind[rows] == STT_FUNC]])
    return _with_reason(np.stack([address, np.full(len(address), length, np.uint64)], axis=1), Reason.STATIC_CALL)


def _with_reason(ranges: NDArray[np.uint64], reason: Reason) -> Ranges:
    return np.insert(ranges, 2, np.uint64(reason), axis=1)
