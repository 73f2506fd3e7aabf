"""arm64: the `CodeGenerator`. Jumps are ``b``: 128 MiB either way (C6.2.26)."""

from typing import Final

from kinst.rewriter.standalone.arm64.fixups import jump_fixup
from kinst.rewriter.standalone.arm64.moved import moved, shapes
from kinst.rewriter.standalone.arm64.stacks import stack_roles
from kinst.rewriter.standalone.arm64.tasks import needed, task_code
from kinst.rewriter.standalone.code.parts import GOAL, NEXT, Parts
from kinst.rewriter.standalone.code.trampoline import NO_JUMP, WORDS, CodeGenerator
from kinst.targets.arch.arm64 import BREAKPOINT


def _leave(_dead: int) -> Parts:
    return (jump_fixup(NEXT, NO_JUMP),)


def _jump(_size: int, _dead: int) -> Parts:
    return (jump_fixup(GOAL, NO_JUMP),)


def _filler(size: int) -> bytes:
    return BREAKPOINT * (size // len(BREAKPOINT))


GENERATOR: Final = CodeGenerator(
    rules=WORDS,
    needed=needed,
    task=task_code,
    shapes=shapes,
    moved=moved,
    leave=_leave,
    jump=_jump,
    filler=_filler,
    stack_roles=stack_roles,
)
