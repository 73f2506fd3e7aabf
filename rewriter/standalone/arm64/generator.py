"""arm64: the `CodeGenerator`. Jumps are ``b``."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.standalone.arm64 import tasks as tasks
from kinst.rewriter.standalone.arm64.fixups import jump_fixup
from kinst.rewriter.standalone.arm64.moved import moved, shapes
from kinst.rewriter.standalone.arm64.stacks import stack_roles
from kinst.rewriter.standalone.code.parts import BEHIND, GOAL, Mask, Parts
from kinst.rewriter.standalone.code.trampoline import NO_JUMP, WORDS, Masks, Rows, Shape, Shapes, Task
from kinst.targets.arch.arm64 import BREAKPOINT


class Arm64Generator:
    """The `CodeGenerator` of A64."""

    rules = WORDS

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
        return (jump_fixup(BEHIND, NO_JUMP),)

    def jump(self, size: int, dead: int) -> Parts:
        """See `CodeGenerator.jump`."""
        del size, dead
        return (jump_fixup(GOAL, NO_JUMP),)

    def filler(self, size: int) -> bytes:
        """See `CodeGenerator.filler`."""
        return BREAKPOINT * (size // len(BREAKPOINT))

    def stack_roles(
        self, code: NDArray[np.uint8], offsets: NDArray[np.int64], sizes: NDArray[np.uint8]
    ) -> tuple[Mask, Mask]:
        """See `CodeGenerator.stack_roles`."""
        return stack_roles(code, offsets, sizes)


GENERATOR: Final = Arm64Generator()
