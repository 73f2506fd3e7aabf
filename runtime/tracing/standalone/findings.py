"""Memory of a standalone image -> what its probes have counted or recorded since the last time.

See `kinst.targets.standalone` for the layout. While memory is read, the guest may be stopped in the middle of writing a
record, or run on; and it may have been restarted since the last time.
"""

from collections.abc import Callable
from enum import Enum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.errors import MachineError
from kinst.targets.standalone import PATIENCE, RING_HEAD, ROOM, WORD, Standalone, until
from kinst.targets.values import dataclass


class Part(Enum):
    """Of what an image keeps."""

    ALL = "counters and records"
    COUNTS = "counters"
    RECORDS = "records"


Read = Callable[[int, int], bytes]  # link address, size -> bytes
Store = Callable[[int, int], None]  # link address, a word that is stored at once
_LOOKS: Final = 1 << 28  # of a writer that waits for room: about a second under QEMU
_AT_ONCE: Final = 1 << 13  # records, where writers wait: they get room again before a second is over


@dataclass(frozen=True, slots=True)
class Found:
    """What was new in memory. `hits` has a count for each site; `records` a row for each record: the site's row, and
    its fields."""

    hits: NDArray[np.uint64]
    records: NDArray[np.uint64]
    lost: int = 0  # records that were overwritten, or never finished
    has_gaps: bool = False  # some of these were between the others, and not all before them
    gave_up: bool = False  # a writer has waited for room too long, and since then none did


class Findings:
    """The counters or the ring of records of one standalone image."""

    def __init__(self, standalone: Standalone, forms: NDArray[np.intp]) -> None:
        """`forms` says of each site in the manifest which form its records have; -1: it counts."""
        self._kept, self._forms = standalone, forms
        self._counting = np.flatnonzero(forms < 0) if standalone.has_counters else np.zeros(0, np.intp)
        self._hits = np.zeros(len(self._counting), np.uint64)  # the counters at the last time
        self._next = 0  # the record to take next
        self._awaited, self._looked = -1, 0  # a record that was not finished the last times, and how often that was
        self._until = 0  # there is room for the records before this one; 0: writers do not wait
        self._gave_up = False

    def take(
        self, read: Read, part: Part = Part.ALL, *, is_last: bool, store: Store | None = None, patience: int = 1
    ) -> Found:
        """What is new, of counters or of the ring. A record that is not finished is left for the next times, so
        many as `patience` says, unless this is the last, or half of the ring is full. With `store` writers that wait
        get room, and no ring is too full: none is overwritten meanwhile.

        Raises:
            MachineError: this cannot be what the image wrote.
        """
        hits = np.zeros(len(self._forms), np.uint64)
        if part is not Part.RECORDS:
            hits[self._counting] = self._counted(read)
        if part is Part.COUNTS or not self._kept.has_ring:
            return Found(hits, self._words(b""))
        self._gave_up = False
        records, lost, has_gaps = self._recorded(read, patience, is_last=is_last)
        if store is not None:
            self._until = self._next + self._kept.capacity
            store(self._kept.ring + PATIENCE, _LOOKS)
            store(self._kept.ring + ROOM, until(self._until))
        return Found(hits, records, lost, has_gaps, self._gave_up)

    def _begun(self, read: Read) -> int:
        """The number of records that were begun, without those whose writers wait for room."""
        words = np.frombuffer(read(self._kept.ring, RING_HEAD), "<u8")
        begun = int(words[0])
        if self._until and begun > self._until:
            if words[ROOM // WORD]:
                return self._until
            self._until, self._gave_up = 0, True
        return begun

    def _counted(self, read: Read) -> NDArray[np.uint64]:
        """New hits of the sites that count. Counters only grow: one that has shrunk means that the guest was
        restarted."""
        if not len(self._counting):
            return self._hits
        hits = np.frombuffer(read(self._kept.address, WORD * len(self._counting)), "<u8")
        new = np.where(hits >= self._hits, hits - self._hits, hits)
        self._hits = hits
        return new

    def _recorded(self, read: Read, patience: int, *, is_last: bool) -> tuple[NDArray[np.uint64], int, bool]:
        """New records in order, how many are lost, and whether some of these were not before all others.

        A writer first takes a number from the head of the ring, then writes the record into that place, and last the
        number plus one, which marks it as finished. So a place that holds any other number was taken and not finished,
        or was overwritten since by a record that is a capacity later.
        """
        kept = self._kept
        begun = self._begun(read)
        if begun < self._next:  # the guest was restarted
            self._next, self._awaited, self._until = 0, -1, 0
        if self._until and not is_last:
            begun = min(begun, self._next + _AT_ONCE)
        start = self._next
        first = max(start, begun - kept.capacity)
        lost = first - start
        places = self._places(read, first, begun)
        numbers = np.arange(first, begun, dtype=np.uint64)
        later = self._begun(read)  # whose writers may have reused the places by now
        is_whole = numbers + np.uint64(kept.capacity) >= np.uint64(later)
        is_done = (places[:, 0] == numbers + np.uint64(1)) & is_whole
        is_full = not self._until and later - first > kept.capacity // 2
        end = None if is_last else self._end(numbers[~is_done & is_whole], 1 if is_full else patience)
        self._next = begun if end is None else end
        chosen = is_done & (numbers < np.uint64(self._next))
        lost += self._next - first - int(chosen.sum())
        records = places[chosen, 1:]
        self._check_sites(records[:, 0])
        rows = np.flatnonzero(chosen)
        has_gaps = self._next - first - int(rows[0]) > len(rows) if len(rows) else False
        return records, lost, has_gaps

    def _check_sites(self, rows: NDArray[np.uint64]) -> None:
        """Raise MachineError if nothing is recorded there."""
        if not len(rows):
            return
        if int(rows.max()) >= len(self._forms) or int(self._forms[rows.astype(np.intp)].min()) < 0:
            raise MachineError(f"the records at {self._kept.ring:#x} are of sites that the image does not have")

    def _end(self, unfinished: NDArray[np.uint64], patience: int) -> int | None:
        """The record to begin with the next time: the first unfinished one that was not awaited before, or not long
        enough. An interrupted writer finishes by then; one that never does must not hold up the records after it. None:
        none is awaited."""
        is_left = self._looked < patience
        awaited = next((one for one in unfinished.tolist() if one > self._awaited - is_left), None)
        if awaited is not None:
            self._looked = self._looked + 1 if awaited == self._awaited else 1
            self._awaited = awaited
        return awaited

    def _places(self, read: Read, first: int, end: int) -> NDArray[np.uint64]:
        """The words of the ring's places from record `first` to before `end`, a row each, finished or not."""
        kept = self._kept
        pieces = []
        while first < end:
            place = first % kept.capacity
            count = min(end - first, kept.capacity - place)
            pieces.append(read(kept.ring + RING_HEAD + place * kept.stride, count * kept.stride))
            first += count
        return self._words(b"".join(pieces))

    def _words(self, data: bytes) -> NDArray[np.uint64]:
        return np.frombuffer(data, "<u8").reshape(-1, self._kept.stride // WORD)
