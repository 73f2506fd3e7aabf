"""A module that is not linked (ET_REL) -> its code with the distances that a loader writes into instructions.

Where they are missing, an instruction seems to read, to call or to jump to what stands behind it, or itself. Distances
to what is not in the module, and to tables that a loader makes, lead to an address where there is none of its code.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.elf.header import SHT_RELA, FileKind
from kinst.targets.elf.relocations import RELA
from kinst.targets.elf.sections import CodeRegion, Section, content
from kinst.targets.elf.symbols import SHN_UNDEF
from kinst.targets.image import Image


@dataclass(frozen=True, slots=True)
class _Field:
    """Where the 4 bytes at a relocation hold a distance: ``(low, width, shift)`` of its pieces, as in `Immediate`."""

    pieces: tuple[tuple[int, int, int], ...]
    added: int = 0  # to the distance first
    offset: int = 0  # of the bytes
    is_table: bool = False  # the distance is to a place that the loader makes


@dataclass(frozen=True, slots=True)
class _Kinds:
    """Of one machine. `nowhere`: an address within reach of which a module has no code."""

    fields: Mapping[int, tuple[_Field, ...]]
    nowhere: int


def _kinds(nowhere: int, *groups: tuple[tuple[int, ...], tuple[_Field, ...]]) -> _Kinds:
    return _Kinds({kind: fields for kinds, fields in groups for kind in kinds}, nowhere)


_UPPER = _Field(((12, 20, 12),), added=0x800)  # auipc: the lower part is in another instruction and is signed
_BRANCH = _Field(((31, 1, 12), (25, 6, 5), (8, 4, 1), (7, 1, 11)))
_JUMP = _Field(((31, 1, 20), (21, 10, 1), (20, 1, 11), (12, 8, 12)))
_SHORT_BRANCH = _Field(((12, 1, 8), (10, 2, 3), (5, 2, 6), (3, 2, 1), (2, 1, 5)))
_SHORT_JUMP = _Field(((12, 1, 11), (11, 1, 4), (9, 2, 8), (8, 1, 10), (7, 1, 6), (6, 1, 7), (3, 3, 1), (2, 1, 5)))
# By e_machine.
_KINDS: Final = {
    # psABI 1.0, table 4.9: PC32, PLT32; GOTPCREL, TLSGD, TLSLD, GOTTPOFF, GOTPCRELX, REX_GOTPCRELX.
    62: _kinds(
        0,
        ((2, 4), (_Field(((0, 32, 0),)),)),
        ((9, 19, 20, 22, 41, 42), (_Field(((0, 32, 0),), is_table=True),)),
    ),
    # aaelf64 5.7: CALL26, JUMP26; CONDBR19, LD_PREL_LO19; TSTBR14; GOT_LD_PREL19.
    183: _kinds(
        0,
        ((282, 283), (_Field(((0, 26, 2),)),)),
        ((273, 280), (_Field(((5, 19, 2),)),)),
        ((279,), (_Field(((5, 14, 2),)),)),
        ((309,), (_Field(((5, 19, 2),), is_table=True),)),
    ),
    # psABI, "Relocations": BRANCH, JAL, CALL, CALL_PLT; GOT_HI20, TLS_GOT_HI20, TLS_GD_HI20, PCREL_HI20, whose lower
    # part is named by another relocation: what it reads is left open; RVC_BRANCH, RVC_JUMP.
    243: _kinds(
        -(1 << 30),
        ((16,), (_BRANCH,)),
        ((17,), (_JUMP,)),
        ((18, 19), (_UPPER, _Field(((20, 12, 0),), offset=4))),
        ((20, 21, 22, 23), (_Field(((12, 20, 12),), is_table=True),)),
        ((44,), (_SHORT_BRANCH,)),
        ((45,), (_SHORT_JUMP,)),
    ),
}


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
    symbols, kinds = image.symbols, _KINDS[image.header.machine]
    known = (rows["offset"] < len(code)) & (rows["symbol"] < len(symbols))
    for kind, fields in kinds.fields.items():
        chosen = rows[known & (rows["kind"] == kind)]
        is_here = symbols.section[chosen["symbol"]] != SHN_UNDEF
        symbol = symbols.address[chosen["symbol"]].view(np.int64)
        place = chosen["offset"].astype(np.int64)
        for field in fields:
            target = np.where(is_here & (not field.is_table), symbol, kinds.nowhere) + chosen["addend"]
            _insert(code, place + field.offset, target - place - section.address + field.added, field)


def _insert(code: NDArray[np.uint8], at: NDArray[np.int64], distance: NDArray[np.int64], field: _Field) -> None:
    fits = at + 4 <= len(code)
    index = at[fits, None] + np.arange(4)
    word = code[index].view("<u4")[:, 0].astype(np.int64)
    for low, width, shift in field.pieces:
        mask = (1 << width) - 1
        word = word & ~(mask << low) | (distance[fits] >> shift & mask) << low
    code[index] = word.astype("<u4").view(np.uint8).reshape(-1, 4)
