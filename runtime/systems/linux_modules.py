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

_MODULE: Final = "struct module"
_MOST_SYMBOLS: Final = 1 << 20
_LONGEST: Final = 1 << 12  # bytes of a symbol's name
_NAME: Final = 64  # MODULE_NAME_LEN is less
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
        areas = list(self._areas(address))
        core, init = (tuple(span for span, is_init in areas if is_init is wanted and span) for wanted in (False, True))
        return KernelModule(address, name, self._symbols(address), core, init)

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

    def _areas(self, address: int) -> Iterator[tuple[range, bool]]:
        """The areas of memory, and whether each is freed after the initialisation."""
        kind = self._types.type_named(_MODULE)
        plain = None if kind is None else strip(kind)
        found = plain.find("mem") if isinstance(plain, Aggregate) else None
        array = None if found is None else strip(found.type)
        if found is None or not isinstance(array, Array):
            for area, is_init in _AREAS:
                yield _span(self._number(address, area, "base"), self._number(address, area, "size")), is_init
            return
        base, size = (find_way(self._types, "struct module_memory", (member,)) for member in ("base", "size"))
        first = self._types.enumerator("MOD_INIT_TEXT")
        for number in range(array.length or 0):
            at = address + found.offset + number * (size_of(array.element) or 0)
            span = _span(followed(self._memory, at, base or ()), followed(self._memory, at, size or ()))
            yield span, first is not None and number >= first[1]

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
