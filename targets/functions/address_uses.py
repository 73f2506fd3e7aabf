"""What code does with the addresses of code that it makes: it reads there, jumps there, or stores them for others."""

from collections.abc import Callable
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from kinst.targets.columns import unique
from kinst.targets.image import Image
from kinst.targets.instruction import Instructions
from kinst.targets.module_code import code_of
from kinst.targets.values import dataclass


class Use(IntEnum):
    """What is done with an address in a register."""

    READ = 0  # something is loaded from there: it is data
    CALLED = 1  # control goes there: it is code
    KEPT = 2  # it is stored in memory: the code that loads it shows what it is


@dataclass(frozen=True, slots=True)
class AddressUses:
    """Columns: an address, how it is used, and the row of the instruction that made it."""

    address: NDArray[np.uint64]
    use: NDArray[np.uint8]
    by: NDArray[np.intp]

    def of(self, use: Use) -> NDArray[np.uint64]:
        """The addresses that are used so, sorted and unique."""
        return unique(self.address[self.use == use])

    def by_rows(self, rows: NDArray[np.bool_]) -> "AddressUses":
        """Only what the instructions of a mask made."""
        kept = rows[self.by]
        return AddressUses(self.address[kept], self.use[kept], self.by[kept])


@dataclass(frozen=True, slots=True)
class Slots:
    """Words of data that will hold a link address when the image runs: where, ascending, and which address."""

    address: NDArray[np.uint64]
    value: NDArray[np.uint64]


Wanted = Callable[[NDArray[np.uint64]], NDArray[np.bool_]]  # which of many addresses are of interest
# A machine's answer (`kinst.rewriter.addresses`), given the code of a region, its address and its instructions.
UsesOf = Callable[[NDArray[np.uint8], int, Instructions, Slots, Wanted], AddressUses]


def joined_uses(parts: list[AddressUses]) -> AddressUses:
    """All of several."""
    none = np.zeros(0, np.uint64)
    found = [AddressUses(none, none.astype(np.uint8), none.astype(np.intp)), *parts]
    return AddressUses(*(np.concatenate([getattr(one, name) for one in found]) for name in AddressUses.__slots__))


def address_uses(image: Image, found: Instructions, uses_of: UsesOf, wanted: Wanted) -> AddressUses:
    """What instructions of an image, in address order, do with the addresses that are `wanted`."""
    parts, slots = [], _slots(image)
    for region in image.code_regions:
        first, last = np.searchsorted(found.address, (region.address, region.address + region.size)).tolist()
        if first == last:
            continue
        rows = Instructions(*(getattr(found, name)[first:last] for name in Instructions.__slots__))
        uses = uses_of(code_of(image, region), region.address, rows, slots, wanted)
        parts.append(AddressUses(uses.address, uses.use, uses.by + first))
    return joined_uses(parts)


def _slots(image: Image) -> Slots:
    relative = np.flatnonzero(image.relocations.relative)
    address, value = image.relocations.address[relative], image.relocations.addend[relative]
    order = np.argsort(address, kind="stable")
    return Slots(address[order], value[order])
