"""Buses: which device answers, and how wide its accesses are."""

from dataclasses import dataclass, field

from kinst.runtime.machine.bus import PortBus
from kinst.runtime.machine.devices.pc.port_io import AcpiPowerControl


@dataclass
class Ports:
    """A device of bytes that remembers them."""

    size: int = 2
    written: list[tuple[int, int, int]] = field(default_factory=list)

    def read(self, offset: int, size: int) -> int:
        assert size == 1
        return 0x40 + offset

    def write(self, offset: int, size: int, value: int) -> None:
        self.written.append((offset, size, value))


def test_wide_accesses_go_to_each_port_by_itself() -> None:
    bus, first, second = PortBus(), Ports(), Ports(size=1)
    bus.attach(first, 0x40)
    bus.attach(second, 0x42)
    bus.write(0x41, 4, 0x4433_2211)
    assert (first.written, second.written) == ([(1, 1, 0x11)], [(0, 1, 0x22)])
    assert bus.read(0x40, 4) == 0xFF40_4140
    assert bus.read(0x41, 1) == 0x41


def test_ports_begin_again_behind_the_last() -> None:
    bus, first = PortBus(), Ports()
    bus.attach(first, 0)
    bus.write(0xFFFF, 2, 0x2211)
    assert first.written == [(0, 1, 0x22)]


def test_a_register_of_two_bytes_is_written_and_read_as_a_word() -> None:
    """SLP_EN is bit 13; a word of which it is no part switches nothing off."""
    bus, ends = PortBus(), list[int]()
    bus.attach(AcpiPowerControl(ends.append), 0x604)
    bus.write(0x604, 2, 0x1C20)
    assert (bus.read(0x604, 2), ends) == (0x1C21, [])
    bus.write(0x604, 2, 0x3C00)
    assert (bus.read(0x604, 2), ends) == (0x1C01, [0])
