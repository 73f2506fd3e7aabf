"""amd64: the `CodeGenerator`. Jumps are e9 rel32, or eb rel8 where that has no room."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.standalone.amd64 import tasks as tasks
from kinst.rewriter.standalone.amd64.moved import moved, shapes
from kinst.rewriter.standalone.amd64.pieces import jump_to, short_jump_to
from kinst.rewriter.standalone.amd64.stacks import stack_roles
from kinst.rewriter.standalone.code.parts import BEHIND, GOAL, Mask, Parts
from kinst.rewriter.standalone.code.trampoline import ImmovableError, Masks, Rows, Rules, Shape, Shapes, Task
from kinst.targets.arch.amd64 import AMD64, BREAKPOINT
from kinst.targets.instruction import Flow

_SHORT_SIZE: Final = 2
_RULES: Final = Rules(
    unfinished=(Flow.CALL, Flow.INDIRECT_CALL),
    why_unfinished="a call in it comes back to where it was",
    follows=True,
    why_inside="a branch in it leads into an instruction that moves",
    compact=0,
    jumps_by=0,
)


class Amd64Generator:
    """The `CodeGenerator` of 64-bit mode."""

    rules = _RULES

    def needed(self, task: Task, dead: Masks) -> Masks:
        """See `CodeGenerator.needed`."""
        return tasks.needed(task, dead)

    def task(self, task: Task, dead: int, *, has_stack: bool, is_compact: bool) -> Parts:
        """See `CodeGenerator.task`."""
        del is_compact
        return tasks.done(task, dead, has_stack=has_stack)

    def shapes(self, rows: Rows) -> Shapes:
        """See `CodeGenerator.shapes`."""
        return shapes(rows)

    def moved(self, shape: Shape) -> Parts:
        """See `CodeGenerator.moved`."""
        return moved(shape)

    def leave(self, dead: int) -> Parts:
        """See `CodeGenerator.leave`."""
        del dead
        return jump_to(BEHIND)

    def jump(self, size: int, dead: int) -> Parts:
        """See `CodeGenerator.jump`."""
        del dead
        if size < _SHORT_SIZE:
            raise ImmovableError("it is too short for a jump")
        return jump_to(GOAL) if size >= AMD64.jump.size else short_jump_to(GOAL)

    def filler(self, size: int) -> bytes:
        """See `CodeGenerator.filler`."""
        return BREAKPOINT * size

    def stack_roles(
        self, code: NDArray[np.uint8], offsets: NDArray[np.int64], sizes: NDArray[np.uint8]
    ) -> tuple[Mask, Mask]:
        """See `CodeGenerator.stack_roles`."""
        return stack_roles(code, offsets, sizes)


GENERATOR: Final = Amd64Generator()
