"""riscv64: the `Maker`. Jumps are ``jal x0`` or, where 2 bytes have to do, ``c.j``, or, where that does not reach,
``auipc`` and ``jalr x0`` by a dead register."""

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.standalone.code.parts import BEHIND, GOAL, Mask, Parts
from kinst.rewriter.standalone.code.trampoline import NO_JUMP, WORDS, Masks, Rows, Shape, Shapes, Task
from kinst.rewriter.standalone.riscv64 import tasks as tasks
from kinst.rewriter.standalone.riscv64.holes import JUMPS_BY, any_jump, short_jump
from kinst.rewriter.standalone.riscv64.moved import moved, shapes
from kinst.rewriter.standalone.riscv64.stacks import stack_roles
from kinst.targets.arch.riscv64 import C_EBREAK, EBREAK, FAR_JUMP


class Riscv64Maker:
    """The `Maker` of RV64GC."""

    rules = replace(WORDS, compact=len(C_EBREAK), jumps_by=JUMPS_BY)

    def needed(self, task: Task, dead: Masks) -> Masks:
        """See `Maker.needed`."""
        return tasks.needed(task, dead)

    def task(self, task: Task, dead: int, *, has_stack: bool, is_compact: bool) -> Parts:
        """See `Maker.task`."""
        return tasks.done(task, dead, has_stack=has_stack, is_compact=is_compact)

    def shapes(self, rows: Rows) -> Shapes:
        """See `Maker.shapes`."""
        return shapes(rows)

    def moved(self, shape: Shape) -> Parts:
        """See `Maker.moved`."""
        return moved(shape)

    def leave(self, dead: int) -> Parts:
        """See `Maker.leave`."""
        return any_jump(BEHIND, dead, NO_JUMP)

    def jump(self, size: int, dead: int) -> Parts:
        """See `Maker.jump`."""
        if size == len(C_EBREAK):
            return short_jump(GOAL, NO_JUMP)
        return any_jump(GOAL, dead if size >= FAR_JUMP else 0, NO_JUMP)

    def filler(self, size: int) -> bytes:
        """See `Maker.filler`."""
        whole, half = divmod(size, len(EBREAK))
        return EBREAK * whole + C_EBREAK * (half // len(C_EBREAK))

    def stack_roles(
        self, code: NDArray[np.uint8], offsets: NDArray[np.int64], sizes: NDArray[np.uint8]
    ) -> tuple[Mask, Mask]:
        """See `Maker.stack_roles`."""
        return stack_roles(code, offsets, sizes)


MAKER: Final = Riscv64Maker()
