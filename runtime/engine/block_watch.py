"""Addresses -> a call whenever the guest begins a block of code at one of them.

What returns from an exception goes on at the start of a block, whatever instruction that is; so does what enters one.
"""

from collections import Counter
from collections.abc import Callable

from kinst.runtime.engine.native_hooks import BlockMarks


class BlockWatch:
    """Calls `notify(address)` at the start of a block at a watched address."""

    def __init__(self, marks: BlockMarks, notify: Callable[[int], None]) -> None:
        """Nothing is watched yet. `notify` comes before what looks at blocks already: it tells what the CPU is at."""
        self._watched: Counter[int] = Counter()
        self._marks = marks
        self._notify = notify
        marks.looks.insert(0, self._look)

    def add(self, address: int) -> None:
        """Watch an address, once more if it is watched already."""
        self._watched[address] += 1
        self._marks.mark(address)

    def remove(self, address: int) -> None:
        """Watch an address once less."""
        self._watched[address] -= 1
        if not self._watched[address]:
            del self._watched[address]
        self._marks.unmark(address)

    def _look(self, address: int, _size: int) -> None:
        if address in self._watched:
            self._notify(address)
