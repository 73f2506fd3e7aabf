from dataclasses import dataclass, field

import pytest

from kinst.runtime.machine.devices.arm.arm_timer import (
    COUNTER,
    ENABLE,
    FREQUENCY,
    IMASK,
    ISTATUS,
    VIRTUAL_COUNTER,
    VIRTUAL_OFFSET,
    GenericTimer,
    Timer,
)
from kinst.runtime.machine.exception_model import SystemRegister

EL0, EL1, EL2 = 0x0, 0x5, 0x9
PHYSICAL = [SystemRegister(3, 3, 14, 2, op2) for op2 in range(3)]  # TVAL, CTL, CVAL
VIRTUAL = [SystemRegister(3, 3, 14, 3, op2) for op2 in range(3)]
HYPERVISOR = [SystemRegister(3, 4, 14, 2, op2) for op2 in range(3)]


@dataclass
class Cpu:
    """As much of a CPU as the timer looks at."""

    number: int = 0
    values: dict[str, int] = field(default_factory=lambda: {"pstate": EL1, "cntkctl_el1": 0})

    @property
    def registers(self) -> "Cpu":
        return self

    def get(self, name: str) -> int:
        return self.values[name]


@dataclass
class Bench:
    """Timers of two CPUs at a time that the test sets; `lines` holds the levels of all."""

    time: int = 0
    lines: dict[tuple[int, Timer], bool] = field(default_factory=dict)
    timer: GenericTimer = field(init=False)

    def __post_init__(self) -> None:
        self.timer = GenericTimer(self, [{kind: self.line(cpu, kind) for kind in Timer} for cpu in range(2)])

    def now(self) -> int:
        return self.time

    def line(self, cpu: int, kind: Timer):  # type: ignore[no-untyped-def]
        def drive(level: bool) -> None:  # noqa: FBT001
            self.lines[cpu, kind] = level

        return drive

    def read(self, register: SystemRegister, cpu: Cpu | None = None) -> int | None:
        return self.timer.read(cpu or Cpu(), register)  # type: ignore[arg-type]

    def write(self, register: SystemRegister, value: int, cpu: Cpu | None = None) -> bool:
        return self.timer.write(cpu or Cpu(), register, value)  # type: ignore[arg-type]


def test_the_counter_follows_the_clock() -> None:
    bench = Bench(time=1_000_000_000)
    assert bench.read(COUNTER) == bench.read(VIRTUAL_COUNTER) == FREQUENCY
    bench.write(VIRTUAL_OFFSET, 500, Cpu(values={"pstate": EL2}))
    assert bench.read(VIRTUAL_COUNTER) == FREQUENCY - 500
    assert bench.read(VIRTUAL_COUNTER, Cpu(number=1)) == FREQUENCY


@pytest.mark.parametrize("registers", [PHYSICAL, VIRTUAL])
def test_compare_value_and_timer_value_are_one(registers: list[SystemRegister]) -> None:
    tval, _, cval = registers
    bench = Bench(time=1600)
    bench.write(tval, 50)
    assert (bench.read(cval), bench.read(tval)) == (150, 50)
    bench.time = 160_000
    assert bench.read(tval) == 0xFFFF_FFFF & 150 - 10_000
    bench.write(tval, 0xFFFF_FFFF)
    assert bench.read(cval) == 9_999


@pytest.mark.parametrize(("kind", "registers"), [(Timer.PHYSICAL, PHYSICAL), (Timer.VIRTUAL, VIRTUAL)])
def test_an_enabled_timer_interrupts_at_its_compare_value(kind: Timer, registers: list[SystemRegister]) -> None:
    _, ctl, cval = registers
    bench = Bench()
    bench.write(cval, 100)
    assert bench.timer.deadline() is None
    bench.write(ctl, ENABLE)
    assert bench.timer.deadline() == 1600
    bench.time = 1599
    bench.timer.advance()
    assert not bench.lines.get((0, kind))
    bench.time = 1600
    bench.timer.advance()
    assert bench.lines == {(0, kind): True}
    assert bench.timer.deadline() is None
    assert bench.read(ctl) == ENABLE | ISTATUS
    bench.write(ctl, ENABLE | IMASK)
    assert bench.lines == {(0, kind): False}
    assert bench.read(ctl) == ENABLE | IMASK | ISTATUS
    bench.write(ctl, 0)
    assert bench.read(ctl) == 0


def test_moving_the_compare_value_ends_the_interrupt() -> None:
    bench = Bench()
    bench.write(VIRTUAL[1], ENABLE)
    assert bench.lines[0, Timer.VIRTUAL]
    bench.write(VIRTUAL[0], 10)
    assert not bench.lines[0, Timer.VIRTUAL]
    assert bench.timer.deadline() == 160


def test_the_virtual_timer_compares_with_the_virtual_count() -> None:
    bench = Bench(time=16_000)
    bench.write(VIRTUAL_OFFSET, 400, Cpu(values={"pstate": EL2}))
    bench.write(VIRTUAL[2], 700)
    bench.write(VIRTUAL[1], ENABLE)
    assert not bench.lines.get((0, Timer.VIRTUAL))
    assert bench.timer.deadline() == 1100 * 16


def test_each_cpu_has_its_own() -> None:
    bench = Bench()
    bench.write(PHYSICAL[2], 5, Cpu(number=1))
    bench.write(PHYSICAL[1], ENABLE, Cpu(number=1))
    bench.time = 1000
    bench.timer.advance()
    assert bench.lines == {(1, Timer.PHYSICAL): True}
    assert bench.read(PHYSICAL[2]) == 0


@pytest.mark.parametrize(("register", "bit"), [(COUNTER, 0), (VIRTUAL_COUNTER, 1), (VIRTUAL[1], 8), (PHYSICAL[2], 9)])
def test_el0_needs_leave(register: SystemRegister, bit: int) -> None:
    bench = Bench()
    user = Cpu(values={"pstate": EL0, "cntkctl_el1": 0x3FF & ~(1 << bit)})
    assert bench.read(register, user) is None
    user.values["cntkctl_el1"] = 1 << bit
    assert bench.read(register, user) == 0


@pytest.mark.parametrize("register", [VIRTUAL_OFFSET, *HYPERVISOR])
def test_el2_registers_are_for_el2(register: SystemRegister) -> None:
    bench = Bench()
    assert bench.read(register) is None
    assert not bench.write(register, 1)
    assert bench.write(register, 1, Cpu(values={"pstate": EL2}))


def test_the_counters_cannot_be_written() -> None:
    assert not Bench().write(COUNTER, 1)
