"""Attributes that say where a value is -> expressions and the addresses they hold at (DWARF 5, 2.6)."""

from collections.abc import Iterable, Iterator
from typing import Final

from kinst.targets.debuginfo.dwarf.forms import DAMAGE
from kinst.targets.debuginfo.dwarf.numbers import Form, PlaceKind
from kinst.targets.debuginfo.dwarf.ranges import address_at
from kinst.targets.debuginfo.dwarf.units import Entry, UnitEntries, wrapped
from kinst.targets.errors import ImageError
from kinst.targets.leb128 import leb

Place = tuple[int, int, bytes]  # low, high, expression
_MOST: Final = 1 << 20  # entries of one list; a longer one is damaged


def places_of(
    entries: UnitEntries, entry: Entry, attribute: int, scope: Iterable[tuple[int, int]]
) -> tuple[Place, ...]:
    """Where a value is: an expression for all of `scope`, or a list of them; none if the attribute is missing.

    Raises:
        ImageError: the list is damaged.
    """
    form, value = entry.values.get(attribute, (0, b""))
    if isinstance(value, bytes):
        return tuple((low, high, value) for low, high in scope) if value else ()
    try:
        return tuple(_list(entries, form, value, list(scope)))
    except DAMAGE:
        raise entries.damaged(ImageError("its list of locations is cut"), entry.offset) from None
    except ImageError as error:
        raise entries.damaged(error, entry.offset) from None


def _list(entries: UnitEntries, form: int, at: int, scope: list[tuple[int, int]]) -> Iterator[Place]:
    if entries.unit.sizes.version < 5:
        return _old_list(entries, at)
    if form == Form.LOCLISTX:
        at = entries.list_offset("loclists", entries.location_lists, at)
    return _new_list(entries, at, scope)


def _old_list(entries: UnitEntries, at: int) -> Iterator[Place]:
    """.debug_loc: pairs of addresses from the base, each with length (2) and expression; the highest address and a new
    base; 0 and 0 end it."""
    data, size, base = entries.units.sections.get("loc"), entries.unit.sizes.address, entries.low
    highest = (1 << 8 * size) - 1
    for _ in range(_MOST):
        low, at = address_at(data, at, size)
        high, at = address_at(data, at, size)
        if low == highest:
            base = high
            continue
        if low == high == 0:
            return
        length, at = address_at(data, at, 2)
        yield (base + low) & highest, (base + high) & highest, bytes(data[at : at + length])
        at += length
    raise IndexError


def _new_list(entries: UnitEntries, at: int, scope: list[tuple[int, int]]) -> Iterator[Place]:
    """.debug_loclists (7.7.3): a kind (1), its operands, and length and expression if it gives a place."""
    data, base = entries.units.sections.get("loclists"), entries.low
    for _ in range(_MOST):
        kind = data[at]
        at += 1
        match kind:
            case PlaceKind.END_OF_LIST:
                return
            case PlaceKind.BASE_ADDRESSX:
                index, at = leb(data, at)
                base = entries.indexed_address(index)
            case PlaceKind.BASE_ADDRESS:
                base, at = address_at(data, at, entries.unit.sizes.address)
            case PlaceKind.GNU_VIEW_PAIR:
                at = leb(data, leb(data, at)[1])[1]
            case _:
                bounds, at = (
                    (scope, at) if kind == PlaceKind.DEFAULT_LOCATION else _bounds(entries, data, at, kind, base)
                )
                length, at = leb(data, at)
                if at + length > len(data):
                    raise IndexError
                for low, high in bounds:
                    yield low, high, bytes(data[at : at + length])
                at += length
    raise IndexError


def _bounds(entries: UnitEntries, data: memoryview, at: int, kind: int, base: int) -> tuple[list[tuple[int, int]], int]:
    size = entries.unit.sizes.address
    match kind:
        case PlaceKind.STARTX_ENDX | PlaceKind.STARTX_LENGTH:
            index, at = leb(data, at)
            second, at = leb(data, at)
            low = entries.indexed_address(index)
            is_end = kind == PlaceKind.STARTX_ENDX
            return [(low, entries.indexed_address(second) if is_end else wrapped(low + second))], at
        case PlaceKind.OFFSET_PAIR:
            low, at = leb(data, at)
            high, at = leb(data, at)
            return [(wrapped(base + low), wrapped(base + high))], at
        case PlaceKind.START_END:
            low, at = address_at(data, at, size)
            high, at = address_at(data, at, size)
            return [(low, high)], at
        case PlaceKind.START_LENGTH:
            low, at = address_at(data, at, size)
            length, at = leb(data, at)
            return [(low, wrapped(low + length))], at
        case _:
            raise ImageError(f"a location of kind {kind}, which does not exist")
