"""arm64: the `Maker`. Jumps are ``b``."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.arch.patterns import Pattern, PatternTable
from kinst.rewriter.arch.sweep import units_at
from kinst.rewriter.standalone import arm64_tasks as tasks
from kinst.rewriter.standalone.arm64_moved import moved
from kinst.rewriter.standalone.arm64_stacks import uses_stack
from kinst.rewriter.standalone.arm64_words import jump
from kinst.rewriter.standalone.sequence import Parts, sequence
from kinst.rewriter.standalone.trampoline import Covered
from kinst.targets.arch.arm64 import BREAKPOINT

_PARTS: Final = Parts(tasks.count, tasks.record, moved, jump)


class Arm64Maker:
    """The `Maker` of A64."""

    def jump(self, address: int, size: int, target: int) -> bytes:
        """See `Maker.jump`."""
        code = _PARTS.leave(address, target)
        return code + BREAKPOINT * ((size - len(code)) // len(BREAKPOINT))

    def trampoline(self, group: Sequence[Covered], address: int) -> bytes:
        """See `Maker.trampoline`."""
        return sequence(_PARTS, group, address)

    def switches_stack(
        self, code: NDArray[np.uint8], offsets: NDArray[np.int64], sizes: NDArray[np.uint8]
    ) -> NDArray[np.bool_]:
        """See `Maker.switches_stack`."""
        found: NDArray[np.bool_] = _STACK.kind[_STACK.match(units_at(code, offsets, 4))] == _SWITCHES
        return found

    def uses_stack(
        self, code: NDArray[np.uint8], offsets: NDArray[np.int64], sizes: NDArray[np.uint8]
    ) -> NDArray[np.bool_]:
        """See `Maker.uses_stack`."""
        return uses_stack(code, offsets, sizes)


# What writes to sp, which is number 31 of Rd where no flags are set: C4.1.92 add, sub, and logical with an immediate,
# C4.1.95 add and sub with an extended register; C4.1.93 msr spsel, and returns from exceptions. Of sp itself, or x29 in
# an epilogue, and a number or an index it is the same stack.
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


MAKER: Final = Arm64Maker()
