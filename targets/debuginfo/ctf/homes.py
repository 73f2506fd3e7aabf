"""Which file a symbol is of, where CTF has types of a file's own: local symbols follow the symbol of their file."""

from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from pathlib import PurePosixPath

import numpy as np
from numpy.typing import NDArray

from kinst.targets.debuginfo.ctf.symbols import Described, What
from kinst.targets.elf.symbols import SHN_UNDEF, STB_LOCAL, STT_FILE, Symbols
from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True)
class Home:
    """Where the types of a symbol are.

    `unit` is what the dictionary of its file says; `is_shared` is whether its file has none, so that all its types are
    shared. Of a global symbol, or if files have the same name, neither is known; `is_only` is whether no other symbol
    has its name.
    """

    unit: Described | None = None
    is_shared: bool = False
    is_only: bool = False


class Homes:
    """The files of the symbols of a table."""

    def __init__(self, table: Symbols, units: Mapping[str, Described]) -> None:
        """`units` are by the paths of their files; the table has no folders."""
        self._table = table
        self._units: dict[str, list[Described]] = {}
        for path, unit in units.items():
            self._units.setdefault(PurePosixPath(path).name, []).append(unit)

    def of(self, what: What, name: str, address: int) -> Home:
        """Of the symbol of that kind and name at an address."""
        table = self._table
        rows = table.rows_named(name)
        rows = rows[(table.kind[rows] == what.value) & (table.section[rows] != SHN_UNDEF)]
        is_only = len(set(table.address[rows].tolist())) <= 1
        here = rows[table.address[rows] == np.uint64(address)]
        if not len(here) or table.binding[here[0]] != STB_LOCAL:
            return Home(is_only=is_only)
        file = self._file(int(here[0]))
        units = self._units.get(file, [])
        if not file or self._count[file] > 1 or len(units) > 1:
            return Home(is_only=is_only)
        return Home(units[0] if units else None, not units, is_only)

    def _file(self, row: int) -> str:
        """The name of the last file before a symbol."""
        place = int(np.searchsorted(self._rows, row)) - 1
        return self._names[place] if place >= 0 else ""

    @cached_property
    def _rows(self) -> NDArray[np.intp]:
        return np.flatnonzero(self._table.kind == STT_FILE)

    @cached_property
    def _names(self) -> list[str]:
        return self._table.names(self._rows)

    @cached_property
    def _count(self) -> Counter[str]:
        return Counter(self._names)
