"""Watchdogs: they bite who does not restart them, and nobody else."""

from dataclasses import dataclass, field

import pytest

from kinst.runtime.machine.configuration import End
from kinst.runtime.machine.devices.watchdogs import DesignWare, Sp805

MS = 1_000_000  # ns
UNLOCKED = 0x1ACC_E551


@dataclass
class Bench:
    """A watchdog of 1 MHz, with a clock, its line, and how the machine ended."""

    kind: type[Sp805 | DesignWare]
    time: int = 0
    level: bool = False
    end: End | None = None
    dog: Sp805 | DesignWare = field(init=False)

    def __post_init__(self) -> None:
        self.dog = self.kind(self, 1_000_000, self.drive, self.power_off)

    def now(self) -> int:
        return self.time

    def drive(self, level: bool) -> None:  # noqa: FBT001 - an interrupt line is its level
        self.level = level

    def power_off(self, _code: int, end: End) -> None:
        self.end = end

    def until(self, time: int) -> None:
        """Let the time come, with the deadlines until then."""
        while (deadline := self.dog.deadline()) is not None and deadline <= time:
            self.time = deadline
            self.dog.advance()
        self.time = time


def started(kind: type[Sp805 | DesignWare]) -> Bench:
    """One that counts, interrupts first, and resets then: after 10 ms, or after 2^16 us."""
    bench = Bench(kind)
    for offset, value in ((0xC00, UNLOCKED), (0x0, 10_000), (0x8, 3)) if kind is Sp805 else ((0x4, 0), (0x0, 3)):
        bench.dog.write(offset, 4, value)
    return bench


PERIODS = {Sp805: 10 * MS, DesignWare: (1 << 16) * 1000}
FED = {Sp805: (0xC, 1), DesignWare: (0xC, 0x76)}


@pytest.mark.parametrize("kind", PERIODS)
def test_it_bites_at_the_second_time(kind: type[Sp805 | DesignWare]) -> None:
    bench, period = started(kind), PERIODS[kind]
    bench.until(period - 1)
    assert (bench.level, bench.end) == (False, None)
    bench.until(period)
    assert (bench.level, bench.end) == (True, None)
    bench.until(2 * period)
    assert bench.end is End.RESET


@pytest.mark.parametrize("kind", PERIODS)
def test_who_restarts_it_is_not_bitten(kind: type[Sp805 | DesignWare]) -> None:
    bench, period = started(kind), PERIODS[kind]
    for number in range(1, 6):
        bench.until(number * period * 3 // 2)  # after the interrupt, each time
        bench.dog.write(FED[kind][0], 4, FED[kind][1])
        assert (bench.level, bench.end) == (False, None)


@pytest.mark.parametrize("kind", PERIODS)
def test_it_stands_at_first(kind: type[Sp805 | DesignWare]) -> None:
    bench = Bench(kind)
    bench.until(10**12)
    assert bench.dog.deadline() is None
    assert bench.end is None


def test_without_an_interrupt_synopsys_bites_at_once() -> None:
    bench = Bench(DesignWare)
    bench.dog.write(0x4, 4, 2)
    bench.dog.write(0x0, 4, 1)
    bench.dog.write(0x0, 4, 0)  # once enabled it stays so
    assert bench.dog.read(0x0, 4) == 1
    bench.until((1 << 18) * 1000 - 1)
    assert bench.end is None
    bench.until((1 << 18) * 1000)
    assert bench.end is End.RESET


def test_arm_is_locked_and_can_be_stopped() -> None:
    bench = started(Sp805)
    bench.until(4 * MS)
    assert bench.dog.read(0x4, 4) == 6_000
    bench.dog.write(0xC00, 4, 1)
    bench.dog.write(0x8, 4, 0)
    assert (bench.dog.read(0xC00, 4), bench.dog.read(0x8, 4)) == (1, 3)
    bench.dog.write(0xC00, 4, UNLOCKED)
    bench.dog.write(0x8, 4, 0)
    bench.until(10**12)
    assert bench.end is None
    assert [bench.dog.read(0xFE0 + 4 * number, 4) & 0xFF for number in range(2)] == [0x05, 0x18]
