"""The relocations of a debug section of an ET_REL file -> its bytes as a linker would leave them.

A module's sections have no addresses yet; theirs are file offsets (see `kinst.targets.elf.sections.Section`), and so
are the addresses in its debug information after this. Sections that are not loaded stay at 0: references between debug
sections become offsets.

Few of the many kinds of relocations occur in debug sections: whole words, differences (RISC-V, whose linker moves
code), and nothing. In other files they are applied already, such as the .rela.debug_* that ld --emit-relocs leaves in a
linked vmlinux.
"""

import numpy as np
from numpy.typing import NDArray

from kinst.targets.arch.registry import arch_by_elf_machine
from kinst.targets.arch.relocations import Change
from kinst.targets.columns import unique
from kinst.targets.elf.file import ElfLike
from kinst.targets.elf.header import SHT_RELA
from kinst.targets.elf.relocations import RELA
from kinst.targets.elf.sections import Section, content
from kinst.targets.errors import ImageError
from kinst.targets.leb128 import leb

_LONGEST_LEB128 = 24  # bytes: more than `leb` reads


def relocate(data: NDArray[np.uint8], section: Section, elf: ElfLike) -> NDArray[np.uint8]:
    """A copy of a section's bytes with its relocations applied; the bytes themselves if it has none.

    Raises:
        ImageError: a relocation is not known, or outside the section.
    """
    tables = [one for one in elf.sections if one.kind == SHT_RELA and one.info == section.index]
    if not tables:
        return data
    data = data.copy()
    for table in tables:
        rows = np.frombuffer(content(elf.data, table).tobytes(), RELA)
        if (rows["symbol"] >= max(len(elf.symbols), 1)).any():
            raise ImageError("damaged: a relocation against a symbol that does not exist")
        values = elf.symbols.address[rows["symbol"]] + rows["addend"].astype(np.uint64)
        _apply(data, section, rows, values, elf.header.machine)
    return data


def _apply(
    data: NDArray[np.uint8], section: Section, rows: NDArray[np.void], values: NDArray[np.uint64], machine: int
) -> None:
    """By kind: first those that set what others at the same place add to or subtract from."""
    facts = arch_by_elf_machine(machine).relocations
    kinds = sorted(set(unique(rows["kind"]).tolist()) - facts.nothing)
    if unknown := [kind for kind in kinds if kind not in facts.debug]:
        raise ImageError(f"relocation type {unknown[0]} is not known in debug information")
    known = {kind: facts.debug[kind] for kind in kinds}
    for kind in sorted(kinds, key=lambda kind: known[kind].change is not Change.SET):
        chosen, relocation = rows["kind"] == kind, known[kind]
        places, those = rows["offset"][chosen], values[chosen]
        if relocation.is_relative:
            those = those - places - np.uint64(section.address)
        match relocation.width:
            case 6:
                _write_six_bits(data, places, those, relocation.change)
            case 0:  # `LEB128`
                _write_leb128(data, places, those, relocation.change)
            case width:
                _write(data, places, those, relocation.change, width // 8)


def _check(data: NDArray[np.uint8], places: NDArray[np.uint64], size: int) -> None:
    if len(places) and int(places.max()) + size > len(data):
        raise ImageError("damaged: a relocation beyond the end of the section")


def _write(
    data: NDArray[np.uint8], places: NDArray[np.uint64], values: NDArray[np.uint64], how: Change, size: int
) -> None:
    _check(data, places, size)
    index = places.astype(np.int64)[:, None] + np.arange(size)
    if how != Change.SET:
        raw = np.zeros((len(places), 8), np.uint8)
        raw[:, :size] = data[index]
        before = raw.view("<u8")[:, 0]
        values = before + values if how == Change.ADD else before - values
    data[index] = values.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :size]


def _write_six_bits(
    data: NDArray[np.uint8], places: NDArray[np.uint64], values: NDArray[np.uint64], how: Change
) -> None:
    _check(data, places, 1)
    index = places.astype(np.int64)
    before = data[index]
    low = values.astype(np.uint8) if how == Change.SET else before - values.astype(np.uint8)
    data[index] = (before & np.uint8(0xC0)) | (low & np.uint8(0x3F))


def _write_leb128(data: NDArray[np.uint8], places: NDArray[np.uint64], values: NDArray[np.uint64], how: Change) -> None:
    """Each number keeps the length that the assembler gave it."""
    _check(data, places, 1)
    for place, value in zip(places.tolist(), values.tolist(), strict=True):
        try:
            old, size = leb(data[place : place + _LONGEST_LEB128].tobytes(), 0)
        except IndexError:
            raise ImageError("damaged: a relocation of a number that does not end") from None
        new = value if how == Change.SET else old - value
        data[place : place + size] = [(new >> 7 * at) & 0x7F | 0x80 for at in range(size)]
        data[place + size - 1] &= 0x7F
