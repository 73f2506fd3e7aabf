"""The interval timer: counts, outputs and interrupts of its modes, as data sheet 231244 draws them."""

from dataclasses import dataclass, field

import pytest

from kinst.runtime.machine.devices.pc.pit8254 import FREQUENCY, Pit8254, SpeakerPort
from tests.runtime.machine.devices.bench import StillClock, Wire


@dataclass
class Bench:
    clock: StillClock = field(default_factory=StillClock)
    wire: Wire = field(default_factory=Wire)
    pit: Pit8254 = field(init=False)
    speaker: SpeakerPort = field(init=False)

    def __post_init__(self) -> None:
        self.pit = Pit8254(self.clock, self.wire)
        self.speaker = SpeakerPort(self.pit, self.clock)

    def program(self, channel: int, mode: int, count: int) -> None:
        self.pit.write(3, 1, channel << 6 | 0x30 | mode << 1)
        self.pit.write(channel, 1, count & 0xFF)
        self.pit.write(channel, 1, count >> 8 & 0xFF)

    def tick(self, ticks: int) -> None:
        """Let so many input clocks pass, or one less."""
        self.clock.time = -(-(self.clock.time * FREQUENCY // 10**9 + ticks) * 10**9 // FREQUENCY)

    def count(self, channel: int = 0) -> int:
        return self.pit.read(channel, 1) | self.pit.read(channel, 1) << 8


@pytest.mark.parametrize(("mode", "counts"), [(0, [1000, 999, 990, 0, 0xFFFF]), (2, [1000, 999, 990, 1000, 999])])
def test_counts_down(mode: int, counts: list[int]) -> None:
    bench = Bench()
    bench.program(0, mode, 1000)
    seen = []
    for at in (0, 1, 10, 1000, 1001):
        bench.clock.time = -(-at * 10**9 // FREQUENCY)
        seen.append(bench.count())
    assert seen == counts


def test_square_wave_counts_by_two() -> None:
    bench = Bench()
    bench.program(2, 3, 1000)
    bench.speaker.write(0, 1, 1)
    levels = []
    for _ in range(4):
        levels.append((bench.count(2), bench.speaker.read(0, 1) >> 5 & 1))
        bench.tick(250)
    assert levels == [(1000, 1), (500, 1), (1000, 0), (500, 0)]


def test_latch_keeps_a_count_and_a_status() -> None:
    bench = Bench()
    bench.program(0, 2, 0x1234)
    bench.tick(0x34)
    bench.pit.write(3, 1, 0x00)
    bench.tick(0x100)
    assert (bench.count(), bench.count()) == (0x1200, 0x1100)
    bench.pit.write(3, 1, 0xC2)  # read-back of channel 0: status and count
    assert [bench.pit.read(0, 1) for _ in range(3)] == [0x80 | 0x30 | 0x04, 0x00, 0x11]


def test_one_byte_counts_and_bcd() -> None:
    bench = Bench()
    bench.pit.write(3, 1, 0x10)  # channel 0, low byte, mode 0
    bench.pit.write(0, 1, 100)
    bench.tick(1)
    assert (bench.pit.read(0, 1), bench.pit.read(0, 1)) == (99, 99)
    bench.pit.write(3, 1, 0x35)  # both bytes, mode 2, BCD
    bench.pit.write(0, 1, 0x00)
    bench.pit.write(0, 1, 0x10)
    bench.tick(2)
    assert bench.count() in (0x0998, 0x0999)


def test_digits_that_are_not_decimal_count_all_the_same() -> None:
    bench = Bench()
    bench.pit.write(3, 1, 0x31)  # both bytes, mode 0, BCD
    bench.pit.write(0, 1, 0x0A)
    bench.pit.write(0, 1, 0x0F)
    assert bench.count() == 0x1510  # 15 hundreds and 10


def test_a_periodic_interrupt_has_one_edge_a_period() -> None:
    bench = Bench()
    bench.program(0, 2, 11932)
    rises = bench.wire.rises
    times = []
    for _ in range(5):
        due = bench.pit.deadline()
        assert due is not None
        bench.clock.time = due
        bench.pit.advance()
        times.append(due)
    assert bench.wire.rises - rises == 5
    assert [round(time / 1e6) for time in times] == [10, 20, 30, 40, 50]


def test_edges_that_nobody_took_are_one() -> None:
    bench = Bench()
    bench.program(0, 2, 1193)
    rises = bench.wire.rises
    bench.clock.time += 10_500_000
    bench.pit.advance()
    bench.pit.advance()
    assert bench.wire.rises - rises == 1
    assert bench.pit.deadline() == pytest.approx(bench.clock.time + 0.5e6, abs=2e4)


def test_one_shot() -> None:
    bench = Bench()
    bench.program(0, 0, 1193)
    assert not bench.wire.level
    due = bench.pit.deadline()
    assert due == pytest.approx(1e6, rel=1e-3)
    bench.clock.time = due or 0
    bench.pit.advance()
    assert bench.wire.level
    assert bench.pit.deadline() is None


def test_the_gate_of_channel_2() -> None:
    bench = Bench()
    bench.program(2, 0, 1000)
    bench.tick(100)
    assert bench.count(2) == 1000
    bench.speaker.write(0, 1, 1)
    bench.tick(400)
    assert bench.count(2) == pytest.approx(600, abs=1)
    bench.speaker.write(0, 1, 0)
    bench.tick(100)
    assert bench.count(2) == pytest.approx(600, abs=1)
    bench.speaker.write(0, 1, 1)
    bench.tick(597)
    assert bench.speaker.read(0, 1) & 0x20 == 0
    bench.tick(6)
    assert bench.speaker.read(0, 1) & 0x21 == 0x21


def test_refresh_toggles() -> None:
    bench = Bench()
    seen = set()
    for _ in range(4):
        seen.add(bench.speaker.read(0, 1) & 0x10)
        bench.clock.time += 15_085
    assert seen == {0, 0x10}
