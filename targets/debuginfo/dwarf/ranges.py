"""Entries -> the addresses of their code: low and high, .debug_ranges, .debug_rnglists (DWARF 5, 2.17)."""

from collections.abc import Iterator
from typing import Final

from kinst.targets.debuginfo.dwarf.forms import ADDRESS_INDEXES, DAMAGE
from kinst.targets.debuginfo.dwarf.numbers import At, Form, RangeKind
from kinst.targets.debuginfo.dwarf.units import Entry, UnitEntries, wrapped
from kinst.targets.debuginfo.inlined import Range
from kinst.targets.errors import ImageError
from kinst.targets.leb128 import leb

_MOST: Final = 1 << 20  # ranges of one entry; a longer list is damaged


def ranges_of(entries: UnitEntries, entry: Entry) -> tuple[Range, ...]:
    """The ranges of an entry in their order, without empty ones; none if it has no code.

    Raises:
        ImageError: the list is damaged.
    """
    if At.RANGES in entry.values:
        try:
            return tuple(pair for pair in _list(entries, entry) if pair[0] < pair[1])
        except DAMAGE:
            raise entries.damaged(ImageError("its list of ranges is cut"), entry.offset) from None
        except ImageError as error:
            raise entries.damaged(error, entry.offset) from None
    low = entries.address(entry, At.LOW_PC)
    form, high = entry.values.get(At.HIGH_PC, (0, 0))
    if low is None or isinstance(high, bytes):
        return ()
    # Since DWARF 4 it may be a constant: the size.
    is_address = form in (Form.ADDR, *ADDRESS_INDEXES)
    high = entries.address(entry, At.HIGH_PC) or 0 if is_address else wrapped(low + high)
    return ((low, high),) if low < high else ()


def entry_of(entries: UnitEntries, entry: Entry, ranges: tuple[Range, ...]) -> int:
    """Where the code of an entry is entered: DW_AT_entry_pc.

    An address, or (DWARF 5, 2.18) an offset from its low end; without the attribute its low end. It may lie outside of
    the ranges: gcc leaves a marker where the call is, and moves instructions of the function away from it, also to
    before a branch or out of a loop. The marker is then executed as often as the source calls the function, which is
    more often than their first instruction is (`tests.targets.debuginfo.test_inline_entries` counts both). gdb since 16
    takes the first instruction in this case, but only because its frames would not be inside of the function at the
    marker.
    """
    form, value = entry.values.get(At.ENTRY_PC, (0, b""))
    if isinstance(value, bytes):
        return ranges[0][0]
    if form in (Form.ADDR, *ADDRESS_INDEXES):
        return entries.address(entry, At.ENTRY_PC) or 0
    low = entries.address(entry, At.LOW_PC)
    return wrapped((ranges[0][0] if low is None else low) + value)


def _list(entries: UnitEntries, entry: Entry) -> Iterator[Range]:
    form, value = entry.values[At.RANGES]
    if isinstance(value, bytes):
        raise entries.damaged(ImageError("DW_AT_ranges is no offset"), entry.offset)
    if entries.unit.sizes.version < 5:
        return _old_list(entries, value + (entries.root.number(At.GNU_RANGES_BASE) or 0))
    if form == Form.RNGLISTX:
        value = entries.list_offset("rnglists", entries.range_lists, value)
    return _new_list(entries, value)


def _old_list(entries: UnitEntries, at: int) -> Iterator[Range]:
    """.debug_ranges: pairs of addresses from the base; the highest address and a new base; 0 and 0 end it."""
    data, size, base = entries.units.sections.get("ranges"), entries.unit.sizes.address, entries.low
    highest = (1 << 8 * size) - 1
    for _ in range(_MOST):
        if at + 2 * size > len(data):
            break
        low, high = (int.from_bytes(data[at + n * size : at + (n + 1) * size], "little") for n in (0, 1))
        at += 2 * size
        if low == highest:
            base = high
        elif low == high == 0:
            return
        else:
            yield (base + low) & highest, (base + high) & highest
    raise IndexError


def _new_list(entries: UnitEntries, at: int) -> Iterator[Range]:
    """.debug_rnglists (7.25): entries of a kind (1) and its operands."""
    data, size, base = entries.units.sections.get("rnglists"), entries.unit.sizes.address, entries.low
    for _ in range(_MOST):
        kind = data[at]
        at += 1
        match kind:
            case RangeKind.END_OF_LIST:
                return
            case RangeKind.BASE_ADDRESSX:
                index, at = leb(data, at)
                base = entries.indexed_address(index)
            case RangeKind.BASE_ADDRESS:
                base, at = address_at(data, at, size)
            case _:
                low, high, at = _pair(entries, data, at, kind, base)
                yield low, high
    raise IndexError


def _pair(entries: UnitEntries, data: memoryview, at: int, kind: int, base: int) -> tuple[int, int, int]:
    size = entries.unit.sizes.address
    match kind:
        case RangeKind.STARTX_ENDX | RangeKind.STARTX_LENGTH:
            index, at = leb(data, at)
            second, at = leb(data, at)
            low = entries.indexed_address(index)
            is_end = kind == RangeKind.STARTX_ENDX
            return low, entries.indexed_address(second) if is_end else wrapped(low + second), at
        case RangeKind.OFFSET_PAIR:
            low, at = leb(data, at)
            high, at = leb(data, at)
            return wrapped(base + low), wrapped(base + high), at
        case RangeKind.START_END:
            low, at = address_at(data, at, size)
            high, at = address_at(data, at, size)
            return low, high, at
        case RangeKind.START_LENGTH:
            low, at = address_at(data, at, size)
            length, at = leb(data, at)
            return low, wrapped(low + length), at
        case _:
            raise ImageError(f"a range of kind {kind}, which does not exist")


def address_at(data: memoryview, at: int, size: int) -> tuple[int, int]:
    """An address and where it ends."""
    if at + size > len(data):
        raise IndexError
    return int.from_bytes(data[at : at + size], "little"), at + size
