"""amd64: the `CodeGenerator`. Jumps are e9 rel32, or eb rel8 where there are fewer than five bytes."""

from typing import Final

from kinst.rewriter.standalone.amd64.moved import moved, shapes
from kinst.rewriter.standalone.amd64.pieces import jump_to, short_jump_to
from kinst.rewriter.standalone.amd64.stacks import stack_roles
from kinst.rewriter.standalone.amd64.tasks import needed, task_code
from kinst.rewriter.standalone.code.parts import GOAL, NEXT, Parts
from kinst.rewriter.standalone.code.trampoline import CodeGenerator, ImmovableError, Rules
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


def _leave(_dead: int) -> Parts:
    return jump_to(NEXT)


def _jump(size: int, _dead: int) -> Parts:
    if size < _SHORT_SIZE:
        raise ImmovableError("it is too short for a jump")
    return jump_to(GOAL) if size >= AMD64.jump.size else short_jump_to(GOAL)


def _filler(size: int) -> bytes:
    return BREAKPOINT * size


GENERATOR: Final = CodeGenerator(
    rules=_RULES,
    needed=needed,
    task=task_code,
    shapes=shapes,
    moved=moved,
    leave=_leave,
    jump=_jump,
    filler=_filler,
    stack_roles=stack_roles,
)
