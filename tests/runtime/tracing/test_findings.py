"""Counters and rings in memory -> what is new in them: differences, order, what is lost, and a guest started again."""

import struct
from collections.abc import Sequence

import numpy as np
import pytest

from kinst.runtime.tracing.standalone.findings import Findings, Found, Part
from kinst.targets.errors import MachineError
from kinst.targets.standalone import RING_HEAD, Action, Standalone

START = 0x1000
SITES = 3


class Image:
    """A standalone image's data, written as its trampolines do."""

    def __init__(self, action: Action, capacity: int = 0, fields: tuple[str, ...] = ()) -> None:
        size = 8 * SITES if action is Action.COUNT else RING_HEAD + (capacity + 1) * 8 * (2 + len(fields))
        self.kept = Standalone(action, START, 0x9000, size, capacity, fields)
        self.data = bytearray(size)
        self.findings = Findings(self.kept, np.full(SITES, -1 if action is Action.COUNT else 0))

    def read(self, address: int, size: int) -> bytes:
        assert START <= address <= address + size <= START + len(self.data)
        return bytes(self.data[address - START : address - START + size])

    def take(self, *, is_last: bool = False, patience: int = 1) -> Found:
        return self.findings.take(self.read, is_last=is_last, patience=patience)

    def put(self, offset: int, *words: int) -> None:
        struct.pack_into(f"<{len(words)}Q", self.data, offset, *words)

    @property
    def begun(self) -> int:
        """The ring's number of records."""
        return int(struct.unpack_from("<Q", self.data)[0])

    def begin(self) -> int:
        """A CPU takes a place."""
        number = self.begun
        self.put(0, number + 1)
        return number

    def finish(self, number: int, row: int, *words: int) -> None:
        """It has written the record."""
        self.put(RING_HEAD + number % self.kept.capacity * self.kept.stride, number + 1, row, *words)

    def record(self, row: int, *words: int) -> None:
        self.finish(self.begin(), row, *words)


def records(found: Found) -> list[list[int]]:
    return [list(one) for one in found.records.tolist()]


def counted(counts: Sequence[int], image: Image) -> list[int]:
    image.put(0, *counts)
    found: list[int] = image.take().hits.tolist()
    return found


def test_hits_are_those_since_the_last_time() -> None:
    image = Image(Action.COUNT)
    assert counted([5, 0, 1 << 63], image) == [5, 0, 1 << 63]
    assert counted([7, 0, 1 << 63], image) == [2, 0, 0]
    assert counted([7, 1, (1 << 63) + 4], image) == [0, 1, 4]


def test_counters_of_a_guest_that_was_started_again_begin_at_zero() -> None:
    image = Image(Action.COUNT)
    counted([5, 6, 7], image)
    assert counted([1, 6, 0], image) == [1, 0, 0]


def test_records_come_in_order_and_each_once() -> None:
    image = Image(Action.RECORD, 4, ("arg0",))
    assert records(image.take()) == []
    image.record(2, 10)
    image.record(0, 11)
    assert records(image.take()) == [[2, 10], [0, 11]]
    image.record(1, 12)
    image.record(1, 13)
    image.record(1, 14)  # in the place of the first
    found = image.take()
    assert (records(found), found.lost) == ([[1, 12], [1, 13], [1, 14]], 0)


def test_records_that_were_overwritten_are_lost() -> None:
    image = Image(Action.RECORD, 4, ("arg0",))
    for value in range(11):
        image.record(0, value)
    found = image.take()
    assert (records(found), found.lost) == ([[0, 7], [0, 8], [0, 9], [0, 10]], 7)
    for value in range(11, 16):
        image.record(0, value)
    assert image.take().lost == 1


def test_a_record_that_is_not_finished_is_waited_for_and_those_behind_it_wait_too() -> None:
    image = Image(Action.RECORD, 8)
    image.record(0)
    late = image.begin()
    image.record(2)
    assert records(image.take()) == [[0]]
    image.finish(late, 1)
    assert records(image.take()) == [[1], [2]]


def test_a_record_that_is_never_finished_is_lost_the_second_time() -> None:
    image = Image(Action.RECORD, 8)
    image.begin()
    image.record(2)
    image.begin()
    found = image.take()
    assert (records(found), found.lost) == ([], 0)
    found = image.take()
    assert (records(found), found.lost) == ([[2]], 1)
    found = image.take()
    assert (records(found), found.lost) == ([], 1)


def test_patience_is_the_number_of_readings_in_which_a_record_is_awaited() -> None:
    """A host may let a guest's CPU wait in the middle of a record for longer than there is between two readings."""
    image = Image(Action.RECORD, 8)
    late = image.begin()
    image.record(2)
    for _ in range(3):
        found = image.take(patience=4)
        assert (records(found), found.lost) == ([], 0)
    image.finish(late, 1)
    assert records(image.take(patience=4)) == [[1], [2]]
    image.begin()
    image.record(2)
    for _ in range(4):
        assert records(image.take(patience=4)) == []
    found = image.take(patience=4)
    assert (records(found), found.lost) == ([[2]], 1)


def test_patience_ends_when_half_of_the_ring_is_full() -> None:
    image = Image(Action.RECORD, 8)
    image.begin()
    for row in (1, 2, 0):
        image.record(row)
    assert records(image.take(patience=64)) == []
    image.record(1)
    found = image.take(patience=64)
    assert (records(found), found.lost) == ([[1], [2], [0], [1]], 1)


def test_the_last_reading_waits_for_nothing() -> None:
    image = Image(Action.RECORD, 8)
    image.begin()
    image.record(2)
    found = image.take(is_last=True)
    assert (records(found), found.lost) == ([[2]], 1)


def test_the_ring_of_a_guest_that_was_started_again_is_new() -> None:
    image = Image(Action.RECORD, 8)
    for _ in range(3):
        image.record(0)
    image.take()
    image.data[:] = bytes(len(image.data))
    image.record(1)
    found = image.take()
    assert (records(found), found.lost) == ([[1]], 0)


def test_what_no_image_writes_is_refused() -> None:
    image = Image(Action.RECORD, 8)
    image.record(SITES)
    with pytest.raises(MachineError, match=r"^the records at 0x1000 are of sites that the image does not have$"):
        image.take()


def test_a_ring_that_says_too_much_costs_no_more_than_its_size() -> None:
    image = Image(Action.RECORD, 8)
    image.put(0, 1 << 63)
    found = image.take(is_last=True)
    assert (records(found), found.lost) == ([], 1 << 63)


def test_a_record_that_is_overwritten_while_it_is_read_is_lost() -> None:
    """The guest goes on meanwhile: it has begun a record in the place of the first, and may have changed that."""
    image = Image(Action.RECORD, 4, ("arg0",))
    for value in range(4):
        image.record(0, value)

    def read(address: int, size: int) -> bytes:
        found = image.read(address, size)
        if address > START:
            image.begin()
            found = found[:16] + b"\xff" * 8 + found[24:]
        return found

    found = image.findings.take(read, is_last=False)
    assert (records(found), found.lost) == ([[0, 1], [0, 2], [0, 3]], 1)


def test_a_mix_has_counters_and_behind_them_records_as_long_as_the_longest() -> None:
    """Sites 0 and 2 count, and site 1 records, in the shorter of two forms."""
    kept = Standalone(Action.MIX, START, 0x9000, 0, 4, forms=(("arg0", "arg1"), ("arg0",)), counters=2)
    assert (kept.ring, kept.stride) == (START + 64, 32)
    data, findings = bytearray(kept.kept_size), Findings(kept, np.array([-1, 1, -1]))

    def read(address: int, size: int) -> bytes:
        assert START <= address <= address + size <= START + len(data)
        return bytes(data[address - START : address - START + size])

    def record(row: int) -> None:
        begun = struct.unpack_from("<Q", data, 64)[0]
        struct.pack_into("<Q", data, 64, begun + 1)
        struct.pack_into("<3Q", data, 64 + RING_HEAD + begun % 4 * 32, begun + 1, row, 77)

    struct.pack_into("<2Q", data, 0, 5, 6)
    record(1)
    found = findings.take(read, Part.COUNTS, is_last=False)
    assert (found.hits.tolist(), len(found.records)) == ([5, 0, 6], 0)
    struct.pack_into("<2Q", data, 0, 7, 6)
    found = findings.take(read, Part.RECORDS, is_last=False)
    assert (found.hits.tolist(), found.records[:, :2].tolist()) == ([0, 0, 0], [[1, 77]])
    assert findings.take(read, is_last=True).hits.tolist() == [2, 0, 0]
    record(2)
    with pytest.raises(MachineError, match="sites that the image does not have"):
        findings.take(read, is_last=True)
