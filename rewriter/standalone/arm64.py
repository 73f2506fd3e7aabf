"""arm64: the `Maker`. Jumps are ``b``."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.standalone import arm64_tasks as tasks
from kinst.rewriter.standalone.arm64_moved import moved
from kinst.rewriter.standalone.arm64_stacks import switches_stack, uses_stack
from kinst.rewriter.standalone.arm64_words import jump
from kinst.rewriter.standalone.sequence import Parts, sequence
from kinst.rewriter.standalone.trampoline import Covered
from kinst.targets.arch.arm64 import BREAKPOINT

_PARTS: Final = Parts(tasks.count, tasks.record, moved, lambda at, target, _dead: jump(at, target))


class Arm64Maker:
    """The `Maker` of A64."""

    def jump(self, address: int, size: int, target: int, dead: int = 0) -> bytes:
        """See `Maker.jump`."""
        code = _PARTS.leave(address, target, dead)
        return code + BREAKPOINT * ((size - len(code)) // len(BREAKPOINT))

    def trampoline(self, group: Sequence[Covered], address: int) -> bytes:
        """See `Maker.trampoline`."""
        return sequence(_PARTS, group, address)

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


MAKER: Final = Arm64Maker()
