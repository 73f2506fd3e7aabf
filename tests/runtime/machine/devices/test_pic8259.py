"""The interrupt controllers: masks, priorities, ends of interrupts, and the spurious ones (data sheet 231468)."""

from dataclasses import dataclass, field

from kinst.runtime.machine.devices.pc.pic8259 import Pic8259
from tests.runtime.machine.devices.bench import Wire

HIGH, LOW = True, False


@dataclass
class Bench:
    icw4: int = 1
    intr: Wire = field(default_factory=Wire)
    pic: Pic8259 = field(init=False)

    def __post_init__(self) -> None:
        self.pic = Pic8259(self.intr)
        for ports, base, wiring in ((self.pic.master_ports, 0x20, 4), (self.pic.slave_ports, 0x28, 2)):
            ports.write(0, 1, 0x11)
            for value in (base, wiring, self.icw4, 0):
                ports.write(1, 1, value)

    def pulse(self, irq: int) -> None:
        self.pic.line(irq)(LOW)
        self.pic.line(irq)(HIGH)

    def end(self, *, slave: bool = False) -> None:
        (self.pic.slave_ports if slave else self.pic.master_ports).write(0, 1, 0x20)


def test_nothing_gets_through_before_it_is_set_up() -> None:
    intr = Wire()
    pic = Pic8259(intr)
    pic.line(0)(HIGH)
    assert not intr.level


def test_an_interrupt_and_its_end() -> None:
    bench = Bench()
    bench.pulse(4)
    assert bench.intr.level
    assert bench.pic.acknowledge() == 0x24
    assert not bench.intr.level
    bench.pulse(4)
    assert not bench.intr.level  # still in service
    bench.end()
    assert bench.intr.level


def test_masked_interrupts_wait() -> None:
    bench = Bench()
    bench.pic.master_ports.write(1, 1, 0x10)
    bench.pulse(4)
    assert not bench.intr.level
    bench.pic.master_ports.write(1, 1, 0)
    assert bench.pic.acknowledge() == 0x24
    assert bench.pic.master_ports.read(1, 1) == 0


def test_priorities_nest() -> None:
    bench = Bench()
    bench.pulse(5)
    bench.pulse(3)
    assert bench.pic.acknowledge() == 0x23
    assert not bench.intr.level
    bench.pulse(1)
    assert bench.pic.acknowledge() == 0x21
    bench.end()
    bench.end()
    assert bench.pic.acknowledge() == 0x25


def test_the_slave_stands_in_line_2() -> None:
    bench = Bench()
    bench.pulse(12)
    bench.pulse(9)
    assert bench.pic.acknowledge() == 0x29
    bench.end(slave=True)
    bench.end()
    assert bench.intr.level
    assert bench.pic.acknowledge() == 0x2C
    bench.pulse(8)
    assert not bench.intr.level  # higher on the slave, but the master's line 2 is in service
    bench.end()
    assert bench.intr.level
    assert bench.pic.acknowledge() == 0x28


def test_a_line_that_drops_is_spurious() -> None:
    bench = Bench()
    bench.pulse(3)
    bench.pic.line(3)(LOW)
    assert not bench.intr.level
    assert bench.pic.acknowledge() == 0x27
    bench.pic.master_ports.write(0, 1, 0x0B)
    assert bench.pic.master_ports.read(0, 1) == 0  # a spurious interrupt is not in service


def test_registers_are_read_back() -> None:
    bench = Bench()
    bench.pulse(3)
    bench.pulse(6)
    assert bench.pic.master_ports.read(0, 1) == 0x48
    bench.pic.acknowledge()
    bench.pic.master_ports.write(0, 1, 0x0B)
    assert bench.pic.master_ports.read(0, 1) == 0x08
    bench.pic.master_ports.write(0, 1, 0x0A)
    assert bench.pic.master_ports.read(0, 1) == 0x40


def test_specific_end_and_rotation() -> None:
    bench = Bench()
    for irq in (3, 5):
        bench.pulse(irq)
    bench.pic.acknowledge()
    bench.pic.master_ports.write(0, 1, 0x65)  # end of 5, which is not in service
    assert not bench.intr.level
    bench.pic.master_ports.write(0, 1, 0x63)
    assert bench.pic.acknowledge() == 0x25
    bench.pic.master_ports.write(0, 1, 0xE5)  # end of 5, which becomes the lowest
    for irq in (5, 6, 0):
        bench.pulse(irq)
    assert bench.pic.acknowledge() == 0x26
    bench.end()
    assert bench.pic.acknowledge() == 0x20


def test_automatic_end() -> None:
    bench = Bench(icw4=3)
    bench.pulse(3)
    assert bench.pic.acknowledge() == 0x23
    bench.pulse(3)
    assert bench.pic.acknowledge() == 0x23


def test_poll_command_acknowledges() -> None:
    bench = Bench()
    bench.pulse(6)
    bench.pic.master_ports.write(0, 1, 0x0C)
    assert bench.pic.master_ports.read(0, 1) == 0x86
    assert not bench.intr.level


def test_special_mask_lets_lower_ones_in() -> None:
    bench = Bench()
    bench.pulse(1)
    bench.pic.acknowledge()
    bench.pulse(4)
    assert not bench.intr.level
    bench.pic.master_ports.write(1, 1, 0x02)
    bench.pic.master_ports.write(0, 1, 0x68)
    assert bench.pic.acknowledge() == 0x24


def test_level_triggered_lines_ask_as_long_as_they_are_high() -> None:
    bench = Bench()
    bench.pic.trigger_ports.write(1, 1, 0xFF)
    assert bench.pic.trigger_ports.read(1, 1) == 0xDE  # 8 and 13 stay edges
    bench.pic.line(10)(HIGH)
    assert bench.pic.acknowledge() == 0x2A
    bench.end(slave=True)
    bench.end()
    assert bench.pic.acknowledge() == 0x2A
    bench.pic.line(10)(LOW)
    bench.end(slave=True)
    bench.end()
    assert not bench.intr.level
