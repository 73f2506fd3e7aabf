"""An image with everything that planning needs: functions, a dissector, and the bytes that must not be patched."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.arch.dissector import Dissector
from kinst.rewriter.arch.registry import dissector, uses_of
from kinst.rewriter.data_islands import refuse_islands
from kinst.rewriter.exclusions import excluded_rows
from kinst.rewriter.patched_bytes import patched_data
from kinst.rewriter.shell.progress import Progress, silent
from kinst.targets.elf.header import FileKind
from kinst.targets.elf.symbols import Symbols, no_symbols
from kinst.targets.functions.call_padding import without_call_padding
from kinst.targets.functions.found import Functions, find_functions
from kinst.targets.functions.named_functions import data_in_code
from kinst.targets.image import CodeRegion, Image
from kinst.targets.instruction import DEFERRED, WRITTEN_AT_LOAD, Flow, Instructions, Reason, Verdict
from kinst.targets.kernels.patched_at_boot import boot_patched_ranges
from kinst.targets.module_code import code_of
from kinst.targets.patch import Patch
from kinst.targets.spans import Spans, covered
from kinst.targets.values import dataclass

# Bytes of code decoded at a time, to bound temporaries: as large as a kernel's text, since the dissector refuses data
# that code loads only if it sees both at once.
_BATCH: Final = 1 << 26
_CACHED: Final = 1 << 16  # instructions at a time whose arrays stay in the cache
_MARGIN: Final = 32  # spare bytes, as `Effector.effects` and `CodeGenerator.stack_roles` ask for


@dataclass(frozen=True, slots=True)
class Program:
    """An image without breakpoints and what its code is. Ranges are (n, 2) address and size, in address order; those
    that are patched at boot have a third column, the Reason to defer or refuse them for.

    Functions, and so the identifiers of probes, are those of `original`, whatever is patched; instructions are those of
    `image`.
    """

    image: Image  # as it runs: with the user's patches
    original: Image  # as it was built, with its own names only
    patches: tuple[Patch, ...]
    functions: Functions
    dissector: Dissector
    patched_at_boot: NDArray[np.uint64]
    relocated: NDArray[np.uint64]
    data: NDArray[np.uint64]  # inside code regions, as symbols tell
    given: Symbols  # names from elsewhere, which the image has besides its own
    forced: Spans  # the user says that it is code
    # Of a module: what its loader has written before its code runs, so that such sites are deferred, not refused.
    written_once: tuple[Reason, ...] = ()


def open_program(
    image: Image,
    given: Symbols | None = None,
    patches: Sequence[Patch] = (),
    forced: Sequence[tuple[int, int]] = (),
    *,
    named: Image | None = None,
    find: Callable[[Image], Functions] | None = None,
) -> Program:
    """Name the code of an image.

    Args:
        image: the original, never a patched image, whose breakpoints would be taken for code.
        given: names from elsewhere (System.map, a debug file); the program's image has them, too.
        patches: what the program has in place of some of the image's instructions.
        forced: start and end of what is code, whatever it looks like.
        named: the image with the given names, if it was made already.
        find: in the place of `functions_of`.
    """
    machine, given = dissector(image.facts), given or no_symbols()
    named = named or with_names(image, given)
    functions = (find or functions_of)(named)
    ranges = boot_patched_ranges(named), named.relocated, data_in_code(named)
    code = np.array(sorted(forced), np.uint64).reshape(-1, 2)
    program = Program(named, image, (), functions, machine, *ranges, given, code)
    return with_patches(program, patches) if patches else program


def functions_of(image: Image) -> Functions:
    """The functions of an image with all its names, without the padding that a kernel keeps in front of them."""
    found = find_functions(image, sweep=dissector(image.facts).dissect, uses_of=uses_of(image.facts))
    return without_call_padding(image, found)


def with_patches(program: Program, patches: Sequence[Patch]) -> Program:
    """The program with these patches and no others."""
    found = tuple(sorted(patches, key=lambda one: one.address))
    return replace(program, image=replace(program.image, data=patched_data(program.original, found)), patches=found)


def as_loaded(program: Program) -> Program:
    """The program of a module whose sites are decided when it is in memory: relocations are applied by then, and what
    the kernel writes once, when it loads it. Keys, calls and the function tracer's places it writes at any time."""
    return replace(program, written_once=WRITTEN_AT_LOAD)


def with_names(image: Image, given: Symbols) -> Image:
    """The image with more symbols than its file has."""
    return replace(image, symbols=image.symbols.joined(given)) if len(given) else image


def instructions_of(program: Program, rows: NDArray[np.intp], progress: Progress = silent) -> Instructions:
    """Every instruction of some functions, in address order; `function` is a row of `program.functions`.

    Data among the code is refused, and so is code that the image itself overwrites at load time. What its kernel
    overwrites while booting is deferred.
    """
    parts = []
    sizes = program.functions.size[rows]
    with progress("decoding", int(sizes.sum())) as done:
        for region in program.image.code_regions:
            code = code_of(program.image, region)
            for batch in _batches(program, region, rows):
                parts.append(_dissect(program, code, region, batch))
                done(int(program.functions.size[batch].sum()))
    return _refuse_written(program, _joined(parts))


def code_in_batches(
    program: Program, found: Instructions
) -> Iterator[tuple[slice, NDArray[np.uint8], NDArray[np.int64]]]:
    """Instructions of a program, in batches whose arrays stay in the cache: which rows; the bytes of their region, with
    spare ones at the end; and their offsets into those."""
    for region in program.image.code_regions:
        first, end = np.searchsorted(found.address, (region.address, region.address + region.size)).tolist()
        code = np.append(code_of(program.image, region), np.zeros(_MARGIN, np.uint8))
        for start in range(first, end, _CACHED):
            rows = slice(start, min(start + _CACHED, end))
            yield rows, code, (found.address[rows] - np.uint64(region.address)).view(np.int64)


def _batches(program: Program, region: CodeRegion, rows: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
    """The functions of a region in batches, whose code spans `_BATCH` bytes at most, or one function."""
    offset = program.functions.address[rows] - np.uint64(region.address)
    inside = rows[offset < np.uint64(region.size)]
    if not len(inside):
        return
    number = (program.functions.address[inside] - np.uint64(region.address)) // np.uint64(_BATCH)
    cuts = np.flatnonzero(np.diff(number)) + 1
    yield from np.split(inside, cuts)


def _dissect(program: Program, code: NDArray[np.uint8], region: CodeRegion, rows: NDArray[np.intp]) -> Instructions:
    functions = program.functions
    start = functions.address[rows]
    first, last = int(start[0]), int(start[-1]) + int(functions.size[rows[-1]])
    at = first - region.address
    low = (start - np.uint64(first)).astype(np.int64)
    ranges = np.stack([low, low + functions.size[rows].astype(np.int64)], axis=1)
    found = program.dissector.dissect(code[at : at + last - first], first, ranges)
    return Instructions(
        found.address,
        found.target,
        rows.astype(np.int32)[found.function],
        *(found.size, found.kind, found.flow, found.verdict, found.reason),
    )


def _joined(parts: list[Instructions]) -> Instructions:
    if not parts:
        none = np.zeros(0, np.uint8)
        address = np.zeros(0, np.uint64)
        return Instructions(address, address, np.zeros(0, np.int32), none, none, none, none, none)
    return Instructions(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(parts[0])))


def _refuse_written(program: Program, found: Instructions) -> Instructions:
    patched = program.patched_at_boot
    # Order matters: `refuse` and `defer` keep an earlier refusal, so the most specific reason comes first.
    if len(patched):
        at = _overlapped(found, patched)
        reason = patched[at, 2].astype(np.uint8)
        is_deferred = np.isin(reason, DEFERRED)
        # A jump to a return thunk is how these functions return, not a tail call.
        found.flow[(at >= 0) & (reason == Reason.RETURN_THUNK) & (found.flow == Flow.JUMP)] = Flow.RETURN
        found = found.defer((at >= 0) & is_deferred, reason).refuse((at >= 0) & ~is_deferred, reason)
    if program.image.kind is FileKind.REL:  # its addresses are not known yet, nor what the kernel writes there
        is_refused = ~np.isin(found.reason, program.written_once)
        found = found.refuse((found.verdict == Verdict.DEFER) & is_refused, found.reason)
    relocated = overlapping(found, program.relocated)
    if Reason.RELOCATED in program.written_once:
        found = found.defer(relocated, np.full(len(found), Reason.RELOCATED, np.uint8))
    found = found.refuse(relocated & (found.verdict != Verdict.DEFER), Reason.RELOCATED)
    found = found.refuse(overlapping(found, program.data), Reason.DATA)
    weighed = refuse_islands(program.image, program.functions, found, uses_of(program.image.facts))
    is_forced = covered(program.forced, found.address)
    return weighed if not is_forced.any() else _chosen(is_forced, found, weighed)


def _chosen(rows: NDArray[np.bool_], these: Instructions, others: Instructions) -> Instructions:
    """The verdicts of `these` in some rows, and of `others` elsewhere."""
    verdict = np.where(rows, these.verdict, others.verdict)
    return replace(others, verdict=verdict, reason=np.where(rows, these.reason, others.reason))


def refuse_excluded(program: Program, found: Instructions) -> Instructions:
    """The same instructions, with those of functions that `exclusions` lists refused."""
    excluded = np.zeros(len(program.functions), np.bool_)
    excluded[excluded_rows(program.functions.names, program.image.facts)] = True
    return found.refuse(excluded[found.function], Reason.EXCLUDED_FUNCTION) if excluded.any() else found


def overlapping(found: Instructions, ranges: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which instructions share a byte with one of the ranges (address and size, ascending)."""
    result: NDArray[np.bool_] = _overlapped(found, ranges) >= 0
    return result


def _overlapped(found: Instructions, ranges: NDArray[np.uint64]) -> NDArray[np.intp]:
    """For each instruction the row of a range that shares a byte with it, or -1."""
    full = np.flatnonzero(ranges[:, 1] > 0)
    if not len(full) or not len(found):
        return np.full(len(found), -1)
    # Ranges may lie inside earlier ones: of those that begin before the instruction's end the one that ends last
    # decides.
    ends = ranges[full, 0] + (ranges[full, 1] - np.uint64(1))
    furthest = np.maximum.accumulate(ends)
    widest = np.maximum.accumulate(np.where(ends == furthest, np.arange(len(full)), 0))
    last = found.address + (found.size - np.uint8(1))
    row = _last_before(last, ranges[full, 0])
    return np.where((row >= 0) & (furthest[row] >= found.address), full[widest[row]], -1)


def _last_before(addresses: NDArray[np.uint64], starts: NDArray[np.uint64]) -> NDArray[np.intp]:
    """For each address the row of the last start at or before it, or -1; starts ascend. If the addresses ascend, too,
    of which there are many more, the few starts are searched among them instead."""
    if (addresses[1:] < addresses[:-1]).any():
        return np.searchsorted(starts, addresses, "right") - 1
    first = np.searchsorted(addresses, starts)
    return np.cumsum(np.bincount(first, minlength=len(addresses) + 1)[:-1]) - 1
