"""Addresses of the running image -> names as dtrace prints them: module`function+0x1c.

The tables are made when the first address is looked up. Results are cached, since the same addresses come up again.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Final

import numpy as np

from kinst.rewriter.arch.registry import dissector, uses_of
from kinst.runtime.clauses.environment import CALLER, POINTER
from kinst.targets.elf.header import PT_LOAD, FileKind
from kinst.targets.elf.symbols import (
    SHN_ABS,
    SHN_UNDEF,
    STB_GLOBAL,
    STB_LOCAL,
    STB_WEAK,
    STT_FUNC,
    STT_GNU_IFUNC,
    STT_NOTYPE,
    STT_OBJECT,
    Symbols,
    is_assembler_label,
    mapping_letters,
)
from kinst.targets.functions.found import Functions, find_functions
from kinst.targets.image import Image
from kinst.targets.values import dataclass

_WITHOUT_OFFSET: Final = frozenset({"sym", "func", "usym", "ufunc"})
_MODULES: Final = frozenset({"mod", "umod"})
_RANK: Final = {STB_GLOBAL: 0, STB_WEAK: 1, STB_LOCAL: 2}
_KEPT: Final = 1 << 16  # results that are cached
_NESTED: Final = 8  # the most objects that may begin between the start of an object and an address in it


@dataclass(frozen=True, slots=True)
class Place:
    """A named object that holds an address. Addresses are link addresses."""

    name: str
    start: int
    size: int


class ImageSymbols:
    """The names of an image's addresses; implements `kinst.runtime.clauses.environment.Symbols`."""

    def __init__(
        self,
        image: Image,
        functions: Callable[[], Functions] | None = None,
        *,
        bias: int = 0,
        symbols: Symbols | None = None,
        moved: Callable[[int], int] = lambda address: address,
        follows_call: Callable[[int], bool] = lambda _link: False,
    ) -> None:
        """Nothing is read until the first name is looked up.

        Args:
            image: the image, as it was built or patched.
            functions: its functions as they were found in the original: breakpoints must not be disassembled.
            bias: how far, in bytes, it was moved when it was loaded.
            symbols: symbols to use instead of the image's own.
            moved: maps an address in a copy that the image made of itself to the same place in what was loaded.
            follows_call: whether a link address is one that a call returns to.
        """
        self._image = image
        self._functions = functions or partial(_functions, image, symbols)
        self._bias = bias
        self._symbols = image.symbols if symbols is None else symbols
        self._moved = moved
        self._follows_call = follows_call
        self._places: dict[int, Place | None] = {}
        self._texts: dict[tuple[int, str], str] = {}

    def object_start(self, address: int, kind: str) -> int:
        """The start of the function, object or module that holds an address; the address itself if nothing does."""
        if kind == "uaddr":
            return address
        if kind in _MODULES:
            span = self._span(self._moved(address) - self._bias)
            return address if span is None else self._lowest + self._bias
        place = self.place(address)
        return address if place is None else place.start + self._bias

    def describe(self, address: int, kind: str) -> str:
        """The text for an address."""
        link = self._moved(address) - self._bias
        text = self._texts.get((link, kind))
        if text is None:
            if self._span(link) is None:
                return f"{address:#x}"
            if len(self._texts) >= _KEPT:
                self._texts.clear()
            text = self._texts[link, kind] = self._describe(link, address, kind)
        return text

    def place(self, address: int) -> Place | None:
        """The function or data object that holds an address of the running image."""
        link = self._moved(address) - self._bias
        if link not in self._places:
            if len(self._places) >= _KEPT:
                self._places.clear()
            self._places[link] = self._place(link)
        return self._places[link]

    def _describe(self, link: int, address: int, kind: str) -> str:
        if kind in _MODULES:
            return self._image.module
        place = self.place(address)
        if place is None or (kind == POINTER and link - place.start >= place.size):
            return f"{self._image.module}`{address:#x}"
        if kind == CALLER and link == place.start and self._follows_call(link):
            place = self.place(address - 1) or place
        offset = link - place.start
        shown = f"+{offset:#x}" if offset and kind not in _WITHOUT_OFFSET else ""
        return f"{self._image.module}`{place.name}{shown}"

    # -- tables -------------------------------------------------------------------------------------------------------

    def _span(self, link: int) -> range | None:
        return next((span for span in self._spans if link in span), None)

    @cached_property
    def _spans(self) -> tuple[range, ...]:
        """The address ranges that the image occupies."""
        image = self._image
        if image.kind is FileKind.REL:
            return tuple(range(region.address, region.address + region.size) for region in image.code_regions)
        segments = (segment for segment in image.segments if segment.kind == PT_LOAD and segment.size)
        return tuple(range(segment.address, segment.address + segment.size) for segment in segments)

    @cached_property
    def _lowest(self) -> int:
        return min((span.start for span in self._spans), default=0)

    def _place(self, link: int) -> Place | None:
        starts, sizes, names = self._table
        row = bisect_right(starts, link) - 1
        for candidate in range(row, max(row - _NESTED, -1), -1):
            if link - starts[candidate] < sizes[candidate] or self._is_behind_call(link, starts[candidate]):
                return Place(names[candidate], starts[candidate], sizes[candidate])
        return None

    def _is_behind_call(self, link: int, start: int) -> bool:
        """Whether the address is just past the function at `start`: it is the return address of a call of a function
        that never returns, such as panic()."""
        row = self._known_functions.row_at(link - 1)
        return row is not None and int(self._known_functions.address[row]) == start

    @cached_property
    def _known_functions(self) -> Functions:
        return self._functions()

    @cached_property
    def _table(self) -> tuple[list[int], list[int], list[str]]:
        """Starts, sizes and names of functions and data objects, in address order."""
        functions = self._known_functions
        found = dict(
            zip(functions.address.tolist(), zip(functions.size.tolist(), functions.names, strict=True), strict=True)
        )
        for start, size, name in self._data():
            found.setdefault(start, (size, name))
        ordered = sorted(found)
        return ordered, [found[start][0] for start in ordered], [found[start][1] for start in ordered]

    def _data(self) -> Sequence[tuple[int, int, str]]:
        """Data objects, each with its preferred name first. A label has no size: it names its first byte."""
        table = self._symbols
        is_code = np.isin(table.kind, (STT_FUNC, STT_GNU_IFUNC))
        is_named = np.isin(table.kind, (STT_OBJECT, STT_NOTYPE)) & ~np.isin(table.section, (SHN_UNDEF, SHN_ABS))
        is_named &= (mapping_letters(table) == 0) & ~is_assembler_label(table) & ~is_code
        rows = np.flatnonzero(is_named)
        rank = np.array([_RANK.get(binding, 3) for binding in table.binding[rows].tolist()], np.uint8)
        rows = rows[np.lexsort((np.arange(len(rows)), rank, table.size[rows] == 0))]
        columns = zip(table.address[rows].tolist(), table.size[rows].tolist(), table.names(rows), strict=True)
        return [(address, max(size, 1), name) for address, size, name in columns]


def _functions(image: Image, symbols: Symbols | None) -> Functions:
    sweep = dissector(image.facts).dissect
    return find_functions(image, sweep=sweep, uses_of=uses_of(image.facts), symbols=symbols)
