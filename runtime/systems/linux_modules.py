"""Linux: struct module in the guest's memory -> the module's name, symbols, and where its code is.

Members are found by BTF or DWARF. Until 6.3 a module has two areas (core_layout, init_layout), since 6.4 one for each
kind of memory (mem[]). While a module is being loaded, its kallsyms are the whole symbol table of its file, with
addresses (add_kallsyms); later only those of its core are left.
"""

from collections.abc import Iterator
from functools import cache
from typing import Final, Protocol

import numpy as np

from kinst.runtime.providers.structures import Way, find_way, followed
from kinst.runtime.trap.faults import Fault, FaultKind
from kinst.targets.c_types import Aggregate, Array, ImageTypes, size_of, strip
from kinst.targets.elf.symbols import SYMBOL, Symbols, symbols_of
from kinst.targets.kernels.kernel_module import KernelModule
from kinst.targets.values import dataclass

_MODULE: Final = "struct module"
_MOST_SYMBOLS: Final = 1 << 20
_LONGEST: Final = 1 << 12  # bytes of a symbol's name
_NAME: Final = 64  # MODULE_NAME_LEN is less
_MOST_SECTIONS: Final = 1 << 16
_LIVE: Final = 0  # MODULE_STATE_LIVE
_AREAS: Final = (("core_layout", False), ("init_layout", True))


class Memory(Protocol):
    """The guest's memory. Raises Fault."""

    def load(self, address: int, size: int) -> int:
        """A little-endian number."""
        ...

    def read(self, address: int, size: int) -> bytes:
        """Bytes."""
        ...

    def string(self, address: int, limit: int) -> bytes:
        """The bytes up to the NUL, without it."""
        ...


@dataclass(frozen=True, slots=True)
class _Area:
    """Some memory of a module."""

    span: range
    text: range  # what of it is code
    is_init: bool  # it is freed after the initialisation


class LinuxModules:
    """Reads them."""

    def __init__(self, memory: Memory, types: ImageTypes) -> None:
        """Nothing is read yet."""
        self._memory, self._types = memory, types
        self._way = cache(lambda *members: find_way(types, _MODULE, members))

    def obstacle(self) -> str:
        """Why modules cannot be read; empty: they can be."""
        if self._way("name") is None:
            return "debug information does not say what struct module is: no BTF, no DWARF"
        if self._way("kallsyms", "symtab") is None:
            return "the kernel keeps no symbols of modules: it was built without CONFIG_KALLSYMS"
        return ""

    def read(self, address: int) -> KernelModule:
        """The module of a struct module. Raises Fault: it is not in memory, or cannot be one."""
        name = self._memory.string(address + self._offset("name"), _NAME).decode(errors="replace")
        areas = [one for one in self._areas(address) if one.span]
        core, init = (tuple(one.span for one in areas if one.is_init is wanted) for wanted in (False, True))
        text = tuple(one.text for one in areas if one.text)
        return KernelModule(address, name, self._symbols(address), core, init, text)

    def sections(self, address: int) -> list[str]:
        """The names of its sections; empty if the kernel does not keep them, or in a way that is not known."""
        table, count = self._number(address, "sect_attrs"), self._number(address, "sect_attrs", "nsections")
        first, each = (self._types.type_named(f"struct module_sect_attr{end}") for end in ("s", ""))
        plain = None if first is None else strip(first)
        rows = plain.find("attrs") if isinstance(plain, Aggregate) else None
        way = find_way(self._types, "struct module_sect_attr", ("battr", "attr", "name"))
        size = None if each is None else size_of(each)
        if not table or rows is None or way is None or not size or count > _MOST_SECTIONS:
            return []
        names = (followed(self._memory, table + rows.offset + number * size, way) for number in range(count))
        return [self._memory.string(at, _LONGEST).decode(errors="replace") for at in names if at]

    def is_live(self, address: int) -> bool:
        """Whether it is initialised: the memory for that is freed, or will be."""
        return self._number(address, "state") == _LIVE

    def _offset(self, member: str) -> int:
        way = self._way(member)
        if way is None:
            raise Fault(FaultKind.BADADDR, 0, f"struct module has no member {member}")
        return way[-1][0]

    def _number(self, address: int, *members: str) -> int:
        way: Way | None = self._way(*members)
        return followed(self._memory, address, way) if way else 0

    def _areas(self, address: int) -> "Iterator[_Area]":
        kind = self._types.type_named(_MODULE)
        plain = None if kind is None else strip(kind)
        found = plain.find("mem") if isinstance(plain, Aggregate) else None
        array = None if found is None else strip(found.type)
        if found is None or not isinstance(array, Array):
            for name, is_init in _AREAS:
                base, size, code = (self._number(address, name, member) for member in ("base", "size", "text_size"))
                yield _Area(_span(base, size), _span(base, min(code, size)), is_init)
            return
        ways = [find_way(self._types, "struct module_memory", (member,)) or () for member in ("base", "size")]
        first, text = self._number_of("MOD_INIT_TEXT"), self._number_of("MOD_TEXT")
        for number in range(array.length or 0):
            at = address + found.offset + number * (size_of(array.element) or 0)
            span = _span(*(followed(self._memory, at, way) for way in ways))
            yield _Area(span, span if number in (first, text) else range(0), number >= first)

    def _number_of(self, name: str) -> int:
        """The value of an enumerator; of one that there is not, a large number."""
        found = self._types.enumerator(name)
        return _MOST_SYMBOLS if found is None else found[1]

    def _symbols(self, address: int) -> Symbols:
        table, count, strings = (
            self._number(address, "kallsyms", member) for member in ("symtab", "num_symtab", "strtab")
        )
        if count > _MOST_SYMBOLS:
            raise Fault(FaultKind.BADADDR, table, f"a module with {count:,} symbols")
        rows = np.frombuffer(self._memory.read(table, count * SYMBOL.itemsize), SYMBOL)
        last = int(rows["name"].max(initial=0))
        text = self._memory.read(strings, last) + self._memory.string(strings + last, _LONGEST) + b"\0"
        return symbols_of(rows, text)


def _span(base: int, size: int) -> range:
    return range(base, base + size) if base else range(0)
