"""The Raspberry Pi's pins (BCM2835 ARM Peripherals, chapter 6): what each is for, and the levels that are written.

    0x00 functions, ten pins a word of three bits each: 0 input  1 output  4 alternate 0 ... 7 alternate 3
    0x1c set (2)   0x28 clear (2)   0x34 levels (2)

Pins 48 to 53 lead to the socket of the memory card: as alternate 0 from the board's own SD host, else from the SDHCI.
"""

from typing import Final

from kinst.runtime.machine.devices.sd import bcm2835_sdhost, sdhci
from kinst.runtime.machine.devices.sd.socket import Socket

_PINS, _A_WORD = 54, 10
_SET, _CLEAR, _LEVELS = 0x1C, 0x28, 0x34
_FUNCTIONS: Final = 0x18  # the first offset behind these
_CARD: Final = range(48, 54)
_HOSTS: Final = {0: sdhci.KIND, 4: bcm2835_sdhost.KIND, 7: sdhci.KIND}


class Bcm2835Gpio:
    """The pins. Nothing is connected to them but the memory card; events and pulls are not there."""

    size = 0x100

    def __init__(self, socket: Socket) -> None:
        """All are inputs, and low."""
        self._functions = [0] * _PINS
        self._levels = 0
        self._socket = socket
        self._route()

    def read(self, offset: int, size: int) -> int:
        """A register of 32 bits, or its low bytes."""
        if offset < _FUNCTIONS and not offset % 4:
            value = sum(one << 3 * at for at, one in enumerate(self._functions[self._pins(offset)]))
        elif offset in (_LEVELS, _LEVELS + 4):
            value = self._levels >> 8 * (offset - _LEVELS)
        else:
            value = 0
        return value & (1 << 8 * min(size, 4)) - 1

    def write(self, offset: int, size: int, value: int) -> None:
        """A register of 32 bits."""
        value &= 0xFFFF_FFFF
        if offset < _FUNCTIONS and not offset % 4:
            pins = self._pins(offset)
            self._functions[pins] = [value >> 3 * at & 7 for at in range(len(self._functions[pins]))]
            self._route()
        elif offset in (_SET, _SET + 4):
            self._levels |= (value << 8 * (offset - _SET)) & (1 << _PINS) - 1
        elif offset in (_CLEAR, _CLEAR + 4):
            self._levels &= ~(value << 8 * (offset - _CLEAR))

    def _pins(self, offset: int) -> slice:
        first = offset // 4 * _A_WORD
        return slice(first, first + _A_WORD)

    def _route(self) -> None:
        """Lead the card's pins to a host; while they are not all for the same one, they stay as they were."""
        functions = {self._functions[pin] for pin in _CARD}
        host = _HOSTS.get(functions.pop()) if len(functions) == 1 else None
        if host is not None:
            self._socket.lead_to(host)
