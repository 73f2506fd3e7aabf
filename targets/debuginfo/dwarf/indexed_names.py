"""Names by index (DW_FORM_strx*, as clang writes them in DWARF 5) -> the units that have them, and where in those.

An index shows nothing of the name, so the whole top level is read of each unit that has the name's offset in its part
of .debug_str_offsets.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from typing import Final

from kinst.targets.debuginfo.dwarf.byte_search import places_of, places_of_words
from kinst.targets.debuginfo.dwarf.entries import ATTRIBUTES
from kinst.targets.debuginfo.dwarf.top_level import top_level
from kinst.targets.debuginfo.dwarf.type_units import DAMAGED
from kinst.targets.debuginfo.dwarf.units import Entry, Unit, UnitEntries, Units

_NAME: Final = ATTRIBUTES["name"]
_ENUMERATION: Final = 0x04  # DW_TAG_enumeration_type

_Names = dict[bytes, list[int]]


class IndexedNames:
    """The names that one .debug_info gives by index; none without .debug_str_offsets."""

    def __init__(self, units: Units) -> None:
        """Nothing is read yet."""
        self._units = units
        self._known: dict[Unit, tuple[_Names, _Names]] = {}

    def named(self, name: str) -> Iterator[tuple[UnitEntries, int]]:
        """Units and the offsets in them of top-level entries of that name."""
        return self._search(name, 0)

    def enumerations_with(self, name: str) -> Iterator[tuple[UnitEntries, int]]:
        """The same for enumerations that have an enumerator of that name."""
        return self._search(name, 1)

    def _search(self, name: str, which: int) -> Iterator[tuple[UnitEntries, int]]:
        text = name.encode(errors="surrogateescape")
        for unit in self._units_with(text):
            for at in self._names(unit)[which].get(text, ()):
                yield self._units.open(unit), at

    def _units_with(self, text: bytes) -> list[Unit]:
        table, found = self._content("str_offsets"), list[Unit]()
        places = places_of(self._content("str"), [text + b"\0"]) if len(table) else []
        if not places or not self._bases:
            return []
        starts = [base for base, _ in self._bases]
        for place in places_of_words(table, places):
            row = bisect_right(starts, place) - 1
            if row >= 0:
                found += [unit for _, unit in self._bases[bisect_left(starts, starts[row]) : row + 1]]
        return sorted(set(found), key=lambda unit: unit.offset)

    @cached_property
    def _bases(self) -> list[tuple[int, Unit]]:
        """Where each unit's part of .debug_str_offsets begins, ascending."""
        found = []
        for unit in self._units.all:
            try:
                found.append((self._units.open(unit).string_offsets, unit))
            except DAMAGED:
                continue
        return sorted(found, key=lambda one: (one[0], one[1].offset))

    def _names(self, unit: Unit) -> tuple[_Names, _Names]:
        """Names of a unit's top-level entries, and of the enumerators in them."""
        found = self._known.get(unit)
        if found is None:
            found = self._known[unit] = {}, {}
            with suppress(*DAMAGED):  # as far as it can be read
                self._read(self._units.open(unit), *found)
        return found

    def _read(self, entries: UnitEntries, names: _Names, enumerators: _Names) -> None:
        for at, plan in top_level(entries):
            if any(attribute == _NAME for attribute, _, _ in plan[3].attributes):
                entry = entries.entry(entries.unit.offset + at)
                _add(names, entries, entry, at)
                if entry.declaration.tag == _ENUMERATION:
                    for child in entries.children(entry):
                        _add(enumerators, entries, child, at)

    def _content(self, section: str) -> memoryview:
        try:
            return self._units.sections.get(section)
        except DAMAGED:
            return memoryview(b"")


def _add(names: _Names, entries: UnitEntries, entry: Entry, at: int) -> None:
    text = entries.text(entry, _NAME)
    if text is not None:
        names.setdefault(text, []).append(at)
