"""Instructions by their first eight bytes -> which of them match a machine's patterns."""

import numpy as np
from numpy.typing import NDArray

from kinst.targets.arch.code_shape import Pattern


def matches(heads: NDArray[np.uint64], patterns: tuple[Pattern, ...]) -> NDArray[np.bool_]:
    """Which of the instructions, given by their first eight bytes, little-endian, match any pattern."""
    found = np.zeros(len(heads), np.bool_)
    for pattern in patterns:
        found |= (heads & np.uint64(pattern.mask)) == np.uint64(pattern.value)
    return found
