"""Addresses that may be landed on, sorted out of an image's words: the fast way beside Python's sets."""

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from kinst.rewriter.jumps.landings import _in_code

EDGES = (0, 1, 1 << 31, (1 << 63) - 8, (1 << 64) - 8, (1 << 64) - 1)


@pytest.mark.parametrize("seed", range(40))
def test_what_is_in_code_is_what_sets_say(seed: int) -> None:
    rng = np.random.default_rng(seed)
    base, alignment = int(rng.choice([0, 0x8000_0000, (1 << 64) - (1 << 31)])), int(rng.choice([1, 2, 4]))
    starts = base + np.cumsum(rng.integers(0, 300, 6)).astype(object)
    regions = [
        SimpleNamespace(address=start, size=size) for start, size in zip(starts, _sizes(rng, starts), strict=True)
    ]
    if seed % 2:
        regions.reverse()  # as they are listed
    parts = [np.array([*_near(rng, base), *EDGES], np.uint64) for _ in range(3)] + [np.zeros(0, np.uint64)]
    image = cast(Any, SimpleNamespace(code_regions=regions, facts=SimpleNamespace(instruction_alignment=alignment)))
    expected = [
        address
        for one in regions
        for address in sorted({word for part in parts for word in part.tolist()})
        if one.address <= address < one.address + one.size and address % alignment == 0
    ]
    assert _in_code(image, parts).tolist() == expected
    assert seed > 3 or expected


def _sizes(rng: np.random.Generator, starts: Any) -> list[int]:
    """Regions that may touch, and do not overlap."""
    room = [*np.diff(starts), 200]
    return [int(rng.integers(0, size + 1)) for size in room]


def _near(rng: np.random.Generator, base: int) -> list[int]:
    return [(base + int(distance)) % (1 << 64) for distance in rng.integers(-400, 2400, 300)]


def test_an_image_without_code_has_none() -> None:
    image = cast(Any, SimpleNamespace(code_regions=(), facts=SimpleNamespace(instruction_alignment=1)))
    assert _in_code(image, [np.array(EDGES, np.uint64)]).tolist() == []
