"""Names and addresses -> the top-level entries of DWARF that have them, among any number of units.

Nothing is parsed until a name is looked up. Then .debug_info is searched, piece by piece, for the bytes of the name or
of its offset in .debug_str, so that a name in every unit is found at once. What precedes such bytes shows whether an
entry of a wanted kind may begin there, and a walk over the top level of that one unit confirms it. Things with an
address are also found by the bytes of the address, even if a thousand units declare them.
"""

from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import cached_property
from itertools import product
from typing import Final

from kinst.targets.debuginfo.dwarf.abbreviations import Declaration
from kinst.targets.debuginfo.dwarf.byte_search import places_of, places_of_words
from kinst.targets.debuginfo.dwarf.entries import ATTRIBUTES, TAGS, NamedEntry
from kinst.targets.debuginfo.dwarf.forms import STRING_INDEXES, Sizes, step
from kinst.targets.debuginfo.dwarf.indexed_names import IndexedNames
from kinst.targets.debuginfo.dwarf.numbers import Form, Op
from kinst.targets.debuginfo.dwarf.scan import holders
from kinst.targets.debuginfo.dwarf.sections import DebugSections
from kinst.targets.debuginfo.dwarf.top_level import code_at, top_level_at
from kinst.targets.debuginfo.dwarf.type_units import DAMAGED, SignedTypes
from kinst.targets.debuginfo.dwarf.unit_places import by_unit, ignored
from kinst.targets.debuginfo.dwarf.units import Unit, UnitEntries, Units

_FEW: Final = 24  # places of a name in .debug_str that are searched for one by one
_SMALLEST, _LARGEST = 1 << 20, 1 << 25  # pieces of .debug_info that are searched at a time
_NAME: Final = ATTRIBUTES["name"]
_DECLARATION: Final = ATTRIBUTES["declaration"]
_NUMBERS: Final = {name: tag for tag, name in TAGS.items()}
_ENUMERATOR: Final = frozenset({"enumerator"})
_OP_ADDR: Final = bytes([Op.ADDR])

Backs = dict[int | bytes, int]  # code of an entry -> how far before its name it begins


class DebugInfo:
    """The DWARF of one image; without entries if it has none, or none that can be read."""

    def __init__(self, sections: DebugSections | None) -> None:
        """Nothing is read yet."""
        self._sections = sections
        self._name_places: dict[tuple[Declaration, Sizes], int | None] = {}

    def named(self, name: str, tags: Collection[str], *, declarations: bool = True) -> Iterator[NamedEntry]:
        """The top-level entries of that name and of one of some kinds, unit by unit.

        Args:
            name: DW_AT_name.
            tags: DW_TAG_ without the prefix.
            declarations: whether those that only declare something count.
        """
        for entries, places in self._mentions(name):
            backs = self._backs(entries, tags, declarations=declarations)
            for at in self._starts(entries, places, backs):
                entry = self._holder_of(entries, at, is_start=True)
                if entry is not None and entry.name == name and _is_wanted(entry, tags, declarations=declarations):
                    yield entry
        for entries, at in () if self._indexed is None else self._indexed.named(name):
            entry = self._entry(entries, at)
            if _is_wanted(entry, tags, declarations=declarations):
                yield entry

    def enumerations_with(self, name: str) -> Iterator[NamedEntry]:
        """The enumerations that may have an enumerator of that name."""
        for entries, places in self._mentions(name):
            for at in self._starts(entries, places, self._backs(entries, _ENUMERATOR, declarations=True)):
                parent = self._holder_of(entries, at, is_start=False)
                if parent is not None:
                    yield parent
        for entries, at in () if self._indexed is None else self._indexed.enumerations_with(name):
            yield self._entry(entries, at)

    def at_address(self, address: int, tags: Collection[str]) -> Iterator[NamedEntry]:
        """The entries of variables or functions (`tags`) that are at an address."""
        wanted = address.to_bytes(8, "little")
        wanted = wanted if "subprogram" in tags else _OP_ADDR + wanted
        for units in self._searched[:1]:
            for unit, places in by_unit(units, places_of(units.info, [wanted]), ignored):
                for entry in self._holders(units, unit, places):
                    if entry.tag in tags and entry.address() == address:
                        yield entry

    # -- where a name may stand ---------------------------------------------------------------------------------------

    def _mentions(self, name: str) -> Iterator[tuple[UnitEntries, list[int]]]:
        """Units with the places (offsets into the unit) that may be the name, or its offset in a section of strings.

        A linker that merges strings has "open" by itself or as the end of "vfs_open", never both: what may be ends of
        other strings comes last.
        """
        text = name.encode(errors="surrogateescape") + b"\0"
        if len(text) < 2:
            return
        whole, ends = self._strings(text)
        searches = [(text, whole), (b"", ends)] if ends else [(text, whole)]
        for units, (inline, words) in product(self._searched, searches):
            for unit, places in by_unit(units, _lazily(units.info, inline, words), ignored):
                entries = _open(units, unit)
                if entries is not None:
                    yield entries, places

    def _strings(self, text: bytes) -> tuple[list[int], list[int]]:
        """Where the string sections have a name by itself, and where as the end of another."""
        whole, ends = list[int](), list[int]()
        for section in ("str", "line_str"):
            data = self._content(section)
            for place in places_of(data, [text]):
                (ends if place and data[place - 1] else whole).append(place & 0xFFFFFFFF)
        return whole, ends

    def _content(self, section: str) -> memoryview:
        try:
            return memoryview(b"") if self._units is None else self._units.sections.get(section)
        except DAMAGED:
            return memoryview(b"")

    def _backs(self, entries: UnitEntries, tags: Collection[str], *, declarations: bool) -> Backs | None:
        """For the codes of a unit's entries that are wanted, how far before the name an entry begins; None if some have
        their name at no fixed place."""
        numbers, found = {_NUMBERS[tag] for tag in tags}, {}
        for code, (_, _, _, declaration) in entries.plans.items():
            if declaration.tag not in numbers:
                continue
            forms = {attribute: form for attribute, form, _ in declaration.attributes}
            if _NAME not in forms or forms[_NAME] in STRING_INDEXES:
                continue
            if not declarations and forms.get(_DECLARATION) == Form.FLAG_PRESENT:
                continue
            place = self._name_place(declaration, entries.unit.sizes)
            if place is None:
                return None
            found[code] = place + (1 if isinstance(code, int) else len(code))
        return found

    def _name_place(self, declaration: Declaration, sizes: Sizes) -> int | None:
        key = declaration, sizes
        if key not in self._name_places:
            self._name_places[key] = _name_place(declaration, sizes)
        return self._name_places[key]

    def _starts(self, entries: UnitEntries, places: list[int], backs: Backs | None) -> Iterator[int]:
        """Where entries may begin that have their name at one of the places (offsets into the unit)."""
        if backs is None:
            with suppress(*DAMAGED):
                yield from (die for die, _ in holders(entries, places))
            return
        distances = sorted(set(backs.values()))
        for place in places:
            for back in distances:
                at = place - back
                if at >= entries.unit.first - entries.unit.offset and backs.get(code_at(entries.data, at)) == back:
                    yield at

    # -- entries ------------------------------------------------------------------------------------------------------

    def _holder_of(self, entries: UnitEntries, at: int, *, is_start: bool) -> NamedEntry | None:
        """The top-level entry that holds a place, or begins there."""
        try:
            start = top_level_at(entries, at)
            return None if start is None or (is_start and start != at) else self._entry(entries, start)
        except DAMAGED:
            return None

    def _holders(self, units: Units, unit: Unit, places: list[int]) -> Iterator[NamedEntry]:
        entries = _open(units, unit)
        try:
            if entries is not None:
                for die, _ in holders(entries, places):
                    yield self._entry(entries, die)
        except DAMAGED:
            return

    def _entry(self, entries: UnitEntries, at: int) -> NamedEntry:
        return NamedEntry(entries, entries.entry(entries.unit.offset + at), self._signed_types)

    @cached_property
    def _units(self) -> Units | None:
        if self._sections is None or not self._sections.has_dwarf:
            return None
        try:
            return Units(self._sections)
        except DAMAGED:
            return None

    @cached_property
    def _signed_types(self) -> SignedTypes:
        assert self._units is not None  # asked for of entries only
        return SignedTypes(self._units)

    @cached_property
    def _searched(self) -> list[Units]:
        """.debug_info, and .debug_types if there is one."""
        return [] if self._units is None else [self._units, *self._signed_types.old]

    @cached_property
    def _indexed(self) -> IndexedNames | None:
        return IndexedNames(self._units) if self._units is not None and len(self._content("str_offsets")) else None


def _open(units: Units, unit: Unit) -> UnitEntries | None:
    try:
        return units.open(unit)
    except DAMAGED:
        return None


def _is_wanted(entry: NamedEntry, tags: Collection[str], *, declarations: bool) -> bool:
    return entry.tag in tags and (declarations or not entry.has("declaration"))


def _name_place(declaration: Declaration, sizes: Sizes) -> int | None:
    """The distance of the name from the code of an entry; None if it is not fixed."""
    place = 0
    for attribute, form, _ in declaration.attributes:
        if attribute == _NAME:
            return place
        how = step(form, sizes)
        if how < 0:
            return None
        place += how
    return None


def _lazily(info: memoryview, text: bytes, words: list[int]) -> Iterator[int]:
    """Places of a text or of one of some 32-bit numbers, ascending, in pieces that grow."""
    start, size = 0, _SMALLEST
    patterns = [pattern for pattern in (text, *(word.to_bytes(4, "little") for word in words[:_FEW])) if pattern]
    longest = max((len(pattern) for pattern in patterns), default=1)
    while start < len(info):
        piece = info[start : start + size + longest - 1]
        found = set(places_of(piece, patterns))
        if len(words) > _FEW:
            found.update(places_of_words(info[start : start + size + 3], words[_FEW:]))
        yield from (start + place for place in sorted(found) if place < size)
        start, size = start + size, min(2 * size, _LARGEST)
