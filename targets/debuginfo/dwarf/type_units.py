"""Types in units of their own (-fdebug-types-section): the 64-bit signature by which others refer to one -> its entry.

DWARF 5 has such units in .debug_info; DWARF 4 in .debug_types, with the signature after an old header (7.5.1.2 there).
"""

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Final

from kinst.targets.debuginfo.dwarf.forms import DAMAGE
from kinst.targets.debuginfo.dwarf.sections import DebugSections
from kinst.targets.debuginfo.dwarf.units import Entry, Unit, UnitEntries, Units
from kinst.targets.errors import ImageError

DAMAGED: Final = (*DAMAGE, ImageError, RecursionError)
"""What reading damaged debug information raises."""

_TYPE: Final = 2  # DW_UT_type


class SignedTypes:
    """The types of one image that have a signature. Headers are read when the first type is looked up."""

    def __init__(self, units: Units) -> None:
        """`units`: those of .debug_info."""
        self._units = units

    def find(self, signature: int) -> tuple[UnitEntries, Entry]:
        """The entry of a type.

        Raises:
            ImageError: there is none.
        """
        found = self._known.get(signature)
        if found is None:
            raise ImageError(f"no type has the signature {signature:#x}")
        units, unit = found
        entries = units.open(unit)
        size = unit.sizes.offset
        start = unit.first - unit.offset
        return entries, entries.entry(unit.offset + int.from_bytes(entries.data[start - size : start], "little"))

    @cached_property
    def old(self) -> tuple[Units, ...]:
        """The units of .debug_types, if there is one."""
        sections = self._units.sections
        try:
            return (_old_type_units(sections),) if len(sections.get("types")) else ()
        except DAMAGED:
            return ()

    @cached_property
    def _known(self) -> dict[int, tuple[Units, Unit]]:
        found = [(self._units, unit) for unit in self._units.all if unit.kind == _TYPE]
        found += [(old, unit) for old in self.old for unit in old.all]
        return {_signature(units, unit): (units, unit) for units, unit in found}


def _signature(units: Units, unit: Unit) -> int:
    """signature (8) | offset of the type in the unit (4/8) | first entry"""
    end = unit.first - unit.sizes.offset
    return int.from_bytes(units.info[end - 8 : end], "little")


def _old_type_units(sections: DebugSections) -> Units:
    return Units(_OldTypeSections(sections), lambda unit: replace(unit, first=unit.first + 8 + unit.sizes.offset))


class _OldTypeSections(DebugSections):
    """.debug_types in the place of .debug_info."""

    def __init__(self, sections: DebugSections) -> None:
        self._sections = sections

    @property
    def path(self) -> Path:
        return self._sections.path

    def get(self, name: str) -> memoryview:
        return self._sections.get("types" if name == "info" else name)
