"""The I/O APIC before the local APICs of two CPUs, used through its registers as the data sheet has them."""

import pytest

from kinst.runtime.machine.devices.pc.ioapic import IoApic
from kinst.runtime.machine.devices.pc.lapic import Register
from tests.runtime.machine.devices.test_lapic import Bench

SELECT, WINDOW, EOI = 0x00, 0x10, 0x40
MASKED, LEVEL, REMOTE, LOGICAL, LOWEST, NMI = 1 << 16, 1 << 15, 1 << 14, 1 << 11, 1 << 8, 4 << 8


class Pc:
    """The controllers wired as on the board; pins are named by their number."""

    def __init__(self) -> None:
        self.io = IoApic(lambda message: self.cpus.apics.send(message))
        self.cpus = Bench(cpus=2, ended=self.io.end_of_interrupt)

    def read(self, register: int) -> int:
        self.io.write(SELECT, 4, register)
        return self.io.read(WINDOW, 4)

    def write(self, register: int, value: int) -> None:
        self.io.write(SELECT, 4, register)
        self.io.write(WINDOW, 4, value)

    def route(self, pin: int, low: int, destination: int = 0) -> None:
        self.write(0x11 + 2 * pin, destination << 24)
        self.write(0x10 + 2 * pin, low)

    def drive(self, pin: int, *levels: int) -> None:
        for level in levels:
            self.io.line(pin)(bool(level))

    def taken(self, cpu: int = 0) -> list[int]:
        """The vectors that a CPU takes and ends, one after another."""
        vectors: list[int] = []
        while self.cpus.apics.pending(cpu) is not None and len(vectors) < 3:
            vectors.append(self.cpus.apics.acknowledge(cpu))
            self.cpus.current = cpu
            self.cpus.write(Register.EOI, 0)
        return vectors


def test_identity_version_and_a_table_that_is_masked_at_first() -> None:
    pc = Pc()
    assert pc.read(1) == 0x17_0020
    pc.write(0, 0xFFFF_FFFF)
    assert (pc.read(0), pc.read(2)) == (0x0F00_0000, 0x0F00_0000)
    assert [pc.read(0x10 + 2 * pin) for pin in range(24)] == [MASKED] * 24
    assert pc.io.read(SELECT, 4) == 0x10 + 2 * 23
    pc.write(0x10 + 2 * 24, 0)
    assert pc.read(0x10 + 2 * 24) == 0
    pc.route(3, 0xFFFF_FFFF, 0xAB)
    assert (pc.read(0x16), pc.read(0x17)) == (0x1_AFFF, 0xAB00_0000)  # not "pending" and "remote"


def test_an_edge_is_one_interrupt() -> None:
    pc = Pc()
    pc.drive(4, 1, 0)
    pc.route(4, 0x41)
    assert pc.taken() == []  # edges of a masked pin are lost
    pc.drive(4, 1)
    assert pc.taken() == [0x41]
    pc.drive(4, 1, 0)
    assert pc.taken() == []
    pc.route(4, 0x42, 1)
    pc.drive(4, 1, 0)
    assert (pc.taken(0), pc.taken(1)) == ([], [0x42])


def test_a_level_lasts_until_the_device_lets_go() -> None:
    pc = Pc()
    pc.route(10, LEVEL | 0x51)
    pc.drive(10, 1)
    assert pc.cpus.apics.acknowledge(0) == 0x51
    assert pc.read(0x10 + 2 * 10) == REMOTE | LEVEL | 0x51
    pc.cpus.current = 0
    assert pc.cpus.read(Register.TMR + 0x20) == 1 << 0x11
    assert pc.cpus.apics.pending(0) is None
    pc.cpus.write(Register.EOI, 0)
    assert pc.cpus.apics.acknowledge(0) == 0x51  # it is still asserted
    pc.drive(10, 0)
    pc.cpus.write(Register.EOI, 0)
    assert (pc.taken(), pc.read(0x10 + 2 * 10)) == ([], LEVEL | 0x51)


def test_a_level_waits_for_its_mask() -> None:
    pc = Pc()
    pc.route(10, MASKED | LEVEL | 0x51)
    pc.drive(10, 1)
    assert pc.taken() == []
    pc.route(10, LEVEL | 0x51)
    assert pc.cpus.apics.acknowledge(0) == 0x51


def test_a_level_that_no_cpu_accepts_is_not_waited_for() -> None:
    pc = Pc()
    pc.route(10, LEVEL | 0x51, 7)
    pc.drive(10, 1)
    assert pc.read(0x10 + 2 * 10) == LEVEL | 0x51
    pc.route(10, LEVEL | 0x51, 1)
    assert pc.cpus.apics.acknowledge(1) == 0x51


@pytest.mark.parametrize("way", ["register", "mode"])
def test_kernels_end_a_level_themselves(way: str) -> None:
    """By the EOI register, or where there is none by an edge and back."""
    pc = Pc()
    pc.route(10, LEVEL | 0x51)
    pc.drive(10, 1, 0)
    assert pc.read(0x10 + 2 * 10) & REMOTE
    if way == "register":
        pc.io.write(EOI, 4, 0x50)
        assert pc.read(0x10 + 2 * 10) & REMOTE
        pc.io.write(EOI, 4, 0x51)
    else:
        pc.route(10, MASKED | 0x51)
        pc.route(10, LEVEL | 0x51)
    assert pc.read(0x10 + 2 * 10) == LEVEL | 0x51


def test_destinations_and_modes() -> None:
    pc = Pc()
    for pc.cpus.current in range(2):
        pc.cpus.write(Register.LDR, 1 << 24 + pc.cpus.current)
    pc.route(5, LOGICAL | 0x61, 0b11)
    pc.drive(5, 1, 0)
    assert (pc.taken(0), pc.taken(1)) == ([0x61], [0x61])
    pc.cpus.current = 0
    pc.cpus.write(Register.TPR, 0x50)
    pc.route(5, LOGICAL | LOWEST | 0x61, 0b11)
    pc.drive(5, 1, 0)
    assert (pc.taken(0), pc.taken(1)) == ([], [0x61])  # the other has the lower priority
    pc.route(5, NMI, 1)
    pc.drive(5, 1, 0)
    assert [wire.rises for wire in pc.cpus.nmis] == [0, 1]
    pc.route(5, 6 << 8 | 8, 1)  # a start-up is no interrupt of a device
    pc.drive(5, 1, 0)
    assert pc.cpus.events == []
