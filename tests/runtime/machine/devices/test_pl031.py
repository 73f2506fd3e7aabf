from dataclasses import dataclass, field

from kinst.runtime.machine.devices.arm.pl031 import DR, ICR, IMSC, LR, MIS, MR, RIS, Pl031

SECOND = 1_000_000_000


@dataclass
class Bench:
    time: int = 0
    level: bool = False
    rtc: Pl031 = field(init=False)

    def __post_init__(self) -> None:
        self.rtc = Pl031(self, self.drive, 1_000_000)

    def now(self) -> int:
        return self.time

    def drive(self, level: bool) -> None:  # noqa: FBT001
        self.level = level


def test_it_counts_seconds_from_power_on() -> None:
    bench = Bench()
    assert bench.rtc.read(DR, 4) == 1_000_000
    bench.time = 5 * SECOND - 1
    assert bench.rtc.read(DR, 4) == 1_000_004


def test_the_time_can_be_set() -> None:
    bench = Bench(time=7 * SECOND)
    bench.rtc.write(LR, 4, 500)
    bench.time += 3 * SECOND
    assert (bench.rtc.read(DR, 4), bench.rtc.read(LR, 4)) == (503, 500)


def test_an_alarm_interrupts_at_its_second() -> None:
    bench = Bench()
    bench.rtc.write(MR, 4, 1_000_010)
    bench.rtc.write(IMSC, 4, 1)
    assert bench.rtc.deadline() == 10 * SECOND
    bench.time = 10 * SECOND - 1
    bench.rtc.advance()
    assert not bench.level
    bench.time += 1
    bench.rtc.advance()
    assert bench.level
    assert (bench.rtc.read(RIS, 4), bench.rtc.read(MIS, 4), bench.rtc.deadline()) == (1, 1, None)
    bench.rtc.write(ICR, 4, 1)
    assert not bench.level
    assert bench.rtc.read(RIS, 4) == 0


def test_a_masked_alarm_is_only_seen() -> None:
    bench = Bench()
    bench.rtc.write(MR, 4, 1_000_001)
    bench.time = SECOND
    bench.rtc.advance()
    assert (bench.level, bench.rtc.read(RIS, 4), bench.rtc.read(MIS, 4)) == (False, 1, 0)


def test_drivers_recognise_it() -> None:
    rtc = Bench().rtc
    assert bytes(rtc.read(offset, 4) for offset in range(0xFE0, 0x1000, 4)) == bytes.fromhex("31101400 0df005b1")
