"""The entries of a unit that hold certain bytes, found by a flat walk from one entry to the next.

Bytes that look like the offset of a name or of an entry may be anything. Only a walk from the first entry shows where
entries begin. It never parses an entry needlessly: the plan gives the length of an entry, and DW_AT_sibling the next
one on the same level. The loops repeat a few lines, since a call for each of a kernel's millions of entries would cost
more than all else.

All walks raise ImageError, with the unit's offset, if the unit is damaged.
"""

import struct
from collections.abc import Callable, Iterator
from functools import wraps
from typing import ParamSpec, TypeVar

from kinst.targets.debuginfo.dwarf.abbreviations import Declaration, Plan, key_of
from kinst.targets.debuginfo.dwarf.forms import DAMAGE, skip
from kinst.targets.debuginfo.dwarf.numbers import Tag
from kinst.targets.debuginfo.dwarf.units import UnitEntries
from kinst.targets.errors import ImageError
from kinst.targets.leb128 import leb

_SCOPES = frozenset({Tag.COMPILE_UNIT, Tag.PARTIAL_UNIT, Tag.NAMESPACE, Tag.MODULE})
_REFERENCE = struct.Struct("<I").unpack_from

P = ParamSpec("P")
T = TypeVar("T")


def _checked(walk: Callable[P, Iterator[T]]) -> Callable[P, Iterator[T]]:
    """Say where the damage is; the first argument of `walk` is the unit."""

    @wraps(walk)
    def wrapper(*arguments: P.args, **named: P.kwargs) -> Iterator[T]:
        try:
            yield from walk(*arguments, **named)
        except (*DAMAGE, ImageError) as error:
            unit = arguments[0]
            assert isinstance(unit, UnitEntries)
            raise unit.damaged(error) from None

    return wrapper


@_checked
def holders(entries: UnitEntries, places: list[int]) -> Iterator[tuple[int, Plan]]:
    """The entries that hold one or more of the places, each once.

    Args:
        entries: the unit.
        places: ascending offsets into the unit (not into .debug_info).

    Yields:
        The entry's offset into the unit, and its plan.
    """
    data, plans, sizes = entries.data, entries.plans, entries.unit.sizes
    at = die = entries.unit.first - entries.unit.offset
    plan = plans[0]
    for place in places:
        if place < at:
            continue  # in the entry that was yielded last, or in the header
        while at <= place:
            die = at
            code: int | bytes = data[at]
            if code > 0x7F:  # type: ignore[operator]
                code = data[at : at + 2] if 0 < data[at + 1] < 0x80 else _long_code(data, at)
            plan = plans[code]
            size, sibling, steps, _ = plan
            if sibling:
                # A sibling after the place: the place is in this entry or below it.
                next_one = _REFERENCE(data, at + sibling)[0]
                if at < next_one <= place:
                    at = next_one
                    continue
            at += size
            for step in steps:
                at = skip(data, at, step, sizes)
        yield die, plan


@_checked
def _from(entries: UnitEntries, start: int) -> Iterator[tuple[int, Plan | None]]:
    """All entries from an offset into the unit on: their offsets, and plans; None for the null entries."""
    data, plans, sizes = entries.data, entries.plans, entries.unit.sizes
    at = start
    while at < len(data):
        die = at
        code: int | bytes = data[at]
        if code > 0x7F:  # type: ignore[operator]
            code = data[at : at + 2] if 0 < data[at + 1] < 0x80 else _long_code(data, at)
        plan = plans[code]
        at += plan[0]
        for step in plan[2]:
            at = skip(data, at, step, sizes)
        yield die, plan if code else None


def every(entries: UnitEntries) -> Iterator[tuple[int, Plan]]:
    """All entries of a unit, but the null entries: offset into the unit, and plan."""
    first = entries.unit.first - entries.unit.offset
    return ((die, plan) for die, plan in _from(entries, first) if plan is not None)


def within(entries: UnitEntries, start: int) -> Iterator[tuple[int, Plan]]:
    """All entries in the one at `start`, an offset into the unit, however deep: offset into the unit, and plan."""
    depth = 0
    for die, plan in _from(entries, start):
        if plan is None:
            depth -= 1
        else:
            if die != start:
                yield die, plan
            depth += plan[3].has_children
        if depth <= 0:
            return


@_checked
def _top(entries: UnitEntries) -> Iterator[tuple[int, Declaration]]:
    """The subprograms at the top level and in namespaces; without DW_AT_sibling all of them."""
    data, plans, sizes = entries.data, entries.plans, entries.unit.sizes
    at = entries.unit.first - entries.unit.offset
    while at < len(data):
        code: int | bytes = data[at]
        if code > 0x7F:  # type: ignore[operator]
            code = data[at : at + 2] if 0 < data[at + 1] < 0x80 else _long_code(data, at)
        size, sibling, steps, declaration = plans[code]
        if declaration.tag == Tag.SUBPROGRAM:
            yield at, declaration
        if sibling and declaration.tag not in _SCOPES:
            next_one = _REFERENCE(data, at + sibling)[0]
            if at < next_one:
                at = next_one
                continue
        at += size
        for step in steps:
            at = skip(data, at, step, sizes)


def frames(entries: UnitEntries) -> Iterator[int]:
    """Offsets into the unit of the subprograms that have a frame; they are at the top level or in a namespace."""
    return (at for at, declaration in _top(entries) if declaration.has_frame)


def abstract(entries: UnitEntries) -> Iterator[tuple[int, Declaration]]:
    """The subprograms with DW_AT_inline, which are at the top level or in a namespace: offset into the unit, and
    declaration."""
    return (found for found in _top(entries) if found[1].is_abstract)


def _long_code(data: bytes, at: int) -> int | bytes:
    """The key of a code of two bytes or more. Plans rely on codes being as short as they can be."""
    value, end = leb(data, at)
    code = key_of(value)
    if isinstance(code, int) or len(code) != end - at:
        raise ImageError("an abbreviation code in more bytes than it needs")
    return code


def guesses(entries: UnitEntries, places: list[int]) -> set[int]:
    """Where subprograms may begin that have a name at one of some places: a superset, as far as names are at fixed
    places. It saves a walk: what refers to them is searched for at once, and one walk confirms all."""
    data, plans, found = entries.data, entries.plans, set[int]()
    first = entries.unit.first - entries.unit.offset
    for place in places:
        for back in range(1, min(16, place - first + 1)):
            at = place - back
            code: int | bytes = data[at]
            if code > 0x7F:  # type: ignore[operator]
                code = data[at : at + 2]
            plan = plans.get(code)
            if plan is not None and back in plan[3].name_places:
                found.add(at)
    return found
