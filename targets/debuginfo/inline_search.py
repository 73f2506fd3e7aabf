"""A function's name -> every copy of it that was inlined, out of DWARF of any size.

Nothing walks all the debug information. The bytes of the name, or of its offset in .debug_str, select the units; in
those the bytes of the offset of the function's entry select what may refer to it; and a flat walk shows which of these
bytes are what they look like (`kinst.targets.debuginfo.dwarf.scan`). So the answer is exact, as if every entry had been
read.
"""

import struct
from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import Final

from kinst.targets.c_types import ImageTypes
from kinst.targets.debuginfo.callers import Callers
from kinst.targets.debuginfo.debugfile import find_debug
from kinst.targets.debuginfo.dwarf.abbreviations import INLINED
from kinst.targets.debuginfo.dwarf.forms import DAMAGE
from kinst.targets.debuginfo.dwarf.line_files import LineFiles
from kinst.targets.debuginfo.dwarf.name_search import Mention, NameSearch
from kinst.targets.debuginfo.dwarf.numbers import At, Tag
from kinst.targets.debuginfo.dwarf.ranges import entry_of, ranges_of
from kinst.targets.debuginfo.dwarf.scan import abstract
from kinst.targets.debuginfo.dwarf.sections import DebugSections
from kinst.targets.debuginfo.dwarf.unit_places import Damaged, refused
from kinst.targets.debuginfo.dwarf.units import Entry, UnitEntries, Units
from kinst.targets.debuginfo.inlined import InlinedCopy, InlineFunction, Matching, SourceLine
from kinst.targets.debuginfo.inlined_parameters import Parameters
from kinst.targets.elf.file import ElfLike
from kinst.targets.errors import ImageError
from kinst.targets.probe import matcher
from kinst.targets.visible import text_of

_U32: Final = struct.Struct("<I").unpack_from
_LONGEST_NAME: Final = 4096
_FAR: Final = 16  # references that are followed from one entry to the next; real chains have 2
_UNKNOWN: Final = SourceLine("", 0)


class InlineSearch:
    """Searches of one image: it keeps what several searches need."""

    def __init__(self, image: ElfLike, debug: DebugSections | None = None, *, types: ImageTypes | None = None) -> None:
        """Find the debug information. `types` are those that parameters shall have; else the image's.

        Raises:
            ImageError: there is none.
        """
        self._image = image
        self._debug = find_debug(image) if debug is None else debug
        self._units = Units(self._debug)
        self._units.check_split()
        is_apart = self._debug.path != image.path  # then the image itself may be stripped
        self._callers = Callers(image.symbols.joined(self._debug.symbols) if is_apart else image.symbols)
        self._types = types
        self._names = NameSearch(self._units, self._mention)
        self._parameters: Parameters | None = None
        self._files: tuple[UnitEntries, LineFiles] | None = None

    def find(self, name: str, *, with_parameters: bool = False) -> tuple[InlineFunction, ...]:
        """Every definition of an inline function and its copies, in the order of the debug information.

        Args:
            name: DW_AT_name or DW_AT_linkage_name.
            with_parameters: whether copies shall have their parameters.

        Returns:
            Empty if no function of that name is inline; `exists` tells whether there is one.

        Raises:
            ImageError: what is needed of the debug information is damaged.
        """
        return self._find([name], refused, with_parameters=with_parameters)

    def find_readable(self, name: str) -> Matching:
        """The same without units that are damaged."""
        damage: dict[str, None] = {}
        found = self._find([name], lambda error: damage.setdefault(str(error)), with_parameters=False)
        return Matching(found, tuple(damage))

    def find_matching(self, pattern: str, *, with_parameters: bool = False) -> Matching:
        """All functions that debug information marks as inline and whose names match a glob (`is_glob`)."""
        damage: dict[str, None] = {}
        names = self._matching(pattern, lambda error: damage.setdefault(str(error)))
        found = self._find(names, lambda error: damage.setdefault(str(error)), with_parameters=with_parameters)
        return Matching(tuple(sorted(found, key=lambda one: one.name)), tuple(damage))

    def names(self, pattern: str) -> list[str]:
        """The names of functions that debug information marks as inline and that match a glob, in alphabetical order;
        damaged units are left out."""
        return self._matching(pattern, lambda _error: None)

    def exists(self, name: str) -> bool:
        """Whether debug information knows a function of that name, inline or not."""
        return self._names.exists(name)

    def caller_at(self, address: int) -> tuple[str, int]:
        """Name and start of the ELF function that holds an address; "" and 0 if none does."""
        return self._callers.at(address)

    def _find(self, names: Collection[str], damaged: Damaged, *, with_parameters: bool) -> tuple[InlineFunction, ...]:
        self._parameters = Parameters(self._units, self._image_types()) if with_parameters else None
        found = self._names.search(names, damaged)
        everything = found.references | found.named
        copies, out_of_line = defaultdict[int, list[InlinedCopy]](list), set[int]()
        for mention in sorted(everything.values(), key=lambda one: one.offset):
            definition = _definition(everything, mention)
            if definition is None:
                continue
            if mention.copy is not None:
                copies[definition].append(mention.copy)
            elif mention.has_code and mention.tag == Tag.SUBPROGRAM:
                out_of_line.add(definition)
        return tuple(
            InlineFunction(
                _named(everything, mention),
                _declared(everything, mention),
                tuple(copies[offset]),
                offset in out_of_line,
            )
            for offset, mention in sorted(everything.items())
            if copies[offset] or mention.inline in INLINED
        )

    def _matching(self, pattern: str, damaged: Damaged) -> list[str]:
        matches, found, places = matcher(pattern), set[bytes](), set[int]()
        if self._units.damage is not None:
            damaged(self._units.damage)
        for unit in self._units.all:
            try:
                self._collect(self._units.open(unit), found, places)
            except ImageError as error:
                damaged(error)
        found.update(self._string(place) for place in places)
        names = sorted(text_of(name) for name in found if name)
        return [name for name in names if matches(name)]

    def _collect(self, entries: UnitEntries, found: set[bytes], places: set[int]) -> None:
        """The names of a unit's inline functions: the names themselves, or their places in .debug_str."""
        data = entries.data
        try:
            for at, declaration in abstract(entries):
                if declaration.quick is None:
                    found.add(self._name(entries, entries.entry(entries.unit.offset + at)))
                elif not declaration.quick[1] or data[at + declaration.quick[1]] in INLINED:
                    places.add(_U32(data, at + declaration.quick[0])[0])
        except DAMAGE as error:
            raise entries.damaged(error) from None

    def _string(self, place: int) -> bytes:
        strings = self._debug.get("str")
        return bytes(strings[place : place + _LONGEST_NAME]).split(b"\0", 1)[0]

    def _name(self, entries: UnitEntries, entry: Entry) -> bytes:
        """The name of a definition, which may be in the declaration that it completes."""
        for _ in range(_FAR):
            if (entry.number(At.INLINE) or 0) not in (0, *INLINED) and At.NAME in entry.values:
                return b""
            name = entries.text(entry, At.NAME)
            origin = entry.number(At.SPECIFICATION) or entry.number(At.ABSTRACT_ORIGIN)
            if name is not None or origin is None:
                return name or b""
            entries, entry = self._units.entry(origin)
        return b""

    def _mention(self, entries: UnitEntries, entry: Entry, name: str | None, origin: int | None) -> Mention:
        tag, copy = entry.declaration.tag, None
        has_code = At.LOW_PC in entry.values or At.RANGES in entry.values
        if tag == Tag.INLINED_SUBROUTINE and has_code:
            copy = self._copy(entries, entry)
        declared = self._lines(entries).line(entry, At.DECL_FILE, At.DECL_LINE) if tag == Tag.SUBPROGRAM else None
        return Mention(
            offset=entry.offset,
            name=name,
            tag=tag,
            origin=origin,
            completes=At.SPECIFICATION in entry.values,
            inline=entry.number(At.INLINE) or 0,
            has_code=has_code,
            declared=declared if declared is not None and declared.line else None,
            copy=copy,
        )

    def _copy(self, entries: UnitEntries, entry: Entry) -> InlinedCopy | None:
        """None if the copy has no instruction."""
        ranges = ranges_of(entries, entry)
        if not ranges:
            return None
        caller, start = self._callers.at(ranges[0][0])
        call = self._lines(entries).line(entry, At.CALL_FILE, At.CALL_LINE)
        parameters = () if self._parameters is None else self._parameters.of(entries, entry, ranges)
        return InlinedCopy(ranges, entry_of(entries, entry, ranges), caller, start, call, parameters)

    def _image_types(self) -> ImageTypes | None:
        """The image's own types. Everything that reads images comes with them, which takes a second to import."""
        if self._types is None:
            from kinst.targets.debuginfo.image_types import image_types
            from kinst.targets.image import Image

            self._types = image_types(self._image) if isinstance(self._image, Image) else None
        return self._types

    def _lines(self, entries: UnitEntries) -> LineFiles:
        if self._files is None or self._files[0] is not entries:
            self._files = entries, LineFiles(entries)
        return self._files[1]


def _definition(everything: dict[int, Mention], mention: Mention) -> int | None:
    """The definition that an entry belongs to: it says that it is inline, completes a declaration, or has the name.

    Circular references, which are damage, lead to none.
    """
    for _ in range(len(everything) + 1):
        if mention.tag == Tag.SUBPROGRAM and (mention.inline or mention.completes or mention.origin is None):
            return mention.offset
        if mention.origin is None or mention.origin not in everything:
            return None
        mention = everything[mention.origin]
    return None


def _named(everything: dict[int, Mention], mention: Mention) -> str:
    return next((one.name for one in _chain(everything, mention) if one.name is not None), "")


def _declared(everything: dict[int, Mention], mention: Mention) -> SourceLine:
    """Where the source declares it."""
    return next((one.declared for one in _chain(everything, mention) if one.declared is not None), _UNKNOWN)


def _chain(everything: dict[int, Mention], mention: Mention | None) -> Iterator[Mention]:
    """A definition and what it refers to: a definition may leave its name and place to the declaration that it
    completes."""
    for _ in range(len(everything) + 1):
        if mention is None:
            break
        yield mention
        mention = None if mention.origin is None else everything.get(mention.origin)
