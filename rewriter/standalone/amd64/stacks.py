"""Instructions of amd64 -> those after which, or around which, there may be no stack to push on.

Of the instructions that write rsp, these stay on the same stack:

    add, sub, and, lea      of rsp itself and a constant or a register: allocation and alignment
    mov %rbp, %rsp; lea n(%rbp), %rsp       epilogues of functions with a frame pointer

push, pop, call, ret, enter and leave move rsp without naming it. iret, sysret and sysexit leave for a stack that may be
the user's, and swapgs stands where the stack may be either.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.arch.amd64_decode import Encoding, decode
from kinst.rewriter.arch.amd64_opcodes import LEA, MAP_0F, Prefix, has
from kinst.rewriter.liveness.effects import Effects, Masks
from kinst.targets.arch.amd64 import RBP, RSP
from kinst.targets.columns import is_one_of

_RSP: Final = np.uint32(1 << RSP)
_RBP: Final = np.uint32(1 << RBP)
_REGISTER_FORM: Final = 0xC0
_MOVES: Final = (0x89, 0x8B)
_SUMS: Final = (0x01, 0x03, 0x21, 0x23, 0x29, 0x2B, LEA)
_SUMS_OF_NUMBERS: Final = (0x81, 0x83)
_DIGITS: Final = (0, 4, 5)  # add, and, sub
_PUSHES: Final = (0x68, 0x6A, 0xE8, 0xC8, 0xC9, 0x9C)  # push with an immediate, call, enter, leave, pushf
_PUSH_REGISTERS: Final = (0x50, 0x60)  # from push %rax to pop %r15
_GROUP_5: Final = 0xFF  # call is /2, push /6
_LEAVING: Final = (0xCF, MAP_0F | 0x07, MAP_0F | 0x35)  # iret, sysret, sysexit
_SWAPGS: Final = (MAP_0F | 0x01, 0xF8)
# Of these `effector` knows nothing.
_POP_OPERAND: Final = 0x8F
_LOAD_STACK: Final = MAP_0F | 0xB2  # lss

Mask = NDArray[np.bool_]


def stack_roles(
    code: NDArray[np.uint8], offsets: NDArray[np.int64], _sizes: NDArray[np.uint8], effects: Effects
) -> tuple[Mask, Mask]:
    """See `CodeGenerator.stack_roles`."""
    encoding = decode(code, offsets)
    writes, keeps = effects.writes & _RSP != 0, _keeps(encoding, effects.reads)
    switches = writes & ~keeps | _loads(encoding) | _leaves(encoding)
    return switches, _pushes(encoding) | writes & (effects.reads & _RSP != 0) & keeps


def _pushes(encoding: Encoding) -> Mask:
    """push, pop, call, enter and leave."""
    first, end = _PUSH_REGISTERS
    found: Mask = is_one_of(encoding.opcode, _PUSHES) | (encoding.opcode >= first) & (encoding.opcode < end)
    found |= (encoding.opcode == _GROUP_5) & is_one_of(encoding.modrm >> 3 & 7, (2, 6))
    return found


def _keeps(encoding: Encoding, reads: Masks) -> Mask:
    """Which of the instructions that write rsp stay on its stack."""
    is_sum = is_one_of(encoding.opcode, _SUMS)
    is_sum |= is_one_of(encoding.opcode, _SUMS_OF_NUMBERS) & is_one_of(encoding.modrm >> 3 & 7, _DIGITS)
    is_move = is_one_of(encoding.opcode, _MOVES) & (encoding.modrm >= _REGISTER_FORM)
    is_end = (reads == _RBP) & (is_move | (encoding.opcode == LEA))
    found: Mask = is_sum & (reads & _RSP != 0) | is_end
    return found


def _loads(encoding: Encoding) -> Mask:
    """pop to a register by ModRM, and lss."""
    is_operand = (
        (encoding.modrm & 7 == RSP) & (encoding.modrm >= _REGISTER_FORM) & ~has(encoding.prefixes, Prefix.REX_B)
    )
    is_register = (encoding.modrm >> 3 & 7 == RSP) & ~has(encoding.prefixes, Prefix.REX_R)
    found: Mask = (encoding.opcode == _POP_OPERAND) & is_operand | (encoding.opcode == _LOAD_STACK) & is_register
    return found


def _leaves(encoding: Encoding) -> Mask:
    opcode, modrm = _SWAPGS
    found: Mask = is_one_of(encoding.opcode, _LEAVING) | (encoding.opcode == opcode) & (encoding.modrm == modrm)
    return found
