"""The CLINT: msip, mtime and mtimecmp of several harts, in words and halves."""

from kinst.runtime.machine.devices.riscv.clint import Clint, MachineTime
from tests.runtime.machine.devices.bench import StillClock, Wire

TIMEBASE = 10_000_000
MTIMECMP, MTIME = 0x4000, 0xBFF8


def clint() -> tuple[StillClock, list[Wire], list[Wire], Clint]:
    clock, software, timer = StillClock(), [Wire(), Wire()], [Wire(), Wire()]
    return clock, software, timer, Clint(MachineTime(clock, TIMEBASE), software, timer)


def test_msip_drives_its_own_hart_and_keeps_one_bit() -> None:
    _, software, _, device = clint()
    device.write(4, 4, 0xFF)
    assert [wire.level for wire in software] == [False, True]
    assert device.read(4, 4) == 1
    device.write(4, 4, 0)
    assert not software[1].level


def test_mtime_counts_at_the_timebase() -> None:
    clock, _, _, device = clint()
    clock.time = 1_000_000_000
    assert device.read(MTIME, 8) == TIMEBASE
    assert device.read(MTIME + 4, 4) == 0


def test_the_timer_is_raised_when_mtime_reaches_mtimecmp_and_not_before() -> None:
    clock, _, timer, device = clint()
    assert device.deadline() is None
    device.write(MTIMECMP, 8, 15)
    deadline = device.deadline()
    assert deadline == 1500
    clock.time = 1499
    device.advance()
    assert not timer[0].level
    clock.time = 1500
    device.advance()
    assert timer[0].level
    assert not timer[1].level
    assert device.deadline() is None


def test_a_deadline_is_never_before_the_timer_fires() -> None:
    clock, _, timer, _ = clint()
    for odd in (3_000_000, 32_768, 7):
        device = Clint(MachineTime(clock, odd), [Wire()], timer[:1])
        clock.time = 0
        device.write(MTIMECMP, 8, 5)
        deadline = device.deadline()
        assert deadline is not None
        clock.time = deadline
        device.advance()
        assert timer[0].level


def test_mtimecmp_in_halves_as_32_bit_code_writes_it() -> None:
    clock, _, timer, device = clint()
    clock.time = 10**9
    device.write(MTIMECMP + 8, 4, 0xFFFF_FFFF)
    device.write(MTIMECMP + 12, 4, 0)
    assert device.read(MTIMECMP + 8, 8) == 0xFFFF_FFFF
    assert not timer[1].level
    device.write(MTIMECMP + 8, 4, 5)
    assert timer[1].level


def test_writing_mtime_moves_the_time() -> None:
    clock, _, timer, device = clint()
    device.write(MTIMECMP, 8, 1000)
    device.write(MTIME, 8, 999)
    assert device.read(MTIME, 8) == 999
    assert device.deadline() == 100
    clock.time = 100
    device.advance()
    assert timer[0].level


def test_harts_that_do_not_exist_read_as_zero() -> None:
    _, _, _, device = clint()
    device.write(8, 4, 1)
    device.write(MTIMECMP + 64, 8, 1)
    assert (device.read(8, 4), device.read(MTIMECMP + 64, 8)) == (0, 0)
