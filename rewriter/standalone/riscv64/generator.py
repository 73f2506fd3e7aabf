"""riscv64: the `CodeGenerator`. Jumps are ``jal x0``; ``c.j`` in a slot of 2 bytes; ``auipc`` and ``jalr x0`` by a dead
register beyond the 1 MiB of ``jal``."""

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.standalone.code.parts import BEHIND, GOAL, Mask, Parts
from kinst.rewriter.standalone.code.trampoline import NO_JUMP, WORDS, Masks, Rows, Shape, Shapes, Task
from kinst.rewriter.standalone.riscv64 import tasks as tasks
from kinst.rewriter.standalone.riscv64.fixups import JUMPS_BY, any_jump, short_jump
from kinst.rewriter.standalone.riscv64.moved import moved, shapes
from kinst.rewriter.standalone.riscv64.stacks import stack_roles
from kinst.targets.arch.riscv64 import C_EBREAK, EBREAK, FAR_JUMP


class Riscv64Generator:
    """The `CodeGenerator` of RV64GC."""

    rules = replace(WORDS, compact=len(C_EBREAK), jumps_by=JUMPS_BY)

    def needed(self, task: Task, dead: Masks) -> Masks:
        """See `CodeGenerator.needed`."""
        return tasks.needed(task, dead)

    def task(self, task: Task, dead: int, *, has_stack: bool, is_compact: bool) -> Parts:
        """See `CodeGenerator.task`."""
        return tasks.done(task, dead, has_stack=has_stack, is_compact=is_compact)

    def shapes(self, rows: Rows) -> Shapes:
        """See `CodeGenerator.shapes`."""
        return shapes(rows)

    def moved(self, shape: Shape) -> Parts:
        """See `CodeGenerator.moved`."""
        return moved(shape)

    def leave(self, dead: int) -> Parts:
        """See `CodeGenerator.leave`."""
        return any_jump(BEHIND, dead, NO_JUMP)

    def jump(self, size: int, dead: int) -> Parts:
        """See `CodeGenerator.jump`."""
        if size == len(C_EBREAK):
            return short_jump(GOAL, NO_JUMP)
        return any_jump(GOAL, dead if size >= FAR_JUMP else 0, NO_JUMP)

    def filler(self, size: int) -> bytes:
        """See `CodeGenerator.filler`."""
        whole, half = divmod(size, len(EBREAK))
        return EBREAK * whole + C_EBREAK * (half // len(C_EBREAK))

    def stack_roles(
        self, code: NDArray[np.uint8], offsets: NDArray[np.int64], sizes: NDArray[np.uint8]
    ) -> tuple[Mask, Mask]:
        """See `CodeGenerator.stack_roles`."""
        return stack_roles(code, offsets, sizes)


GENERATOR: Final = Riscv64Generator()
