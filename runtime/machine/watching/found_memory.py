"""Pages that no board file knows of and that a guest uses as memory -> RAM.

By the rule of unnamed registers they read as what was written, which is what RAM does: the guest sees no difference but
the speed, and that it can execute what it has copied there. Stacks in SRAM that no device tree names are usual.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from kinst.runtime.machine.memory import PhysicalMemory
from kinst.runtime.machine.physical.frames import PAGE
from kinst.runtime.machine.physical.unmodelled import Register, Unmodelled
from kinst.runtime.machine.watching.accesses import DeviceAccesses
from kinst.targets.errors import MachineError

_MOST: Final = 16384  # pages altogether


@dataclass(slots=True, eq=False)
class Found:
    """Consecutive pages [start, stop) that are RAM now. `written`: words that were written before."""

    start: int
    stop: int
    written: int
    places: Counter[int]  # PCs of the accesses until then, with how often


class Space(Protocol):
    """Where translations are."""

    def forget(self) -> None:
        """Drop them."""
        ...


class Surroundings(Protocol):
    """What is used of the machine."""

    unmodelled: Unmodelled
    memory: PhysicalMemory

    @property
    def accesses(self) -> DeviceAccesses:
        """Who is told of accesses: RAM has none to tell of."""
        ...

    @property
    def space(self) -> Space:
        """The address space."""
        ...


class FoundMemory:
    """An `Interlude`: pages become RAM between two runs of the engine."""

    def __init__(self, around: Surroundings, unclaimed: Callable[[int], range | None]) -> None:
        """`unclaimed` gives the addresses around a physical one at which nothing is."""
        self._unmodelled, self._memory, self._around = around.unmodelled, around.memory, around
        self._unclaimed = unclaimed
        self.found: list[Found] = []  # by address; neighbours are one

    def begin(self) -> None:
        """Take the pages that were written to as memory is since the last time."""
        pages = self._unmodelled.like_memory
        if not pages or self._around.accesses.is_watched():
            return
        for page in sorted(pages):
            self._take(page)
        pages.clear()
        self._around.space.forget()

    def ended(self) -> bool:
        """The engine is never stopped for this."""
        return False

    def _take(self, page: int) -> None:
        start = page * PAGE
        free = self._unclaimed(start)
        left = _MOST - sum(one.stop - one.start for one in self.found) // PAGE
        if free is None or start + PAGE > free.stop or left <= 0:
            return
        taken = self._growth(page, free, left)
        try:
            self._memory.add_ram(taken.start * PAGE, len(taken) * PAGE)
        except MachineError:  # the host has no memory left: the pages stay as they are
            return
        registers = [one for number in taken for one in self._unmodelled.give_up(number)]
        for one in registers:
            self._memory.store(one.address, one.size, one.value)
        self._note(taken, registers)

    def _growth(self, page: int, free: range, left: int) -> range:
        """The pages to take from `page` on. A range that grows doubles: a translation looks at each region."""
        start = page * PAGE
        near = next((one for one in self.found if start in (one.start - PAGE, one.stop)), None)
        if near is None:
            return range(page, page + 1)
        most = min((near.stop - near.start) // PAGE, left)
        step = 1 if near.stop == start else -1
        count = 1
        while count < most and self._is_free(page + step * count, free):
            count += 1
        return range(page, page + count) if step > 0 else range(page - count + 1, page + 1)

    def _is_free(self, page: int, free: range) -> bool:
        is_inside = free.start <= page * PAGE and (page + 1) * PAGE <= free.stop
        return is_inside and self._unmodelled.is_plain(page)

    def _note(self, taken: range, registers: list[Register]) -> None:
        places: Counter[int] = Counter()
        for one in registers:
            places.update(one.places)
        made = Found(taken.start * PAGE, taken.stop * PAGE, sum(one.writes > 0 for one in registers), places)
        for near in [found for found in self.found if found.stop == made.start or found.start == made.stop]:
            self.found.remove(near)
            made.start, made.stop = min(made.start, near.start), max(made.stop, near.stop)
            made.written += near.written
            made.places.update(near.places)
        self.found.append(made)
        self.found.sort(key=lambda one: one.start)
