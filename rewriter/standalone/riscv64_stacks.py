"""Instructions of riscv64 -> those that rely on the stack: they move sp by a number or an index."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.liveness.effects import effector
from kinst.targets.arch.riscv64 import RISCV64, SP

_SP: Final = np.uint32(1 << SP)


def uses_stack(code: NDArray[np.uint8], offsets: NDArray[np.int64], sizes: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """See `Maker.uses_stack`. What also swaps it with a system register is a switch."""
    effects = effector(RISCV64).effects(code, offsets, sizes)
    found: NDArray[np.bool_] = effects.reads & effects.writes & _SP != 0
    return found
