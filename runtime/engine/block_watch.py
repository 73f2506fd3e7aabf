"""Addresses -> a call whenever the guest begins a block of code at one of them.

A return from an exception always starts a new block, whatever the instruction is, and so does its entry.
"""

from collections import Counter
from collections.abc import Callable

from kinst.runtime.engine.native_hooks import BlockMarks


class BlockWatch:
    """Calls `notify(address)` at the start of a block at a watched address."""

    def __init__(self, marks: BlockMarks, notify: Callable[[int], None]) -> None:
        """Nothing is watched yet. `notify` is called before those that already look at blocks, since it says where the
        CPU is."""
        self._watched: Counter[int] = Counter()
        self._marks = marks
        self._notify = notify
        marks.looks.insert(0, self._look)

    def add(self, address: int) -> None:
        """Watch an address. Watches of the same address are counted."""
        self._watched[address] += 1
        self._marks.mark(address)

    def remove(self, address: int) -> None:
        """Remove one watch of an address."""
        self._watched[address] -= 1
        if not self._watched[address]:
            del self._watched[address]
        self._marks.unmark(address)

    def _look(self, address: int, _size: int) -> None:
        if address in self._watched:
            self._notify(address)
