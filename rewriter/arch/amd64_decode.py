"""Code bytes and where instructions start -> the parts of each encoding as columns: prefixes, opcode, ModRM.

    [prefixes: f0 f2 f3 2e 36 3e 26 64 65 66 67] [REX 4x] opcode [ModRM] [SIB] [displacement] [immediate]
    opcode:  op | 0f op | 0f 38 op | 0f 3a op
             c5 Rvvvvlpp op | c4 RXBmmmmm Wvvvvlpp op | 8f (XOP, like c4) | 62 + 3 bytes op (EVEX)

SDM volume 2, 2.1 to 2.3, 2.7; AMD64 volume 3, 1.9 (XOP). Sizes come from the disassembler; this finds what is inside.
"""

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.arch.amd64_opcodes import (
    HAS_MEMORY_OPERAND,
    MAP_0F,
    MAP_0F3A,
    MAP_0F38,
    REX,
    VECTOR,
    VEX_0F,
    Prefix,
    has,
)
from kinst.targets.arch.amd64 import LONGEST
from kinst.targets.values import dataclass

MARGIN = 32  # bytes that must follow the last instruction: an encoding is read beyond its end

_BITS = np.zeros(256, np.uint16)  # what each prefix byte means
for _byte, _prefix in {0x66: Prefix.OPERAND, 0x67: Prefix.ADDRESS, 0xF2: Prefix.REPNE, 0xF3: Prefix.REP}.items():
    _BITS[_byte] = _prefix
_BITS[0xF0], _BITS[0x64], _BITS[0x65] = Prefix.LOCK, Prefix.SEGMENT, Prefix.SEGMENT
_BITS[0x40:0x50] = np.arange(16) << 8  # REX: 0100WRXB
IS_PREFIX = _BITS != 0
IS_PREFIX[[0x26, 0x2E, 0x36, 0x3E, 0x40]] = True
_IS_ESCAPE = np.zeros(256, np.bool_)
_IS_ESCAPE[[0x0F, 0x62, 0x8F, 0xC4, 0xC5]] = True


@dataclass(frozen=True, slots=True)
class Encoding:
    """Columns, one row per instruction. Without a ModRM, `modrm` is whatever byte follows the opcode."""

    prefixes: NDArray[np.uint16]
    opcode: NDArray[np.intp]  # an index of `amd64_opcodes`
    modrm: NDArray[np.uint8]
    modrm_at: NDArray[np.int64]  # offset in the code

    @property
    def rip_relative(self) -> NDArray[np.bool_]:
        """For each row, whether its ModRM means RIP + disp32 (mod 00, r/m 101). The displacement follows the ModRM."""
        found: NDArray[np.bool_] = ((self.modrm & 0xC7) == 0x05) & HAS_MEMORY_OPERAND.take(self.opcode)
        return found


def decode(code: NDArray[np.uint8], offsets: NDArray[np.int64]) -> Encoding:
    """The encoding of the instructions that start at `offsets`; `MARGIN` bytes must follow the last one in `code`."""
    at = offsets.copy()
    prefixes = _scan_prefixes(code, at)
    opcode = code.take(at).astype(np.intp)
    escapes = np.flatnonzero(_IS_ESCAPE.take(opcode))
    if escapes.size:
        opcode[escapes], at[escapes] = _escaped(code, at[escapes])
    at += 1
    return Encoding(prefixes, opcode, code.take(at), at)


def displacements(code: NDArray[np.uint8], at: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Signed little-endian numbers of 1, 2 or 4 bytes."""
    view = np.ndarray(len(code) - size + 1, f"<i{size}", code, strides=(1,))
    return view[at].astype(np.int64)


def _scan_prefixes(code: NDArray[np.uint8], at: NDArray[np.int64]) -> NDArray[np.uint16]:
    """Move `at` to the opcodes, past as many prefixes as an instruction can have. A REX that is not last is ignored
    (SDM volume 2, 2.2.1)."""
    prefixes = np.zeros(len(at), np.uint16)
    rows = np.flatnonzero(IS_PREFIX.take(code.take(at)))
    for _ in range(LONGEST - 1):
        if not rows.size:
            break
        byte = code.take(at[rows])
        prefixes[rows] = (prefixes[rows] & ~np.uint16(REX)) | _BITS.take(byte)
        at[rows] += 1
        rows = rows[IS_PREFIX.take(code.take(at[rows]))]
    prefixes[has(prefixes, Prefix.OPERAND) & ~has(prefixes, Prefix.REX_W)] |= np.uint16(Prefix.NARROW)
    return prefixes


def _escaped(code: NDArray[np.uint8], at: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Opcode index, and offset of the opcode's last byte, of opcodes after an escape or a VEX-like prefix."""
    first, second = code.take(at), code.take(at + 1).astype(np.intp)
    length = np.ones(len(at), np.int64)  # bytes before the opcode's last one
    base = np.full(len(at), MAP_0F, np.intp)

    legacy = first == 0x0F
    base[legacy & (second == 0x38)] = MAP_0F38
    base[legacy & (second == 0x3A)] = MAP_0F3A
    length[base > MAP_0F] = 2

    short, long, evex = first == 0xC5, (first == 0xC4) | (first == 0x8F), first == 0x62
    xop_or_pop = first == 0x8F
    pop = xop_or_pop & ((second & 0x38) == 0)  # 8f /0 is pop; XOP maps are 8 and above, so bit 3 is set
    base[long | evex] = VECTOR
    base[short | ((first == 0xC4) & ((second & 0x1F) == 1))] = VEX_0F
    length[short], length[long], length[evex] = 2, 3, 4
    base[pop], length[pop] = 0, 0
    return base | code.take(at + length), at + length
