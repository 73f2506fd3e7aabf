"""An address -> the units of .debug_info whose code holds it: by .debug_aranges, else by what the units themselves say
(DWARF 5, 6.1.2)."""

from collections.abc import Iterator
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinst.targets.debuginfo.dwarf.forms import DAMAGE
from kinst.targets.debuginfo.dwarf.ranges import ranges_of
from kinst.targets.debuginfo.dwarf.units import Unit, Units, length_at
from kinst.targets.errors import ImageError

_U64: Final = np.uint64

Row = tuple[int, int, int]  # low, high, offset of the unit


class _Table(NamedTuple):
    low: NDArray[np.uint64]
    high: NDArray[np.uint64]
    unit: NDArray[np.uint64]

    def units_at(self, address: int) -> list[int]:
        """Offsets of the units that hold an address."""
        found = self.unit[(self.low <= _U64(address)) & (_U64(address) < self.high)]
        return list(dict.fromkeys(found.tolist()))


class UnitAddresses:
    """Where the code of units is. Nothing is read until an address is looked up."""

    def __init__(self, units: Units) -> None:
        self._units = units

    def at(self, address: int) -> list[Unit]:
        """The units whose code holds a link address: one, apart from what a linker left of discarded code.

        Units that .debug_aranges lacks (clang writes none by default) are examined once.
        """
        offsets = self._listed.units_at(address) or self._unlisted.units_at(address)
        return [self._by_offset[offset] for offset in offsets if offset in self._by_offset]

    @cached_property
    def _by_offset(self) -> dict[int, Unit]:
        return {unit.offset: unit for unit in self._units.all}

    @cached_property
    def _listed(self) -> _Table:
        data, rows, at = self._units.sections.get("aranges"), list[_Table](), 0
        try:
            while at < len(data):
                table, at = _set(data, at)
                rows.append(table)
        except (*DAMAGE, ImageError):
            pass  # of a damaged section the part before is good
        return (
            _Table(*(np.concatenate([np.zeros(0, _U64), *column]) for column in zip(*rows, strict=True)))
            if rows
            else _table([])
        )

    @cached_property
    def _unlisted(self) -> _Table:
        """The code of units that .debug_aranges lacks: 0.3 ms each."""
        known = set(self._listed.unit.tolist())
        return _table([row for unit in self._units.all if unit.offset not in known for row in self._own(unit)])

    def _own(self, unit: Unit) -> Iterator[Row]:
        try:
            entries = self._units.open(unit)
            found = ranges_of(entries, entries.root)
        except ImageError:  # the others are still of use
            return
        yield from ((low, high, unit.offset) for low, high in found)


def _table(rows: list[Row]) -> _Table:
    columns = np.array(rows, _U64).reshape(-1, 3)
    return _Table(columns[:, 0], columns[:, 1], columns[:, 2])


def _set(data: memoryview, at: int) -> tuple[_Table, int]:
    """length (4; or 0xffffffff and 8) | version 2 (2) | unit (4/8) | address size (1) | segment size (1) | padding to a
    multiple of two addresses | (address, size)*, ended by two zeros"""
    start, length, wide = length_at(data, at)
    end = start + length
    unit = int.from_bytes(data[start + 2 : start + 2 + wide], "little")
    size = data[start + 2 + wide]
    if size not in (4, 8) or data[start + 3 + wide]:
        raise ValueError("no set of addresses that can be read")
    first = at + -(-(start + 4 + wide - at) // (2 * size)) * 2 * size
    words = (
        np.frombuffer(data[first:end], f"<u{size}", max(0, end - first) // (2 * size) * 2).astype(_U64).reshape(-1, 2)
    )
    words = words[words[:, 1] > 0]
    return _Table(words[:, 0], words[:, 0] + words[:, 1], np.full(len(words), unit, _U64)), end
