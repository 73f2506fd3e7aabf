"""What the new sections of a module refer to -> relocations, by which a loader or linker fills in the distances.

A module (ET_REL) has no addresses before it is loaded: its sections are placed one by one. The field of each reference
is 0 in the file: Linux for amd64 refuses to load a module with anything else there ("Invalid relocation target,
existing value is nonzero").
"""

import numpy as np
from numpy.typing import NDArray

from kinst.targets.elf.header import SHT_SYMTAB
from kinst.targets.elf.relocations import RELA
from kinst.targets.elf.sections import Section
from kinst.targets.elf.symbols import SHN_UNDEF, STB_WEAK, STT_SECTION, SYMBOL
from kinst.targets.errors import PlacementError
from kinst.targets.image import Image
from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True)
class References:
    """Columns of the same length: what the bytes at an address refer to. Addresses are those of `Section`."""

    place: NDArray[np.uint64]
    target: NDArray[np.uint64]
    near: NDArray[np.uint64]  # an address in the target's section; the target itself may be its end
    kind: NDArray[np.uint32]  # the relocation's type
    size: NDArray[np.uint8]  # bytes
    added: NDArray[np.int64]  # to the target: fields that count from the end of the instruction have a negative one

    def __len__(self) -> int:
        return len(self.place)


def no_references() -> References:
    """For machines whose trampolines refer to nothing."""
    none = np.zeros(0, np.uint64)
    return References(none, none, none, none.astype(np.uint32), none.astype(np.uint8), none.astype(np.int64))


def blanked(code: NDArray[np.uint8], address: int, found: References) -> NDArray[np.uint8]:
    """The code at an address, with zeros where a relocation writes."""
    code = code.copy()
    at = (found.place - np.uint64(address)).astype(np.int64)
    for size in np.unique(found.size).tolist():
        code[at[found.size == size][:, None] + np.arange(size)] = 0
    return code


def rows_of(image: Image, address: int, found: References) -> NDArray[np.void]:
    """RELA rows for a section at `address`.

    Raises:
        PlacementError: the image has no symbol to name one of its sections by.
    """
    rows = np.zeros(len(found), RELA)
    rows["offset"], rows["kind"] = found.place - np.uint64(address), found.kind
    for section in image.sections:
        inside = found.near - np.uint64(section.address) < np.uint64(section.size)  # below the start it wraps round
        if section.address and inside.any():
            symbol = _symbol_in(image, section)
            rows["symbol"][inside] = symbol
            distance = found.target[inside] - image.symbols.address[symbol]
            rows["addend"][inside] = distance.astype(np.int64) + found.added[inside]
    return rows


def _symbol_in(image: Image, section: Section) -> int:
    """The row of a symbol that is certainly this section's: a weak one may be overridden by another file's. Section
    symbols come first."""
    symbols = image.symbols
    count = next((one.size // SYMBOL.itemsize for one in image.sections if one.kind == SHT_SYMTAB), 0)
    is_own = (symbols.section == section.index) & (symbols.section != SHN_UNDEF) & (symbols.binding != STB_WEAK)
    own = np.flatnonzero(is_own[:count])
    if not len(own):
        raise PlacementError(f"{image.path}: no symbol is defined in {section.name}, to which trampolines must refer")
    return int(own[np.argmax(symbols.kind[own] == STT_SECTION)])
