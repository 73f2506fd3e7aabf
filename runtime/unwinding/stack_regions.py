"""A stack pointer -> the stack that it is in, named by an address that stays the same as long as the stack exists.

The first of these that is known decides: unmapped guard pages around a stack; the size of stacks in the image, if they
begin at multiples of it; or how far up the frames reach, from which the extent of each stack is learned. The pointer of
an empty stack is its end: the byte below it belongs to the stack.
"""

from bisect import bisect_left
from collections.abc import Callable
from typing import Final

import numpy as np

from kinst.targets.elf.symbols import SHN_UNDEF, Symbols

_PAGE_SHIFT: Final = 12
_PAGE: Final = 1 << _PAGE_SHIFT
_HIGHEST: Final = (1 << 64) - 1
_LARGEST: Final = 1 << 16  # the most bytes of a stack between unmapped pages
_SIZES: Final = tuple(1 << shift for shift in range(_PAGE_SHIFT, 19))
_MOST_KNOWN: Final = 1 << 16  # stack pointers
_BESIDE: Final = 1 << 10  # bytes that may be between known frames and others of the same stack, for trap frames
# The stack of Linux's first task, which the linker places; the stacks of other tasks have the same size.
_FIRST_STACK: Final = ("init_thread_union", "init_stack")
_FIRST_STACK_END: Final = "__end_init_stack"  # else the next symbol is its end, unless one lies inside of the stack


def stack_size(symbols: Symbols) -> int | None:
    """The size in bytes of the stacks that an image's kernel makes, each at a multiple of it; None if it is not
    known."""
    for name in _FIRST_STACK:
        rows = symbols.rows_named(name)
        rows = rows[symbols.section[rows] != SHN_UNDEF]
        if not len(rows):
            continue
        start = int(symbols.address[rows[0]])
        end = symbols.address_of(_FIRST_STACK_END)
        size = int(symbols.size[rows[0]]) or (_to_next(symbols, start) if end is None else end - start)
        if size in _SIZES and start % size == 0:
            return size
    return None


def _to_next(symbols: Symbols, address: int) -> int:
    later = symbols.address[symbols.address > np.uint64(address)]
    return int(later.min()) - address if len(later) else 0


class StackRegions:
    """The stacks of one guest."""

    def __init__(self, is_mapped: Callable[[int], bool], size: int | None) -> None:
        """`is_mapped` says whether the running CPU can read at an address. `size` is the result of `stack_size`."""
        self._is_mapped = is_mapped
        self._on_change: list[Callable[[], None]] = []
        self._size = size
        self._pages: dict[int, int | None] = {}  # number of a page -> the stack that it is part of; None: frames decide
        self._learned = _Intervals()
        self.known: dict[
            int, int
        ] = {}  # some of the pointers that were asked for, and their stacks: a cache for callers

    def on_change(self, call: Callable[[], None]) -> None:
        """Call this when the answers for some addresses change."""
        self._on_change.append(call)

    @property
    def description(self) -> str:
        """How stacks are distinguished, for -v."""
        if self._size is None:
            return "what lies between unmapped pages, else what frames reach"
        return f"what lies between unmapped pages, else {self._size:,} bytes, as the image says"

    def of(self, sp: int, top: Callable[[], int]) -> int:
        """The stack that `sp` is in. `top` gives how far up its frames reach; it is called only if nothing else
        decides."""
        page = sp - 1 >> _PAGE_SHIFT
        found = self._pages.get(page)
        if found is None and page not in self._pages:
            found = self._pages[page] = self._by_pages(sp - 1)
        if found is None:
            found = self._learned.find(sp)
        if found is None:
            found, is_renamed = self._learned.add(sp, top())
            if is_renamed:
                self.known.clear()
                for call in self._on_change:
                    call()
        if len(self.known) >= _MOST_KNOWN:
            self.known.clear()
        self.known[sp] = found
        return found

    def around(self, sp: int) -> tuple[int, int] | None:
        """Bounds of stack pointers for which `of` gives the same as for `sp`: those above the first and up to the
        second, all in the page of the byte below `sp`. None if `of` was never called for that page."""
        page = sp - 1 >> _PAGE_SHIFT
        if page < 0 or page not in self._pages:
            return None
        low, high = page << _PAGE_SHIFT, min(page + 1 << _PAGE_SHIFT, _HIGHEST)
        if self._pages[page] is not None:
            return low, high
        known = self._learned.bounds(sp)
        return None if known is None else (max(low, known[0] - 1), min(high, known[1]))

    def _by_pages(self, address: int) -> int | None:
        """The stack at an address, by unmapped pages or the size of stacks; None if neither decides."""
        size = self._size or _LARGEST
        start, pages = self._between_unmapped(address & -_PAGE, size)
        if pages <= size:
            return start
        return None if self._size is None else address & -self._size

    def _between_unmapped(self, page: int, limit: int) -> tuple[int, int]:
        """The first address and the size of the mapped pages around a page. A size of more than `limit` means that the
        search was ended."""
        start = end = page
        while end - start <= limit and self._is_mapped(end):
            end += _PAGE
        while end - start <= limit and self._is_mapped(start - _PAGE):
            start -= _PAGE
        return start, end - start


class _Intervals:
    """Parts of stacks that are known to belong together, each with the name of its stack; they do not overlap."""

    def __init__(self) -> None:
        self._lows: list[int] = []
        self._highs: list[int] = []
        self._names: list[int] = []

    def find(self, sp: int) -> int | None:
        """The stack that `sp` is in, if it has been that deep before; else None."""
        at = bisect_left(self._highs, sp)
        return self._names[at] if at < len(self._lows) and self._lows[at] <= sp else None

    def bounds(self, sp: int) -> tuple[int, int] | None:
        """The part that `sp` is in: its lowest and highest address; None if it has not been that deep before."""
        at = bisect_left(self._highs, sp)
        return (self._lows[at], self._highs[at]) if at < len(self._lows) and self._lows[at] <= sp else None

    def add(self, low: int, high: int) -> tuple[int, bool]:
        """Note that [low, high] belongs to one stack. It is joined to the intervals that it overlaps, or to one right
        above it: the walk of the frames may have ended early, such as at an exception's trap frame. Otherwise it is a
        new stack. Returns its name, and whether parts of it had another one before."""
        first, last = bisect_left(self._highs, low), bisect_left(self._lows, high + 1)
        if first == last and first < len(self._lows) and self._lows[first] - high <= _BESIDE:
            last += 1
        joined = slice(first, last)
        name = self._names[last - 1] if first < last else high
        is_renamed = any(other != name for other in self._names[joined])
        low, high = min([low, *self._lows[joined]]), max([high, *self._highs[joined]])
        self._lows[joined], self._highs[joined], self._names[joined] = [low], [high], [name]
        return name, is_renamed
