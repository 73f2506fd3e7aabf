"""Addresses -> the ELF function that holds each.

Parts of a function that the compiler moved away, such as f.cold, are functions of their own: they have a symbol.
"""

import numpy as np
from numpy.typing import NDArray

from kinst.targets.elf.symbols import (
    SHN_ABS,
    SHN_UNDEF,
    STB_GLOBAL,
    STB_LOCAL,
    STB_WEAK,
    STT_FUNC,
    STT_GNU_IFUNC,
    Symbols,
)

_RANK = {STB_GLOBAL: 0, STB_LOCAL: 1, STB_WEAK: 2}


class Callers:
    """The functions of a symbol table, by address."""

    def __init__(self, symbols: Symbols) -> None:
        """Collect what the symbols say are functions, sorted by address."""
        rows = np.flatnonzero(
            np.isin(symbols.kind, (STT_FUNC, STT_GNU_IFUNC))
            & (symbols.section != SHN_UNDEF)
            & (symbols.section != SHN_ABS)
        )
        self._symbols = symbols
        self._rows = rows[np.argsort(symbols.address[rows], kind="stable")]
        self._address: NDArray[np.uint64] = symbols.address[self._rows]
        self._names: dict[int, str] = {}

    def at(self, address: int) -> tuple[str, int]:
        """Name and start of the function that holds an address; "" and 0 if none does.

        Of several names the one that `kinst.targets.functions.named_functions` makes the primary one: global before
        local before weak, fewer leading underscores, alphabet.
        """
        last = int(np.searchsorted(self._address, np.uint64(address), "right")) - 1
        if last < 0:
            return "", 0
        start = int(self._address[last])
        first = int(np.searchsorted(self._address, np.uint64(start), "left"))
        size = int(self._symbols.size[self._rows[first : last + 1]].max())
        # A symbol without a size, as assembly has them, goes up to the next.
        return (self._name(first, last + 1), start) if not size or address - start < size else ("", 0)

    def _name(self, first: int, last: int) -> str:
        found = self._names.get(first)
        if found is None:
            rows = self._rows[first:last]
            ranks = [_RANK.get(binding, 3) for binding in self._symbols.binding[rows].tolist()]
            names = self._symbols.names(rows)
            best = min((rank, len(name) - len(name.lstrip("_")), name) for rank, name in zip(ranks, names, strict=True))
            found = self._names[first] = best[2]
        return found
