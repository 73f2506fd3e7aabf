"""The bytes of one emulated amd64 instruction -> its operands: register numbers, displacements, the effective address.

    [prefixes] [REX 0100WRXB] opcode [ModRM mod:2 reg:3 r/m:3] [SIB scale:2 index:3 base:3] [disp8|disp32] [immediate]

SDM volume 2, 2.1 and 2.2. The dissector has decided what the instruction is; here only its operands are read.
"""

from collections.abc import Callable, MutableSequence

from kinst.targets.arch.amd64 import FS_BASE, GS_BASE, RIP
from kinst.targets.values import dataclass

MASK64 = (1 << 64) - 1
MASK32 = (1 << 32) - 1

Regs = MutableSequence[int]

_PREFIXES = frozenset(b"\x26\x2e\x36\x3e\x64\x65\x66\x67\xf0\xf2\xf3")
_SEGMENT_BASES = {0x64: FS_BASE, 0x65: GS_BASE}
_NO_INDEX = 4  # SIB index 100 without REX.X; with it the index is r12


@dataclass(frozen=True, slots=True)
class Operands:
    """The parts of one instruction. `body` is what follows the last byte of the opcode."""

    size: int
    rex: int
    operand16: bool  # an operand-size prefix, which REX.W overrides
    address32: bool
    segment_base: int | None  # index in the frame
    opcode: int  # its last byte
    body: bytes

    @property
    def rm(self) -> int:
        """The register in ModRM's r/m field."""
        return self.body[0] & 7 | (self.rex & 1) << 3

    @property
    def reg(self) -> int:
        """The register in ModRM's reg field."""
        return self.body[0] >> 3 & 7 | (self.rex & 4) << 1

    @property
    def low(self) -> int:
        """The register in the low three bits of the opcode."""
        return self.opcode & 7 | (self.rex & 1) << 3

    @property
    def width(self) -> int:
        """The size of the operands, in bytes, of an instruction whose default is 4."""
        return 8 if self.rex & 8 else 2 if self.operand16 else 4

    @property
    def stack_width(self) -> int:
        """The size of the operand of push and the like, in bytes: in 64-bit mode never 4."""
        return 2 if self.width == 2 else 8

    @property
    def is_register(self) -> bool:
        """Whether the r/m operand is a register and not memory: ModRM's mod is 11."""
        return self.body[0] >= 0xC0

    def immediate(self, size: int) -> int:
        """The signed number of `size` bytes that ends the instruction."""
        return int.from_bytes(self.body[-size:], "little", signed=True)


def operands(instruction: bytes) -> Operands:
    """The parts of an instruction; `instruction` has exactly its bytes."""
    rex, operand16, address32, segment_base, at = 0, False, False, None, 0
    while instruction[at] in _PREFIXES or instruction[at] & 0xF0 == 0x40:
        byte = instruction[at]
        rex = byte if byte & 0xF0 == 0x40 else 0  # ignored unless it is right before the opcode (SDM 2, 2.2.1)
        operand16, address32 = operand16 or byte == 0x66, address32 or byte == 0x67
        segment_base = _SEGMENT_BASES.get(byte, segment_base)
        at += 1
    at += instruction[at] == 0x0F
    return Operands(len(instruction), rex, operand16, address32, segment_base, instruction[at], instruction[at + 1 :])


def linear_address(of: Operands) -> Callable[[Regs], int]:
    """The address of the memory operand as a function of the registers; fs and gs have a base, the others none."""
    offset, segment = _effective_address(of), of.segment_base
    if segment is None:
        return offset
    return lambda regs: (regs[segment] + offset(regs)) & MASK64


def _effective_address(of: Operands) -> Callable[[Regs], int]:
    """The offset of the memory operand as a function of the registers, without its segment's base."""
    mask = MASK32 if of.address32 else MASK64
    match _address_parts(of):
        case (None, None, _, displacement):
            return lambda regs: displacement & mask
        case (int(base), None, _, displacement):
            return lambda regs: (regs[base] + displacement) & mask
        case (None, int(index), scale, displacement):
            return lambda regs: ((regs[index] << scale) + displacement) & mask
        case (int(base), int(index), scale, displacement):
            return lambda regs: (regs[base] + (regs[index] << scale) + displacement) & mask
        case parts:
            raise AssertionError(parts)


def _address_parts(of: Operands) -> tuple[int | None, int | None, int, int]:
    """Base, index, scale (a shift) and displacement; RIP as a base stands for the end of the instruction."""
    mod, rm = of.body[0] >> 6, of.body[0] & 7
    if mod == 0 and rm == 5:
        return RIP, None, 0, _displacement(of, 1, 4) + of.size
    if rm != 4:  # 100 means a SIB byte, with or without REX.B: r12 as a base always needs one (table 2-5)
        return of.rm, None, 0, _displacement(of, 1, (0, 1, 4)[mod])
    sib = of.body[1]
    index: int | None = sib >> 3 & 7 | (of.rex & 2) << 2
    index = None if index == _NO_INDEX else index
    if mod == 0 and sib & 7 == 5:  # rbp or r13 as a base needs a displacement: this means none
        return None, index, sib >> 6, _displacement(of, 2, 4)
    return sib & 7 | (of.rex & 1) << 3, index, sib >> 6, _displacement(of, 2, (0, 1, 4)[mod])


def _displacement(of: Operands, at: int, size: int) -> int:
    return int.from_bytes(of.body[at : at + size], "little", signed=True)
