"""riscv64: the `Maker`. Jumps are ``jal x0`` or, where 2 bytes have to do, ``c.j``, or, where that does not reach,
``auipc`` and ``jalr x0`` by a dead register."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.standalone import riscv64_tasks as tasks
from kinst.rewriter.standalone.riscv64_moved import moved
from kinst.rewriter.standalone.riscv64_stacks import switches_stack, uses_stack
from kinst.rewriter.standalone.riscv64_words import any_jump, short_jump
from kinst.rewriter.standalone.sequence import Parts, sequence
from kinst.rewriter.standalone.template import Assembly
from kinst.rewriter.standalone.trampoline import Covered
from kinst.targets.arch.riscv64 import C_EBREAK, EBREAK, FAR_JUMP


def _parts(assembly: Assembly) -> Parts:
    return Parts(partial(tasks.count, assembly), partial(tasks.record, assembly), moved, any_jump)


_PARTS: Final = _parts(tasks.PLAIN)
_COMPRESSED: Final = _parts(tasks.SHORT)
_SHORT: Final = replace(_PARTS, jump=lambda at, target, _dead: short_jump(at, target))


class Riscv64Maker:
    """The `Maker` of RV64GC."""

    def jump(self, address: int, size: int, target: int, dead: int = 0) -> bytes:
        """See `Maker.jump`."""
        dead = dead if size >= FAR_JUMP else 0
        code = (_SHORT if size == len(C_EBREAK) else _PARTS).leave(address, target, dead)
        whole, half = divmod(size - len(code), len(EBREAK))
        return code + EBREAK * whole + C_EBREAK * (half // len(C_EBREAK))

    def trampoline(self, group: Sequence[Covered], address: int) -> bytes:
        """See `Maker.trampoline`."""
        has_short = any(len(one.code) == len(C_EBREAK) for one in group)
        return sequence(_COMPRESSED if has_short else _PARTS, group, address)

    def switches_stack(
        self, code: NDArray[np.uint8], offsets: NDArray[np.int64], sizes: NDArray[np.uint8]
    ) -> NDArray[np.bool_]:
        """See `Maker.switches_stack`."""
        return switches_stack(code, offsets, sizes)

    def uses_stack(
        self, code: NDArray[np.uint8], offsets: NDArray[np.int64], sizes: NDArray[np.uint8]
    ) -> NDArray[np.bool_]:
        """See `Maker.uses_stack`."""
        return uses_stack(code, offsets, sizes)


MAKER: Final = Riscv64Maker()
