"""UARTs that are polled, driven as firmware drives them: initialised, sent to, received from."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from kinst.runtime.machine.devices.uarts.fifo_uart import LAYOUTS, FifoUart
from kinst.runtime.machine.devices.uarts.packed_uart import PACKED, PackedUart
from kinst.runtime.machine.serial_line import SerialLine

Set = tuple[int, int, int]  # an offset, a mask, and the value under it that the driver waits for
PATIENCE = 16  # polls


@dataclass(frozen=True)
class Driver:
    """A driver: what it waits for before and after a byte is sent, and when one has come. `reset`: after its writes."""

    send: int
    receive: int
    can_send: Set
    has_sent: Set
    has_received: Set
    reset: tuple[tuple[int, int, Set], ...] = ()
    before: tuple[tuple[int, int], ...] = ()  # written before each byte that is sent


DRIVERS = {
    "cdns-uart": Driver(0x30, 0x30, (0x2C, 0x10, 0), (0x2C, 0x808, 8), (0x2C, 2, 0), ((0x0, 0x17, (0x0, 3, 0)),)),
    "exynos-uart": Driver(0x20, 0x24, (0x18, 1 << 24, 0), (0x10, 4, 4), (0x10, 1, 1)),
    "imx-uart": Driver(0x40, 0x0, (0xB4, 1 << 4, 0), (0x98, 8, 8), (0xB4, 0x20, 0), ((0x84, 0, (0x84, 1, 1)),)),
    "lpuart": Driver(0x1C, 0x1C, (0x14, 1 << 23, 1 << 23), (0x14, 1 << 22, 1 << 22), (0x14, 1 << 21, 1 << 21)),
    "meson-uart": Driver(0x0, 0x4, (0xC, 1 << 21, 0), (0xC, 1 << 22, 1 << 22), (0xC, 1 << 20, 0)),
    "mvebu-uart": Driver(0x4, 0x0, (0xC, 1 << 11, 0), (0xC, 1 << 6, 1 << 6), (0xC, 1 << 4, 1 << 4)),
    "geni-uart": Driver(
        *(0x700, 0x780, (0x610, 1 << 30, 1 << 30), (0x610, 1, 1), (0x804, 0x1FFFFFF, 1)),
        reset=((0x604, 4, (0x604, 4, 0)), (0x634, 2, (0x640, 1 << 5, 1 << 5))),
        before=((0x270, 1), (0x600, 1 << 27)),
    ),
    "msm-uartdm": Driver(
        *(0x100, 0x140, (0xB4, 1 << 7, 1 << 7), (0xA4, 8, 8), (0x50, 7 << 7, 1 << 7)),
        before=((0xA8, 3 << 8), (0x40, 1)),
    ),
}


def uart(kind: str, output: Callable[[bytes], None], line: SerialLine | None = None) -> FifoUart:
    line = line or SerialLine()
    return PackedUart(PACKED[kind], output, line) if kind in PACKED else FifoUart(LAYOUTS[kind], output, line)


def wait(device: FifoUart, wanted: Set) -> None:
    offset, mask, value = wanted
    assert any(device.read(offset, 4) & mask == value for _ in range(PATIENCE)), (
        f"{offset:#x}: {mask:#x} is not {value:#x}"
    )


def test_each_kind_has_its_driver() -> None:
    assert DRIVERS.keys() == {*LAYOUTS, *PACKED} - {"sifive-uart"}  # whose data registers say all


@pytest.mark.parametrize("kind", DRIVERS)
def test_a_driver_sends_and_receives(kind: str) -> None:
    driver, sent, line = DRIVERS[kind], bytearray(), SerialLine()
    line.type(b"go on")
    device = uart(kind, sent.extend, line)
    for offset, value, wanted in driver.reset:
        device.write(offset, 4, value)
        wait(device, wanted)
    for byte in b"ready? ":
        wait(device, driver.can_send)
        for offset, value in driver.before:
            device.write(offset, 4, value)
        device.write(driver.send, 4, byte)
        wait(device, driver.has_sent)
    assert sent == b"ready? "
    received = bytearray()
    while len(received) < len(b"go on"):
        wait(device, driver.has_received)
        received.append(device.read(driver.receive, 4) & 0xFF)
    assert received == b"go on"
    offset, mask, value = driver.has_received
    assert device.read(offset, 4) & mask != value


def test_what_was_received_is_marked_as_valid() -> None:
    line = SerialLine()
    line.type(b"x")
    device = uart("imx-uart", lambda _: None, line)
    wait(device, (0x94, 1 << 9, 1 << 9))
    assert device.read(0x0, 4) == 1 << 15 | ord("x")
    assert device.read(0x0, 4) == 0


@pytest.mark.parametrize(
    ("kind", "packing", "written", "expected"),
    [
        ("msm-uartdm", {}, [(6, 0x6463_6261), (None, 0xFFFF_6665)], b"abcdef"),
        ("geni-uart", {}, [(6, 0x6463_6261), (None, 0xFFFF_6665)], b"abcdef"),
        ("geni-uart", {0x260: 0x4380E | 1}, [(2, 0xFFFF_FF61), (None, 0xFFFF_FF62)], b"ab"),  # one byte in a word
        ("geni-uart", {0x260: 0x4380E, 0x264: 0xC3E0E | 1 << 10}, [(4, 0x6463_6261)], b"abcd"),
        ("geni-uart", {}, [(None, 0x61)], b""),  # no command says how many
    ],
)
def test_words_have_several_bytes(
    kind: str, packing: dict[int, int], written: list[tuple[int | None, int]], expected: bytes
) -> None:
    sent = bytearray()
    device = uart(kind, sent.extend)
    for offset, value in packing.items():
        device.write(offset, 4, value)
    for count, word in written:
        if count is not None:
            device.write(PACKED[kind].count, 4, count)
        device.write(PACKED[kind].registers.send, 4, word)
    assert sent == expected
