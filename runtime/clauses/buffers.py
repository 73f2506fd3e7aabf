"""Records of clauses, errors and the guest's console -> what the consumer takes, in the order in which things happened.

A policy decides what happens to a record that does not fit (DTrace Guide, "Buffers and Buffering"): `switch` drops it,
`fill` stops tracing on that CPU, `ring` overwrites the oldest. If the user set no size, `switch` asks for a drain
before it grows too large, and drops only a record that is larger than dtrace's default buffer: here nothing runs while
the consumer drains, so that no program loses records just because it fires fast.

`reserve` is called before a clause's predicate, as in dtrace_probe(): a full buffer is a drop even if the predicate
would have been false. Space is taken only by `append`, since most clauses end at their predicate; so `append` always
adds the record that was reserved last.

Sizes are those of DTrace's records, whatever they take in our memory: with the same bufsize the same records are lost.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from heapq import merge
from typing import Final, Protocol

from kinst.runtime.clauses.environment import ErrorRecord, Record

Entry = Record | ErrorRecord | bytes

LIMIT: Final = 64 << 20  # bytes: a larger buffer is treated as one without a size, which asks for drains
BACKLOG: Final = 1 << 20  # counted bytes at which it does: printing them takes less than a second
PRINTING: Final = 250  # counted bytes of any record besides its contents, for the time that printing takes
VALUE: Final = 32  # counted bytes of each value that print() writes: each member of a struct is a line
LARGEST: Final = 32 << 20  # bytes of a CPU's buffer that is kept to the end: more is reduced, as by bufresize=auto
DEFAULT: Final = 4 << 20  # bytes: dtrace's default bufsize
OVERHEAD: Final = 200  # bytes that a small record takes in our memory, besides its contents
_CLAUSE: Final = 2  # where a record has the number of its clause
_ERROR_SIZE: Final = 56  # bytes of a record of dtrace's own ERROR enabling


class _Policy(Protocol):
    """A policy, as `Buffers` uses it."""

    is_full: bool
    size: int  # bytes per CPU

    def reserve(self, cpu: int, size: int) -> bool:
        """Whether there is space for a record of `size` bytes."""
        ...

    def append(self, record: Record) -> None:
        """Add the record that was reserved last."""
        ...

    def append_error(self, record: ErrorRecord) -> None:
        """Add an error for which `reserve` returned True."""
        ...

    def append_console(self, data: bytes) -> None:
        """Add console output, in order with the records. It takes no space."""
        ...

    def take(self) -> list[Entry]:
        """Remove and return all entries, in order."""
        ...

    def take_console(self) -> list[bytes]:
        """Remove and return the console output only."""
        ...


class Buffers:
    """The principal buffers of all CPUs.

    `drops` counts records by CPU since the last `take_drops`. With the policy fill, `is_full` says that some CPU's
    buffer is full.
    """

    def __init__(self, size: int | None, policy: str, on_full: Callable[[], None]) -> None:
        """`size` is bytes per CPU, None if the user set none; `policy` is switch, fill or ring; `on_full` is called by
        a buffer without a size when it wants to be drained."""
        self.drops: Counter[int] = Counter()
        self.on_full = on_full
        self.printed: dict[int, int] = {}  # number of a clause -> counted bytes of what its print() writes
        self.held_back = 0
        self.is_ending = False
        self._policy = self._make(size, policy)
        # Clauses bind these: a hit calls the policy itself.
        self.reserve: Callable[[int, int], bool] = self._policy.reserve
        self.append: Callable[[Record], None] = self._policy.append
        self.append_console: Callable[[bytes], None] = self._policy.append_console

    def _make(self, size: int | None, policy: str) -> _Policy:
        if policy == "switch":
            return _Drained(self) if size is None or size > LIMIT else _Switch(self, size)
        kept = min(DEFAULT if size is None else size, LARGEST)
        return _Ring(self, kept) if policy == "ring" else _Fill(self, kept)

    @property
    def is_full(self) -> bool:
        """Whether a buffer is full under the policy fill, which ends tracing."""
        return self._policy.is_full

    @property
    def size(self) -> int:
        """The size in bytes per CPU."""
        return self._policy.size

    def grow(self, size: int) -> None:
        """Make the buffers at least this large (bytes per CPU). Only before the run."""
        self._policy.size = max(self._policy.size, size)

    def hold_back(self, size: int) -> None:
        """Hold back space (bytes) for END's clauses: with the policy fill, a full buffer ends the run."""
        self.held_back = size

    def end(self) -> None:
        """END is about to fire: it may use the space that was held back."""
        self.is_ending = True

    def weigh(self, clause: int, values: int) -> None:
        """Set how many values print() writes for each record of a clause, which take time to print. Only before the
        run."""
        if values:
            self.printed[clause] = VALUE * values

    def append_error(self, record: ErrorRecord) -> None:
        """Add the record of an aborted clause. It needs space, as any record does: it may be dropped."""
        if self._policy.reserve(record.cpu, _ERROR_SIZE):
            self._policy.append_error(record)

    def take(self) -> list[Entry]:
        """Remove and return all entries, in the order in which things happened."""
        return self._policy.take()

    def take_console(self) -> list[bytes]:
        """Remove and return the console output only, for policies whose records wait for the end of the run."""
        return self._policy.take_console()

    def take_drops(self) -> dict[int, int]:
        """`drops` since the last time; they start at 0 again."""
        taken = dict(self.drops)
        self.drops.clear()
        return taken


class _Listed:
    """Entries of all CPUs in one list, in order."""

    def __init__(self, buffers: Buffers, size: int) -> None:
        self._buffers = buffers
        self.size = size
        self._entries: list[Entry] = []
        self._pending = 0
        self.is_full = False
        self.append_console: Callable[[bytes], None] = self._entries.append

    def take(self) -> list[Entry]:
        taken = self._entries[:]
        self._entries.clear()  # and not a new list: `append_console` is bound to this one
        self._empty()
        return taken

    def _empty(self) -> None:
        """All space is free again."""

    def take_console(self) -> list[bytes]:
        console = [entry for entry in self._entries if isinstance(entry, bytes)]
        if console:
            self._entries[:] = [entry for entry in self._entries if not isinstance(entry, bytes)]
        return console


class _Drained(_Listed):
    """The policy switch without a size: it is drained before there is much to print. While the consumer prints, neither
    Ctrl-C nor a timeout ends the run."""

    def __init__(self, buffers: Buffers) -> None:
        super().__init__(buffers, LIMIT)
        self._used = 0
        self._printed = buffers.printed

    def _empty(self) -> None:
        self._used = 0

    def reserve(self, cpu: int, size: int) -> bool:
        if size > DEFAULT:
            self._buffers.drops[cpu] += 1
            return False
        self._pending = size = size + PRINTING
        if self._used + size <= BACKLOG:
            return True
        self._buffers.on_full()
        self._pending = size  # the drain may have run clauses that reserved other records
        if not self._used:  # a single record may be larger than the backlog
            return True
        self._buffers.drops[cpu] += 1
        return False

    def append(self, record: Record) -> None:
        self._used += self._pending
        if self._printed:
            self._used += self._printed.get(record[_CLAUSE], 0)
        self._entries.append(record)

    def append_error(self, record: ErrorRecord) -> None:
        self._used += self._pending
        self._entries.append(record)


class _Switch(_Listed):
    """The policy switch: a record that does not fit is dropped."""

    def __init__(self, buffers: Buffers, size: int) -> None:
        super().__init__(buffers, size)
        self._space: defaultdict[int, int] = defaultdict(lambda: self.size)

    def _empty(self) -> None:
        self._space.clear()

    def reserve(self, cpu: int, size: int) -> bool:
        if size > self._space[cpu]:
            self._buffers.drops[cpu] += 1
            return False
        self._pending = size
        return True

    def append(self, record: Record) -> None:
        self._space[record[0]] -= self._pending
        self._entries.append(record)

    def append_error(self, record: ErrorRecord) -> None:
        self._space[record.cpu] -= self._pending
        self._entries.append(record)


class _Fill(_Switch):
    """The policy fill: a record that does not fit ends tracing on its CPU. It is not a drop."""

    def reserve(self, cpu: int, size: int) -> bool:
        buffers = self._buffers
        if not buffers.is_ending and size > self._space[cpu] - buffers.held_back:
            self._space[cpu] = -1  # nothing fits any more: a smaller record must not follow one that is missing
            self.is_full = True
            return False
        self._pending = size
        return True


class _Ring:
    """The policy ring: a record that does not fit overwrites the oldest ones of its CPU."""

    def __init__(self, buffers: Buffers, size: int) -> None:
        self._buffers = buffers
        self.size = size
        self._pending = 0
        self._sequence = 0
        self._rings: defaultdict[int, _CpuRing] = defaultdict(_CpuRing)
        self._console: list[tuple[int, Entry]] = []
        self.is_full = False

    def reserve(self, cpu: int, size: int) -> bool:
        if size > self.size:
            self._buffers.drops[cpu] += 1
            return False
        self._pending = size
        return True

    def append(self, record: Record) -> None:
        self._sequence += 1
        self._rings[record[0]].append(self._sequence, record, self._pending, self.size)

    def append_error(self, record: ErrorRecord) -> None:
        self._sequence += 1
        self._rings[record.cpu].append(self._sequence, record, self._pending, self.size)

    def append_console(self, data: bytes) -> None:
        self._sequence += 1
        self._console.append((self._sequence, data))

    def take(self) -> list[Entry]:
        rings = [ring.entries() for ring in self._rings.values()]
        taken = [entry for _, entry in merge(self._console, *rings, key=_sequence)]
        self._console.clear()
        self._rings.clear()
        return taken

    def take_console(self) -> list[bytes]:
        console = [entry for _, entry in self._console if isinstance(entry, bytes)]
        self._console.clear()
        return console


def _sequence(numbered: tuple[int, Entry]) -> int:
    return numbered[0]


@dataclass(slots=True)
class _CpuRing:
    """The records of a CPU at their offsets in the buffer. DTrace does not split a record: if one does not fit before
    the end of the buffer, the rest stays empty and it begins at 0. Which records survive depends on that."""

    records: deque[tuple[int, int, Entry]] = field(default_factory=deque)  # offset, sequence, record
    end: int = 0

    def append(self, sequence: int, entry: Entry, size: int, limit: int) -> None:
        """Add an entry of `size` bytes in place of the oldest ones."""
        records = self.records
        if self.end + size > limit:
            while records and records[0][0] >= self.end:  # the oldest are behind `end`: they go first
                records.popleft()
            self.end = 0
        after = self.end + size
        while records and self.end <= records[0][0] < after:
            records.popleft()
        records.append((self.end, sequence, entry))
        self.end = after

    def entries(self) -> Iterator[tuple[int, Entry]]:
        """The entries with their sequence numbers, oldest first."""
        return ((sequence, entry) for _, sequence, entry in self.records)
