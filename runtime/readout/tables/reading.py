"""A way in which a CPU may read page tables, which a dump of memory does not say."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from kinst.targets.values import dataclass

SLOT: Final = 2 << 20  # bytes: what Linux moves itself by, on all machines


def _one_slot(_code: int) -> int:
    return SLOT


@dataclass(frozen=True, slots=True)
class Reading:
    """The registers of a CPU; how far up, in bytes, Linux may have moved itself; and for a walk that failed, by the
    fault's code, how much is not mapped around there."""

    registers: Mapping[str, int]
    reach: int = SLOT * 512  # a gigabyte
    hole: Callable[[int], int] = _one_slot


Readings = Callable[[int], Iterator[Reading]]  # the physical address of the root -> the ways to try
