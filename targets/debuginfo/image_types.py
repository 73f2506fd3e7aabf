"""An image -> what it says about its types, enumerators, variables and functions, by name."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.c_types import CType, EnumType, Function, ImageTypes, Symbol, is_complete
from kinst.targets.debuginfo.ctf.section import SECTIONS as CTF_SECTIONS
from kinst.targets.debuginfo.debugfile import find_debug
from kinst.targets.debuginfo.dwarf.sections import DebugSections
from kinst.targets.debuginfo.file_types import FileTypes
from kinst.targets.elf.file import ElfLike, open_elf
from kinst.targets.elf.symbols import (
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
)
from kinst.targets.errors import ImageError
from kinst.targets.image import Image

if TYPE_CHECKING:
    from kinst.targets.debuginfo.ctf.types import CtfTypes, ParentOf

_RANK: Final = {STB_GLOBAL: 0, STB_WEAK: 1, STB_LOCAL: 2}
_KEYWORDS: Final = ("struct", "union", "enum")
_KINDS: Final = (STT_FUNC, STT_GNU_IFUNC, STT_OBJECT, STT_NOTYPE)


def image_types(
    image: Image, *, debug_file: Path | None = None, modules: Mapping[str, Path | ElfLike] = MappingProxyType({})
) -> ImageTypes:
    """The types and symbols of an image. No debug information is read until a name is looked up; answers are kept.

    Of several types of one name the image's own counts, then that of the first module that has it; NAME`type is that of
    one module. In one file the first complete definition in the order of its debug information counts.

    Args:
        image: the image.
        debug_file: its debug information and more symbols; else in the image, or where its build-id or .gnu_debuglink
            says.
        modules: files of kernel modules, also opened ones, by the names that programs use for them, of which only the
            types matter.

    Raises:
        ImageError: the debug file or a module cannot be read, or was not made for the image.
    """
    debug, why_none = _debug(image, debug_file)
    elf: ElfLike = image
    if debug_file is not None and not any(section.name in (".BTF", *CTF_SECTIONS) for section in image.sections):
        elf = open_elf(debug_file)
    others: dict[str, FileTypes] = {}
    kernel = FileTypes(elf, image.module, debug, parent_of=_parents(others))
    others |= {name: _module_types(name, file, kernel, others) for name, file in modules.items()}
    symbols = image.symbols if debug_file is None else image.symbols.joined(debug.symbols)
    return _ImageTypes(image.module, symbols, kernel, others, lambda: why_none or _why_split(debug))


def _debug(image: Image, debug_file: Path | None) -> tuple[DebugSections, str]:
    """A file that the user names must be right; otherwise an image may have no debug information, or none of use: then
    why."""
    if debug_file is not None:
        return find_debug(image, debug_file), ""
    try:
        return find_debug(image), ""
    except ImageError as error:
        return DebugSections(image), str(error)


def _why_split(debug: DebugSections) -> str:
    from kinst.targets.debuginfo.dwarf.units import Units

    try:
        Units(debug).check_split()
    except ImageError as error:
        return str(error)
    return ""


def _module_types(name: str, file: Path | ElfLike, kernel: FileTypes, others: Mapping[str, FileTypes]) -> FileTypes:
    elf = open_elf(file) if isinstance(file, Path) else file
    return FileTypes(elf, name, DebugSections(elf), lambda: kernel.btf, _parents(others, kernel))


def _parents(others: Mapping[str, FileTypes], kernel: FileTypes | None = None) -> "ParentOf":
    """Whose CTF is continued, by the name in it: a module's (illumos' unix is a child of genunix), or the kernel's."""

    def parent_of(name: str) -> "CtfTypes | None":
        found = others.get(name)
        if found is None and kernel is not None and name in ("kernel", kernel.module):
            found = kernel
        return None if found is None else found.ctf

    return parent_of


class _ImageTypes:
    """`ImageTypes` of an image and of the modules that it was given with, in that order."""

    def __init__(
        self,
        module: str,
        symbols: Symbols,
        kernel: FileTypes,
        modules: Mapping[str, FileTypes],
        why_no_dwarf: Callable[[], str],
    ) -> None:
        self._why_no_dwarf = why_no_dwarf
        self._module = module
        self._table = symbols
        self._kernel = kernel
        # What D can write without quotes, and what kernels are called, whatever the file's name.
        self._own = {"", module, module.replace("-", "_"), "kernel"} - modules.keys()
        self._files = {module: kernel, **modules}
        self._types: dict[tuple[str, str], CType | None] = {}
        self._enumerators: dict[str, tuple[EnumType, int] | None] = {}
        self._symbols: dict[str, Symbol | None] = {}
        self._functions: dict[str, Function | None] = {}

    def type_named(self, name: str, module: str = "") -> CType | None:
        """A typedef or base type, "struct x", "union x" or "enum x"."""
        key = " ".join(name.split()), module
        if key not in self._types:
            found = (file.type_named(key[0]) for file in self._files_of(module))
            self._types[key] = _best(found)
        return self._types[key]

    def enumerator(self, name: str) -> tuple[EnumType, int] | None:
        """An enumeration constant and its type."""
        if name not in self._enumerators:
            found = (file.enumerator(name) for file in self._files.values())
            self._enumerators[name] = next((one for one in found if one is not None), None)
        return self._enumerators[name]

    def symbol(self, name: str, module: str = "") -> Symbol | None:
        """A variable or function; of several the first global one, else the first."""
        if module not in self._own:
            return None
        if name not in self._symbols:
            self._symbols[name] = self._symbol(name)
        return self._symbols[name]

    def function(self, name: str, module: str = "") -> Function | None:
        """The prototype of a function."""
        if module not in self._own:
            return self._files[module].function(name, None) if module in self._files else None
        if name not in self._functions:
            row = self._row(name)
            self._functions[name] = self._kernel.function(name, None if row is None else int(self._table.address[row]))
        return self._functions[name]

    def symbols(self) -> Iterator[Symbol]:
        """All symbols, without types."""
        rows = np.flatnonzero(self._is_named)
        table = self._table
        columns = zip(table.names(rows), table.address[rows].tolist(), table.size[rows].tolist(), strict=True)
        for name, address, size in columns:
            yield Symbol(name, self._module, address, size)

    def obstacle(self) -> str:
        """Of the image's own files; its .BTF, which is asked first, before its DWARF."""
        asked = (kind for (name, _), kind in self._types.items() if name.partition(" ")[0] in _KEYWORDS)
        if all(kind is not None and is_complete(kind) for kind in asked) or self._kernel.btf is not None:
            return self._kernel.why_untyped
        damage = self._kernel.damage
        if damage is not None:
            return str(damage)
        return self._kernel.why_untyped if self._kernel.ctf is not None else self._why_no_dwarf()

    def sources(self) -> Iterator[str]:
        """A line for each file that has types; for an image that has none, what it lacks."""
        for file in self._files.values():
            if source := file.source():
                yield f"types of {file.module}: {source}"
            elif file is self._kernel:
                yield f"types of {file.module}: none: {file.elf.path.name} has no .BTF, DWARF or CTF"

    def _files_of(self, module: str) -> list[FileTypes]:
        if not module:
            return list(self._files.values())
        if module in self._own:
            return [self._kernel]
        return [self._files[module]] if module in self._files else []

    def _symbol(self, name: str) -> Symbol | None:
        row = self._row(name)
        if row is None:
            return None
        address, size = int(self._table.address[row]), int(self._table.size[row])
        return Symbol(name, self._module, address, size, self._kernel.variable(name, address))

    def _row(self, name: str) -> int | None:
        table = self._table
        rows = table.rows_named(name)
        found: list[int] = rows[self._is_named[rows]].tolist()
        return min(found, key=lambda row: _RANK.get(int(table.binding[row]), 3), default=None)

    @cached_property
    def _is_named(self) -> NDArray[np.bool_]:
        """Symbols that name something: no sections, files, mapping symbols or assembler labels."""
        table = self._table
        is_named: NDArray[np.bool_] = np.isin(table.kind, _KINDS) & (table.section != SHN_UNDEF)
        is_named &= (mapping_letters(table) == 0) & ~is_assembler_label(table)
        return is_named


def _best(found: Iterable[CType | None]) -> CType | None:
    """The first complete type; else the first."""
    incomplete: CType | None = None
    for kind in found:
        if kind is not None and is_complete(kind):
            return kind
        incomplete = incomplete or kind
    return incomplete
