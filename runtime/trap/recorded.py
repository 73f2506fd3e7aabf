"""Sites at which hits are recorded, with the registers that somebody will look at: what was recorded is told later.

Many records are alike: a function is called with the same argument again and again. What only counts is told once for
all those that are, with their number, and in the order in which the first of each was recorded.
"""

from collections.abc import Callable, Iterable, MutableSequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.trap.trap import Enabling, Firing
from kinst.targets.arch.facts import ArchFacts

_HEAD: Final = 2  # columns of a record before its registers: the address, and the CPU
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)


class Records(Protocol):
    """What the engine records. `kinst.runtime.engine.hit_records.HitRecords` implements it."""

    @property
    def registers(self) -> tuple[int, ...]:
        """The registers of a record, as indexes in the trap frame."""
        ...

    def want(self, registers: Iterable[int]) -> None:
        """Let records have these registers as well; all records were taken."""
        ...

    def take(self) -> NDArray[np.uint64]:
        """(n, 2 + registers) what was recorded since the last time, in order: the breakpoint's address, the CPU, and
        the registers' values."""
        ...


@dataclass(frozen=True, slots=True)
class Reads:
    """What an action looks at, besides the probe and the CPU: arguments by number, and indexes in the trap frame."""

    arguments: frozenset[int] = frozenset()
    registers: frozenset[int] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.arguments or self.registers)

    def __or__(self, other: "Reads") -> "Reads":
        return Reads(self.arguments | other.arguments, self.registers | other.registers)


NOTHING: Final = Reads()
Count = Callable[
    [Enabling, int, int, MutableSequence[int]], None
]  # enabling, CPU, hits, and `Firing.regs` of each of them


class Counting:
    """An action that does nothing but count, so that the number of hits that are alike tells it all."""

    __slots__ = ("count", "reads", "run")

    def __init__(self, run: Callable[[Firing], None], count: Count, reads: Reads = NOTHING) -> None:
        """`run` does what a single hit does. `count` does it for several, in which what `reads` names is the same."""
        self.run, self.count, self.reads = run, count, reads

    def __call__(self, firing: Firing) -> None:
        """Do what a single hit does."""
        self.run(firing)

    def registers(self, enabling: Enabling) -> set[int] | None:
        """The registers that it looks at where this is enabled; None if it looks at more than that."""
        found = set(self.reads.registers)
        for index in self.reads.arguments:
            registers = enabling.registers(index)
            if registers is None:
                return None
            found.update(registers)
        return found


class RecordedSites:
    """The sites at which the engine records."""

    def __init__(self, records: Records, arch: ArchFacts) -> None:
        """There are none yet."""
        self._records = records
        self._pc, self._count = arch.pc, len(arch.registers)
        self._sites: dict[int, tuple[list[tuple[Counting, Enabling]], frozenset[int]]] = {}  # by address
        self._columns: tuple[NDArray[np.uint64], NDArray[np.bool_]] | None = None  # see `_blanks`

    def add(self, at: int, counting: list[tuple[Counting, Enabling]]) -> None:
        """Tell these of hits at an address."""
        found = (action.registers(enabling) or set[int]() for action, enabling in counting)
        registers = frozenset[int]().union(*found) - {self._pc}
        if not registers <= set(self._records.registers):
            self.fold()
            self._records.want(registers)
        self._sites[at], self._columns = (counting, registers), None

    def remove(self, at: int) -> bool:
        """Tell nobody of what is recorded at an address from now on; whether somebody was told."""
        if at not in self._sites:
            return False
        self.fold()
        del self._sites[at]
        self._columns = None
        return True

    def fold(self) -> None:
        """Tell what was recorded."""
        rows = self._records.take()
        if not len(rows):
            return
        rows[:, _HEAD:][self._blanks(rows[:, 0])] = 0  # else hits that are alike would not look so
        found, hits = distinct(rows)
        registers, regs = self._records.registers, [0] * self._count
        for (address, cpu, *values), number in zip(found.tolist(), hits.tolist(), strict=True):
            for index, value in zip(registers, values, strict=True):
                regs[index] = value
            regs[self._pc] = address
            for action, enabling in self._sites[address][0]:
                action.count(enabling, cpu, number, regs)

    def _blanks(self, addresses: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """For each record the registers that nobody looks at there."""
        if self._columns is None:
            known, wanted = sorted(self._sites), self._records.registers
            blank = [[index not in self._sites[at][1] for index in wanted] for at in known]
            self._columns = np.array(known, np.uint64), np.array(blank, np.bool_).reshape(-1, len(wanted))
        places, blanks = self._columns
        found: NDArray[np.bool_] = blanks[np.searchsorted(places, addresses)]
        return found


def distinct(rows: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.intp]]:
    """The distinct rows of an array that is not empty, in the order of the first of each, and how often each is
    there."""
    mixed = rows[:, 0] * _FACTOR
    for column in range(1, rows.shape[1]):
        mixed ^= mixed >> np.uint64(29)
        mixed = (mixed ^ rows[:, column]) * _FACTOR
    order = np.argsort(mixed)
    sorted_ = mixed[order]
    starts = np.flatnonzero(np.append(True, sorted_[1:] != sorted_[:-1]))
    first = np.minimum.reduceat(order, starts)
    hits = np.diff(np.append(starts, len(rows)))
    if (rows[order] != rows[np.repeat(first, hits)]).any():  # two that differ have the same number
        _, first, hits = np.unique(rows, axis=0, return_index=True, return_counts=True)
    in_order = np.argsort(first)
    return rows[first[in_order]], hits[in_order]
