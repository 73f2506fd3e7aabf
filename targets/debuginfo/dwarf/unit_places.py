"""Places in debug sections -> the units that they belong to: what the searches by name share."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cached_property
from itertools import groupby

from kinst.targets.debuginfo.dwarf.byte_search import places_of_words
from kinst.targets.debuginfo.dwarf.units import Unit, Units
from kinst.targets.errors import ImageError

Damaged = Callable[[ImageError], None]


def refused(error: ImageError) -> None:
    """What is damaged ends the search."""
    raise error


def ignored(_error: ImageError) -> None:
    """What is damaged is left out."""


def by_unit(units: Units, places: Iterable[int], damaged: Damaged) -> Iterator[tuple[Unit, list[int]]]:
    """Ascending offsets into .debug_info -> units with offsets into them.

    `damaged` is called for a place that no unit holds, since the headers before it are damaged; if it returns, the
    place is left out.
    """

    def unit_at(place: int) -> Unit | None:
        try:
            return units.at(place)
        except ImageError as error:
            damaged(error)
            return None

    for unit, group in groupby(places, unit_at):
        if unit is not None:
            yield unit, [place - unit.offset for place in group]


class StringOffsets:
    """The parts that units have in .debug_str_offsets, through which DW_FORM_strx names strings by their index."""

    def __init__(self, units: Units) -> None:
        """Nothing is read yet."""
        self._units = units

    def units_with(self, strings: Collection[int], damaged: Damaged) -> list[Unit]:
        """The units with one of some offsets into .debug_str in their part; a unit may come several times.

        `damaged` is called for each unit whose part is not known; if it returns, the unit is left out.
        """
        table = self._units.sections.get("str_offsets")
        if not len(table) or not strings:
            return []
        bases, errors = self._bases
        for error in errors:
            damaged(error)
        starts, found = [base for base, _ in bases], list[Unit]()
        for place in places_of_words(table, sorted(strings)):
            row = bisect_right(starts, place) - 1
            if row >= 0:
                # Units share a part where link-time optimisation or dwz made one of several.
                found += [unit for _, unit in bases[bisect_left(starts, starts[row]) : row + 1]]
        return found

    @cached_property
    def _bases(self) -> tuple[list[tuple[int, Unit]], list[ImageError]]:
        """Where each unit's part begins, ascending; and what is wrong with units that cannot be read."""
        found, errors = list[tuple[int, Unit]](), list[ImageError]()
        for unit in self._units.all:
            try:
                found.append((self._units.open(unit).string_offsets, unit))
            except ImageError as error:
                errors.append(error)
        return sorted(found, key=lambda one: (one[0], one[1].offset)), errors
