"""Names -> the entries of functions that have one of them, and the entries that refer to those.

What refers to a function by DW_AT_specification or DW_AT_abstract_origin may be referred to itself: a definition
outside its class, a function that link-time optimisation moved to another unit. So a search is repeated with what was
found until there is no more.

Many names are searched as one: the cost is in passing over the sections and the units, not in comparing.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import field
from functools import cached_property
from typing import Final

from kinst.targets.debuginfo.dwarf.abbreviations import NAMES, ORIGINS, Plan
from kinst.targets.debuginfo.dwarf.byte_search import find_all, places_of, places_of_strings, places_of_words
from kinst.targets.debuginfo.dwarf.numbers import Tag
from kinst.targets.debuginfo.dwarf.scan import every, guesses, holders
from kinst.targets.debuginfo.dwarf.unit_places import Damaged, StringOffsets, by_unit, refused
from kinst.targets.debuginfo.dwarf.units import Entry, Unit, UnitEntries, Units
from kinst.targets.debuginfo.inlined import InlinedCopy, SourceLine
from kinst.targets.errors import ImageError
from kinst.targets.values import dataclass

_FEW: Final = 24  # offsets of a name that are searched for one by one


@dataclass(frozen=True, slots=True)
class Mention:
    """An entry that has the name, or refers to one that does."""

    offset: int
    name: str | None  # its own, if it was searched for
    tag: int
    origin: int | None  # the entry it refers to
    completes: bool  # it refers to its own declaration (DW_AT_specification)
    inline: int  # DW_AT_inline, 0 without
    has_code: bool
    declared: SourceLine | None
    copy: InlinedCopy | None

    @property
    def is_target(self) -> bool:
        """Whether others may refer to it: copies of copies refer to the abstract entry, which has no code."""
        return self.tag == Tag.SUBPROGRAM or not self.has_code


@dataclass(frozen=True, slots=True)
class Found:
    """What one search found, by offset of the entry: functions of the name, and what refers to something that was
    searched for."""

    named: dict[int, Mention] = field(default_factory=dict)
    references: dict[int, Mention] = field(default_factory=dict)

    def update(self, other: "Found") -> None:
        """Take what another search found."""
        self.named.update(other.named)
        self.references.update(other.references)

    def targets(self) -> set[int]:
        """What others may refer to."""
        return {*self.named, *(offset for offset, one in self.references.items() if one.is_target)}


@dataclass(frozen=True, slots=True)
class Wanted:
    """Names, and their places in the string sections (linkers merge tails: "open" may be the end of "vfs_open")."""

    texts: frozenset[bytes]
    in_str: frozenset[int]
    in_line_str: frozenset[int]


Describe = Callable[[UnitEntries, Entry, str | None, int | None], Mention]  # with its name, and what it refers to


class NameSearch:
    """Searches of one .debug_info."""

    def __init__(self, units: Units, describe: Describe) -> None:
        """Nothing is searched yet. `describe` makes a mention of an entry."""
        self._units, self._offsets = units, StringOffsets(units)
        self._describe = describe

    def search(self, names: Collection[str], damaged: Damaged) -> Found:
        """All entries of functions that have one of the names, and all that refer to them, directly or not.

        `damaged` is called for units that may have some and cannot be read; if it returns, they are left out.
        """
        found, wanted = Found(), self._wanted(names)
        places = self._by_unit(wanted, damaged)
        for unit, hits in places.items():
            found.update(self._in(unit, wanted, hits, set(), damaged))
        searched: set[int] = set()
        while self._far_units and (targets := found.targets() - searched):
            searched |= targets
            hits = places_of_words(self._units.info, sorted(targets))
            touched = {unit for unit, _ in by_unit(self._units, hits, damaged)}
            # Within a unit the walk follows references by itself; here are those that cross units.
            for unit in self._far_units:
                if unit in touched:
                    found.update(self._in(unit, wanted, places.get(unit, []), set(searched), damaged))
        return found

    def _in(self, unit: Unit, wanted: Wanted, hits: list[int], targets: set[int], damaged: Damaged) -> Found:
        try:
            return _UnitSearch(self._units.open(unit), wanted, hits, self._describe).search(targets)
        except ImageError as error:
            damaged(error)
            return Found()

    def exists(self, name: str) -> bool:
        """Whether there is an entry of a function of that name.

        Raises:
            ImageError: a unit that may have it is damaged.
        """
        wanted = self._wanted([name])
        places = self._by_unit(wanted, refused)
        searches = (_UnitSearch(self._units.open(unit), wanted, hits, self._describe) for unit, hits in places.items())
        return any(search.has_name() for search in searches)

    # -- where a name may stand ---------------------------------------------------------------------------------------

    def _wanted(self, names: Collection[str]) -> Wanted:
        texts = frozenset(name.encode(errors="surrogateescape") for name in names if name)
        strings = self._units.sections.get
        in_str, in_line_str = (places_of_strings(strings(section), texts) for section in ("str", "line_str"))
        return Wanted(texts, frozenset(in_str), frozenset(in_line_str))

    def _hits(self, wanted: Wanted) -> list[int]:
        """Places of .debug_info that may be a name, or its offset."""
        info, words = self._units.info, sorted(wanted.in_str | wanted.in_line_str)
        if len(words) + len(wanted.texts) > _FEW:
            return sorted({*places_of_strings(info, wanted.texts), *places_of_words(info, words)})
        patterns = [text + b"\0" for text in wanted.texts]
        return places_of(info, [*patterns, *(word.to_bytes(8, "little")[:4] for word in words)])

    def _by_unit(self, wanted: Wanted, damaged: Damaged) -> dict[Unit, list[int]]:
        """The units to search, in order, with the places in them (offsets into the unit)."""
        found: dict[Unit, list[int]] = {unit: [] for unit in self._offsets.units_with(wanted.in_str, damaged)}
        found |= by_unit(self._units, self._hits(wanted), damaged)
        return dict(sorted(found.items(), key=lambda item: item[0].offset))

    @cached_property
    def _far_units(self) -> list[Unit]:
        """Units that may refer to functions of others."""
        units = self._units
        if not units.all:
            return []
        tables = units.abbreviations.far_tables(units.table_ends, units.all[0].sizes)
        return [unit for unit in units.all if unit.abbreviations in tables]


class _UnitSearch:
    """The search in one unit."""

    def __init__(self, entries: UnitEntries, wanted: Wanted, hits: list[int], describe: Describe) -> None:
        self._entries, self._wanted, self._hits, self._describe = entries, wanted, hits, describe

    def has_name(self) -> bool:
        """Whether an entry of a function has the name."""
        return any(plan[3].has_names and self._name(self._entry(die)) is not None for die, plan in self._walk(set()))

    def search(self, targets: set[int]) -> Found:
        """Functions of the name, and what refers to them or to `targets` (offsets into .debug_info)."""
        entries = self._entries
        if not entries.is_odd:
            # What refers to the functions can be searched at once if these are guessed well; the walk confirms them.
            guessed = guesses(entries, self._hits)
            if not guessed and not targets and not entries.has_floating_names:
                return Found()
            targets = targets | {entries.unit.offset + place for place in guessed}
        while True:
            found = self._pass(targets)
            if found.targets() <= targets:
                return found
            targets = targets | found.targets()

    def _pass(self, targets: set[int]) -> Found:
        found = Found()
        for die, plan in self._walk(targets):
            declaration = plan[3]
            if not (declaration.has_names or declaration.is_reference):
                continue
            entry = self._entry(die)
            origin = next((value for at in ORIGINS if (value := entry.number(at)) in targets), None)
            name = self._name(entry) if declaration.has_names else None
            if name is not None:
                found.named[entry.offset] = self._describe(self._entries, entry, name, origin)
            elif origin is not None:
                found.references[entry.offset] = self._describe(self._entries, entry, None, origin)
        return found

    def _walk(self, targets: set[int]) -> Iterator[tuple[int, Plan]]:
        """The entries that may have the name or refer to a target."""
        # Some name or reference has no fixed form of four bytes: every entry is read.
        if self._entries.is_odd:
            return every(self._entries)
        data, base = self._entries.data, self._entries.unit.offset
        words = {(target - base) & 0xFFFFFFFF for target in targets}
        if self._entries.is_far:
            words |= {target & 0xFFFFFFFF for target in targets}
        # DW_FORM_ref4 counts from the unit, DW_FORM_ref_addr from the section.
        places = set(self._hits)
        if len(words) > _FEW:
            places.update(places_of_words(memoryview(data), sorted(words)))
        else:
            for word in words:
                places.update(find_all(data, word.to_bytes(4, "little")))
        return holders(self._entries, sorted(places))

    def _entry(self, die: int) -> Entry:
        return self._entries.entry(self._entries.unit.offset + die)

    def _name(self, entry: Entry) -> str | None:
        """The first of its names that was searched for."""
        wanted = self._wanted
        for name in NAMES:
            place = self._entries.text_place(entry, name)
            if place is None:
                continue
            section, at = place
            if isinstance(section, bytes):
                text = section if section in wanted.texts else None
            elif at in (wanted.in_str if section == "str" else wanted.in_line_str):
                text = self._entries.text(entry, name)
            else:
                continue
            if text is not None:
                return text.decode(errors="surrogateescape")
        return None
