"""An image -> what it tells about its types, enumerators, variables and functions, by name."""

from collections.abc import Iterator
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.c_types import CType, EnumType, Function, ImageTypes, Symbol
from kinst.targets.debuginfo.btf import BtfTypes, btf_types
from kinst.targets.debuginfo.debug_sections import DebugSections
from kinst.targets.debuginfo.dwarf_types import DwarfTypes
from kinst.targets.debuginfo.entry_search import DebugInfo
from kinst.targets.image import Image
from kinst.targets.symbols import (
    SHN_UNDEF,
    STB_GLOBAL,
    STB_LOCAL,
    STB_WEAK,
    STT_FUNC,
    STT_GNU_IFUNC,
    STT_NOTYPE,
    STT_OBJECT,
    is_assembler_label,
    mapping_letters,
)

_RANK: Final = {STB_GLOBAL: 0, STB_WEAK: 1, STB_LOCAL: 2}
_KINDS: Final = (STT_FUNC, STT_GNU_IFUNC, STT_OBJECT, STT_NOTYPE)


def image_types(image: Image) -> ImageTypes:
    """The types and symbols of an image. Nothing is read until a name is asked for; answers are kept."""
    return _ImageTypes(image)


class _ImageTypes:
    """See `kinst.targets.c_types.ImageTypes`."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self._dwarf = DwarfTypes(DebugInfo(DebugSections(image)), image.module, self._compact_type)
        self._types: dict[str, CType | None] = {}
        self._enumerators: dict[str, tuple[EnumType, int] | None] = {}
        self._symbols: dict[str, Symbol | None] = {}
        self._functions: dict[str, Function | None] = {}

    def type_named(self, name: str, module: str = "") -> CType | None:
        """A typedef or base type, "struct x", "union x" or "enum x"."""
        if module not in ("", self._image.module):
            return None
        name = " ".join(name.split())
        if name not in self._types:
            self._types[name] = (self._btf or self._dwarf).type_named(name)
        return self._types[name]

    def enumerator(self, name: str) -> tuple[EnumType, int] | None:
        """An enumeration constant and its type."""
        if name not in self._enumerators:
            self._enumerators[name] = (self._btf or self._dwarf).enumerator(name)
        return self._enumerators[name]

    def symbol(self, name: str, module: str = "") -> Symbol | None:
        """A variable or function; of several the first global one, then the first."""
        if module not in ("", self._image.module):
            return None
        if name not in self._symbols:
            self._symbols[name] = self._symbol(name)
        return self._symbols[name]

    def function(self, name: str, module: str = "") -> Function | None:
        """The prototype of a function."""
        if module not in ("", self._image.module):
            return None
        if name not in self._functions:
            self._functions[name] = self._function(name)
        return self._functions[name]

    def symbols(self) -> Iterator[Symbol]:
        """All symbols, without types."""
        rows = np.flatnonzero(self._is_named)
        table = self._image.symbols
        columns = zip(table.names(rows), table.address[rows].tolist(), table.size[rows].tolist(), strict=True)
        for name, address, size in columns:
            yield Symbol(name, self._image.module, address, size)

    @cached_property
    def _btf(self) -> BtfTypes | None:
        """Kernels have every type in it, so DWARF is not asked for one; of variables it has but few."""
        return btf_types(self._image)

    def _compact_type(self, name: str) -> CType | None:
        return None if self._btf is None else self._btf.type_named(name)

    def _function(self, name: str) -> Function | None:
        if self._btf is not None:
            return self._btf.function(name)
        row = self._row(name)
        return self._dwarf.function(name, None if row is None else int(self._image.symbols.address[row]))

    def _type_of(self, name: str, address: int) -> CType | None:
        compact = None if self._btf is None else self._btf.variable(name)
        return self._dwarf.variable(name, address) if compact is None else compact

    def _symbol(self, name: str) -> Symbol | None:
        row = self._row(name)
        if row is None:
            return None
        address, size = int(self._image.symbols.address[row]), int(self._image.symbols.size[row])
        return Symbol(name, self._image.module, address, size, self._type_of(name, address))

    def _row(self, name: str) -> int | None:
        table = self._image.symbols
        rows = table.rows_named(name)
        found: list[int] = rows[self._is_named[rows]].tolist()
        return min(found, key=lambda row: _RANK.get(int(table.binding[row]), 3), default=None)

    @cached_property
    def _is_named(self) -> NDArray[np.bool_]:
        """Symbols that name something: not sections, files, mapping symbols or what only the assembler meant."""
        table = self._image.symbols
        is_named: NDArray[np.bool_] = np.isin(table.kind, _KINDS) & (table.section != SHN_UNDEF)
        is_named &= (mapping_letters(table) == 0) & ~is_assembler_label(table)
        return is_named
