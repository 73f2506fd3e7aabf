"""The local APICs of two CPUs, driven through their registers as SDM volume 3, chapter 11, has them."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from kinst.runtime.machine.devices.pc.lapic import LocalApics, Register, Wiring
from tests.runtime.machine.devices.bench import StillClock, Wire

ENABLED = 0x1FF


@dataclass
class Bench:
    cpus: int = 3
    current: int = 0
    clock: StillClock = field(default_factory=StillClock)
    interrupts: list[Wire] = field(default_factory=list)
    externals: list[Wire] = field(default_factory=list)
    nmis: list[Wire] = field(default_factory=list)
    events: list[tuple[str, int, int]] = field(default_factory=list)
    ended: Callable[[int], None] = lambda _vector: None
    apics: LocalApics = field(init=False)

    def __post_init__(self) -> None:
        wirings = []
        for cpu in range(self.cpus):
            self.interrupts.append(Wire())
            self.externals.append(Wire())
            self.nmis.append(Wire())
            lines = self.interrupts[cpu], self.externals[cpu], self.nmis[cpu]
            wirings.append(Wiring(*lines, *self.starters(cpu)))
        self.apics = LocalApics(self.clock, wirings, lambda: self.current, self.ended)
        for cpu in reversed(range(self.cpus)):
            self.current = cpu
            self.write(Register.SVR, ENABLED)

    def starters(self, cpu: int):  # type: ignore[no-untyped-def]
        return (
            lambda: self.events.append(("init", cpu, 0)),
            lambda vector: self.events.append(("start", cpu, vector)),
        )

    def read(self, register: int) -> int:
        return self.apics.read(register, 4)

    def write(self, register: int, value: int) -> None:
        self.apics.write(register, 4, value)

    def send(self, low: int, high: int = 0) -> None:
        self.write(Register.ICR_HIGH, high << 24)
        self.write(Register.ICR_LOW, low)

    def levels(self) -> list[bool]:
        return [wire.level for wire in self.interrupts]


def test_each_cpu_sees_its_own() -> None:
    bench = Bench()
    for bench.current in range(3):
        assert bench.read(Register.ID) == bench.current << 24
    assert bench.read(Register.VERSION) & 0xFF == 0x14


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0x40, 1, [False, True, False]),
        (0x40, 0xFF, [True, True, True]),
        (0x4_0040, 0, [True, False, False]),
        (0x8_0040, 0, [True, True, True]),
        (0xC_0040, 0, [False, True, True]),
        (0x0840, 0b101, [True, False, True]),  # logical, flat model
        (0x0140, 0xFF, [True, False, False]),  # lowest priority: one of them
        (0x40, 9, [False, False, False]),
        (0x0F, 1, [False, False, False]),  # vectors below 16 do not exist
    ],
)
def test_destinations(low: int, high: int, expected: list[bool]) -> None:
    bench = Bench()
    for bench.current in range(3):
        bench.write(Register.LDR, 1 << 24 + bench.current)
    bench.current = 0
    bench.send(low, high)
    assert bench.levels() == expected


def test_cluster_model() -> None:
    bench = Bench()
    for bench.current, address in enumerate((0x11, 0x12, 0x21)):
        bench.write(Register.DFR, 0x0FFF_FFFF)
        bench.write(Register.LDR, address << 24)
    bench.send(0x0840, 0x13)
    assert bench.levels() == [True, False, False] or bench.levels() == [True, True, False]
    assert bench.levels()[1]


def test_priority_service_and_end() -> None:
    bench = Bench()
    bench.current = 0
    for vector in (0x41, 0x93, 0x52):
        bench.send(0x4_0000 | vector)
    assert bench.read(Register.IRR + 0x20) == 1 << 0x1 | 1 << 0x12
    assert [bench.apics.pending(0), bench.apics.acknowledge(0)] == [0x93, 0x93]
    assert (bench.read(Register.PPR), bench.levels()[0]) == (0x90, False)
    assert bench.read(Register.ISR + 0x40) == 1 << 0x13
    bench.write(Register.EOI, 0)
    assert bench.apics.acknowledge(0) == 0x52
    bench.send(0x4_0053)
    assert bench.apics.pending(0) is None  # the same class does not interrupt itself
    bench.write(Register.EOI, 0)
    assert bench.apics.acknowledge(0) == 0x53


def test_task_priority_holds_interrupts_back() -> None:
    bench = Bench()
    bench.write(Register.TPR, 0x50)
    bench.send(0x4_0051)
    assert bench.levels()[0] is False
    bench.write(Register.TPR, 0x40)
    assert bench.levels()[0] is True


def test_a_disabled_apic_takes_nothing() -> None:
    bench = Bench()
    bench.write(Register.SVR, 0xFF)
    bench.send(0x4_0051)
    assert not bench.levels()[0]
    assert bench.apics.acknowledge(0) == 0xFF  # spurious


def test_starting_another_cpu() -> None:
    bench = Bench()
    bench.current = 0
    bench.send(0x4500, 1)
    bench.send(0x8500, 1)  # the de-assert of old sequences
    bench.send(0x4608, 1)
    assert bench.events == [("init", 1, 0), ("start", 1, 8)]
    assert not bench.read(Register.ICR_LOW) & 0x1000
    bench.current = 1
    assert bench.read(Register.SVR) == 0xFF


def test_nmi() -> None:
    bench = Bench()
    bench.current = 0
    bench.send(0xC_0400)
    assert [wire.rises for wire in bench.nmis] == [0, 1, 1]


@pytest.mark.parametrize(("divide", "tick"), [(0xB, 1), (0x0, 2), (0x3, 16), (0xA, 128)])
def test_one_shot_timer(divide: int, tick: int) -> None:
    bench = Bench()
    bench.current = 2
    bench.write(Register.DIVIDE, divide)
    bench.write(Register.LVT_TIMER, 0x60)
    bench.write(Register.INITIAL_COUNT, 1000)
    bench.clock.time = 400 * tick
    assert bench.read(Register.CURRENT_COUNT) == 600
    assert bench.apics.deadline() == 1000 * tick
    bench.clock.time = 1000 * tick
    bench.apics.advance()
    assert (bench.apics.pending(2), bench.read(Register.CURRENT_COUNT), bench.apics.deadline()) == (0x60, 0, None)


def test_periodic_timer_and_its_mask() -> None:
    bench = Bench()
    bench.current = 1
    bench.write(Register.DIVIDE, 0xB)
    bench.write(Register.LVT_TIMER, 0x2_0061)
    bench.write(Register.INITIAL_COUNT, 1000)
    bench.clock.time = 3500
    bench.apics.advance()
    assert (bench.apics.deadline(), bench.read(Register.CURRENT_COUNT)) == (4000, 500)
    assert bench.apics.acknowledge(1) == 0x61
    bench.write(Register.EOI, 0)
    bench.write(Register.LVT_TIMER, 0x3_0061)
    bench.clock.time = 4000
    bench.apics.advance()
    assert bench.apics.pending(1) is None


def test_the_pic_reaches_the_boot_cpu() -> None:
    bench = Bench()
    for cpu in range(3):
        bench.apics.external(cpu)(True)  # noqa: FBT003
    assert [wire.level for wire in bench.externals] == [True, False, False]
    bench.current = 0
    bench.write(Register.LVT_LINT0, 0x1_0700)
    assert (bench.externals[0].level, bench.apics.takes_external(0)) == (False, False)
    bench.write(Register.SVR, 0xFF)
    assert (bench.externals[0].level, bench.apics.takes_external(0)) == (True, True)
    bench.apics.external(0)(False)  # noqa: FBT003
    assert (bench.externals[0].level, bench.apics.takes_external(0)) == (False, False)
