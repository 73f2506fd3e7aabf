"""riscv64: the `CodeGenerator`. Jumps are ``jal x0``; ``c.j`` in a slot of 2 bytes; ``auipc`` and ``jalr x0`` by a dead
register beyond the 1 MiB of ``jal``."""

from dataclasses import replace
from typing import Final

from kinst.rewriter.standalone.code.parts import GOAL, NEXT, Parts
from kinst.rewriter.standalone.code.trampoline import NO_JUMP, WORDS, CodeGenerator
from kinst.rewriter.standalone.riscv64.fixups import JUMPS_BY, any_jump, short_jump
from kinst.rewriter.standalone.riscv64.moved import moved, shapes
from kinst.rewriter.standalone.riscv64.stacks import stack_roles
from kinst.rewriter.standalone.riscv64.tasks import needed, task_code
from kinst.targets.arch.riscv64 import C_EBREAK, EBREAK, FAR_JUMP


def _leave(dead: int) -> Parts:
    return any_jump(NEXT, dead, NO_JUMP)


def _jump(size: int, dead: int) -> Parts:
    if size == len(C_EBREAK):
        return short_jump(GOAL, NO_JUMP)
    return any_jump(GOAL, dead if size >= FAR_JUMP else 0, NO_JUMP)


def _filler(size: int) -> bytes:
    whole, half = divmod(size, len(EBREAK))
    return EBREAK * whole + C_EBREAK * (half // len(C_EBREAK))


GENERATOR: Final = CodeGenerator(
    rules=replace(WORDS, compact=len(C_EBREAK), jumps_by=JUMPS_BY),
    needed=needed,
    task=task_code,
    shapes=shapes,
    moved=moved,
    leave=_leave,
    jump=_jump,
    filler=_filler,
    stack_roles=stack_roles,
)
