""".debug_info -> its units, and entries of a unit (DWARF 5, 7.5.1; 2 to 4 alike but for the header)."""

import struct
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.debuginfo.dwarf.abbreviations import Abbreviations, Declaration, Plans, key_of
from kinst.targets.debuginfo.dwarf.byte_search import Mapped
from kinst.targets.debuginfo.dwarf.forms import (
    ADDRESS_INDEXES,
    DAMAGE,
    ELSEWHERE,
    STRING_INDEXES,
    UNIT_REFERENCES,
    Sizes,
    read_form,
)
from kinst.targets.debuginfo.dwarf.numbers import At, Form, UnitKind
from kinst.targets.debuginfo.dwarf.sections import DebugSections
from kinst.targets.errors import ImageError
from kinst.targets.leb128 import leb
from kinst.targets.values import dataclass
from kinst.targets.visible import text_of

_OF_TYPES: Final = (UnitKind.TYPE, UnitKind.SPLIT_TYPE)
_SIGNED: Final = (*_OF_TYPES, UnitKind.SKELETON, UnitKind.SPLIT_COMPILE)
_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")
_LONG: Final = 0xFFFFFFFF  # a length that means: 64-bit DWARF, the length follows
_STRETCH: Final = 1 << 24
_MASK64: Final = (1 << 64) - 1


class UnitError(ImageError):
    """A unit is damaged: the message names file and unit."""


@dataclass(frozen=True, slots=True)
class Unit:
    """The header of a unit. Offsets are into .debug_info; `first` is that of its first entry."""

    offset: int
    end: int
    first: int
    kind: int  # UnitKind, or one that we do not know
    sizes: Sizes
    abbreviations: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A debugging information entry. `offset` and `end` (after its values) are into .debug_info; of each attribute the
    form and the content: an offset into .debug_info if it is a reference."""

    offset: int
    end: int
    declaration: Declaration
    values: dict[int, tuple[int, int | bytes]]

    def number(self, attribute: int) -> int | None:
        """A constant, an offset or a reference; None without the attribute, or if it is a block."""
        found = self.values.get(attribute)
        return found[1] if found is not None and isinstance(found[1], int) else None

    def block(self, attribute: int) -> bytes | None:
        """The bytes of an expression or block."""
        found = self.values.get(attribute)
        return found[1] if found is not None and isinstance(found[1], bytes) else None


class Units:
    """All units of .debug_info, whose headers are read at once."""

    def __init__(self, sections: DebugSections, read: Callable[[Unit], Unit] | None = None) -> None:
        """Read the headers: a few microseconds a unit. `read` reads on where headers are longer.

        A unit whose header makes no sense is left out, with all after it if its length makes none either; `damage`
        then says what is wrong with the first.
        """
        self.sections = sections
        self.info = sections.get("info")
        self.damage: ImageError | None = None
        headers = self._headers()
        self.all = headers if read is None else [read(unit) for unit in headers]
        self.offsets: NDArray[np.int64] = np.array([unit.offset for unit in self.all], np.int64)
        self._opened: tuple[Unit, UnitEntries] | None = None

    def at(self, offset: int) -> Unit:
        """The unit that holds an offset.

        Raises:
            ImageError: there is none: the headers before it are damaged.
        """
        row = int(np.searchsorted(self.offsets, offset, "right")) - 1
        if row < 0 or offset >= self.all[row].end:
            raise self.damage or ImageError(f"{self.sections.path}: no unit of .debug_info holds {offset:#x}")
        return self.all[row]

    def open(self, unit: Unit) -> "UnitEntries":
        """Open a unit.

        Raises:
            ImageError: its abbreviations are damaged.
        """
        if self._opened is None or self._opened[0] is not unit:
            self._opened = unit, UnitEntries(self, unit)
        return self._opened[1]

    def entry(self, offset: int) -> tuple["UnitEntries", Entry]:
        """The entry that a reference means.

        Raises:
            ImageError: there is none.
        """
        entries = self.open(self.at(offset))
        return entries, entries.entry(offset)

    def check_split(self) -> None:
        """Refuse split DWARF, where units only name the file that they are in.

        Raises:
            ImageError: with the file of the first one.
        """
        for unit in self.all:
            # GNU's split DWARF 4 shows only in the unit's entry; it needs .debug_addr, which nothing else then does.
            if unit.kind == UnitKind.SKELETON or (unit.sizes.version == 4 and len(self.sections.get("addr"))):
                entries = self.open(unit)
                name = entries.text(entries.root, At.DWO_NAME) or entries.text(entries.root, At.GNU_DWO_NAME)
                if name is not None:
                    raise ImageError(
                        f"{self.sections.path}: split DWARF is not supported: the debug information of the unit at "
                        f"{unit.offset:#x} is in {text_of(name)}: build without -gsplit-dwarf"
                    )

    @cached_property
    def abbreviations(self) -> Abbreviations:
        """What .debug_abbrev declares, read a table at a time."""
        return Abbreviations(bytes(self.sections.get("abbrev")))

    @cached_property
    def table_ends(self) -> dict[int, int]:
        """Where the table of abbreviations after each one begins."""
        starts = sorted({unit.abbreviations for unit in self.all})
        return dict(zip(starts, [*starts[1:], len(self.sections.get("abbrev"))], strict=True))

    def _headers(self) -> list[Unit]:
        """The kernel reads ahead around each page: together those pages would be most of the section."""
        found, at, kept, mapped = list[Unit](), 0, 0, Mapped(self.info)
        while at < len(self.info):
            if at - kept > _STRETCH:
                mapped.stretch(kept, at)
                kept = at
            try:
                found.append(_header(self.info, at))
            except (*DAMAGE, ImageError) as error:
                why = str(error) if isinstance(error, ImageError) else "its header is cut"
                self.damage = self.damage or UnitError(f"{self.sections.path}: .debug_info: the unit at {at:#x}: {why}")
                at = _following(self.info, at)
            else:
                at = found[-1].end
        mapped.stretch(kept, len(self.info))
        return found


def _following(info: memoryview, at: int) -> int:
    """Where the unit after one with a damaged header begins, if its length makes sense; else the end of the
    section."""
    try:
        start, length, _ = length_at(info, at)
    except (*DAMAGE, ImageError):
        return len(info)
    return start + length


def length_at(info: memoryview, at: int) -> tuple[int, int, int]:
    """Where what a length counts begins, the length, and the size of offsets.

    Raises:
        ImageError: it is reserved, or goes beyond the section.
    """
    (length,) = _U32.unpack_from(info, at)
    start, wide = at + 4, 4
    if length == _LONG:
        (length,) = _U64.unpack_from(info, start)
        start, wide = at + 12, 8
    elif length >= 0xFFFFFFF0:
        raise ImageError(f"its length {length:#x} is reserved")
    if start + length > len(info):
        raise ImageError(f"its length {length:#x} goes beyond the end of the section: the file is cut")
    return start, length, wide


def _header(info: memoryview, at: int) -> Unit:
    """length (4; or 0xffffffff and 8) | version (2) |

    DWARF 2 to 4: abbreviations (4/8) | address size (1)
    DWARF 5: unit type (1) | address size (1) | abbreviations (4/8) | by type: signature (8), offset of the type (4/8)
    """
    start, length, wide = length_at(info, at)
    version, kind, address = *struct.unpack_from("<H", info, start), int(UnitKind.COMPILE), 0
    if not 2 <= version <= 5:
        raise ImageError(f"DWARF version {version} is not known; 2 to 5 are read")
    field = _U64 if wide == 8 else _U32
    if version < 5:
        (table,) = field.unpack_from(info, start + 2)
        address, first = info[start + 2 + wide], start + 3 + wide
    else:
        kind, address = info[start + 2], info[start + 3]
        (table,) = field.unpack_from(info, start + 4)
        first = start + 4 + wide
        first += 8 * (kind in _SIGNED) + wide * (kind in _OF_TYPES)
    if address not in (1, 2, 4, 8):
        raise ImageError(f"addresses of {address} bytes")
    return Unit(at, start + length, first, kind, Sizes(version, address, wide), table)


class UnitEntries:
    """The entries of one unit."""

    def __init__(self, units: Units, unit: Unit) -> None:
        """Copy the unit's bytes and make its plans."""
        self.units, self.unit = units, unit
        self.data = bytes(units.info[unit.offset : unit.end])
        end = units.table_ends[unit.abbreviations]
        try:
            self.plans: Plans = units.abbreviations.plans(unit.abbreviations, end, unit.sizes)
        except (*DAMAGE, ImageError) as error:
            raise self.damaged(error) from None

    @cached_property
    def is_odd(self) -> bool:
        """Whether names or references have forms that a search of bytes does not find: then all entries must be
        read."""
        return self.units.abbreviations.has_odd(self.plans)

    @cached_property
    def is_far(self) -> bool:
        """Whether functions and copies may refer to other units."""
        return any(plan[3].is_far for plan in self.plans.values())

    @cached_property
    def has_floating_names(self) -> bool:
        """Whether some names of functions follow something of variable length."""
        return any(plan[3].has_floating_names for plan in self.plans.values())

    def damaged(self, why: Exception, at: int | None = None) -> "UnitError":
        """The error that says where; one that does so already stays as it is."""
        if isinstance(why, UnitError):
            return why
        place = "" if at is None else f", in the entry at {at:#x}"
        reason = str(why) if isinstance(why, ImageError) else "damaged"
        if isinstance(why, KeyError):
            reason = "damaged: an abbreviation that is not declared"
        return UnitError(f"{self.units.sections.path}: .debug_info: the unit at {self.unit.offset:#x}{place}: {reason}")

    # -- entries ------------------------------------------------------------------------------------------------------

    def entry(self, offset: int) -> Entry:
        """The entry at an offset into .debug_info, all of its values read.

        Raises:
            ImageError: it is damaged.
        """
        at = offset - self.unit.offset
        try:
            code, end = leb(self.data, at)
            declaration = self.plans[key_of(code)][3]
            values: dict[int, tuple[int, int | bytes]] = {}
            for attribute, form, implicit in declaration.attributes:
                if form == Form.IMPLICIT_CONST:
                    values[attribute] = form, implicit
                    continue
                form, value, end = read_form(self.data, end, form, self.unit.sizes)
                values[attribute] = form, self._reference(form, value)
        except (*DAMAGE, ImageError) as error:
            raise self.damaged(error, offset) from None
        return Entry(offset, self.unit.offset + end, declaration, values)

    def _reference(self, form: int, value: int | bytes) -> int | bytes:
        if form in UNIT_REFERENCES and isinstance(value, int):
            return self.unit.offset + value
        if form in ELSEWHERE:
            raise ImageError("it refers to a supplementary file (dwz, .gnu_debugaltlink), which is not supported")
        return value

    def children(self, entry: Entry) -> Iterator[Entry]:
        """The entries directly in another."""
        if not entry.declaration.has_children:
            return
        at, depth = entry.end, 0
        while at < self.unit.end:
            child = self.entry(at)
            if not child.declaration.tag:
                depth -= 1
                if depth < 0:
                    return
                at = child.end
                continue
            if depth == 0:
                yield child
            sibling = child.number(At.SIBLING)
            if sibling is not None and child.end <= sibling <= self.unit.end:
                at = sibling
            else:
                at = child.end
                depth += child.declaration.has_children

    # -- what values mean ---------------------------------------------------------------------------------------------

    @cached_property
    def root(self) -> Entry:
        """The unit's own entry."""
        return self.entry(self.unit.first)

    def _base(self, attribute: int, *others: int) -> int | None:
        for one in (attribute, *others):
            found = self.root.number(one)
            if found is not None:
                return found
        return None

    @cached_property
    def low(self) -> int:
        """The base of the unit's ranges: DW_AT_low_pc."""
        return self.address(self.root, At.LOW_PC) or 0

    def address(self, entry: Entry, attribute: int) -> int | None:
        """An address, however it is encoded; None if the attribute is missing or no address."""
        form, value = entry.values.get(attribute, (0, b""))
        if isinstance(value, bytes):
            return None
        if form == Form.ADDR:
            return value
        return self.indexed_address(value) if form in ADDRESS_INDEXES else None

    def indexed_address(self, index: int) -> int:
        """An address of .debug_addr."""
        default = 8 if self.unit.sizes.offset == 4 else 16
        base = self._base(At.ADDR_BASE, At.GNU_ADDR_BASE)
        if base is None:
            base = 0 if self.unit.sizes.version < 5 else default
        return self._word("addr", base + index * self.unit.sizes.address, self.unit.sizes.address)

    def text(self, entry: Entry, attribute: int) -> bytes | None:
        """The bytes of a string without its NUL, wherever it is; None if the attribute is missing or is no string."""
        place = self.text_place(entry, attribute)
        if place is None:
            return None
        section, at = place
        if isinstance(section, bytes):
            return section
        data = self.units.sections.get(section)
        size = 64
        while at < len(data):
            piece = bytes(data[at : at + size])
            if (end := piece.find(b"\0")) >= 0 or at + size >= len(data):
                return piece[: end if end >= 0 else None]
            size *= 8
        raise self.damaged(ImageError(f"a string beyond the end of .debug_{section}"), entry.offset)

    def text_place(self, entry: Entry, attribute: int) -> tuple[str | bytes, int] | None:
        """Where a string is: section and offset; or the string itself."""
        form, value = entry.values.get(attribute, (0, 0))
        if isinstance(value, bytes):
            return (value, 0) if form == Form.STRING else None
        if form == Form.STRP:
            return "str", value
        if form == Form.LINE_STRP:
            return "line_str", value
        return ("str", self.indexed_string(value)) if form in STRING_INDEXES else None

    def indexed_string(self, index: int) -> int:
        """The place in .debug_str of a string of .debug_str_offsets."""
        size = self.unit.sizes.offset
        return self._word("str_offsets", self.string_offsets + index * size, size)

    @cached_property
    def string_offsets(self) -> int:
        """Where the unit's part of .debug_str_offsets begins."""
        base = self._base(At.STR_OFFSETS_BASE)
        if base is not None:
            return base
        return 0 if self.unit.sizes.version < 5 else 2 * self.unit.sizes.offset

    @cached_property
    def range_lists(self) -> int:
        """DW_AT_rnglists_base; else after the header of the first table."""
        return self._base(At.RNGLISTS_BASE) or (12 if self.unit.sizes.offset == 4 else 20)

    @cached_property
    def location_lists(self) -> int:
        """DW_AT_loclists_base; else after the header of the first table."""
        return self._base(At.LOCLISTS_BASE) or (12 if self.unit.sizes.offset == 4 else 20)

    def list_offset(self, section: str, base: int, index: int) -> int:
        """Where a list is that an entry names by its index (DW_FORM_rnglistx, DW_FORM_loclistx)."""
        size = self.unit.sizes.offset
        return base + self._word(section, base + index * size, size)

    def _word(self, section: str, at: int, size: int) -> int:
        data = self.units.sections.get(section)
        if not 0 <= at <= len(data) - size:
            raise self.damaged(ImageError(f"an index beyond the end of .debug_{section}"))
        return int.from_bytes(data[at : at + size], "little")


def wrapped(address: int) -> int:
    """Sums of addresses are modulo 2**64."""
    return address & _MASK64
