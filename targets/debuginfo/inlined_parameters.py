"""An inlined copy -> its parameters: names and types as the function declares them, places as the copy has them."""

from collections.abc import Callable, Iterator
from typing import Final

from kinst.targets.c_types import Array, CType, Function, ImageTypes, Pointer, Qualified, Typedef, Void
from kinst.targets.debuginfo.dwarf.location_lists import places_of
from kinst.targets.debuginfo.dwarf.numbers import At, Tag
from kinst.targets.debuginfo.dwarf.ranges import ranges_of
from kinst.targets.debuginfo.dwarf.scan import frames
from kinst.targets.debuginfo.dwarf.units import Entry, UnitEntries, Units
from kinst.targets.debuginfo.inlined import InlinedParameter, Location, Range
from kinst.targets.visible import text_of

_DEEPEST: Final = 32  # nesting of types; only damaged debug information has more
_LONGEST_CHAIN: Final = 16
_POINTERS: Final = frozenset({Tag.POINTER_TYPE, Tag.REFERENCE_TYPE, Tag.RVALUE_REFERENCE_TYPE})
_SAME: Final = frozenset({Tag.RESTRICT_TYPE, Tag.ATOMIC_TYPE})
_KEYWORDS: Final = {
    Tag.BASE_TYPE: "", Tag.TYPEDEF: "", Tag.STRUCTURE_TYPE: "struct ", Tag.CLASS_TYPE: "struct ",
    Tag.UNION_TYPE: "union ", Tag.ENUMERATION_TYPE: "enum ",
}  # fmt: skip


class Parameters:
    """The parameters of copies."""

    def __init__(self, units: Units, types: ImageTypes | None) -> None:
        """`types` gives named types, so that they are those of the image; None: parameters without types."""
        self._units = units
        self._types = types
        self._known: dict[int, CType | None] = {}
        self._frames: tuple[UnitEntries, list[Entry]] | None = None

    def of(self, entries: UnitEntries, copy: Entry, ranges: tuple[Range, ...]) -> tuple[InlinedParameter, ...]:
        """The parameters of a copy, in the order of the function's declaration.

        Raises:
            ImageError: damaged debug information.
        """
        here = {}
        for child in entries.children(copy):
            if child.declaration.tag == Tag.FORMAL_PARAMETER:
                here[child.number(At.ABSTRACT_ORIGIN) or child.offset] = child
        declared = list(self._declared(entries, copy))
        found = [self._parameter(entries, copy, ranges, where, one, here.get(one.offset)) for where, one in declared]
        known = {one.offset for _, one in declared}
        # Parameters that only the copy has: a function declared without a prototype.
        more = [child for origin, child in here.items() if origin not in known and origin == child.offset]
        return (*found, *(self._parameter(entries, copy, ranges, entries, child, child) for child in more))

    def _declared(self, entries: UnitEntries, copy: Entry) -> Iterator[tuple[UnitEntries, Entry]]:
        """The parameters of the function that a copy is of; a copy of a copy leads to it."""
        entry: Entry | None = copy
        for _ in range(_LONGEST_CHAIN):
            origin = None if entry is None else entry.number(At.ABSTRACT_ORIGIN) or entry.number(At.SPECIFICATION)
            if origin is None:
                return
            entries, entry = self._found(entries, origin)
            children = [one for one in entries.children(entry) if one.declaration.tag == Tag.FORMAL_PARAMETER]
            if children:
                yield from ((entries, one) for one in children)
                return

    def _found(self, entries: UnitEntries, offset: int) -> tuple[UnitEntries, Entry]:
        if entries.unit.offset <= offset < entries.unit.end:
            return entries, entries.entry(offset)
        return self._units.entry(offset)

    def _parameter(
        self,
        entries: UnitEntries,
        copy: Entry,
        ranges: tuple[Range, ...],
        where: UnitEntries,
        declared: Entry,
        here: Entry | None,
    ) -> InlinedParameter:
        name, kind = self._name_and_type(where, declared)
        if here is None:
            return InlinedParameter(name, kind, ())
        places = places_of(entries, here, At.LOCATION, ranges)
        locations = tuple(
            Location(low, high, expression, self._frame_base(entries, copy, low), entries.unit.offset)
            for low, high, expression in places
        )
        return InlinedParameter(name, kind, locations, _constant(here))

    def _name_and_type(self, entries: UnitEntries, entry: Entry) -> tuple[str, CType | None]:
        name, kind = entries.text(entry, At.NAME), entry.number(At.TYPE)
        for _ in range(_LONGEST_CHAIN):
            origin = entry.number(At.ABSTRACT_ORIGIN)
            if origin is None or (name is not None and kind is not None):
                break
            entries, entry = self._found(entries, origin)
            name, kind = name or entries.text(entry, At.NAME), kind or entry.number(At.TYPE)
        text = text_of(name or b"")
        return text, None if kind is None else self._type(entries, kind, 0)

    # -- the function around ------------------------------------------------------------------------------------------

    def _frame_base(self, entries: UnitEntries, copy: Entry, address: int) -> bytes:
        """DW_AT_frame_base, at an address, of the function that a copy is in."""
        if self._frames is None or self._frames[0] is not entries:
            self._frames = entries, [entries.entry(entries.unit.offset + at) for at in frames(entries)]
        around = [one for one in self._frames[1] if one.offset < copy.offset]
        if not around:
            return b""
        for low, high, expression in places_of(entries, around[-1], At.FRAME_BASE, ranges_of(entries, around[-1])):
            if low <= address < high:
                return expression
        return around[-1].block(At.FRAME_BASE) or b""

    # -- types --------------------------------------------------------------------------------------------------------

    def _type(self, entries: UnitEntries, offset: int, depth: int) -> CType | None:
        if self._types is None or depth > _DEEPEST:
            return None
        if offset not in self._known:
            where, entry = self._found(entries, offset)
            self._known[offset] = self._new(where, entry, depth + 1)
        return self._known[offset]

    def _new(self, entries: UnitEntries, entry: Entry, depth: int) -> CType | None:
        tag = entry.declaration.tag
        if tag in _KEYWORDS:
            return self._named(entries, entry, depth)
        if tag == Tag.SUBROUTINE_TYPE:
            return self._function(entries, entry, depth)
        inner = self._inner(entries, entry, depth)
        if inner is None:
            return Pointer(Void()) if tag in _POINTERS else None
        return _around(tag, inner, lambda: self._lengths(entries, entry))

    def _inner(self, entries: UnitEntries, entry: Entry, depth: int) -> CType | None:
        """No DW_AT_type means void."""
        inner = entry.number(At.TYPE)
        return Void() if inner is None else self._type(entries, inner, depth)

    def _named(self, entries: UnitEntries, entry: Entry, depth: int) -> CType | None:
        name = text_of(entries.text(entry, At.NAME) or b"")
        found = self._types.type_named(_KEYWORDS[Tag(entry.declaration.tag)] + name) if self._types and name else None
        if found is None and name and entry.declaration.tag == Tag.TYPEDEF:
            inner = self._inner(entries, entry, depth)
            return None if inner is None else Typedef(name, inner)
        return found

    def _function(self, entries: UnitEntries, entry: Entry, depth: int) -> CType | None:
        children = list(entries.children(entry))
        kinds = [
            self._inner(entries, one, depth) or Void()
            for one in children
            if one.declaration.tag == Tag.FORMAL_PARAMETER
        ]
        is_variadic = any(one.declaration.tag == Tag.UNSPECIFIED_PARAMETERS for one in children)
        is_known = bool(kinds) or is_variadic or At.PROTOTYPED in entry.values
        result = self._inner(entries, entry, depth) or Void()
        return Function(result, tuple(kinds) if is_known else None, is_variadic)

    def _lengths(self, entries: UnitEntries, entry: Entry) -> list[int | None]:
        found: list[int | None] = []
        for child in entries.children(entry):
            if child.declaration.tag == Tag.SUBRANGE_TYPE:
                count, last = child.number(At.COUNT), child.number(At.UPPER_BOUND)
                found.append(count if count is not None else None if last is None else last + 1)
        return found or [None]


def _around(tag: int, inner: CType, lengths: Callable[[], list[int | None]]) -> CType | None:
    """A type made of another."""
    if tag in _POINTERS:
        return Pointer(inner)
    if tag in _SAME:
        return inner
    if tag == Tag.CONST_TYPE:
        return Qualified(inner, is_const=True)
    if tag == Tag.VOLATILE_TYPE:
        return Qualified(inner, is_volatile=True)
    if tag != Tag.ARRAY_TYPE:
        return None
    for length in reversed(lengths()):
        inner = Array(inner, length)
    return inner


def _constant(entry: Entry) -> int | None:
    """DW_AT_const_value; also as bytes, which some compilers write for structs of one word."""
    number, block = entry.number(At.CONST_VALUE), entry.block(At.CONST_VALUE)
    if block is not None and 0 < len(block) <= 8:
        return int.from_bytes(block, "little")
    return number
