"""Sites whose hits are batched: what clauses will read is recorded, and they run later.

Many records are alike: a function is called with the same argument again and again. What only counts runs once for
all equal records, with their number, and in the order in which the first of each was recorded. What is replayed runs
for each record, in the order in which they were recorded, and before anything that could observe its effect: see
`settle`.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.hits.actions import BatchedRuns
from kinst.runtime.hits.distinct import distinct
from kinst.runtime.hits.replayed import RecordedFiring, Replay
from kinst.runtime.hits.thread_ranges import ThreadRanges
from kinst.runtime.trap.trap import Enabling, Firing
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.values import dataclass

_MOST_KEPT: Final = 1 << 18  # words: bounds the memory that they take
# Columns of a record before its registers: the address, the CPU, the time and the thread, as `host.breakpoints.Record`
# has them.
HEAD: Final = 4


class Threads(Protocol):
    """The threads that the engine can identify. `kinst.runtime.engine.hit_records.ThreadKeys` implements it."""

    def put(self, low: int, high: int, key: int, identity: int = 0, words: Sequence[tuple[int, int]] = ()) -> None:
        """Add one; see `ThreadRange`. The words are at addresses of the host's memory."""
        ...

    def clear(self) -> None:
        """Forget all of them."""
        ...


class Records(Protocol):
    """What the engine records. `kinst.runtime.engine.hit_records.HitRecords` implements it."""

    @property
    def registers(self) -> tuple[int, ...]:
        """The registers of a record, as indexes in the trap frame."""
        ...

    @property
    def bias(self) -> int:
        """How far the address in a record is behind the breakpoint, in bytes."""
        ...

    @property
    def width(self) -> int:
        """The words of a record."""
        ...

    def want(self, registers: Iterable[int]) -> None:
        """Record these registers as well; all records were taken."""
        ...

    def want_time(self) -> None:
        """Record the time as well."""
        ...

    @property
    def threads(self) -> Threads:
        """The threads that the engine can identify."""
        ...

    def identify(self, stack_pointer: int, identity: str | None) -> None:
        """Say what identifies a thread: the stack pointer's index in the trap frame, and another register (None:
        none); all records were taken."""
        ...

    def is_empty(self) -> bool:
        """Whether nothing was recorded since the last time."""
        ...

    def take(self) -> NDArray[np.uint64]:
        """(n, `width`) what was recorded since the last time, in order: the breakpoint's address plus `bias`, the CPU,
        the time (ns), the number of the thread's key where that is wanted, the registers' values, and padding that
        means nothing. It is a view of the buffer, valid until the guest resumes."""
        ...

    def take_words(self) -> list[int]:
        """The same as a flat list of rows: the fastest way for a few."""
        ...


@dataclass(frozen=True, slots=True)
class _Site:
    """A site whose clauses run for each record in order."""

    address: int
    runs: tuple[tuple[Enabling, Replay], ...]
    registers: frozenset[int]
    is_keyed: bool
    has_pc: bool


# Whether a record has the key of its thread; pairs of an index in the trap frame and the column of its value in the
# record; what is called for it: the first enabling and replay, which most sites have only, and the others.
_Row = tuple[bool, tuple[tuple[int, int], ...], Enabling, Replay, tuple[tuple[Enabling, Replay], ...]]


_UNKNOWN: Final = ThreadRanges(lambda _firing: None)


class RecordedSites:
    """The sites at which the engine records."""

    def __init__(self, records: Records, arch: ArchFacts) -> None:
        """There are none yet."""
        self._records = records
        self._pc, self._count = arch.pc, len(arch.registers)
        self._alike: dict[int, tuple[BatchedRuns, frozenset[int]]] = {}  # by address as records have it
        self._replayed: dict[int, _Site] = {}  # by address as records have it
        self._rows: dict[int, _Row] = {}  # by the same addresses: how a record of `_replayed` is replayed
        self._columns: tuple[NDArray[np.uint64], NDArray[np.bool_]] | None = None  # see `_blank`
        self._kept: list[int] = []  # words of records of `_alike`, whose order does not matter
        self._firing = RecordedFiring([0] * self._count)
        self._keys: list[int] = []  # of threads, by the numbers that records have
        self._numbers: dict[int, int] = {}  # and the other way round
        self._stack_pointer, self._ranges = arch.stack_pointer, _UNKNOWN
        self._host: Callable[[int], int | None] = lambda _address: None
        self._is_identified = False

    def know(self, ranges: ThreadRanges, host: Callable[[int], int | None]) -> None:
        """Identify threads by these. `host` gives the host's address of a 64-bit word of the guest's virtual memory;
        None if it is not in RAM."""
        self._ranges, self._host = ranges, host

    def learn(self, firing: Firing) -> None:
        """A hit was dispatched: from now on the engine can record hits of this thread."""
        if not self.is_keyed(firing.site):
            return
        found = self._ranges.of(firing)
        if found is None:
            return
        # One word that cannot be compared, and the record of another thread would get this key.
        words = [(host, value) for address, value in found.words if (host := self._host(address)) is not None]
        if len(words) == len(found.words):
            # Records have small numbers in place of keys, which may be below 0.
            number = self._numbers.setdefault(found.key, len(self._keys))
            if number == len(self._keys):
                self._keys.append(found.key)
            self._records.threads.put(found.low, found.high, number, found.identity, words)

    def add(self, at: int, batched: BatchedRuns, *, is_replayed: bool) -> None:
        """Run these for hits at an address: for each, in the order of all that are replayed, or once for those that
        are alike."""
        found = (action.reads.registers_of(enabling) for action, enabling in batched)
        looked_at = frozenset[int]().union(*found)
        registers = looked_at - {self._pc}
        if not registers <= set(self._records.registers):
            self.want(lambda: self._records.want(registers))
        # `want` comes before the site is known: it runs the clauses of records, which have no such site.
        recorded_at = at + self._records.bias
        if is_replayed:
            runs = tuple((enabling, action.replay) for action, enabling in batched)
            is_keyed = any(action.reads.has_thread for action, _ in batched)
            if is_keyed and not self._is_identified:
                self._is_identified = True
                self.want(lambda: self._records.identify(self._stack_pointer, self._ranges.identity))
            if any(action.reads.has_time for action, _ in batched):
                self._records.want_time()
            site = _Site(at, runs, registers, is_keyed, self._pc in looked_at)
            self._replayed[recorded_at] = site
            self._rows[recorded_at] = self._row(site)
        else:
            self._alike[recorded_at], self._columns = (batched, registers), None

    def want(self, change: Callable[[], None]) -> None:
        """Change the columns of records."""
        self.fold()  # records in the buffer have the old columns
        change()
        self._columns = None
        self._rows = {at: self._row(site) for at, site in self._replayed.items()}

    def _row(self, site: _Site) -> _Row:
        wanted = self._records.registers
        columns = tuple((index, HEAD + wanted.index(index)) for index in sorted(site.registers))
        (enabling, replay), more = site.runs[0], site.runs[1:]
        if site.has_pc:  # it is not recorded: every record of the site has the same
            replay, more = partial(self._at, site.address), site.runs
        return site.is_keyed, columns, enabling, replay, more

    def _at(self, address: int, firing: RecordedFiring) -> None:
        firing.frame.regs[self._pc] = address

    def remove(self, at: int) -> bool:
        """Stop recording at an address; returns whether anything was recorded there."""
        recorded_at = at + self._records.bias
        if recorded_at not in self._alike and recorded_at not in self._replayed:
            return False
        self.fold()
        self._replayed.pop(recorded_at, None)
        self._rows.pop(recorded_at, None)
        if self._alike.pop(recorded_at, None) is not None:
            self._columns = None
        return True

    def is_keyed(self, at: int) -> bool:
        """Whether hits at an address are recorded with the key of their thread."""
        site = self._replayed.get(at + self._records.bias)
        return site is not None and site.is_keyed

    def fold(self) -> None:
        """Run the clauses of all records."""
        self.settle()
        self._count_kept()
        rows = self._records.take()  # `settle` has taken them if any site is replayed
        if len(rows):
            self._count_alike(rows)

    def _count_kept(self) -> None:
        if self._kept:
            kept = np.array(self._kept, np.uint64).reshape(-1, self._records.width)
            self._kept = []
            self._count_alike(kept)

    def settle(self, _firing: Firing | None = None) -> None:
        """Run what is batched in order, before something that could observe it. What only counts waits for `fold`."""
        words = self._records.take_words() if self._rows else []
        if words:
            self._replay_in_order(words)
        if len(self._kept) > _MOST_KEPT:
            self._count_kept()

    def _replay_in_order(self, words: Sequence[int]) -> None:
        width, firing, keys, rows = self._records.width, self._firing, self._keys, self._rows
        regs = firing.frame.regs
        for at in range(0, len(words), width):
            row = rows.get(words[at])
            if row is None:
                self._kept += words[at : at + width]
                continue
            is_keyed, columns, firing.enabling, replay, more = row
            firing.cpu, firing.time = words[at + 1], words[at + 2]
            if is_keyed:
                firing.key = keys[words[at + 3]]
            for index, column in columns:
                regs[index] = words[at + column]
            replay(firing)
            for firing.enabling, replay in more:  # assigns the attribute
                replay(firing)

    def _count_alike(self, rows: NDArray[np.uint64]) -> None:
        registers, regs = self._records.registers, [0] * self._count
        # A copy: `_blank` changes it, and the rows are the engine's buffer.
        columns = rows.T[[0, 1, *range(HEAD, HEAD + len(registers))]]
        self._blank(columns[0], columns[2:])
        first, hits = distinct(columns)
        bias = self._records.bias
        for (at, cpu, *each), number in zip(columns[:, first].T.tolist(), hits.tolist(), strict=True):
            for index, value in zip(registers, each, strict=True):
                regs[index] = value
            regs[self._pc] = at - bias
            for action, enabling in self._alike[at][0]:
                assert action.count is not None, "sites without are replayed"
                action.count(enabling, cpu, number, regs)

    def _blank(self, addresses: NDArray[np.uint64], values: NDArray[np.uint64]) -> None:
        """Clear the registers that are not read at a record's site: hits would differ in what makes no difference."""
        if self._columns is None:
            known, wanted = sorted(self._alike), self._records.registers
            blank = [[index not in self._alike[at][1] for at in known] for index in wanted]
            self._columns = np.array(known, np.uint64), np.array(blank, np.bool_).reshape(len(wanted), len(known))
        places, blanks = self._columns
        if blanks.any():
            values[blanks[:, np.searchsorted(places, addresses)]] = 0
