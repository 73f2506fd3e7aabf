"""A module that is not linked (ET_REL) -> its code with the distances that a loader writes into instructions.

Where they are missing, an amd64 instruction seems to read, or to jump to, what stands behind it. Distances to what is
not in the module lead to address 0, where there is none of its code. Machines whose distances are no whole words
(arm64, riscv64) keep theirs missing: of those nothing seems to be read.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.elf_header import SHT_RELA, FileKind
from kinst.targets.image import Image
from kinst.targets.relocations import RELA
from kinst.targets.sections import CodeRegion, Section, content
from kinst.targets.symbols import SHN_UNDEF

# By e_machine: types that write a distance of 4 bytes to a symbol; those that write one to its place in a table.
_DISTANCES: Final = {62: (2, 4)}  # R_X86_64_PC32, R_X86_64_PLT32 (psABI 1.0, table 4.9)
_TABLES: Final = {62: (9, 19, 20, 22, 41, 42)}  # GOTPCREL, TLSGD, TLSLD, GOTTPOFF, GOTPCRELX, REX_GOTPCRELX


def code_of(image: Image, region: CodeRegion) -> NDArray[np.uint8]:
    """The bytes of a region."""
    code = image.data[region.offset : region.offset + region.size]
    if image.kind is not FileKind.REL or image.header.machine not in _DISTANCES:
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
    symbols, machine = image.symbols, image.header.machine
    is_distance, is_table = (np.isin(rows["kind"], kinds[machine]) for kinds in (_DISTANCES, _TABLES))
    fits = (rows["offset"] + np.uint64(4) <= len(code)) & (rows["offset"] < len(code)) & (rows["symbol"] < len(symbols))
    rows, is_table = rows[chosen := (is_distance | is_table) & fits], is_table[chosen]
    is_here = (symbols.section[rows["symbol"]] != SHN_UNDEF) & ~is_table
    targets = np.where(is_here, symbols.address[rows["symbol"]], np.uint64(0)) + rows["addend"].astype(np.uint64)
    distance = (targets - rows["offset"] - np.uint64(section.address)).astype(np.uint32)
    index = rows["offset"].astype(np.int64)[:, None] + np.arange(4)
    code[index] = distance.astype("<u4").view(np.uint8).reshape(-1, 4)
