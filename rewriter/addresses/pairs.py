"""Machines that make an address in two steps (adrp and add, auipc and addi) -> the pairs of instructions.

The second is looked for among the few instructions after the first, since compilers move them apart.
"""

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.columns import is_one_of
from kinst.targets.instruction import Flow, Instructions

_WITHIN: Final = 8  # instructions between the two
_AWAY: Final = (Flow.JUMP, Flow.INDIRECT_JUMP, Flow.RETURN, Flow.STOP)

# For rows and a register of each: whether the instruction takes it as its base, and whether it overwrites it.
Meets = Callable[[NDArray[np.intp], NDArray[np.int8]], tuple[NDArray[np.bool_], NDArray[np.bool_]]]


def pairs(
    found: Instructions, first: NDArray[np.intp], register: NDArray[np.int8], meets: Meets
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Positions in `first`, and the row of an instruction that uses the register which was set there; a position comes
    as often as its register is used."""
    position, row = np.arange(len(first)), first
    positions, rows = [position[:0]], [row[:0]]
    for _ in range(_WITHIN):
        row = row + 1
        inside = row < len(found)
        position, row = position[inside], row[inside]
        before = row - 1
        follows = found.address[before] + found.size[before] == found.address[row]
        follows &= ~is_one_of(found.flow[before], _AWAY)
        position, row = position[follows], row[follows]
        uses, writes = meets(row, register[position])
        positions.append(position[uses])
        rows.append(row[uses])
        position, row = position[~writes], row[~writes]
    return np.concatenate(positions), np.concatenate(rows)
