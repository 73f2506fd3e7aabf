"""A second console: what the guest prints, and what is typed at it."""

import pytest

from kinst.runtime.machine.devices.virtio.console import RECEIVE, TRANSMIT, VirtioConsole
from kinst.runtime.machine.serial_line import SerialLine
from tests.runtime.machine.devices.virtio_driver import DATA, Driver

TRANSPORTS = pytest.mark.parametrize("is_pci", [False, True], ids=["slot", "pci"])


class Guest:
    """A driver that uses one of the queues at a time, as the bench has rings for one."""

    def __init__(self, *, is_pci: bool) -> None:
        self.printed: list[bytes] = []
        self.line = SerialLine()
        self.driver = Driver(VirtioConsole(self.printed.append, self.line), is_pci=is_pci)

    def print(self, text: bytes) -> None:
        self.driver.start(queue=TRANSMIT)
        self.driver.bench.memory.write(DATA, text)
        self.driver.chain([(DATA, 1, False), (DATA + 1, len(text) - 1, False)])
        self.driver.offer(0)
        self.driver.bench.wait()
        assert self.driver.used() == [(0, 0)]

    def offer_room(self, *sizes: int) -> None:
        self.driver.start(queue=RECEIVE)
        self.driver.chain([(DATA + 0x100 * index, size, True) for index, size in enumerate(sizes)])
        self.driver.offer(0)
        self.driver.bench.wait()

    def received(self) -> bytes:
        """What came, once the machine had its turn."""
        self.line.look()
        self.driver.bench.wait()
        used = self.driver.used()
        return self.driver.bench.memory.read(DATA, used[0][1]) if used else b""


@TRANSPORTS
def test_what_the_guest_prints_comes_out(*, is_pci: bool) -> None:
    guest = Guest(is_pci=is_pci)
    guest.print(b"hello")
    assert guest.printed == [b"hello"]


@TRANSPORTS
def test_room_waits_until_something_is_typed(*, is_pci: bool) -> None:
    guest = Guest(is_pci=is_pci)
    guest.print(b"$ ")
    guest.offer_room(8)
    assert guest.received() == b""
    guest.line.type(b"ls\n")
    assert guest.received() == b"ls\n"


def test_what_is_typed_fills_one_buffer_after_the_other() -> None:
    guest = Guest(is_pci=False)
    guest.print(b"$ ")
    guest.offer_room(2, 2)
    guest.line.type(b"abcdef")
    assert guest.received() == b"ab" + guest.driver.bench.memory.read(DATA + 2, 2)
    assert guest.driver.bench.memory.read(DATA + 0x100, 2) == b"cd"
    guest.offer_room(8)
    assert guest.received() == b"ef"


def test_a_console_that_was_never_used_takes_nothing_from_the_serial_line() -> None:
    guest = Guest(is_pci=False)
    guest.offer_room(8)
    guest.line.type(b"x")
    assert guest.received() == b""
    assert guest.line.take(8) == b"x"


def test_a_console_in_use_is_typed_at_in_place_of_the_serial_line() -> None:
    guest = Guest(is_pci=False)
    guest.print(b"$ ")
    guest.line.type(b"x")
    assert guest.line.take(8) == b""
    guest.offer_room(8)
    assert guest.received() == b"x"


def test_the_machine_knows_that_the_guest_waits_for_somebody_to_type() -> None:
    guest = Guest(is_pci=False)
    waits: list[bool] = []
    guest.line.on_wait(lambda: waits.append(True))
    guest.line.look()
    guest.line.wait()
    assert not waits
    guest.print(b"$ ")
    guest.line.look()
    guest.line.wait()
    assert waits
