"""Goldfish RTC: the time in two halves, set and read, and its alarm."""

from kinst.runtime.machine.devices.riscv.goldfish_rtc import (
    ALARM_HIGH,
    ALARM_LOW,
    ALARM_STATUS,
    CLEAR_ALARM,
    CLEAR_INTERRUPT,
    ENABLE,
    TIME_HIGH,
    TIME_LOW,
    GoldfishRtc,
)
from tests.runtime.machine.devices.bench import StillClock, Wire

SECOND = 1_000_000_000
EPOCH = 1_767_225_600


def rtc() -> tuple[StillClock, Wire, GoldfishRtc]:
    clock, wire = StillClock(), Wire()
    return clock, wire, GoldfishRtc(clock, wire, EPOCH)


def read64(device: GoldfishRtc, low: int, high: int) -> int:
    lower = device.read(low, 4)
    return device.read(high, 4) << 32 | lower


def write64(device: GoldfishRtc, low: int, high: int, value: int) -> None:
    device.write(high, 4, value >> 32)
    device.write(low, 4, value & 0xFFFF_FFFF)


def test_it_counts_nanoseconds_from_power_on() -> None:
    clock, _, device = rtc()
    assert read64(device, TIME_LOW, TIME_HIGH) == EPOCH * SECOND
    clock.time = 5 * SECOND + 7
    assert read64(device, TIME_LOW, TIME_HIGH) == (EPOCH + 5) * SECOND + 7


def test_the_halves_of_a_time_belong_together() -> None:
    clock, _, device = rtc()
    write64(device, TIME_LOW, TIME_HIGH, (3 << 32) - 1)
    lower = device.read(TIME_LOW, 4)
    clock.time += 1  # the high half changes
    assert device.read(TIME_HIGH, 4) << 32 | lower == (3 << 32) - 1
    assert read64(device, TIME_LOW, TIME_HIGH) == 3 << 32


def test_an_alarm_rings_once_at_its_time_and_is_cleared() -> None:
    clock, wire, device = rtc()
    device.write(ENABLE, 4, 1)
    write64(device, ALARM_LOW, ALARM_HIGH, EPOCH * SECOND + 100)
    assert (device.deadline(), device.read(ALARM_STATUS, 4), wire.level) == (100, 1, False)
    assert read64(device, ALARM_LOW, ALARM_HIGH) == EPOCH * SECOND + 100
    clock.time = 100
    device.advance()
    assert (device.deadline(), device.read(ALARM_STATUS, 4), wire.level) == (None, 0, True)
    device.write(CLEAR_INTERRUPT, 4, 1)
    assert not wire.level


def test_an_alarm_that_is_cleared_or_not_enabled_does_not_interrupt() -> None:
    clock, wire, device = rtc()
    write64(device, ALARM_LOW, ALARM_HIGH, EPOCH * SECOND + 100)
    device.write(CLEAR_ALARM, 4, 1)
    assert device.deadline() is None
    write64(device, ALARM_LOW, ALARM_HIGH, EPOCH * SECOND + 100)
    clock.time = 200
    device.advance()
    assert not wire.level
    device.write(ENABLE, 4, 1)
    assert wire.level
    assert device.read(ENABLE, 4) == 1
