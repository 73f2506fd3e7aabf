"""Image name -> its code: bytes, address, and function ranges by symbols, or the whole region where it is stripped."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from kinst.targets.image import Image, open_image
from tests.images import real_image

STT_FUNC = 2


@dataclass(frozen=True, slots=True)
class Code:
    """One executable region."""

    bytes: NDArray[np.uint8]
    address: int
    ranges: NDArray[np.int64]


@cache
def real_code(name: str) -> tuple[Code, ...]:
    """Every executable region of a real image that has functions in it."""
    image = open_image(real_image(name))
    regions = []
    for region in image.code_regions:
        content = np.array(image.data[region.offset : region.offset + region.size])
        ranges = _functions(image, region.address, region.size)
        if len(ranges):
            regions.append(Code(content, region.address, ranges))
    return tuple(regions)


def _functions(image: Image, address: int, size: int) -> NDArray[np.int64]:
    symbols = image.symbols
    is_function = (symbols.kind == STT_FUNC) & (symbols.size > 0) & (symbols.address >= address)
    if is_function.sum() < 1000:
        return np.array([[0, size]], np.int64)
    start = (symbols.address[is_function] - np.uint64(address)).view(np.int64)
    end = start + symbols.size[is_function].view(np.int64)
    order = np.lexsort((-end, start))
    start, end = start[order], end[order]
    outermost = np.ones(len(start), np.bool_)
    outermost[1:] = start[1:] >= np.maximum.accumulate(end)[:-1]
    inside = outermost & (end <= size)
    return np.stack([start[inside], end[inside]], axis=1)
