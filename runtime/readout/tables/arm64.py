"""EL1's upper half, with each size of addresses (CONFIG_ARM64_VA_BITS) and of pages."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from kinst.runtime.readout.tables.reading import Reading, Readings

_SIZES: Final = (48, 39, 47, 42, 36)
_GRANULES: Final = {2: 12, 1: 14, 3: 16}  # TCR_EL1.TG1 -> log2 of a page's size
_LAST_LEVEL: Final = 3


def _readings(root: int) -> Iterator[Reading]:
    for bits in _SIZES:
        for granule, shift in _GRANULES.items():
            control = (64 - bits) << 16 | granule << 30 | 5 << 32 | 1 << 7  # T1SZ, TG1, IPS of 48 bits, EPD0
            values = {"pstate": 1 << 2, "sctlr_el1": 1, "tcr_el1": control, "ttbr1_el1": root}
            yield Reading(values, 1 << bits - 1, partial(_hole, shift))


def _hole(shift: int, code: int) -> int:
    """A fault's code has the level of the table that ended the walk."""
    return 1 << shift + (shift - 3) * (_LAST_LEVEL - (code & 3))


READINGS: Final[Readings] = _readings
