"""The 16550 as a driver uses it: divisor latch, transmission, what was typed, interrupt identification."""

from dataclasses import dataclass, field
from typing import cast

import pytest

from kinst.runtime.machine.devices.uart16550 import Uart16550
from kinst.runtime.machine.machine import Machine
from kinst.runtime.machine.serial_line import SerialLine
from tests.runtime.machine.devices.bench import Wire

DATA, IER, IIR, LCR, MCR, LSR, MSR, SCRATCH = range(8)


@dataclass
class Board:
    sent: bytearray = field(default_factory=bytearray)
    serial_line: SerialLine = field(default_factory=SerialLine)

    def console_output(self, data: bytes) -> None:
        self.sent += data


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


def is_ready(device: Uart16550, looks: int = 4) -> bool:
    """Whether there is something to read for a guest that looks a few times."""
    return any(device.read(LSR, 1) & 1 for _ in range(looks))


def test_typed_characters_come_one_by_one_to_who_looks_for_them() -> None:
    board, _, device = uart()
    board.serial_line.type(b"ab")
    assert is_ready(device)
    assert device.read(DATA, 1) == ord("a")
    assert is_ready(device)
    assert device.read(DATA, 1) == ord("b")
    assert not is_ready(device)
    assert device.read(DATA, 1) == 0


def test_a_driver_that_only_sends_and_resets_loses_nothing_that_was_typed() -> None:
    """Linux: the status before each byte and at the end, an interrupt for a moment, clear, and one read of each."""
    board, _, device = uart()
    board.serial_line.type(b"0123456789abcdefg")
    for _ in range(100):
        device.read(LSR, 1)
        device.write(DATA, 1, ord("x"))
    device.read(LSR, 1)
    device.write(IER, 1, 0x0F)
    device.write(IER, 1, 0)
    device.write(IIR, 1, 0x07)
    device.write(IIR, 1, 0)
    for _ in range(2):
        device.read(LSR, 1)
        assert device.read(DATA, 1) == 0
    device.write(IIR, 1, 0x01)
    device.write(IER, 1, 0x05)
    assert bytes(device.read(DATA, 1) for _ in range(17)) == b"0123456789abcdefg"


def test_a_guest_that_looks_between_its_own_characters_gets_what_was_typed() -> None:
    board, _, device = uart()
    board.serial_line.type(b"k")
    seen = False
    for _ in range(4):
        device.read(LSR, 1)
        device.write(DATA, 1, ord("x"))
        seen |= is_ready(device, 1)
    assert seen


def test_a_received_character_interrupts_until_it_is_read() -> None:
    board, wire, device = uart()
    device.write(IER, 1, 1)
    assert not wire.level
    board.serial_line.type(b"x")
    assert wire.level
    assert device.read(IIR, 1) == 0x04
    device.read(DATA, 1)
    assert not wire.level


def test_the_fifo_holds_sixteen_and_the_rest_waits() -> None:
    board, wire, device = uart()
    device.write(IIR, 1, 0x81)
    device.write(IER, 1, 1)
    text = bytes(range(256)) * 16
    board.serial_line.type(text)
    read = bytearray()
    while wire.level:
        read.append(device.read(DATA, 1))
    assert read == text


@pytest.mark.parametrize(("control", "level"), [(0x01, 1), (0x41, 4), (0x81, 8), (0xC1, 14)])
def test_fewer_than_the_trigger_level_come_by_the_timeout(control: int, level: int) -> None:
    board, wire, device = uart()
    device.write(IIR, 1, control)
    device.write(IER, 1, 1)
    for count in range(1, 17):
        board.serial_line.type(b"x")
        assert wire.level
        assert device.read(IIR, 1) == (0xC4 if count >= level else 0xCC)


def test_what_was_received_waits_while_its_interrupt_is_off() -> None:
    board, wire, device = uart()
    device.write(IER, 1, 1)
    board.serial_line.type(b"x")
    device.write(IER, 1, 0)
    assert not wire.level
    device.write(IER, 1, 1)
    assert wire.level
    assert device.read(DATA, 1) == ord("x")


def test_the_empty_transmitter_interrupts_once_for_each_write() -> None:
    _, wire, device = uart()
    device.write(IER, 1, 2)
    assert wire.level
    assert device.read(IIR, 1) == 0x02
    assert not wire.level
    assert device.read(IIR, 1) == 0x01
    device.write(DATA, 1, 0)
    assert wire.level


def test_fifos_show_in_the_identification() -> None:
    _, _, device = uart()
    device.write(IIR, 1, 0x03)
    assert device.read(IIR, 1) == 0xC1


def test_loopback_returns_data_and_modem_lines() -> None:
    board, _, device = uart()
    device.write(MCR, 1, 0x1A)  # loopback, RTS, OUT2
    device.write(DATA, 1, 0x55)
    assert device.read(LSR, 1) & 1
    assert device.read(DATA, 1) == 0x55
    device.write(DATA, 1, 0xAA)
    device.write(IIR, 1, 0x02)
    assert device.read(DATA, 1) == 0
    assert device.read(MSR, 1) == 0x90
    assert board.sent == b""


def test_the_scratch_register_keeps_a_byte() -> None:
    _, _, device = uart()
    device.write(SCRATCH, 1, 0x1A5)
    assert device.read(SCRATCH, 1) == 0xA5
