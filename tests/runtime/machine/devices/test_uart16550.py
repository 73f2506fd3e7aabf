"""The 16550 as a driver uses it: divisor latch, transmission, what was typed, interrupt identification."""

from dataclasses import dataclass, field
from typing import cast

from kinst.runtime.machine.devices.uart16550 import Uart16550
from kinst.runtime.machine.machine import Machine
from tests.runtime.machine.devices.bench import StillClock, Wire

DATA, IER, IIR, LCR, MCR, LSR, MSR, SCRATCH = range(8)


@dataclass
class Board:
    clock: StillClock = field(default_factory=StillClock)
    sent: bytearray = field(default_factory=bytearray)
    typed: bytes = b""

    def console_output(self, data: bytes) -> None:
        self.sent += data

    def console_input(self) -> bytes:
        typed, self.typed = self.typed, b""
        return typed


def uart() -> tuple[Board, Wire, Uart16550]:
    board, wire = Board(), Wire()
    return board, wire, Uart16550(cast(Machine, board), wire)


def test_what_is_written_is_sent_and_the_transmitter_is_always_empty() -> None:
    board, wire, device = uart()
    for byte in b"hi\n":
        assert device.read(LSR, 1) == 0x60
        device.write(DATA, 1, byte)
    assert board.sent == b"hi\n"
    assert not wire.level


def test_the_divisor_latch_hides_data_and_interrupt_enable() -> None:
    board, _, device = uart()
    device.write(LCR, 1, 0x83)
    device.write(DATA, 1, 0x34)
    device.write(IER, 1, 0x12)
    assert (device.read(DATA, 1), device.read(IER, 1)) == (0x34, 0x12)
    device.write(LCR, 1, 0x03)
    assert device.read(IER, 1) == 0
    assert board.sent == b""


def test_typed_characters_come_one_by_one() -> None:
    board, _, device = uart()
    board.typed = b"ab"
    assert device.read(LSR, 1) & 1
    assert device.read(DATA, 1) == ord("a")
    assert device.read(LSR, 1) & 1
    assert device.read(DATA, 1) == ord("b")
    assert not device.read(LSR, 1) & 1


def test_a_received_character_interrupts_until_it_is_read() -> None:
    board, wire, device = uart()
    assert device.deadline() is None
    device.write(IER, 1, 1)
    board.typed = b"x"
    assert device.deadline() == 0
    device.advance()
    assert wire.level
    assert device.read(IIR, 1) == 0x04
    device.read(DATA, 1)
    assert not wire.level
    assert device.deadline() == 20_000_000


def test_the_empty_transmitter_interrupts_once_for_each_write() -> None:
    _, wire, device = uart()
    device.write(IER, 1, 2)
    assert wire.level
    assert device.read(IIR, 1) == 0x02
    assert not wire.level
    assert device.read(IIR, 1) == 0x01
    device.write(DATA, 1, 0)
    assert wire.level


def test_fifos_show_in_the_identification_and_can_be_cleared() -> None:
    board, _, device = uart()
    board.typed = b"abc"
    device.read(LSR, 1)
    device.write(IIR, 1, 0x03)
    assert device.read(IIR, 1) == 0xC1
    assert not device.read(LSR, 1) & 1


def test_loopback_returns_data_and_modem_lines() -> None:
    board, _, device = uart()
    device.write(MCR, 1, 0x1A)  # loopback, RTS, OUT2
    device.write(DATA, 1, 0x55)
    assert device.read(DATA, 1) == 0x55
    assert device.read(MSR, 1) == 0x90
    assert board.sent == b""


def test_the_scratch_register_keeps_a_byte() -> None:
    _, _, device = uart()
    device.write(SCRATCH, 1, 0x1A5)
    assert device.read(SCRATCH, 1) == 0xA5
