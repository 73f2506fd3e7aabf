"""Code -> where it may change the processor's mode: far transfers that 64-bit code has no use for.

A mode is changed in two steps (SDM volume 3, 9.8.5, 9.9.1): control registers, descriptor tables and segments are set
up, then a far transfer loads CS. 64-bit code returns far by REX.W forms, as 8 bytes an entry of its stack; a transfer
without REX.W, beside such a setup, is 16- or 32-bit code, or 64-bit code that leaves for some:

    ea | offset:16 or 32 | selector:16      ljmp $selector, $offset: does not exist in 64-bit mode
    cb, ca | imm16                          lret
    cf                                      iret
    ff /5, memory                           ljmp *memory

Bytes are read as code of both widths, since a sweep in the wrong one may be out of step. The bytes do not tell which
instructions of such a function run in which mode, so none of them is taken for 64-bit code.
"""

import re
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.arch.amd64_decode import decode
from kinst.rewriter.arch.amd64_opcodes import MAP_0F, Prefix, has
from kinst.rewriter.disassemble import Sweep
from kinst.targets.arch.amd64 import Kind
from kinst.targets.columns import is_one_of, unique
from kinst.targets.instruction import Flow, Instructions

_FAR_JUMP: Final = 0xEA
_FAR: Final = (0xCA, 0xCB, 0xCF)
_INDIRECT: Final = 0xFF  # /5 with a memory operand is the far jump
_SEGMENT_LOAD: Final = 0x8E
_TABLES: Final = (2, 3, 6)  # 0f 01 with a memory operand: lgdt, lidt, lmsw
_LOWEST_REX_W: Final = 0x48
_LIMIT: Final = 256  # bytes of a descriptor table in which selectors of start-up code lie
_TO_CR0: Final = (0x0F, 0x22)  # and a ModRM of c0 to c7
# A far jump shortly after a write of cr0, as 16-bit code enters protected mode: few instructions fit between.
_PROTECT: Final = re.compile(rb"(?s)...{1,7}?(?:\x66\xea.{4}|\xea.{2})[\x08-\xf8]\x00")
_LONGEST_PROTECT: Final = 18


def switches(
    code: NDArray[np.uint8], address: int, ranges: NDArray[np.int64], found: Instructions
) -> NDArray[np.int64]:
    """Offsets of the far transfers in the functions `ranges` that may change the mode, ascending; arguments as
    `legacy_functions`."""
    paging = _writes_of_cr0(code)
    direct = [int(at) + match.end() - 3 for at in paging.tolist() if (match := _PROTECT.match(_window(code, at)))]
    narrow = [at for row in _rows_at(ranges, paging) for at in _as_32_bit_code(code, *ranges[row].tolist())]
    wide = _as_64_bit_code(code, address, found)
    return unique(np.concatenate([np.array(direct + narrow, np.int64), wide]))


def _writes_of_cr0(code: NDArray[np.uint8]) -> NDArray[np.intp]:
    at = np.flatnonzero(code[:-2] == _TO_CR0[0])
    at = at[code[at + 1] == _TO_CR0[1]]
    found: NDArray[np.intp] = at[code[at + 2] & 0xF8 == 0xC0]
    return found


def _window(code: NDArray[np.uint8], at: int) -> bytes:
    return code[at : at + _LONGEST_PROTECT].tobytes()


def _rows_at(ranges: NDArray[np.int64], at: NDArray[np.intp]) -> list[int]:
    """The functions that hold some offsets."""
    rows = np.searchsorted(ranges[:, 0], at, side="right") - 1
    inside = (rows >= 0) & (at < ranges[rows, 1]) if len(ranges) else np.zeros(0, np.bool_)
    return unique(rows[inside]).tolist() if len(ranges) else []


def _as_32_bit_code(code: NDArray[np.uint8], start: int, end: int) -> list[int]:
    """Far transfers after a write of cr0, which turns on protection or paging. Less does not count: 64-bit code that
    loads a table or a segment can be read as 32-bit code, too, and then anything may seem to follow."""
    sizes = Sweep(code, bits=32).sizes(start, end).astype(np.int64)
    at = start + np.cumsum(sizes) - sizes
    encoding = decode(code, at)
    paging = at[(encoding.opcode == MAP_0F | 0x22) & (encoding.modrm >> 3 & 7 == 0)]
    at = at[at > paging[0]] if len(paging) else at[:0]
    transfers: list[int] = at[_is_far(code, at)].tolist()
    return transfers


def _as_64_bit_code(code: NDArray[np.uint8], address: int, found: Instructions) -> NDArray[np.int64]:
    """Far transfers, where 64-bit code would have them, in functions that set up a mode."""
    far = is_one_of(found.kind, (Kind.FAR_JUMP, Kind.FAR_RETURN, Kind.EXCEPTION_RETURN, Kind.UNDECODABLE))
    rows = np.flatnonzero(far | (found.kind == Kind.RELATIVE) & (found.flow == Flow.INDIRECT_JUMP))
    at = (found.address[rows] - np.uint64(address)).view(np.int64)
    chosen = _is_far(code, at)
    rows, at = rows[chosen], at[chosen]
    function = found.function[rows]
    first, last = (np.searchsorted(found.function, function, side) for side in ("left", "right"))
    does = [_sets_up(code, address, found.address[slice(*ends)]) for ends in zip(first, last, strict=True)]
    result: NDArray[np.int64] = at[np.array(does, np.bool_)]
    return result


def _sets_up(code: NDArray[np.uint8], address: int, instructions: NDArray[np.uint64]) -> bool:
    """Whether an instruction of a function sets up a mode: control registers, descriptor tables, segments."""
    encoding = decode(code, (instructions - np.uint64(address)).view(np.int64))
    reg, is_memory = encoding.modrm >> 3 & 7, encoding.modrm < 0xC0
    control = (encoding.opcode == MAP_0F | 0x22) & is_one_of(reg, (0, 3, 4)) & ~has(encoding.prefixes, Prefix.REX_R)
    tables = (encoding.opcode == MAP_0F | 0x01) & is_one_of(reg, _TABLES) & is_memory
    return bool((control | tables | (encoding.opcode == _SEGMENT_LOAD) & ~is_memory).any())


def _is_far(code: NDArray[np.uint8], at: NDArray[np.int64]) -> NDArray[np.bool_]:
    encoding = decode(code, at)
    opcode, modrm = encoding.opcode, encoding.modrm
    jumps = (opcode == _INDIRECT) & (modrm >> 3 & 7 == 5) & (modrm < 0xC0)
    before = code[np.maximum(at - 1, 0)]
    wide = has(encoding.prefixes, Prefix.REX_W) | ((before & 0xF8) == _LOWEST_REX_W)
    direct = (opcode == _FAR_JUMP) & _has_selector(code, encoding.modrm_at)
    found: NDArray[np.bool_] = (is_one_of(opcode, _FAR) | jumps) & ~wide | direct
    return found


def _has_selector(code: NDArray[np.uint8], operand: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether a direct far jump names a segment of ring 0 in a descriptor table, with either width of its offset."""
    found = np.zeros(len(operand), np.bool_)
    for width in (2, 4):
        selector = code[operand + width].astype(np.int64) | code[operand + width + 1].astype(np.int64) << 8
        found |= (selector > 0) & (selector < _LIMIT) & (selector % 8 == 0)
    return found
