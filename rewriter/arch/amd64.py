"""amd64: code -> classified instructions -> trampolines. The rules are the table in `amd64_opcodes`.

What an instruction is depends on its own bytes, except for five things that follow from its surroundings: the shadow of
the instruction before it, a transaction around it, loads that read it as data, padding after the function's last
instruction, and the mode of the processor.
"""

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.arch import amd64_opcodes as opcodes
from kinst.rewriter.arch.amd64_decode import MARGIN, Encoding, decode, displacements
from kinst.rewriter.arch.amd64_modes import legacy_functions
from kinst.rewriter.arch.amd64_opcodes import Prefix, has
from kinst.rewriter.arch.amd64_sweep import Batch, sweep
from kinst.rewriter.arch.dissector import Trampolines
from kinst.rewriter.relocations import References
from kinst.targets.arch.amd64 import AMD64, BREAKPOINT, Kind
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.columns import is_one_of
from kinst.targets.instruction import Flow, Instructions, Reason, Verdict
from kinst.targets.values import dataclass

_SHORT_JUMP = 0xE9  # jmp rel32
_SHORT_SIZE = 5
_JUMP = np.frombuffer(b"\xff\x25\x00\x00\x00\x00", np.uint8)  # jmp *0(%rip): to the address that follows
_REACH = (1 << 31) - 64  # how far a trampoline's last byte may be from the site for its jump back to reach
_R_X86_64_64, _R_X86_64_PC32 = 1, 2
# Flows after which the next instruction is reached only by a branch to it.
_ENDS = np.zeros(max(Flow) + 1, np.bool_)
_ENDS[[Flow.JUMP, Flow.INDIRECT_JUMP, Flow.RETURN, Flow.STOP]] = True


@dataclass(frozen=True, slots=True)
class _Reads:
    """Memory accesses at known addresses: `row` of the batch, link `address`, bytes."""

    row: NDArray[np.intp]
    address: NDArray[np.uint64]
    width: NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Amd64Dissector:
    """The dissector of amd64; implements `kinst.rewriter.arch.dissector.Dissector`."""

    facts: ArchFacts

    def dissect(self, code: NDArray[np.uint8], address: int, ranges: NDArray[np.int64]) -> Instructions:
        """Decode and classify every instruction of some functions; see the protocol."""
        padded = np.concatenate([code, np.zeros(MARGIN, np.uint8)])
        parts, reads = [], []
        for batch in sweep(padded, ranges):
            part, read = _classify(padded, np.uint64(address), batch)
            # An operand may be in another section, whose bytes are no instructions.
            inside = read.address - np.uint64(address) < len(code)
            reads.append((read.address[inside], read.width[inside]))
            parts.append(part)
        found = _join(parts)
        # After all functions are decoded: the mode is followed through jumps and falls from one to another.
        legacy = np.zeros(len(ranges), np.bool_)
        legacy[legacy_functions(padded, address, ranges, found)] = True
        found = found.refuse(legacy[found.function], Reason.OTHER_MODE)
        return found.refuse(_data_rows(found, reads), Reason.DATA)

    def slot_counts(self, sites: Instructions, span: tuple[int, int]) -> NDArray[np.uint8]:
        """Two slots for long instructions, for those out of reach of `jmp rel32`, and where the runtime may put a
        call."""
        # Both ends of the span, since a trampoline may end up anywhere in it.
        first, last = ((sites.address - np.uint64(end)).view(np.int64) for end in span)
        is_far = (np.minimum(first, last) < -_REACH) | (np.maximum(first, last) > _REACH)
        is_long = sites.size > self.facts.slot_size - _SHORT_SIZE
        is_copied = sites.verdict == Verdict.COPY
        # The runtime may put a displaced call there (`moved_trampoline`), or what is written to a deferred site, of
        # which nothing is known yet.
        holds_call = (sites.kind == Kind.CALL) | (sites.verdict == Verdict.DEFER)
        counts: NDArray[np.uint8] = (is_copied & (is_long | is_far) | holds_call).astype(np.uint8) + np.uint8(1)
        return counts

    def trampolines(self, sites: Instructions, original: NDArray[np.uint8], slots: NDArray[np.uint64]) -> Trampolines:
        """``[instruction, its displacement re-encoded][jmp]`` to the next original instruction: ``jmp rel32`` where
        that reaches it, else ``jmp *0(%rip)`` and its address."""
        # All breakpoints first: what is not written stops a stray branch.
        code = np.full((len(sites), self.facts.longest_trampoline), BREAKPOINT[0], np.uint8)
        following = sites.address + sites.size
        distance, is_near = _jumps_back(following, sites.size, slots)
        for size in np.unique(sites.size[sites.verdict == Verdict.COPY]).tolist():
            copied = (sites.verdict == Verdict.COPY) & (sites.size == size)
            code[copied, :size] = original[copied, :size]
            short, long = np.flatnonzero(copied & is_near), np.flatnonzero(copied & ~is_near)
            code[short, size] = _SHORT_JUMP
            code[short, size + 1 : size + 5] = _bytes_of(distance[short], 4)
            code[long, size : size + 6] = _JUMP
            code[long, size + 6 : size + 14] = _bytes_of(following[long], 8)
        copied = sites.verdict == Verdict.COPY
        reason = np.zeros(len(sites), np.uint8)
        # A displacement that no longer reaches loses its site: an operand has no longer form to fall back on.
        relative = np.flatnonzero(copied & (sites.kind == Kind.RELATIVE))
        far = _reencode(code, relative, original[relative], sites.address[relative] - slots[relative])
        reason[relative[far]] = Reason.OUT_OF_REACH
        code[relative[far]] = BREAKPOINT[0]
        return Trampolines(code, reason)

    def references(self, sites: NDArray[np.void]) -> References:
        """For each copied instruction the reference to where it continues, and that of its RIP-relative operand."""
        copied = sites[sites["verdict"] == Verdict.COPY]
        size = copied["size"].astype(np.int64)
        following = copied["address"] + copied["size"]
        _, is_near = _jumps_back(following, copied["size"], copied["trampoline"])
        opcode = np.where(is_near, 1, len(_JUMP))
        jump = copied["trampoline"] + (size + opcode).astype(np.uint64)
        relative = np.flatnonzero(copied["kind"] == Kind.RELATIVE)
        original = np.ascontiguousarray(copied["original"][relative]).view(np.uint8).reshape(-1, 16)
        column, distance, _ = _operands(original)
        place = copied["trampoline"][relative] + column.astype(np.uint64)
        return References(
            np.concatenate([jump, place]),
            np.concatenate([following, following[relative] + distance.view(np.uint64)]),
            np.concatenate([copied["address"], copied["address"][relative]]),
            # `jmp *0(%rip)` holds the whole address, which is relocated as 64 bits; the others count from the end of
            # their field.
            np.append(np.where(is_near, _R_X86_64_PC32, _R_X86_64_64), [_R_X86_64_PC32] * len(place)).astype(np.uint32),
            np.append(np.where(is_near, 4, 8), [4] * len(place)).astype(np.uint8),
            np.concatenate([np.where(is_near, -4, 0), column - size[relative]]),
        )


DISSECTOR = Amd64Dissector(AMD64)


def _jumps_back(
    following: NDArray[np.uint64], size: NDArray[np.uint8], slots: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The displacement of the `jmp rel32` after each instruction in its slot, and whether it fits."""
    distance = (following - (slots + size) - np.uint64(_SHORT_SIZE)).view(np.int64)
    return distance, distance == distance.astype(np.int32)


def _bytes_of(numbers: NDArray[Any], size: int) -> NDArray[np.uint8]:
    """(n, size) bytes, the lowest first."""
    found: NDArray[np.uint8] = numbers.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :size]
    return found


def _reencode(
    code: NDArray[np.uint8], rows: NDArray[np.intp], original: NDArray[np.uint8], moved: NDArray[np.uint64]
) -> NDArray[np.bool_]:
    """Add `moved` (site - slot) to the disp32 of each row of trampolines. Returns which no longer fit into 32 bits.

    With an address-size prefix the sum is taken modulo 2**32 (SDM volume 2, "RIP-Relative Addressing"): it always fits.
    """
    column, old, wraps = _operands(original)
    new = old + moved.view(np.int64)
    far: NDArray[np.bool_] = (new != new.astype(np.int32)) & ~wraps
    code[rows[:, None], column[:, None] + np.arange(4)] = new.astype("<i4").view(np.uint8).reshape(-1, 4)
    return far


def _operands(original: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Of RIP-relative instructions, one a row: where disp32 is, what it is, and whether addresses have 32 bits."""
    flat = np.concatenate([original.reshape(-1), np.zeros(MARGIN, np.uint8)])
    starts = np.arange(len(original), dtype=np.int64) * original.shape[1]
    encoding = decode(flat, starts)
    old = displacements(flat, encoding.modrm_at + 1, 4)
    return encoding.modrm_at + 1 - starts, old, has(encoding.prefixes, Prefix.ADDRESS)


def _classify(code: NDArray[np.uint8], address: np.uint64, batch: Batch) -> tuple[Instructions, _Reads]:
    """One batch of whole functions, and what it reads at addresses that the encoding gives."""
    encoding = decode(code, batch.offset)
    pattern = opcodes.match_patterns(encoding.opcode, encoding.modrm, encoding.prefixes)
    # What does not decode is classified as such, whatever the table says of its first bytes.
    pattern[batch.broken] = opcodes.BROKEN
    kind, flow = opcodes.KIND.take(pattern), opcodes.FLOW.take(pattern)
    end = batch.offset + batch.size

    relative = np.flatnonzero(encoding.rip_relative & ~batch.broken)
    # Any instruction without a kind of its own may have a RIP-relative operand; of the named ones only the far jump.
    kind[relative[is_one_of(kind[relative], (Kind.OTHER, Kind.FAR_JUMP))]] = Kind.RELATIVE
    # lea computes an address without reading it; the operand of a long nop is never accessed.
    reading = relative[(encoding.opcode[relative] != opcodes.LEA) & (kind[relative] != Kind.NOP)]
    reads = _reads(code, encoding, reading, address + end[reading].view(np.uint64))

    target = _branch_targets(code, pattern, end, address)
    loads = flow[reads.row] == Flow.NEXT
    target[reads.row[loads]] = reads.address[loads]
    verdict, reason = opcodes.VERDICT.take(pattern), opcodes.REASON.take(pattern)
    start = address + batch.offset.view(np.uint64)
    found = Instructions(start, target, batch.function, batch.size, kind, flow, verdict, reason)
    return _in_context(found, _is_filler(encoding, kind)), reads


def _branch_targets(
    code: NDArray[np.uint8], pattern: NDArray[np.uint8], end: NDArray[np.int64], address: np.uint64
) -> NDArray[np.uint64]:
    """Destinations of the direct branches; 0 for all others. The displacement is the last thing in the instruction."""
    target = np.zeros(len(pattern), np.uint64)
    width = opcodes.RELATIVE.take(pattern)
    for size in (1, 2, 4):
        rows = np.flatnonzero(width == size)
        after = end[rows]
        target[rows] = address + (after + displacements(code, after - size, size)).view(np.uint64)
    return target


def _reads(
    code: NDArray[np.uint8], encoding: Encoding, rows: NDArray[np.intp], following: NDArray[np.uint64]
) -> _Reads:
    """What the RIP-relative operands of `rows` access; unknown with a segment base or a 32-bit address size."""
    known = ~has(encoding.prefixes[rows], Prefix.SEGMENT | Prefix.ADDRESS)
    # `width`: bytes that are accessed. Too many would refuse code after the data, too few only miss some data.
    rows, following = rows[known], following[known]
    prefixes, opcode = encoding.prefixes[rows], encoding.opcode[rows]
    width = np.full(len(rows), 4, np.uint8)
    width[has(prefixes, Prefix.NARROW)] = 2
    width[has(prefixes, Prefix.REX_W) | (opcode == 0xFF) | (opcode == 0x8F)] = 8
    width[opcodes.IS_BYTE_OPERATION.take(opcode)] = 1
    width[opcode >= opcodes.MAP_0F] = 16  # SSE, lgdt; more than movzx reads, which does no harm
    displacement = displacements(code, encoding.modrm_at[rows] + 1, 4)
    return _Reads(rows, following + displacement.view(np.uint64), width)


def _is_filler(encoding: Encoding, kind: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """What linkers and compilers put between functions: nops, int3, zeros."""
    zeros = (encoding.opcode == 0) & (encoding.modrm == 0) & (encoding.prefixes == 0)
    filler: NDArray[np.bool_] = (kind == Kind.NOP) | (encoding.opcode == 0xCC) | zeros
    return filler


def _in_context(found: Instructions, filler: NDArray[np.bool_]) -> Instructions:
    """Refuse what shows only from its neighbours."""
    padding = _padding(found, filler)
    found.verdict[padding], found.reason[padding] = Verdict.REFUSE, Reason.PADDING
    shadow = found.kind == Kind.SHADOW
    if shadow.any():
        # sti and mov ss block interrupts until the next instruction has ended (SDM volume 3, 6.8.1, 6.8.3): a
        # breakpoint there would be that instruction.
        shadowed = np.append(False, shadow[:-1] & (found.function[1:] == found.function[:-1]))
        found = found.refuse(shadowed, Reason.INTERRUPT_SHADOW)
    if (found.kind == Kind.TRANSACTION).any():
        found = found.refuse(_transactions(found), Reason.EXCLUSIVE)
    return found


def _transactions(found: Instructions) -> NDArray[np.bool_]:
    """Rows from each xbegin to the next xend in address order, or to the end of the function."""
    inside = found.kind == Kind.TRANSACTION
    begin = np.flatnonzero(inside & (found.flow == Flow.BRANCH))
    # The others of this kind, xend and xabort; without one the function's end.
    ends = np.append(np.flatnonzero(inside & (found.flow == Flow.NEXT)), len(found))
    function_end = np.searchsorted(found.function, found.function[begin], side="right")
    return _covered(begin, np.minimum(ends[np.searchsorted(ends, begin)], function_end), len(found))


def _padding(found: Instructions, filler: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Rows of filler after the last real instruction of a function that nothing falls into or branches to."""
    rows, real = np.flatnonzero(filler), np.flatnonzero(~filler)
    if not rows.size or not real.size:
        return np.zeros(0, np.intp)
    after = np.searchsorted(real, rows)
    before, following = real[np.maximum(after - 1, 0)], real[np.minimum(after, len(real) - 1)]
    function = found.function[rows]
    is_last = (after == len(real)) | (found.function[following] != function)
    unreached = (after > 0) & (found.function[before] == function) & _ENDS[found.flow[before]]
    rows = rows[is_last & unreached]
    # A branch into the filler shows that it is code: then all of that function's stays.
    hit = np.isin(found.address[rows], found.target[is_one_of(found.flow, (Flow.JUMP, Flow.BRANCH))])
    unbranched: NDArray[np.intp] = rows[~np.isin(found.function[rows], found.function[rows[hit]])]
    return unbranched


def _data_rows(found: Instructions, reads: list[tuple[NDArray[np.uint64], NDArray[np.uint8]]]) -> NDArray[np.bool_]:
    """Rows of which an instruction accesses a byte as data."""
    start = np.concatenate([np.zeros(0, np.uint64), *(address for address, _ in reads)])
    end = start + np.concatenate([np.zeros(0, np.uint8), *(width for _, width in reads)])
    first = np.searchsorted(found.address + found.size, start, side="right")  # the first row that ends after the start
    return _covered(first, np.searchsorted(found.address, end), len(found))


def _covered(first: NDArray[np.intp], end: NDArray[np.intp], count: int) -> NDArray[np.bool_]:
    """Which of `count` rows lie in one of the half-open ranges of rows."""
    depth = np.zeros(count + 1, np.int64)
    np.add.at(depth, first, 1)
    # Ranges may overlap: a row is covered while more have begun than ended.
    np.add.at(depth, np.maximum(first, end), -1)
    covered: NDArray[np.bool_] = np.cumsum(depth[:-1]) > 0
    return covered


def _join(parts: list[Instructions]) -> Instructions:
    empty = np.zeros(0, np.uint64), np.zeros(0, np.uint64), np.zeros(0, np.int32), *[np.zeros(0, np.uint8)] * 5
    columns = (
        np.concatenate([none, *(getattr(part, field.name) for part in parts)])
        for none, field in zip(empty, fields(Instructions), strict=True)
    )
    return Instructions(*columns)
