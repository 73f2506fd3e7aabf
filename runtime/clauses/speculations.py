"""speculation(), speculate(), commit(), discard(): records that wait until the program knows whether they matter
(DTrace Guide, "Speculative Tracing").

The kernel has a buffer for each speculation and CPU, and copies those of other CPUs later, at cleanrate; until then the
speculation is busy. Here no other CPU runs meanwhile, so that the records of all CPUs are committed at once, and no
speculation is ever busy.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from kinst.runtime.clauses.buffers import LIMIT, OVERHEAD, Buffers
from kinst.runtime.clauses.environment import Record
from kinst.runtime.trap.faults import Fault, FaultKind

_MOST: Final = 1 << 18  # speculations at most, however large nspec is: each is an object


@dataclass(slots=True)
class _Speculation:
    is_active: bool = False
    records: list[tuple[int, Record]] = field(default_factory=list)  # each with the bytes that it takes
    used: Counter[int] = field(default_factory=Counter)  # bytes by CPU
    dropped: int = 0

    def empty(self) -> None:
        self.is_active = False
        self.records.clear()
        self.used.clear()
        self.dropped = 0


class Speculations:
    """All speculations of a session; their numbers start at 1.

    `drops` counts records that did not fit into a speculative buffer or, when committed, into the principal one.
    `unavailable` counts calls of speculation() when none was free. `busy` stays 0, as the module explains.
    """

    def __init__(self, count: int, size: int, buffers: Buffers) -> None:
        """`size` is bytes per speculation and CPU."""
        self._count = min(count, _MOST)
        self._size = size
        self._buffers = buffers
        self._made: list[_Speculation] = []
        self._free: list[int] = []  # numbers that were used and are inactive, in any order
        self._pending = 0
        self._memory = 0  # counted bytes of all speculations together, up to LIMIT
        self.drops = 0
        self.unavailable = 0
        self.busy = 0

    def create(self, _cpu: int) -> int:
        """speculation(): the lowest free number; 0 if there is none."""
        if self._free:
            number = min(self._free)
            self._free.remove(number)
        elif len(self._made) < self._count:
            self._made.append(_Speculation())
            number = len(self._made)
        else:
            self.unavailable += 1
            return 0
        self._made[number - 1].is_active = True
        return number

    def _find(self, number: int) -> _Speculation | None:
        """The speculation, or None if it is inactive. Raises Fault ILLOP for a number that none can have."""
        if not 0 <= number <= self._count:
            raise Fault(FaultKind.ILLOP)
        if not 0 < number <= len(self._made):
            return None
        found = self._made[number - 1]
        return found if found.is_active else None

    def reserve(self, number: int, cpu: int, size: int) -> bool:
        """speculate(): whether there is space for a record. If not, as always for number 0, the rest of the clause is
        skipped."""
        found = self._find(number)
        if found is None:
            return False
        if found.used[cpu] + size > self._size or self._memory + size + OVERHEAD > LIMIT:
            found.dropped += 1
            return False
        self._pending = size
        return True

    def append(self, number: int, record: Record) -> None:
        """Add the record for which space was reserved. Its clause may have discarded the speculation since."""
        found = self._made[number - 1]
        if not found.is_active:
            return
        found.used[record[0]] += self._pending
        self._memory += self._pending + OVERHEAD
        found.records.append((self._pending, record))

    def commit(self, number: int, _cpu: int) -> None:
        """commit(): move the records to the principal buffers, either all those of a CPU or none of them."""
        found = self._find(number)
        if found is None:
            return
        # dtrace_speculation_commit() reserves space for a CPU's whole speculative buffer at once: what does not fit is
        # one drop, not one for each record.
        fits = {cpu: self._buffers.reserve(cpu, used) for cpu, used in found.used.items()}
        for size, record in found.records:
            if fits[record[0]] and self._buffers.reserve(record[0], size):
                self._buffers.append(record)
        self._end(number, found)

    def discard(self, number: int, _cpu: int) -> None:
        """discard(): drop the records."""
        found = self._find(number)
        if found is not None:
            self._end(number, found)

    def _end(self, number: int, found: _Speculation) -> None:
        self.drops += found.dropped  # counted per speculation, and reported only when it ends, as in DTrace
        self._memory -= sum(size + OVERHEAD for size, _ in found.records)
        found.empty()
        self._free.append(number)
