"""Names by index (DW_FORM_strx*, as clang writes them in DWARF 5) -> the units that have them, and where in those.

An index shows nothing of the name, so the whole top level is read of each unit that has the name's offset in its part
of .debug_str_offsets.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from kinst.targets.debuginfo.dwarf.byte_search import places_of
from kinst.targets.debuginfo.dwarf.entries import ATTRIBUTES
from kinst.targets.debuginfo.dwarf.top_level import top_level
from kinst.targets.debuginfo.dwarf.type_units import DAMAGED
from kinst.targets.debuginfo.dwarf.unit_places import StringOffsets, ignored
from kinst.targets.debuginfo.dwarf.units import Entry, Unit, UnitEntries, Units

_NAME: Final = ATTRIBUTES["name"]
_ENUMERATION: Final = 0x04  # DW_TAG_enumeration_type

_Names = dict[bytes, list[int]]


class IndexedNames:
    """The names that one .debug_info gives by index; none without .debug_str_offsets."""

    def __init__(self, units: Units) -> None:
        """Nothing is read yet."""
        self._units, self._offsets = units, StringOffsets(units)
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
        try:
            strings = places_of(self._units.sections.get("str"), [text + b"\0"])
            return sorted(set(self._offsets.units_with(strings, ignored)), key=lambda unit: unit.offset)
        except DAMAGED:
            return []

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


def _add(names: _Names, entries: UnitEntries, entry: Entry, at: int) -> None:
    text = entries.text(entry, _NAME)
    if text is not None:
        names.setdefault(text, []).append(at)
