"""An image's symbols -> where named functions start and end, and by what names.

Compilers say what a function is (FUNC, with a size). Hand-written assembly often does not: its symbols may lack a size,
and a label may be code, data in .text or a place in the middle of a function. Only what is certainly code is taken.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kinst.targets.columns import is_in, unique, unique_rows
from kinst.targets.elf.symbols import (
    SHN_ABS,
    SHN_UNDEF,
    STB_GLOBAL,
    STB_LOCAL,
    STB_WEAK,
    STT_FUNC,
    STT_GNU_IFUNC,
    STT_NOTYPE,
    STT_OBJECT,
    Symbols,
    is_assembler_label,
    mapping_letters,
    marked_data,
)
from kinst.targets.image import Image
from kinst.targets.values import dataclass

_BINDING_RANK = {STB_GLOBAL: 0, STB_LOCAL: 1, STB_WEAK: 2}


@dataclass(frozen=True, slots=True)
class NamedFunctions:
    """Columns in address order, not overlapping. If not `is_sized`, `end` is only the next start, to be trimmed.

    `is_certain`: a FUNC symbol or one with a size; else a label that might name data.
    """

    address: NDArray[np.uint64]
    end: NDArray[np.uint64]
    is_sized: NDArray[np.bool_]
    is_certain: NDArray[np.bool_]
    names: tuple[str, ...]
    aliases: Mapping[int, tuple[str, ...]]

    def take(self, rows: NDArray[np.intp]) -> "NamedFunctions":
        """The functions of some rows."""
        return NamedFunctions(
            self.address[rows],
            self.end[rows],
            self.is_sized[rows],
            self.is_certain[rows],
            tuple(self.names[row] for row in rows.tolist()),
            {at: self.aliases[row] for at, row in enumerate(rows.tolist()) if row in self.aliases},
        )

    def ending(self, end: NDArray[np.uint64]) -> "NamedFunctions":
        """The same functions with other ends."""
        return replace(self, end=end)


def named_functions(image: Image, symbols: Symbols) -> NamedFunctions:
    """The functions that `symbols` name in the code regions of `image`."""
    region, region_end = _regions(image, symbols.address)
    # A symbol between instructions starts no function.
    aligned = symbols.address % np.uint64(image.facts.instruction_alignment) == 0
    defined = (symbols.section != SHN_UNDEF) & (symbols.section != SHN_ABS) & (region >= 0) & aligned
    is_function = defined & np.isin(symbols.kind, (STT_FUNC, STT_GNU_IFUNC))
    is_label = defined & (symbols.kind == STT_NOTYPE) & (mapping_letters(symbols) == 0) & ~is_assembler_label(symbols)
    starts = _starts(symbols, region, is_function, is_label)
    address = unique(symbols.address[starts])
    end, is_sized = _ends(symbols, starts, address, region_end)
    certain = unique(symbols.address[starts & (is_function | (symbols.size > 0))])
    names, aliases = _names(symbols, np.flatnonzero(is_function | is_label), address)
    return NamedFunctions(address, end, is_sized, is_in(address, certain), names, aliases)


def data_in_code(image: Image, symbols: Symbols | None = None) -> NDArray[np.uint64]:
    """(n, 2) address and size of data inside code regions: what symbols call data, and PE headers."""
    named = named_data(image, image.symbols if symbols is None else symbols)
    return unique_rows(np.concatenate([named, _pe_headers(image)]))


def named_data(image: Image, symbols: Symbols) -> NDArray[np.uint64]:
    """(n, 2) address and size of data inside code regions, by mapping symbols ($d) and OBJECT symbols."""
    objects = (symbols.kind == STT_OBJECT) & (symbols.size > 0) & (symbols.section != SHN_UNDEF)
    sized = np.stack([symbols.address[objects], symbols.size[objects]], axis=1)
    spans = np.concatenate([marked_data(symbols), sized])
    region, region_end = _regions(image, spans[:, 0])
    spans[:, 1] = np.minimum(spans[:, 1], region_end - spans[:, 0])
    return unique_rows(spans[region >= 0])


def _pe_headers(image: Image) -> NDArray[np.uint64]:
    """(n, 2) address and size of the headers in which kernels for arm64 and riscv64 hide that they are EFI
    applications; labels in them look like those of code.

        0x3c: offset of "PE\\0\\0" | machine:2 | sections:2 | 12 bytes | optional header's size:2 | characteristics:2
    """
    found = []
    for region in image.code_regions:
        # e_lfanew, at 0x3c of the MZ header, says where the PE header is; kernels put it in the first page.
        start = image.data[region.offset : region.offset + min(region.size, 0x1018)].tobytes()
        at = int.from_bytes(start[0x3C:0x40], "little")
        head = start[at : at + 24]
        if at >= 0x40 and head[:4] == b"PE\0\0" and len(head) == 24:
            sections, optional = int.from_bytes(head[6:8], "little"), int.from_bytes(head[20:22], "little")
            found.append((region.address + at, 24 + optional + 40 * sections))
    return np.array(found, np.uint64).reshape(-1, 2)


def _regions(image: Image, address: NDArray[np.uint64]) -> tuple[NDArray[np.int32], NDArray[np.uint64]]:
    """For each address the code region that holds it (-1: none) and where that ends."""
    index = np.full(len(address), -1, np.int32)
    end = address.copy()
    for number, region in enumerate(image.code_regions):
        inside = address - np.uint64(region.address) < np.uint64(region.size)  # wraps round below the start: not less
        index[inside], end[inside] = number, region.address + region.size
    return index, end


def _starts(
    symbols: Symbols, region: NDArray[np.int32], is_function: NDArray[np.bool_], is_label: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Which symbols start a function.

    A label inside what a sized symbol covers is a place in it. An unsized symbol covers everything up to the next sized
    or global one, so the local labels after it are places in it too.
    """
    sized = (is_function | is_label) & (symbols.size > 0)
    opener = is_function | sized | (is_label & (symbols.binding != STB_LOCAL))
    rows = np.flatnonzero(opener)
    rows = rows[np.lexsort((symbols.size[rows] == 0, symbols.address[rows]))]
    address, size = symbols.address[rows], symbols.size[rows]
    ends = np.maximum.accumulate(address + size) if len(rows) else address

    before = np.searchsorted(address, symbols.address, "left") - 1  # the last opener at a lower address
    known = before >= 0
    before = np.maximum(before, 0)
    if not len(rows):
        return is_label
    inside_sized = known & (symbols.address < ends[before])
    after_unsized = known & (size[before] == 0) & (region[rows[before]] == region)
    # Local labels of assembly are jump targets; a global one is meant to be called.
    is_place = inside_sized | (after_unsized & (symbols.binding == STB_LOCAL))
    starts: NDArray[np.bool_] = is_function | sized | (is_label & ~is_place)
    return starts


def _ends(
    symbols: Symbols, starts: NDArray[np.bool_], address: NDArray[np.uint64], region_end: NDArray[np.uint64]
) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """The end of each distinct start, and whether a size says so.

    Bytes that two sizes cover belong to the later symbol, as in kallsyms, so functions do not overlap.
    """
    rows = np.flatnonzero(starts)
    place = np.searchsorted(address, symbols.address[rows])
    limit = np.zeros(len(address), np.uint64)
    limit[place] = region_end[rows]
    sized_end = np.zeros(len(address), np.uint64)
    np.maximum.at(sized_end, place, symbols.address[rows] + symbols.size[rows])
    is_sized = sized_end > address
    following = np.minimum(np.append(address[1:], np.uint64(2**64 - 1)), limit)
    # A start without a size inside an earlier function's size ends where that does.
    reach = np.maximum.accumulate(sized_end) if len(address) else sized_end
    is_sized |= reach > address
    return np.minimum(np.where(is_sized, reach, following), following), is_sized


def _names(
    symbols: Symbols, rows: NDArray[np.intp], address: NDArray[np.uint64]
) -> tuple[tuple[str, ...], dict[int, tuple[str, ...]]]:
    """The primary name of each start and its other names.

    Of several names the primary is, in this order: a FUNC before a label (linker scripts put labels such as _stext on
    functions), global before local before weak (a weak name may be overridden elsewhere), the one with fewer leading
    underscores (`vfs_read` rather than `__vfs_read`), then the first in alphabetical order, so that it never depends on
    the order of the table.
    """
    rows = rows[is_in(symbols.address[rows], address)]
    place = np.searchsorted(address, symbols.address[rows])
    texts = symbols.names(rows)
    # Backwards, so that the first symbol of an address is kept; addresses with several names are ranked below.
    first = dict(zip(place[::-1].tolist(), texts[::-1], strict=True))
    several = np.bincount(place, minlength=len(address)) > 1
    found: dict[int, list[tuple[tuple[bool, int, int], str]]] = {at: [] for at in np.flatnonzero(several).tolist()}
    chosen = np.flatnonzero(several[place]).tolist()
    is_label, binding = (symbols.kind[rows] == STT_NOTYPE).tolist(), symbols.binding[rows].tolist()
    for index, at in zip(chosen, place[chosen].tolist(), strict=True):
        name = texts[index]
        rank = (is_label[index], _BINDING_RANK.get(binding[index], 3), len(name) - len(name.lstrip("_")))
        found[at].append((rank, name))
    aliases = {}
    for at, candidates in found.items():
        first[at], *others = dict.fromkeys(name for _, name in sorted(candidates))
        if others:
            aliases[at] = tuple(others)
    return tuple(first[at] for at in range(len(address))), aliases
