"""Relocation tables -> what is written where when the image is loaded, or when it relocates itself.

Only tables that are still to be applied count: those a loader sees (SHF_ALLOC sections, else PT_DYNAMIC), and every
table of an ET_REL file. The `.rela.text` that ``ld --emit-relocs`` keeps in a vmlinux is already applied: not read.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

RELA: Final = np.dtype([("offset", "<u8"), ("kind", "<u4"), ("symbol", "<u4"), ("addend", "<i8")])
REL: Final = np.dtype([("offset", "<u8"), ("kind", "<u4"), ("symbol", "<u4")])


@dataclass(frozen=True, slots=True)
class RelocationKinds:
    """Of one machine: relocation types by the bytes they write (4 unless listed), and those that hold an address."""

    sizes: Mapping[int, int]
    relative: frozenset[int]  # base + addend: the addend is a link address of the image


def _sizes(*groups: tuple[int, Iterable[int]]) -> dict[int, int]:
    return {kind: size for size, kinds in groups for kind in kinds}


# By e_machine. amd64: psABI 1.0, table 4.9; arm64: aaelf64 5.7; riscv64: psABI, "Relocations". A COPY (amd64 5, arm64
# 1024, riscv64 4) is as long as its symbol; it goes to .bss, so 8 is as good as anything.
RELOCATION_KINDS: Final[Mapping[int, RelocationKinds]] = {
    62: RelocationKinds(
        _sizes(
            (8, (1, 5, 6, 7, 8, 16, 17, 18, 24, 25, 27, 28, 29, 30, 31, 36, 37, 38)),
            (2, (12, 13)),
            (1, (14, 15)),
            (0, (0, 35, 250, 251)),
        ),
        frozenset({8, 37, 38}),
    ),
    183: RelocationKinds(
        _sizes(
            (8, (257, 260, 307, 1024, 1025, 1026, 1027, 1028, 1029, 1030, 1032)),
            (16, (1031,)),
            (2, (259, 262)),
            (0, (0, 256, 569)),
        ),
        frozenset({1027, 1032}),
    ),
    243: RelocationKinds(
        _sizes(
            (8, (2, 3, 4, 5, 7, 9, 11, 18, 19, 36, 40, 58)),
            (2, (34, 38, 44, 45, 46, 55)),
            (1, (33, 37, 52, 53, 54)),
            (0, (0, 43, 51)),
        ),
        frozenset({3, 58}),
    ),
}
RELR_SIZE: Final = 8


@dataclass(frozen=True, slots=True)
class Relocations:
    """Columns of the same length: `size` bytes at `address` get written; if `relative`, `addend` is a link address."""

    address: NDArray[np.uint64]
    size: NDArray[np.uint64]
    addend: NDArray[np.uint64]
    relative: NDArray[np.bool_]

    @property
    def ranges(self) -> NDArray[np.uint64]:
        """(n, 2) address and size, in address order."""
        written = self.size > 0
        pairs = np.stack([self.address[written], self.size[written]], axis=1)
        return np.unique(pairs, axis=0)

    @property
    def pointers(self) -> NDArray[np.uint64]:
        """The link addresses that relocations store, sorted."""
        return np.unique(self.addend[self.relative])


def joined(tables: Iterable[Relocations]) -> Relocations:
    """All rows of some tables."""
    none = np.zeros(0, np.uint64)
    found = [*tables, Relocations(none, none, none, np.zeros(0, np.bool_))]
    return Relocations(
        np.concatenate([table.address for table in found]),
        np.concatenate([table.size for table in found]),
        np.concatenate([table.addend for table in found]),
        np.concatenate([table.relative for table in found]),
    )


def rela_table(content: NDArray[np.uint8], machine: int, base: int = 0) -> Relocations:
    """Rows of a RELA table; `base` is added to each offset (ET_REL: the section's address)."""
    kinds = RELOCATION_KINDS[machine]
    rows = np.frombuffer(content[: len(content) // RELA.itemsize * RELA.itemsize].tobytes(), RELA)
    relative = np.isin(rows["kind"], list(kinds.relative))
    return Relocations(
        rows["offset"] + np.uint64(base), _written(rows["kind"], kinds), rows["addend"].astype(np.uint64), relative
    )


def rel_table(content: NDArray[np.uint8], machine: int, base: int = 0) -> Relocations:
    """Rows of a REL table. Their addends lie at the place itself, so no address is known from the table."""
    rows = np.frombuffer(content[: len(content) // REL.itemsize * REL.itemsize].tobytes(), REL)
    none = np.zeros(len(rows), np.bool_)
    return Relocations(
        rows["offset"] + np.uint64(base),
        _written(rows["kind"], RELOCATION_KINDS[machine]),
        np.zeros(len(rows), np.uint64),
        none,
    )


def relr_table(content: NDArray[np.uint8]) -> Relocations:
    """Rows of a RELR table (gABI: an even word is an address; bit n of an odd word stands for word n-1 after the last).

    63 words follow the place that the preceding entries ended at: one after an address, 63 after each bitmap.
    """
    words = np.frombuffer(content[: len(content) // RELR_SIZE * RELR_SIZE].tobytes(), "<u8").astype(np.uint64)
    rows = np.arange(len(words))
    is_address = (words & np.uint64(1)) == 0
    last = np.maximum.accumulate(np.where(is_address, rows, 0)) if len(words) else rows
    start = words[last] + np.uint64(8) + ((rows - last - 1) * (63 * 8)).astype(np.uint64)
    bits = np.unpackbits(words[:, np.newaxis].view(np.uint8), axis=1, bitorder="little")[:, 1:].astype(np.bool_)
    chosen, bit = np.nonzero(bits & ~is_address[:, np.newaxis])
    address = np.concatenate([words[is_address], start[chosen] + (bit * 8).astype(np.uint64)])
    zero = np.zeros(len(address), np.uint64)
    return Relocations(address, np.full(len(address), 8, np.uint64), zero, np.zeros(len(address), np.bool_))


def _written(kind: NDArray[np.uint32], kinds: RelocationKinds) -> NDArray[np.uint64]:
    size = np.full(len(kind), 4, np.uint64)
    for known, width in kinds.sizes.items():
        size[kind == known] = width
    return size
