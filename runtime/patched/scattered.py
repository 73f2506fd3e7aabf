"""Rows of bytes at many addresses -> a memory that has them there."""

import numpy as np
from numpy.typing import NDArray


def scatter(memory: NDArray[np.uint8], start: int, addresses: NDArray[np.uint64], content: NDArray[np.uint8]) -> None:
    """Write rows of bytes at those addresses that are in `memory`, which begins at `start`."""
    offsets = addresses - np.uint64(start)
    inside = offsets < np.uint64(len(memory))
    places = offsets[inside].astype(np.int64)[:, None] + np.arange(content.shape[1])
    memory[places] = content[inside]
