"""Code and ranges -> where the instructions of each range start: the disassembler's sizes, corrected where it is wrong.

Capstone 5 lacks some instructions (serialize, pvalidate, AMX), and takes ud0 and ud1 for two bytes although they have a
ModRM byte: everything after such an instruction would be decoded out of step (Linux: the ud1 of each static call).
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.arch.amd64_decode import IS_PREFIX, MARGIN, decode
from kinst.rewriter.arch.amd64_opcodes import MAP_0F, MAP_0F38, VECTOR, VEX_0F, Prefix
from kinst.rewriter.disassemble import Sweep
from kinst.targets.arch.amd64 import LONGEST
from kinst.targets.values import dataclass

_BATCH = 1 << 15  # instructions at a time: their arrays stay in the cache
_GAP = 64  # bytes of padding between functions that are swept with them
_SHORT = 64  # bytes of a short run
_RUN = 1 << 18  # bytes: what cannot be decoded ends a run
_UD0, _UD1 = MAP_0F | 0xFF, MAP_0F | 0xB9


@dataclass(frozen=True, slots=True)
class Batch:
    """Instructions of some whole ranges. A row of `broken` is one byte at which the sweep of its range ended."""

    offset: NDArray[np.int64]
    size: NDArray[np.uint8]
    function: NDArray[np.int32]  # row of the ranges
    broken: NDArray[np.bool_]


def sweep(code: NDArray[np.uint8], ranges: NDArray[np.int64]) -> Iterator[Batch]:
    """Every instruction of `ranges`, in batches. `code` has `MARGIN` spare bytes at its end."""
    sweeper = Sweep(code)
    suspects = _undefined_instructions(code)
    suspicious = np.searchsorted(suspects, ranges[:, 0]) < np.searchsorted(suspects, ranges[:, 1])
    sizes: list[NDArray[np.uint8]] = []
    first, rows = 0, 0
    for row, ((start, end), suspect, found) in enumerate(
        zip(ranges.tolist(), suspicious.tolist(), _swept(code, sweeper, ranges), strict=True)
    ):
        # Few ranges come here: the sweep as a whole got out of step in them, or they hold what capstone takes for two
        # bytes.
        if suspect or found is None:
            found = _mended(code, suspects, sweeper, start, end, found)
        sizes.append(found)
        rows += len(found)
        if rows >= _BATCH:
            yield _batch(ranges, first, sizes)
            sizes, first, rows = [], row + 1, 0
    if sizes:
        yield _batch(ranges, first, sizes)


def _runs(ranges: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """The ranges in runs that are swept together, from a row to before another: one call for each function would take
    longer than the decoding."""
    is_first = (ranges[1:, 0] - ranges[:-1, 1] > _GAP) | (ranges[1:, 0] // _RUN != ranges[:-1, 0] // _RUN)
    return pairwise([0, *(np.flatnonzero(is_first) + 1).tolist(), len(ranges)] if len(ranges) else [])


def _swept(code: NDArray[np.uint8], sweeper: Sweep, ranges: NDArray[np.int64]) -> Iterator[NDArray[np.uint8] | None]:
    """See `_swept_together`. Short runs are mostly padding between functions, and mostly the same bytes: those are
    swept once."""
    known: dict[tuple[bytes, bytes], list[NDArray[np.uint8] | None]] = {}
    content, (starts, ends) = code.data, ranges.T.tolist()
    for row, end_row in _runs(ranges):
        start, end, run = starts[row], ends[end_row - 1], ranges[row:end_row]
        if end - start > _SHORT:
            yield from _swept_together(sweeper, run)
            continue
        # The sizes depend only on the bytes and on where the ranges lie among them: a single one is all of them.
        key = content[start:end].tobytes(), (run - start).tobytes() if len(run) > 1 else b""
        found = known.get(key)
        if found is None:
            found = known[key] = _swept_together(sweeper, run)
        yield from found


def _swept_together(sweeper: Sweep, ranges: NDArray[np.int64]) -> list[NDArray[np.uint8] | None]:
    """The sizes of each range, swept from the first one's start to the last one's end.

    None for a range at whose start no instruction begins, or at whose end none ends: it must be swept by itself.
    """
    size = sweeper.sizes(int(ranges[0, 0]), int(ranges[-1, 1]))
    bounds = int(ranges[0, 0]) + np.concatenate([np.zeros(1, np.int64), np.cumsum(size, dtype=np.int64)])
    # Only instruction boundaries count: a sweep that began in another range may pass a start by.
    place = np.searchsorted(bounds, ranges)
    is_known = (bounds[np.minimum(place, len(size))] == ranges).all(axis=1)
    return [
        size[start:end] if known else None
        for (start, end), known in zip(place.tolist(), is_known.tolist(), strict=True)
    ]


def _batch(ranges: NDArray[np.int64], first: int, sizes: list[NDArray[np.uint8]]) -> Batch:
    count = np.array([len(part) for part in sizes])
    ranges = ranges[first : first + len(sizes)]
    size = np.concatenate(sizes)
    function = np.repeat(np.arange(first, first + len(sizes), dtype=np.int32), count)
    # A size of 0 ends a range: one byte stands for what did not decode.
    broken = size == 0
    size[broken] = 1
    step = size.astype(np.int64)
    covered = np.add.reduceat(step, (np.cumsum(count) - count)[count > 0])  # bytes swept of each range that has rows
    before = np.zeros(len(sizes), np.int64)
    before[count > 0] = np.cumsum(covered) - covered
    offset = np.cumsum(step) - step + np.repeat(ranges[:, 0] - before, count)
    return Batch(offset, size, function, broken)


def _undefined_instructions(code: NDArray[np.uint8]) -> NDArray[np.intp]:
    """Offsets of byte pairs that may be ud0 or ud1. They are few: nothing else needs a closer look."""
    after = code[1:]
    return np.flatnonzero((code[:-1] == 0x0F) & ((after == 0xB9) | (after == 0xFF)))


def _mended(
    code: NDArray[np.uint8],
    suspects: NDArray[np.intp],
    sweeper: Sweep,
    start: int,
    end: int,
    swept: NDArray[np.uint8] | None,
) -> NDArray[np.uint8]:
    """The sizes of one range, swept piece by piece around what capstone cannot decode; 0 ends it early. `swept` is what
    was found of all of it; None: not yet."""
    parts = [np.empty(0, np.uint8)]
    while start < end:
        part = sweeper.sizes(start, end) if swept is None else swept
        # Trusted up to the first ud0 or ud1; from there capstone's sizes are out of step, so the rest is swept again.
        part, swept = part[: _first_undefined(code, suspects, start, part)], None
        start += int(part.sum(dtype=np.int64))
        parts.append(part)
        if start < end:
            size = _size_capstone_lacks(code, start)
            parts.append(np.array([size if start + size <= end else 0], np.uint8))
            if parts[-1][0] == 0:
                break
            start += size
    return np.concatenate(parts)


def _first_undefined(code: NDArray[np.uint8], suspects: NDArray[np.intp], start: int, sizes: NDArray[np.uint8]) -> int:
    """The first row that is ud0 or ud1, or the number of rows: a suspect with nothing but prefixes before it."""
    ends = start + np.cumsum(sizes, dtype=np.int64)
    swept = suspects[np.searchsorted(suspects, start) : np.searchsorted(suspects, start + int(sizes.sum()))]
    rows = np.searchsorted(ends, swept, "right")  # in which a suspect begins
    for row, at in zip(rows.tolist(), swept.tolist(), strict=True):
        # 0f b9 may also be part of a displacement or an immediate: only prefixes before it make it an opcode.
        if IS_PREFIX[code[int(ends[row]) - int(sizes[row]) : at]].all():
            return int(row)
    return len(sizes)


def _size_capstone_lacks(code: NDArray[np.uint8], start: int) -> int:
    """The size of an instruction in a regular part of the opcode maps (opcode, ModRM, no immediate); else 0."""
    window = code[start : start + LONGEST + MARGIN]
    encoding = decode(window, np.zeros(1, np.int64))
    opcode, modrm_at = int(encoding.opcode[0]), int(encoding.modrm_at[0])
    if not _is_regular(opcode, int(encoding.modrm[0])):
        return 0
    size = modrm_at + 1 + _address_bytes(window[modrm_at:].tobytes())
    size += opcode >= VEX_0F and _vex_map(window, modrm_at, opcode) == 3  # map 0f 3a: an immediate byte
    lock = bool(encoding.prefixes[0] & Prefix.LOCK)
    return 0 if lock or size > LONGEST else size


def _is_regular(opcode: int, modrm: int) -> bool:
    """Whether it is 0f 01 with a register form, a hint nop, a fence or the like, 0f 38, ud0, ud1, VEX or EVEX."""
    register = modrm >= 0xC0
    return (
        opcode in (_UD0, _UD1)
        or (opcode in (MAP_0F | 0x01, MAP_0F | 0xAE, MAP_0F | 0xC7) and register)
        or MAP_0F | 0x18 <= opcode <= MAP_0F | 0x1F
        or MAP_0F38 <= opcode <= MAP_0F38 | 0xFF
        or VECTOR <= opcode <= VECTOR | 0xFF
    )


def _vex_map(window: NDArray[np.uint8], modrm_at: int, opcode: int) -> int:
    """The map field of a VEX or EVEX prefix, in the byte after c4 or 62; the opcode is 3 or 4 bytes after those."""
    if opcode < VECTOR:
        return 1
    evex = window[modrm_at - 5] == 0x62 if modrm_at >= 5 else False
    payload = int(window[modrm_at - (4 if evex else 3)])
    return payload & (0x07 if evex else 0x1F)


def _address_bytes(encoding: bytes) -> int:
    """Bytes of SIB and displacement after the ModRM that `encoding` begins with (SDM volume 2, tables 2-2 and 2-3)."""
    mod, register_or_memory = encoding[0] >> 6, encoding[0] & 7
    if mod == 3:
        return 0
    sib = register_or_memory == 4
    no_base = mod == 0 and (encoding[1] & 7 if sib else register_or_memory) == 5
    return sib + (4 if no_base or mod == 2 else mod)
