"""A module that is not linked (ET_REL) -> its code, with the distances that a loader writes into instructions.

Without them an instruction seems to read, to call or to jump to what is after it, or to itself. Distances to what is
not in the module, and to tables that a loader makes, lead to an address where the module has no code.
"""

import numpy as np
from numpy.typing import NDArray

from kinst.targets.arch.relocations import CodeField
from kinst.targets.elf.header import SHT_RELA, FileKind
from kinst.targets.elf.relocations import RELA
from kinst.targets.elf.sections import CodeRegion, Section, content
from kinst.targets.elf.symbols import SHN_UNDEF
from kinst.targets.image import Image


def code_of(image: Image, region: CodeRegion) -> NDArray[np.uint8]:
    """The bytes of a region."""
    code = image.data[region.offset : region.offset + region.size]
    if image.kind is not FileKind.REL:
        return code
    section = next((one for one in image.sections if one.offset == region.offset and one.size == region.size), None)
    tables = [one for one in image.sections if section and one.kind == SHT_RELA and one.info == section.index]
    if section is None or not tables:
        return code
    code = code.copy()
    for table in tables:
        _link(code, section, np.frombuffer(content(image.data, table).tobytes(), RELA), image)
    return code


def _link(code: NDArray[np.uint8], section: Section, rows: NDArray[np.void], image: Image) -> None:
    symbols, kinds = image.symbols, image.facts.relocations
    known = (rows["offset"] < len(code)) & (rows["symbol"] < len(symbols))
    for kind, fields in kinds.code.items():
        chosen = rows[known & (rows["kind"] == kind)]
        is_here = symbols.section[chosen["symbol"]] != SHN_UNDEF
        symbol = symbols.address[chosen["symbol"]].view(np.int64)
        place = chosen["offset"].astype(np.int64)
        for field in fields:
            target = np.where(is_here & (not field.is_table), symbol, kinds.nowhere) + chosen["addend"]
            _insert(code, place + field.offset, target - place - section.address + field.added, field)


def _insert(code: NDArray[np.uint8], at: NDArray[np.int64], distance: NDArray[np.int64], field: CodeField) -> None:
    fits = at + 4 <= len(code)
    index = at[fits, None] + np.arange(4)
    word = code[index].view("<u4")[:, 0].astype(np.int64)
    for low, width, shift in field.pieces:
        mask = (1 << width) - 1
        word = word & ~(mask << low) | (distance[fits] >> shift & mask) << low
    code[index] = word.astype("<u4").view(np.uint8).reshape(-1, 4)
