"""The PC's clock: the date in both encodings, setting it, and the three interrupts."""

from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from kinst.runtime.machine.devices.pc.rtc import Rtc
from tests.runtime.machine.devices.bench import StillClock, Wire

SECOND = 1_000_000_000
A, B, C, D, CENTURY = 0x0A, 0x0B, 0x0C, 0x0D, 0x32


@dataclass
class Bench:
    start: datetime = datetime(2024, 2, 28, 23, 59, 58, tzinfo=UTC)
    clock: StillClock = field(default_factory=StillClock)
    wire: Wire = field(default_factory=Wire)
    rtc: Rtc = field(init=False)

    def __post_init__(self) -> None:
        self.rtc = Rtc(self.clock, self.wire, {0x5F: 3}, self.start)

    def get(self, index: int) -> int:
        self.rtc.write(0, 1, index)
        return self.rtc.read(1, 1)

    def set(self, index: int, value: int) -> None:
        self.rtc.write(0, 1, index)
        self.rtc.write(1, 1, value)

    def date(self) -> list[int]:
        return [self.get(index) for index in (CENTURY, 9, 8, 7, 6, 4, 2, 0)]

    def run_to_deadline(self) -> int:
        due = self.rtc.deadline()
        assert due is not None
        self.clock.time = due
        self.rtc.advance()
        return due


def test_the_date_goes_on_over_a_leap_day() -> None:
    bench = Bench()
    assert bench.date() == [0x20, 0x24, 0x02, 0x28, 4, 0x23, 0x59, 0x58]
    bench.clock.time = 2 * SECOND
    assert bench.date() == [0x20, 0x24, 0x02, 0x29, 5, 0, 0, 0]


@pytest.mark.parametrize(("control", "hour"), [(2, 0x23), (6, 23), (0, 0x91), (4, 0x8B)])
def test_encodings_of_the_hour(control: int, hour: int) -> None:
    bench = Bench()
    bench.set(B, control)
    assert bench.get(4) == hour
    bench.set(4, hour)
    assert bench.get(4) == hour


def test_setting_the_date() -> None:
    bench = Bench()
    bench.set(B, 0x82)
    for index, value in ((CENTURY, 0x19), (9, 0x99), (8, 0x12), (7, 0x31), (4, 0x10), (2, 0x20), (0, 0x30)):
        bench.set(index, value)
    bench.clock.time = 10 * SECOND
    assert bench.date() == [0x19, 0x99, 0x12, 0x31, 6, 0x10, 0x20, 0x30]
    bench.set(B, 0x02)
    bench.clock.time += SECOND
    assert bench.get(0) == 0x31


def test_a_date_that_does_not_exist_changes_nothing() -> None:
    bench = Bench()
    bench.set(8, 0x13)
    assert bench.get(8) == 0x02


def test_update_in_progress_before_each_second() -> None:
    bench = Bench()
    assert bench.get(A) == 0x26
    bench.clock.time = SECOND - 200_000
    assert bench.get(A) == 0xA6


def test_update_interrupt() -> None:
    bench = Bench()
    bench.clock.time = SECOND // 2
    assert bench.rtc.deadline() is None
    bench.set(B, 0x12)
    assert bench.run_to_deadline() == SECOND
    assert bench.wire.level
    assert bench.get(C) & 0xB0 == 0x90
    assert (bench.wire.level, bench.get(C)) == (False, 0)
    assert bench.run_to_deadline() == 2 * SECOND


def test_periodic_interrupt() -> None:
    bench = Bench()
    bench.set(A, 0x26)
    bench.set(B, 0x42)
    assert [bench.run_to_deadline() for _ in range(2)] == [976_562, 2 * 976_562]
    assert bench.get(C) & 0xC0 == 0xC0


def test_alarm() -> None:
    bench = Bench()
    for index, value in ((1, 0x01), (3, 0x00), (5, 0xFF)):
        bench.set(index, value)
    bench.set(B, 0x22)
    for expected in (False, False, True):
        bench.run_to_deadline()
        assert bench.wire.level is expected
    assert bench.clock.time == 3 * SECOND


def test_settings_and_fixed_registers() -> None:
    bench = Bench()
    assert (bench.get(0x5F), bench.get(D), bench.rtc.read(0, 1)) == (3, 0x80, 0xFF)
    bench.set(D, 0)
    bench.set(0x40, 0x77)
    assert (bench.get(D), bench.get(0x40), bench.get(0xC0)) == (0x80, 0x77, 0x77)
