"""Instructions of arm64 -> those that lead to another stack, and those that rely on the current one."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.arch.patterns import Pattern, PatternTable
from kinst.rewriter.arch.sweep import units_at
from kinst.rewriter.liveness.effects import Effects

# What writes sp, which is register 31 of Rd where no flags are set: C4.1.92 add, sub, and logical with an immediate,
# C4.1.95 add and sub with an extended register; C4.1.93 msr spsel, and returns from exceptions. The result of sp
# itself, or of x29 in an epilogue, and a constant or an index is on the same stack.
_STAYS, _SWITCHES = 0, 1
_STACK: Final = PatternTable(
    (
        Pattern("add sp, sp, #", "1 . 0 100010 . imm:12 11111 11111", _STAYS),
        Pattern("add sp, x29, #", "1 . 0 100010 . imm:12 11101 11111", _STAYS),
        Pattern("add sp, #", ". . 0 100010 . imm:12 Rn:5 11111", _SWITCHES),
        Pattern("ands zr", ". 11 100100 -:18 11111", _STAYS),
        Pattern("and sp, #", ". .. 100100 -:18 11111", _SWITCHES),
        Pattern("add sp, sp, x", "1 . 0 01011 001 Rm:5 option:3 imm:3 11111 11111", _STAYS),
        Pattern("add sp, x", ". . 0 01011 001 Rm:5 option:3 imm:3 Rn:5 11111", _SWITCHES),
        Pattern("msr spsel", "11010101 00000 000 0100 imm:4 101 11111", _SWITCHES),
        Pattern("eret", "1101011 010. 11111 -:16", _SWITCHES),
        Pattern("other", "-:32", _STAYS),
    ),
    width=32,
    key=((21, 11),),
)
_OTHER, _USES = 0, 1
# C4.1.94: loads and stores of a register or a pair that write sp back, before or after; C4.1.92: add and sub of sp and
# a constant.
_ROOM: Final = PatternTable(
    (
        Pattern("pair, post- or pre-index", "-:2 101 . 0 .1 . -:12 11111 -:5", _USES),
        Pattern("single, post- or pre-index", "-:2 111 . 00 -:2 0 -:9 .1 11111 -:5", _USES),
        Pattern("add or sub sp, sp, #", "1 . 0 100010 . imm:12 11111 11111", _USES),
        Pattern("other", "-:32", _OTHER),
    ),
    width=32,
    key=((22, 10),),
)


def stack_roles(
    code: NDArray[np.uint8], offsets: NDArray[np.int64], _sizes: NDArray[np.uint8], _effects: Effects
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """See `CodeGenerator.stack_roles`."""
    words = units_at(code, offsets, 4)
    return _STACK.kind[_STACK.match(words)] == _SWITCHES, _ROOM.kind[_ROOM.match(words)] == _USES
