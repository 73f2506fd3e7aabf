"""The relocations of a debug section of an ET_REL file -> its bytes as a linker would leave them.

A module's sections have no addresses yet; theirs are file offsets (see `kinst.targets.elf.sections.Section`), and so
are the addresses in its debug information after this. Sections not loaded stay at 0: references between debug
sections become offsets. Of the many kinds of relocations few stand in debug sections: whole words, differences
(RISC-V, whose linker moves code), and nothing. Elsewhere, as in the .rela.debug_* that ld --emit-relocs leaves in a
linked vmlinux, they are applied already.
"""

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.elf.header import SHT_RELA
from kinst.targets.elf.relocations import RELA
from kinst.targets.elf.sections import Section, content
from kinst.targets.errors import ImageError

if TYPE_CHECKING:
    from kinst.targets.debuginfo.debug_sections import ElfLike

_SET, _ADD, _SUBTRACT = 0, 1, -1
# By e_machine: type -> (what to do, size in bytes); PC-relative ones are by themselves.
# amd64: psABI 1.0 table 4.9; arm64: aaelf64 5.7.5; riscv64: psABI "Relocations".
_KINDS: Final = {
    62: {1: (_SET, 8), 10: (_SET, 4), 11: (_SET, 4), 12: (_SET, 2), 14: (_SET, 1), 17: (_SET, 8), 21: (_SET, 4)},
    183: {257: (_SET, 8), 258: (_SET, 4), 259: (_SET, 2)},
    243: {
        1: (_SET, 4), 2: (_SET, 8), 33: (_ADD, 1), 34: (_ADD, 2), 35: (_ADD, 4), 36: (_ADD, 8),
        37: (_SUBTRACT, 1), 38: (_SUBTRACT, 2), 39: (_SUBTRACT, 4), 40: (_SUBTRACT, 8),
        54: (_SET, 1), 55: (_SET, 2), 56: (_SET, 4),
    },
}  # fmt: skip
_RELATIVE: Final = {62: {2: 4, 24: 8}, 183: {260: 8, 261: 4}, 243: {57: 4}}
_SIX_BITS: Final = {243: {52: _SUBTRACT, 53: _SET}}  # R_RISCV_SUB6, R_RISCV_SET6: the low bits of DW_CFA_advance_loc
_LEB128: Final = {243: {60: _SET, 61: _SUBTRACT}}  # R_RISCV_SET_ULEB128, R_RISCV_SUB_ULEB128
_NOTHING: Final = {62: {0}, 183: {0, 256}, 243: {0, 51}}


def relocate(data: NDArray[np.uint8], section: Section, elf: "ElfLike") -> NDArray[np.uint8]:
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
    """By kind, in the order of their numbers: RISC-V's ADD stand before SUB, and SET before both where it matters."""
    words, relative = _KINDS.get(machine, {}), _RELATIVE.get(machine, {})
    kinds = sorted(np.unique(rows["kind"]).tolist(), key=lambda kind: words.get(kind, (9, 0))[0] != _SET)
    for kind in kinds:
        chosen = rows["kind"] == kind
        places, those = rows["offset"][chosen], values[chosen]
        if kind in words:
            how, size = words[kind]
            _write(data, places, those, how, size)
        elif kind in relative:
            _write(data, places, those - places - np.uint64(section.address), _SET, relative[kind])
        elif kind in _SIX_BITS.get(machine, {}):
            _write_six_bits(data, places, those, _SIX_BITS[machine][kind])
        elif kind in _LEB128.get(machine, {}):
            _write_leb128(data, places, those, _LEB128[machine][kind])
        elif kind not in _NOTHING.get(machine, set()):
            raise ImageError(f"relocation type {kind} is not known in debug information")


def _check(data: NDArray[np.uint8], places: NDArray[np.uint64], size: int) -> None:
    if len(places) and int(places.max()) + size > len(data):
        raise ImageError("damaged: a relocation beyond the end of the section")


def _write(
    data: NDArray[np.uint8], places: NDArray[np.uint64], values: NDArray[np.uint64], how: int, size: int
) -> None:
    _check(data, places, size)
    index = places.astype(np.int64)[:, None] + np.arange(size)
    if how != _SET:
        raw = np.zeros((len(places), 8), np.uint8)
        raw[:, :size] = data[index]
        before = raw.view("<u8")[:, 0]
        values = before + values if how == _ADD else before - values
    data[index] = values.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :size]


def _write_six_bits(data: NDArray[np.uint8], places: NDArray[np.uint64], values: NDArray[np.uint64], how: int) -> None:
    _check(data, places, 1)
    index = places.astype(np.int64)
    before = data[index]
    low = values.astype(np.uint8) if how == _SET else before - values.astype(np.uint8)
    data[index] = (before & np.uint8(0xC0)) | (low & np.uint8(0x3F))


def _write_leb128(data: NDArray[np.uint8], places: NDArray[np.uint64], values: NDArray[np.uint64], how: int) -> None:
    """The number keeps the length that the assembler gave it."""
    _check(data, places, 1)
    for place, value in zip(places.tolist(), values.tolist(), strict=True):
        end = place
        while end < len(data) - 1 and data[end] > 0x7F:
            end += 1
        digits = data[place : end + 1]
        old = sum((int(digit) & 0x7F) << 7 * at for at, digit in enumerate(digits))
        new = value if how == _SET else old - value
        for at in range(len(digits)):
            digits[at] = (new >> 7 * at) & 0x7F | (0x80 if at < len(digits) - 1 else 0)
