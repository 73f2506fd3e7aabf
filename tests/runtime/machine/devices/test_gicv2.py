"""A GIC of two CPUs, driven through its registers as IHI 0048B has them."""

from dataclasses import dataclass, field

import pytest

from kinst.runtime.machine.device import Line
from kinst.runtime.machine.devices.arm.gicv2 import CpuInterface, Distributor, Gic

CTLR, TYPER, GROUP, SET_ENABLE, CLEAR_ENABLE = 0x000, 0x004, 0x080, 0x100, 0x180
SET_PENDING, CLEAR_PENDING, SET_ACTIVE, CLEAR_ACTIVE = 0x200, 0x280, 0x300, 0x380
PRIORITY, TARGETS, CONFIGURATION, SOFTWARE = 0x400, 0x800, 0xC00, 0xF00
C_CTLR, PMR, BPR, IAR, EOIR, RPR, HPPIR, AIAR, DIR = 0x00, 0x04, 0x08, 0x0C, 0x10, 0x14, 0x18, 0x20, 0x1000
NOTHING = 1023
UART = 33  # shared interrupt 1
HIGH, LOW = True, False


@dataclass
class Bench:
    """`irq` and `fiq` are the CPUs' inputs; accesses come from CPU `current`."""

    cpus: int = 2
    current: int = 0
    irq: dict[int, bool] = field(default_factory=dict)
    fiq: dict[int, bool] = field(default_factory=dict)
    gic: Gic = field(init=False)

    def __post_init__(self) -> None:
        outputs = [(self.line(self.irq, cpu), self.line(self.fiq, cpu)) for cpu in range(self.cpus)]
        self.gic = Gic(outputs, 96, lambda: self.current)
        self.distributor, self.interface = Distributor(self.gic), CpuInterface(self.gic)
        self.distributor.write(CTLR, 4, 3)
        for cpu in reversed(range(self.cpus)):
            self.current = cpu
            self.interface.write(C_CTLR, 4, 1)
            self.interface.write(PMR, 4, 0xFF)

    def line(self, levels: dict[int, bool], cpu: int) -> Line:
        def drive(level: bool) -> None:  # noqa: FBT001
            levels[cpu] = level

        return drive

    def enable(self, interrupt: int, *, priority: int = 0x80, targets: int = 1) -> None:
        self.distributor.write(SET_ENABLE + interrupt // 32 * 4, 4, 1 << interrupt % 32)
        self.distributor.write(PRIORITY + interrupt, 1, priority)
        self.distributor.write(TARGETS + interrupt, 1, targets)

    def acknowledge(self) -> int:
        return self.interface.read(IAR, 4)

    def end(self, interrupt: int) -> None:
        self.interface.write(EOIR, 4, interrupt)


def test_a_level_is_signalled_until_it_drops() -> None:
    bench = Bench()
    line = bench.gic.spi(1)
    line(HIGH)
    assert not bench.irq[0]
    bench.enable(UART)
    assert bench.irq == {0: True, 1: False}
    assert bench.acknowledge() == UART
    assert not bench.irq[0]
    assert bench.acknowledge() == NOTHING
    bench.end(UART)
    assert bench.irq[0]
    line(LOW)
    assert not bench.irq[0]


def test_an_edge_is_remembered_once() -> None:
    bench = Bench()
    bench.enable(UART)
    bench.distributor.write(CONFIGURATION + 8, 4, 2 << 2)
    line = bench.gic.spi(1)
    line(HIGH)
    line(LOW)
    assert bench.irq[0]
    assert bench.acknowledge() == UART
    line(HIGH)  # a second edge while it is active
    line(LOW)
    bench.end(UART)
    assert bench.acknowledge() == UART
    bench.end(UART)
    assert not bench.irq[0]


def test_shared_interrupts_go_where_they_are_sent() -> None:
    bench = Bench()
    bench.enable(UART, targets=2)
    bench.gic.spi(1)(HIGH)
    assert bench.irq == {0: False, 1: True}
    assert bench.acknowledge() == NOTHING
    bench.current = 1
    assert bench.acknowledge() == UART


def test_a_single_cpu_is_every_target() -> None:
    bench = Bench(cpus=1)
    bench.enable(UART, targets=0)
    bench.gic.spi(1)(HIGH)
    assert bench.irq == {0: True}
    assert bench.distributor.read(TARGETS + UART, 1) == 0


def test_private_interrupts_are_banked() -> None:
    bench = Bench()
    bench.enable(27)
    bench.gic.ppi(1, 27)(HIGH)
    assert bench.irq == {0: False, 1: False}
    bench.current = 1
    bench.enable(27)
    assert bench.irq == {0: False, 1: True}
    assert bench.distributor.read(SET_PENDING, 4) == 1 << 27
    bench.current = 0
    assert bench.distributor.read(SET_PENDING, 4) == 0


def test_the_lower_number_wins_among_equals_and_priority_before() -> None:
    bench = Bench()
    for interrupt, priority in ((40, 0x80), (41, 0x80), (42, 0x40)):
        bench.enable(interrupt, priority=priority)
        bench.gic.spi(interrupt - 32)(HIGH)
    order = []
    while (interrupt := bench.acknowledge()) != NOTHING:
        order.append(interrupt)
        bench.gic.spi(interrupt - 32)(LOW)
        bench.end(interrupt)
    assert order == [42, 40, 41]


def test_only_a_higher_priority_preempts() -> None:
    bench = Bench()
    bench.enable(40, priority=0x80)
    bench.gic.spi(8)(HIGH)
    assert bench.acknowledge() == 40
    assert bench.interface.read(RPR, 4) == 0x80
    bench.enable(41, priority=0x80)
    bench.gic.spi(9)(HIGH)
    assert not bench.irq[0]
    assert bench.interface.read(HPPIR, 4) == 41
    bench.distributor.write(PRIORITY + 41, 1, 0x20)
    assert bench.irq[0]
    assert bench.acknowledge() == 41
    bench.gic.spi(9)(LOW)
    bench.end(41)
    assert bench.interface.read(RPR, 4) == 0x80
    bench.gic.spi(8)(LOW)
    bench.end(40)
    assert bench.interface.read(RPR, 4) == 0xFF


def test_the_binary_point_takes_bits_from_preemption() -> None:
    bench = Bench()
    bench.interface.write(BPR, 4, 3)  # group priority: bits 7 to 4
    bench.enable(40, priority=0x88)
    bench.gic.spi(8)(HIGH)
    assert bench.acknowledge() == 40
    bench.enable(41, priority=0x80)
    bench.gic.spi(9)(HIGH)
    assert not bench.irq[0]
    bench.distributor.write(PRIORITY + 41, 1, 0x70)
    assert bench.irq[0]


@pytest.mark.parametrize("priority", [0x80, 0xFF])
def test_the_priority_mask_is_exclusive(priority: int) -> None:
    bench = Bench()
    bench.enable(UART, priority=priority)
    bench.gic.spi(1)(HIGH)
    bench.interface.write(PMR, 4, priority)
    assert not bench.irq[0]
    assert bench.acknowledge() == NOTHING


def test_software_interrupts_name_their_sender() -> None:
    bench = Bench()
    bench.distributor.write(SOFTWARE, 4, 2 << 16 | 5)  # to CPU 1
    assert bench.irq == {0: False, 1: True}
    bench.current = 1
    bench.distributor.write(SOFTWARE, 4, 2 << 24 | 5)  # and once more, from CPU 1 to itself
    assert bench.distributor.read(0xF20 + 5, 1) == 3
    assert bench.acknowledge() == 5
    bench.end(5)
    assert bench.irq[1]
    assert bench.acknowledge() == 1 << 10 | 5
    bench.end(1 << 10 | 5)
    assert not bench.irq[1]


def test_to_all_but_oneself() -> None:
    bench = Bench(current=0)
    bench.distributor.write(SOFTWARE, 4, 1 << 24 | 7)
    assert bench.irq == {0: False, 1: True}


def test_group_1_needs_its_own_acknowledge() -> None:
    bench = Bench()
    bench.distributor.write(GROUP + 4, 4, 2)
    bench.enable(UART)
    bench.gic.spi(1)(HIGH)
    assert not bench.irq[0]
    bench.interface.write(C_CTLR, 4, 3)
    assert bench.irq[0]
    assert bench.acknowledge() == 1022
    assert bench.interface.read(AIAR, 4) == UART


def test_group_0_may_be_fiq() -> None:
    bench = Bench()
    bench.interface.write(C_CTLR, 4, 1 | 8)
    bench.enable(UART)
    bench.gic.spi(1)(HIGH)
    assert (bench.irq[0], bench.fiq[0]) == (False, True)


def test_priority_drop_and_deactivation_can_be_apart() -> None:
    bench = Bench()
    bench.interface.write(C_CTLR, 4, 1 | 1 << 9)
    bench.enable(UART)
    bench.gic.spi(1)(HIGH)
    assert bench.acknowledge() == UART
    bench.end(UART)
    assert bench.interface.read(RPR, 4) == 0xFF
    assert not bench.irq[0]
    assert bench.distributor.read(SET_ACTIVE + 4, 4) == 2
    bench.interface.write(DIR, 4, UART)
    assert bench.irq[0]


def test_bits_are_set_and_cleared_by_their_own_registers() -> None:
    distributor = Bench().distributor
    for set_at, clear_at in ((SET_ENABLE, CLEAR_ENABLE), (SET_PENDING, CLEAR_PENDING), (SET_ACTIVE, CLEAR_ACTIVE)):
        distributor.write(set_at + 8, 4, 0xF0F0)
        distributor.write(clear_at + 9, 1, 0xF0)
        assert distributor.read(set_at + 8, 4) == distributor.read(clear_at + 8, 4) == 0xF0
    assert distributor.read(SET_ENABLE, 4) == 0xFFFF  # software interrupts are always enabled
    distributor.write(CLEAR_ENABLE, 4, 0xFFFFFFFF)
    assert distributor.read(SET_ENABLE, 4) == 0xFFFF


def test_what_is_not_there_reads_as_zero() -> None:
    bench = Bench()
    assert bench.distributor.read(TYPER, 4) == 2 | 1 << 5
    assert bench.distributor.read(TARGETS, 4) == 0x01010101
    bench.distributor.write(SET_ENABLE + 12, 4, 0xFFFFFFFF)
    bench.distributor.write(PRIORITY + 96, 4, 0x01010101)
    assert bench.distributor.read(SET_ENABLE + 12, 4) == bench.distributor.read(PRIORITY + 96, 4) == 0


def test_it_is_a_gicv2() -> None:
    bench = Bench()
    assert bench.distributor.read(0xFE8, 4) >> 4 & 15 == 2  # GICD_PIDR2.ArchRev
    assert bench.interface.read(0xFC, 4) >> 16 & 15 == 2
