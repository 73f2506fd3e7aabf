"""Devices of the Raspberry Pi that firmware on its Arm CPUs needs: the mailbox to the GPU's firmware, the free timer.

Mailbox (BCM2835 Arm Peripherals, and the property interface as Linux's include/soc/bcm2835/raspberrypi-firmware.h has
its tags): a write of an address, with the channel in its low four bits, is answered in memory, in place.

    0x00 read   0x18 status: 31 full  30 empty   0x20 write

    message: size  code  (tag  room  length  value...)...  0
"""

from collections.abc import Callable
from typing import Final

from kinst.runtime.machine.device import Clock
from kinst.runtime.machine.machine import Machine
from kinst.targets.errors import MachineError

_READ, _STATUS, _WRITE = 0x00, 0x18, 0x20
_EMPTY: Final = 1 << 30
_PROPERTIES: Final = 8  # the channel
_ANSWERED: Final = 0x8000_0000
_GPU_ALIAS: Final = 0x3FFF_FFFF  # addresses of the GPU are those of the Arm, with its cache's kind above
_LARGEST: Final = 4096
_MICROSECOND: Final = 1000  # ns
_CLOCK_RATE: Final = 250_000_000
_TURBO: Final = 48_000_000  # of the UART's clock


class Mailbox:
    """The mailbox, and the firmware behind it. `revision`: the board's, as the firmware tells it."""

    size = 0x40

    def __init__(self, machine: Machine, revision: int) -> None:
        """Nothing was asked."""
        self._machine, self._revision = machine, revision
        self._answers: list[int] = []

    def read(self, offset: int, size: int) -> int:
        """An answer, or whether there is one."""
        if offset == _READ:
            return self._answers.pop(0) if self._answers else 0
        return 0 if self._answers or offset != _STATUS else _EMPTY

    def write(self, offset: int, size: int, value: int) -> None:
        """Ask the firmware."""
        if offset == _WRITE and len(self._answers) < 8:
            if value & 0xF == _PROPERTIES:
                self._answer(value & _GPU_ALIAS & ~0xF)
            self._answers.append(value)

    def _answer(self, at: int) -> None:
        memory = self._machine.memory
        try:
            size = min(memory.load(at, 4), _LARGEST)
            message = bytearray(memory.read(at, size))
            if size >= 8:
                self._answer_tags(message)
                message[4:8] = _ANSWERED.to_bytes(4, "little")
                memory.write(at, bytes(message))
        except MachineError:
            return  # there is no memory: the GPU writes nowhere

    def _answer_tags(self, message: bytearray) -> None:
        at = 8
        while at + 12 <= len(message):
            tag, room = (int.from_bytes(message[at + part : at + part + 4], "little") for part in (0, 4))
            if not tag:
                return
            value = self._value(tag, bytes(message[at + 12 : at + 12 + room]))
            fits = value[: max(0, min(room, len(message) - at - 12))]
            message[at + 8 : at + 12] = (_ANSWERED | len(value)).to_bytes(4, "little")
            message[at + 12 : at + 12 + len(fits)] = fits
            at += 12 + (room + 3 & ~3)

    def _value(self, tag: int, asked: bytes) -> bytes:
        """What the firmware says to a tag; the question itself where it does what it is told."""
        ram = self._machine.facts.ram_base, min(self._machine.ram_size, 0x3C00_0000)
        words: dict[int, tuple[int, ...]] = {
            0x0000_0001: (0x6000_0000,),  # the firmware's own revision
            0x0001_0002: (self._revision,),
            0x0001_0003: (0xEB27_B8, 0),  # MAC address
            0x0001_0004: (1, 0),  # serial number
            0x0001_0005: ram,
            0x0001_0006: (0x3C00_0000, 0x0400_0000),  # the GPU's
        }
        if tag in words:
            return b"".join(word.to_bytes(4, "little") for word in words[tag])
        if tag in (0x0003_0002, 0x0003_0004, 0x0003_0007):  # clock rate: now, highest, lowest
            rate = _TURBO if asked[:4] == b"\2\0\0\0" else _CLOCK_RATE
            return asked[:4] + rate.to_bytes(4, "little")
        return asked


class SystemTimer:
    """The free counter of microseconds. Its comparators never match."""

    size = 0x1000

    def __init__(self, clock: Clock) -> None:
        """The counter is the clock's."""
        self._now: Callable[[], int] = clock.now

    def read(self, offset: int, size: int) -> int:
        """The lower or the higher half of the counter; 0 elsewhere."""
        count = self._now() // _MICROSECOND
        parts = {4: count & 0xFFFF_FFFF, 8: count >> 32 & 0xFFFF_FFFF}
        return parts.get(offset, 0) & (1 << 8 * size) - 1

    def write(self, offset: int, size: int, value: int) -> None:
        """Ignored."""
