"""Records of clauses, errors and the guest's console -> what the consumer takes, in the order in which it happened.

A policy decides what happens to a record that does not fit: `switch` drops it, `fill` stops tracing on that CPU, `ring`
overwrites the oldest. Where the user set no size, `switch` asks for a drain before it grows too large, and drops only a
record that is larger than dtrace's buffer.

`reserve` is asked before a clause's predicate, as in dtrace_probe(); room is used up only when the record comes, since
most clauses end at their predicate. So `append` is always of the record that was reserved last.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from heapq import merge
from typing import Final, Protocol

from kinst.runtime.clauses.environment import ErrorRecord, Record

Entry = Record | ErrorRecord | bytes

LIMIT: Final = 64 << 20  # accounted bytes, at which a buffer without a size asks for a drain
LARGEST: Final = 32 << 20  # of one CPU's buffer that is kept to the end: as bufresize=auto, we give less than asked
DEFAULT: Final = 4 << 20  # bufsize of dtrace
OVERHEAD: Final = 200  # what a small record takes in our memory besides its bytes
_ERROR_SIZE: Final = 56  # of a record of dtrace's own ERROR enabling


class _Policy(Protocol):
    """What `Buffers` asks of its policy."""

    is_full: bool
    size: int  # bytes per CPU

    def reserve(self, cpu: int, size: int) -> bool:
        """Whether a record may come."""
        ...

    def append(self, record: Record) -> None:
        """It came."""
        ...

    def append_error(self, record: ErrorRecord) -> None:
        """Likewise, `reserve` said yes."""
        ...

    def append_console(self, data: bytes) -> None:
        """It has its place among the records and takes no room."""
        ...

    def take(self) -> list[Entry]:
        """Everything."""
        ...

    def take_console(self) -> list[bytes]:
        """Only the guest's console."""
        ...


class Buffers:
    """The principal buffers of all CPUs.

    `drops` counts records by CPU since the last `take_drops`. `is_full`: policy fill, some CPU's buffer is full.
    `held_back`: policy fill, the room that is left for END; `is_ending`: set before END fires, which may use it.
    """

    def __init__(self, size: int | None, policy: str) -> None:
        """`size` is bytes per CPU, None if the user set none; `policy` is switch, fill or ring."""
        self.drops: Counter[int] = Counter()
        self.on_full: Callable[[], None] = lambda: None
        self.held_back = 0
        self.is_ending = False
        self._policy = self._make(size, policy)
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
        """Policy fill: tracing is over."""
        return self._policy.is_full

    @property
    def size(self) -> int:
        """Bytes per CPU."""
        return self._policy.size

    def grow(self, size: int) -> None:
        """Before the run: make it at least so large."""
        self._policy.size = max(self._policy.size, size)

    def append_error(self, record: ErrorRecord) -> None:
        """A clause was aborted. It needs room as any record does."""
        if self._policy.reserve(record.cpu, _ERROR_SIZE):
            self._policy.append_error(record)

    def take(self) -> list[Entry]:
        """Everything since the last time, in the order in which it happened; there is room again."""
        return self._policy.take()

    def take_console(self) -> list[bytes]:
        """The console alone, for policies whose records wait for the end of the run."""
        return self._policy.take_console()

    def take_drops(self) -> dict[int, int]:
        """`drops` since the last time."""
        taken = dict(self.drops)
        self.drops.clear()
        return taken


class _Listed:
    """Entries of all CPUs in one list."""

    def __init__(self, buffers: Buffers, size: int) -> None:
        self._buffers = buffers
        self.size = size
        self._entries: list[Entry] = []
        self._pending = 0
        self.is_full = False
        self.append_console: Callable[[bytes], None] = self._entries.append

    def take(self) -> list[Entry]:
        taken = self._entries[:]
        self._entries.clear()
        self._empty()
        return taken

    def _empty(self) -> None:
        """There is room again."""

    def take_console(self) -> list[bytes]:
        console = [entry for entry in self._entries if isinstance(entry, bytes)]
        if console:
            self._entries[:] = [entry for entry in self._entries if not isinstance(entry, bytes)]
        return console


class _Drained(_Listed):
    """No size: drained when it is large."""

    def __init__(self, buffers: Buffers) -> None:
        super().__init__(buffers, LIMIT)
        self._used = 0

    def _empty(self) -> None:
        self._used = 0

    def reserve(self, cpu: int, size: int) -> bool:
        if size > DEFAULT:
            self._buffers.drops[cpu] += 1
            return False
        self._pending = size = size + OVERHEAD
        if self._used + size <= LIMIT:
            return True
        self._buffers.on_full()
        self._pending = size
        if self._used + size <= LIMIT:
            return True
        self._buffers.drops[cpu] += 1
        return False

    def append(self, record: Record) -> None:
        self._used += self._pending
        self._entries.append(record)

    def append_error(self, record: ErrorRecord) -> None:
        self._used += self._pending
        self._entries.append(record)


class _Switch(_Listed):
    """A record that does not fit is dropped."""

    def __init__(self, buffers: Buffers, size: int) -> None:
        super().__init__(buffers, size)
        self._room: defaultdict[int, int] = defaultdict(lambda: self.size)

    def _empty(self) -> None:
        self._room.clear()

    def reserve(self, cpu: int, size: int) -> bool:
        if size > self._room[cpu]:
            self._buffers.drops[cpu] += 1
            return False
        self._pending = size
        return True

    def append(self, record: Record) -> None:
        self._room[record[0]] -= self._pending
        self._entries.append(record)

    def append_error(self, record: ErrorRecord) -> None:
        self._room[record.cpu] -= self._pending
        self._entries.append(record)


class _Fill(_Switch):
    """What does not fit ends tracing on its CPU; it is no drop."""

    def reserve(self, cpu: int, size: int) -> bool:
        buffers = self._buffers
        if not buffers.is_ending and size > self._room[cpu] - buffers.held_back:
            self._room[cpu] = -1
            self.is_full = True
            return False
        self._pending = size
        return True


class _Ring:
    """What does not fit overwrites the oldest records of its CPU."""

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
    """Records where they lie in the buffer: none is split, so what is left at its end stays empty."""

    records: deque[tuple[int, int, Entry]] = field(default_factory=deque)  # offset, sequence, record
    end: int = 0

    def append(self, sequence: int, entry: Entry, size: int, limit: int) -> None:
        """Overwrite what lies there, which is the oldest."""
        records = self.records
        if self.end + size > limit:
            while records and records[0][0] >= self.end:
                records.popleft()
            self.end = 0
        after = self.end + size
        while records and self.end <= records[0][0] < after:
            records.popleft()
        records.append((self.end, sequence, entry))
        self.end = after

    def entries(self) -> Iterator[tuple[int, Entry]]:
        """With their sequence."""
        return ((sequence, entry) for _, sequence, entry in self.records)
