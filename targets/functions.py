"""An image -> its functions: names and bounds from symbols, FDEs, or discovery where the image is stripped."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from kinst.targets.instruction import Instructions

# How the discovery decodes, given by the caller since decoding lives in kinst.rewriter: `Dissector.dissect`.
Sweep = Callable[[NDArray[np.uint8], int, NDArray[np.int64]], Instructions]


class Evidence(IntEnum):
    """How a function was found, from the surest to the weakest."""

    SYMBOL = 0
    FDE = 1
    ENTRY_POINT = 2
    CALL = 3  # a direct call goes there
    POINTER = 4  # a relocation or a table of code pointers holds its address
    PROLOGUE = 5  # it only looks like one


@dataclass(frozen=True, slots=True)
class Functions:
    """Columns in address order, one row a function; ranges do not overlap and lie inside executable regions.

    `names` holds the primary name. `aliases` maps a row to its other names. A name may stand in several rows (statics of
    different files).
    """

    address: NDArray[np.uint64]
    size: NDArray[np.uint64]
    evidence: NDArray[np.uint8]
    names: tuple[str, ...]
    aliases: Mapping[int, tuple[str, ...]]

    def __len__(self) -> int:
        return len(self.address)
