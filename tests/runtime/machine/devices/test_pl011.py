from dataclasses import dataclass, field

from kinst.runtime.machine.devices.arm.pl011 import (
    CR,
    DR,
    FR,
    ICR,
    IMSC,
    INTERRUPT_RT,
    INTERRUPT_RX,
    INTERRUPT_TX,
    LCR_H,
    MIS,
    RIS,
    Pl011,
)
from kinst.runtime.machine.serial_line import SerialLine

EMPTY_BOTH, TRANSMITTER_EMPTY, RECEIVER_FULL = 0x90, 0x80, 0xC0


@dataclass
class Bench:
    """A UART with a serial line and an interrupt line to look at."""

    line: SerialLine = field(default_factory=SerialLine)
    sent: bytes = b""
    level: bool = False
    uart: Pl011 = field(init=False)

    def __post_init__(self) -> None:
        self.uart = Pl011(self.send, self.line, self.drive)

    def send(self, data: bytes) -> None:
        self.sent += data

    def drive(self, level: bool) -> None:  # noqa: FBT001
        self.level = level


def test_what_is_written_is_sent() -> None:
    bench = Bench()
    for letter in b"ok\n":
        bench.uart.write(DR, 1, letter)
    assert bench.sent == b"ok\n"
    assert bench.uart.read(FR, 4) == EMPTY_BOTH


def flags(bench: Bench) -> int:
    """The flag register for a guest that looks a few times."""
    return [bench.uart.read(FR, 4) for _ in range(4)][-1]


def test_typed_bytes_come_one_by_one_to_who_looks_for_them() -> None:
    bench = Bench()
    bench.line.type(b"abc")
    read = bytearray()
    while flags(bench) == RECEIVER_FULL:  # without FIFOs there is room for one
        read.append(bench.uart.read(DR, 4))
    assert read == b"abc"
    assert bench.uart.read(FR, 4) == EMPTY_BOTH
    assert bench.uart.read(DR, 4) == 0


def test_a_driver_that_only_sends_and_resets_loses_nothing_that_was_typed() -> None:
    """Linux: an interrupt for a moment, the line control, and the FIFO is read until it is empty."""
    bench = Bench()
    bench.line.type(b"0123456789abcdefg")
    for _ in range(100):
        bench.uart.read(FR, 4)
        bench.uart.write(DR, 4, ord("x"))
    bench.uart.read(FR, 4)
    bench.uart.write(IMSC, 4, INTERRUPT_RX | INTERRUPT_RT)
    bench.uart.write(IMSC, 4, 0)
    bench.uart.write(LCR_H, 4, 0x70)
    assert bench.uart.read(FR, 4) == EMPTY_BOTH
    bench.uart.write(IMSC, 4, INTERRUPT_RX | INTERRUPT_RT)
    assert bytes(bench.uart.read(DR, 1) for _ in range(17)) == b"0123456789abcdefg"


def test_fifos_hold_sixteen_and_the_rest_waits() -> None:
    bench = Bench()
    bench.uart.write(LCR_H, 4, 0x70)
    bench.uart.write(IMSC, 4, INTERRUPT_RX | INTERRUPT_RT)
    bench.line.type(b"0123456789abcde")
    assert bench.uart.read(FR, 4) == TRANSMITTER_EMPTY
    bench.line.type(b"fg")
    assert bench.uart.read(FR, 4) == RECEIVER_FULL
    read = bytearray()
    while bench.level:
        read.append(bench.uart.read(DR, 1))
    assert read == b"0123456789abcdefg"


def test_a_received_byte_interrupts_until_it_is_read() -> None:
    bench = Bench()
    bench.uart.write(IMSC, 4, INTERRUPT_RX | INTERRUPT_RT)
    assert not bench.level
    bench.line.type(b"x")
    assert bench.level
    assert bench.uart.read(MIS, 4) == INTERRUPT_RX | INTERRUPT_RT
    assert bench.uart.read(DR, 4) == ord("x")
    assert not bench.level
    assert bench.uart.read(RIS, 4) == 0


def test_sending_interrupts_until_it_is_cleared() -> None:
    bench = Bench()
    bench.uart.write(DR, 4, ord("a"))
    assert not bench.level
    bench.uart.write(IMSC, 4, INTERRUPT_TX)
    assert bench.level
    bench.uart.write(ICR, 4, INTERRUPT_TX)
    assert not bench.level


def test_drivers_recognise_it() -> None:
    uart = Bench().uart
    assert bytes(uart.read(offset, 4) for offset in range(0xFE0, 0x1000, 4)) == bytes.fromhex("11101400 0df005b1")
    assert uart.read(CR, 4) == 0x300


def test_settings_are_kept_and_parts_can_be_read() -> None:
    uart = Bench().uart
    uart.write(CR, 4, 0xF301)
    uart.write(0x24, 4, 0x1234)
    assert (uart.read(CR, 4), uart.read(CR + 1, 1), uart.read(0x24, 2), uart.read(0x34, 4)) == (
        0xF301,
        0xF3,
        0x1234,
        0x12,
    )
