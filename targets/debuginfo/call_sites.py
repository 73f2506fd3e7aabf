"""A return address -> what debug information says about the call: what registers and memory of the callee held (DWARF
5, 3.4; GNU's form of it in DWARF 4).

A unit is read only when an address of its code is looked up, and then only the function that holds the address.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from kinst.targets.debuginfo.dwarf.abbreviations import Plan
from kinst.targets.debuginfo.dwarf.forms import DAMAGE
from kinst.targets.debuginfo.dwarf.location_lists import Place, places_of
from kinst.targets.debuginfo.dwarf.numbers import At, Tag
from kinst.targets.debuginfo.dwarf.ranges import ranges_of
from kinst.targets.debuginfo.dwarf.scan import every, within
from kinst.targets.debuginfo.dwarf.sections import DebugSections
from kinst.targets.debuginfo.dwarf.top_level import top_level
from kinst.targets.debuginfo.dwarf.unit_addresses import UnitAddresses
from kinst.targets.debuginfo.dwarf.unit_terms import UnitTerms
from kinst.targets.debuginfo.dwarf.units import Entry, Unit, UnitEntries, Units
from kinst.targets.debuginfo.inlined import Range
from kinst.targets.errors import ImageError
from kinst.targets.values import dataclass

_KEPT: Final = 1 << 16  # addresses whose functions are kept
_CALLS: Final = frozenset({Tag.CALL_SITE, Tag.GNU_CALL_SITE})
_PARAMETERS: Final = frozenset({Tag.CALL_SITE_PARAMETER, Tag.GNU_CALL_SITE_PARAMETER})
# A subprogram with one of these has an entry for every tail call.
_ALL_TAIL_CALLS: Final = (
    *(At.CALL_ALL_CALLS, At.CALL_ALL_SOURCE_CALLS, At.CALL_ALL_TAIL_CALLS),
    *(At.GNU_ALL_CALL_SITES, At.GNU_ALL_SOURCE_CALL_SITES, At.GNU_ALL_TAIL_CALL_SITES),
)


@dataclass(frozen=True, slots=True)
class CallParameter:
    """What one register of the callee, or the memory that it points to, held when the call was made.

    Expressions: `location` names the register; `value` computes what it held, `data` what it pointed to, in the frame
    of the caller; an empty one: the compiler does not know. `declared` is the offset in .debug_info of the callee's
    parameter, if that is given.
    """

    location: bytes
    value: bytes
    data: bytes
    declared: int | None


@dataclass(frozen=True, slots=True)
class CallSite:
    """A call. `returns` is the address after its instruction, `at` that of the instruction; one of the two may be
    unknown.

    `target` computes the callee's address if the call is indirect and the compiler knows it.
    """

    returns: int | None
    at: int | None
    is_tail: bool
    target: bytes
    parameters: tuple[CallParameter, ...]

    @property
    def place(self) -> int:
        """An address in the instruction; -1: unknown."""
        return (self.returns or 0) - 1 if self.at is None else self.at


@dataclass(frozen=True, slots=True)
class CallingFunction:
    """A function with code: `start` is where it is entered. `has_all_tail_calls`: every tail call is among its
    calls."""

    start: int
    ranges: tuple[Range, ...]
    unit: int  # offset in .debug_info
    offset: int
    has_all_tail_calls: bool
    frame_bases: tuple[Place, ...]

    def holds(self, address: int) -> bool:
        """Whether an address is in it."""
        return any(low <= address < high for low, high in self.ranges)

    def frame_base(self, address: int) -> bytes:
        """The expression of its frame base at an address; empty if there is none."""
        return next((one for low, high, one in self.frame_bases if low <= address < high), b"")


Row = tuple[int, int, CallingFunction]  # low, high
Walk = Callable[[UnitEntries], Iterator[tuple[int, Plan]]]


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of one function. `tails` are in `returning` too, as far as they say where they return to."""

    returning: Mapping[int, CallSite]
    tails: tuple[CallSite, ...]


class CallSites:
    """The functions of an image and their calls. Answers are kept; damaged units are ignored."""

    def __init__(self, debug: DebugSections) -> None:
        """Nothing is read yet but the headers of units."""
        self._units = Units(debug)
        self._addresses = UnitAddresses(self._units)
        self._functions: dict[int, list[Row]] = {}  # by unit
        self._holders: dict[int, CallingFunction | None] = {}  # by address
        self._whole: set[int] = set()  # units of which every entry was examined
        self._calls: dict[int, Calls] = {}

    def terms(self, unit: int) -> UnitTerms:
        """What the expressions of a unit (its offset in .debug_info) refer to."""
        return UnitTerms(self._units, unit)

    def function_at(self, address: int) -> CallingFunction | None:
        """The function whose code holds a link address."""
        if address not in self._holders:
            # All at once: simple, and rarely needed.
            if len(self._holders) >= _KEPT:
                self._holders.clear()
            self._holders[address] = self._holder(address)
        return self._holders[address]

    def _holder(self, address: int) -> CallingFunction | None:
        for unit in self._addresses.at(address):
            found = _holder(self._of_unit(unit), address)
            # Most functions are at the top level: the whole unit is read only where that finds nothing.
            if found is None and unit.offset not in self._whole:  # perhaps nested, as GNU C allows
                self._whole.add(unit.offset)
                self._functions[unit.offset] = self._read(unit, every)
                found = _holder(self._functions[unit.offset], address)
            if found is not None:
                return found
        return None

    def calls_of(self, function: CallingFunction) -> Calls:
        """The calls of a function, those of copies inlined into it among them."""
        found = self._calls.get(function.offset)
        if found is None:
            entries = self._units.open(self._units.at(function.unit))
            try:
                # A site in an abstract entry stands for all copies: the address shows whether it is in this function.
                sites = [one for one in _sites(entries, function.offset) if function.holds(one.place)]
            except (*DAMAGE, ImageError):
                sites = []
            found = self._calls[function.offset] = Calls(
                {one.returns: one for one in sites if one.returns is not None},
                tuple(one for one in sites if one.is_tail),
            )
        return found

    def _of_unit(self, unit: Unit) -> list[Row]:
        found = self._functions.get(unit.offset)
        if found is None:
            found = self._functions[unit.offset] = self._read(unit, top_level)
        return found

    def _read(self, unit: Unit, walk: Walk) -> list[Row]:
        try:
            functions = list(_functions(self._units.open(unit), walk))
        except (*DAMAGE, ImageError):
            functions = []
        return sorted(((low, high, one) for one in functions for low, high in one.ranges), key=lambda one: one[0])


def _holder(functions: list[Row], address: int) -> CallingFunction | None:
    row = bisect_right(functions, address, key=lambda one: one[0]) - 1
    return functions[row][2] if row >= 0 and address < functions[row][1] else None


def _functions(entries: UnitEntries, walk: Walk) -> Iterator[CallingFunction]:
    for at, (_, _, _, declaration) in walk(entries):
        names = {attribute for attribute, _, _ in declaration.attributes} if declaration.is_subprogram else set()
        if At.LOW_PC in names or At.RANGES in names:
            entry = entries.entry(entries.unit.offset + at)
            ranges = ranges_of(entries, entry)
            if ranges:
                yield _function(entries, entry, ranges)


def _function(entries: UnitEntries, entry: Entry, ranges: tuple[Range, ...]) -> CallingFunction:
    """It is entered where its first range begins, whichever address is the lowest: GCC puts cold parts last."""
    start = entries.address(entry, At.ENTRY_PC)
    return CallingFunction(
        ranges[0][0] if start is None else start,
        ranges,
        entries.unit.offset,
        entry.offset,
        any(one in entry.values for one in _ALL_TAIL_CALLS),
        places_of(entries, entry, At.FRAME_BASE, ranges),
    )


def _sites(entries: UnitEntries, function: int) -> Iterator[CallSite]:
    """The calls in a function's entry; and those that GCC puts into the abstract entries of what it is made of, if they
    stand in a block. The addresses show whose they are."""
    base, waiting, known = entries.unit.offset, [function], set[int]()
    while waiting:
        root = waiting.pop()
        # Another unit's entry, or one that was visited: origins may form a circle in damaged files.
        if root in known or not entries.unit.first <= root < entries.unit.end:
            continue
        known.add(root)
        waiting.append(entries.entry(root).number(At.ABSTRACT_ORIGIN) or 0)
        for at, plan in within(entries, root - base):
            if plan[3].tag in _CALLS:
                yield _site(entries, entries.entry(base + at))
            elif plan[3].tag == Tag.INLINED_SUBROUTINE:
                waiting.append(entries.entry(base + at).number(At.ABSTRACT_ORIGIN) or 0)


def _site(entries: UnitEntries, entry: Entry) -> CallSite:
    returns = entries.address(entry, At.CALL_RETURN_PC)
    is_gnu = entry.declaration.tag == Tag.GNU_CALL_SITE
    return CallSite(
        # GNU's form has the return address in DW_AT_low_pc.
        entries.address(entry, At.LOW_PC) if returns is None and is_gnu else returns,
        entries.address(entry, At.CALL_PC),
        At.CALL_TAIL_CALL in entry.values or At.GNU_TAIL_CALL in entry.values,
        entry.block(At.CALL_TARGET) or entry.block(At.GNU_CALL_SITE_TARGET) or b"",
        tuple(_parameter(one) for one in entries.children(entry) if one.declaration.tag in _PARAMETERS),
    )


def _parameter(entry: Entry) -> CallParameter:
    is_gnu = entry.declaration.tag == Tag.GNU_CALL_SITE_PARAMETER
    return CallParameter(
        entry.block(At.LOCATION) or b"",
        entry.block(At.CALL_VALUE) or entry.block(At.GNU_CALL_SITE_VALUE) or b"",
        entry.block(At.CALL_DATA_VALUE) or entry.block(At.GNU_CALL_SITE_DATA_VALUE) or b"",
        entry.number(At.ABSTRACT_ORIGIN if is_gnu else At.CALL_PARAMETER),
    )
