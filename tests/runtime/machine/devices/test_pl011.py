from dataclasses import dataclass, field

from kinst.runtime.machine.devices.pl011 import (
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
    POLL_INTERVAL,
    RIS,
    Pl011,
)

EMPTY_BOTH, TRANSMITTER_EMPTY, RECEIVER_FULL = 0x90, 0x80, 0xC0


@dataclass
class Bench:
    """A UART with a clock that stands still, a keyboard and an interrupt line to look at."""

    time: int = 0
    typed: bytes = b""
    sent: bytes = b""
    level: bool = False
    uart: Pl011 = field(init=False)

    def __post_init__(self) -> None:
        self.uart = Pl011(self, self.send, self.keyboard, self.drive)

    def now(self) -> int:
        return self.time

    def send(self, data: bytes) -> None:
        self.sent += data

    def keyboard(self) -> bytes:
        typed, self.typed = self.typed, b""
        return typed

    def drive(self, level: bool) -> None:  # noqa: FBT001
        self.level = level


def test_what_is_written_is_sent() -> None:
    bench = Bench()
    for letter in b"ok\n":
        bench.uart.write(DR, 1, letter)
    assert bench.sent == b"ok\n"
    assert bench.uart.read(FR, 4) == EMPTY_BOTH


def test_typed_bytes_wait_for_room() -> None:
    bench = Bench(typed=b"abc")
    assert bench.uart.read(FR, 4) == RECEIVER_FULL  # without FIFOs there is room for one
    assert bytes(bench.uart.read(DR, 4) for _ in range(3)) == b"abc"
    assert bench.uart.read(FR, 4) == EMPTY_BOTH
    assert bench.uart.read(DR, 4) == 0


def test_fifos_hold_sixteen() -> None:
    bench = Bench()
    bench.uart.write(LCR_H, 4, 0x70)
    bench.typed = b"0123456789abcde"
    assert bench.uart.read(FR, 4) == TRANSMITTER_EMPTY
    bench.typed = b"fg"
    assert bench.uart.read(FR, 4) == RECEIVER_FULL
    assert bytes(bench.uart.read(DR, 1) for _ in range(17)) == b"0123456789abcdefg"


def test_a_received_byte_interrupts_until_it_is_read() -> None:
    bench = Bench()
    assert bench.uart.deadline() is None
    bench.uart.write(IMSC, 4, INTERRUPT_RX | INTERRUPT_RT)
    due = bench.uart.deadline()
    assert due is not None
    bench.typed, bench.time = b"x", due
    bench.uart.advance()
    assert bench.level
    assert bench.uart.deadline() == due + POLL_INTERVAL
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
