"""riscv64: addresses -> the words that hold how far away they are. Chapters are of the unprivileged manual.

 31      12 11 7 6     0     31    20 19 15 14 12 11 7 6     0
| imm31:12 | rd | 0010111 | | imm11:0 | rs1 | 000 | rd | 0010011 |    auipc and addi: any address within 2 GiB

 31                  12 11 7 6     0     31    20 19 15 14 12 11 7 6     0
| imm20|10:1|11|19:12  | rd | 1101111 | | imm11:0 | rs1 | 000 | rd | 1100111 |    jal: within 1 MiB; jalr
"""

from typing import Final

from kinst.rewriter.arch.patterns import distance
from kinst.rewriter.arch.riscv64 import IMM_CJ, IMM_I, IMM_J, IMM_U
from kinst.rewriter.patching.riscv64 import encode
from kinst.rewriter.standalone.trampoline import ImmovableError
from kinst.targets.arch.riscv64 import GENERAL, RA

_JAL: Final = 0x6F
_C_J: Final = 0xA001
_AUIPC: Final = 0x17
_ADDI: Final = 0x13
_JALR: Final = 0x67
# Registers of far jumps. Where landing pads are checked (Zicfilp), these three may lead to places that are none.
_FAR: Final = (7, 5, RA)


def word(value: int) -> bytes:
    """An instruction of 4 bytes."""
    return value.to_bytes(4, "little")


def jump(at: int, target: int) -> bytes | None:
    """j; None if it does not reach."""
    bits = IMM_J.placed(distance(at, target))
    return None if bits is None else word(_JAL | bits)


def short_jump(at: int, target: int) -> bytes | None:
    """c.j; None if it does not reach."""
    bits = IMM_CJ.placed(distance(at, target))
    return None if bits is None else (_C_J | bits).to_bytes(2, "little")


def address_of(register: int, at: int, target: int) -> bytes:
    """auipc, and addi if it takes one.

    Raises:
        ImmovableError: it is more than 2 GiB away.
    """
    upper, low = _parts(at, target)
    page = word(_AUIPC | register << 7 | upper)
    return page + (word(_ADDI | _immediate(low) | register << 15 | register << 7) if low else b"")


def far_jump(register: int, at: int, target: int) -> bytes:
    """auipc and jalr by a register.

    Raises:
        ImmovableError: it is more than 2 GiB away.
    """
    upper, low = _parts(at, target)
    return word(_AUIPC | register << 7 | upper) + word(_JALR | _immediate(low) | register << 15)


def any_jump(at: int, target: int, dead: int) -> bytes | None:
    """`jump` if it reaches, else `far_jump` by one of the dead registers; None if there is none to go by."""
    near = jump(at, target)
    register = next((number for number in _FAR if dead >> number & 1), None)
    return far_jump(register, at, target) if near is None and register is not None else near


def number(register: int, value: int) -> bytes:
    """li, or of more than 32 bits the upper ones, a shift, and the lower ones, 12 at a time."""
    value, name = distance(0, value), GENERAL[register]
    if -(1 << 31) <= value < 1 << 31:
        return encode(f"li {name}, {value}", 0)
    low = (value & 0xFFF) - ((value & 0x800) << 1)
    upper = number(register, value - low >> 12) + encode(f"slli {name}, {name}, 12", 0)
    return upper + (encode(f"addi {name}, {name}, {low}", 0) if low else b"")


def _parts(at: int, target: int) -> tuple[int, int]:
    """The bits of auipc's immediate, and what is to be added to what it gives."""
    away = distance(at, target)
    low = (away & 0xFFF) - ((away & 0x800) << 1)
    upper = IMM_U.placed(away - low)
    if upper is None:
        raise ImmovableError("it is more than 2 GiB from what it refers to")
    return upper, low


def _immediate(value: int) -> int:
    bits = IMM_I.placed(value)
    assert bits is not None
    return bits
