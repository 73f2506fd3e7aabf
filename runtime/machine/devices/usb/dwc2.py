"""A USB host controller DWC2 (Synopsys DWC_otg 2.94) with nothing in its port. Its registers are as drivers name them
(Linux' drivers/usb/dwc2/hw.h):

    0x000 GOTGCTL  0x008 GAHBCFG  0x00c GUSBCFG  0x010 GRSTCTL  0x014 GINTSTS  0x018 GINTMSK
    0x040 GSNPSID  0x044 GHWCFG (4)
    0x100 HPTXFSIZ 0x400 HCFG     0x408 HFNUM    0x414 HAINT    0x418 HAINTMSK 0x440 HPRT
    0x500 + 0x20 n HCCHAR, HCSPLT, HCINT, HCINTMSK, HCTSIZ, HCDMA, -, HCDMAB of channel n
    0xe00 PCGCTL   0x1000 FIFOs

A channel that is enabled stays so, since nobody answers, until the driver gives up and disables it. No frame begins.
"""

from collections.abc import Mapping
from typing import Final

from kinst.runtime.machine.device import Line

_WORD: Final = (1 << 32) - 1
_CHANNELS: Final = 8
_AHB, _RESET, _STATUS, _MASK = 0x008, 0x010, 0x014, 0x018
_CHANNEL_INTERRUPTS, _CHANNEL_MASK, _PORT = 0x414, 0x418, 0x440
_AT_RESET: Final = {
    0x000: 0xD_0000,  # a host, with valid sessions
    0x00C: 5 << 10,
    _RESET: 1 << 31,  # idle
    _STATUS: 0x1400_0021,  # both FIFOs for sending are empty; a host
    0x024: 1024,  # words of FIFOs, here and in what follows
    0x028: 1024 << 16,
    0x02C: 4 << 16 | 1024,
    0x030: 0x1100_0000,
    0x040: 0x4F54_294A,  # its version
    0x048: 0x250D_C016,  # a host that is no device, with DMA and eight channels
    0x04C: 0x1000_0044,
    0x058: 0x10,
    0x100: 500 << 16,
    0x400: 0x200,
    0x404: 60_000,
    0x408: 0x3FFF,
    0x410: 16 << 16 | 0x8000,
    _PORT: 1 << 12,  # powered
}
_SESSION: Final = 0x07CF_0101  # of GOTGCTL: only read
_READ_ONLY: Final = frozenset((0x408, 0x410, _CHANNEL_INTERRUPTS))
_SELF_CLEARING: Final = 0x3F  # of GRSTCTL
_STANDING: Final = 0x070C_00F5  # of GINTSTS: not cleared by a one
_HOST_CHANNELS, _PORT_INTERRUPT = 1 << 25, 1 << 24
_IDLE, _ASKS_DMA = 1 << 31, 1 << 30
# Of HPRT: what is only read, what a one clears, what of it interrupts, and what the controller clears.
_PORT_FIXED, _PORT_CLEARED, _PORT_CHANGES, _PORT_SELF = 0x0006_0C11, 0x2E, 0x2A, 0xC0
_DISABLES, _ENABLES = 1 << 30, 1 << 31  # of HCCHAR
_HALTED: Final = 1 << 1  # of HCINT
_EVENTS: Final = 0x3FFF  # bits of HCINT and its mask


class Dwc2:
    """The controller."""

    size = 0x10000

    def __init__(self, line: Line) -> None:
        """It was just reset."""
        self._line = line
        self._words: dict[int, int] = dict(_AT_RESET)

    def read(self, offset: int, size: int) -> int:
        """A register of 32 bits, or a part of one."""
        at = offset & ~3
        if at == _RESET:
            self._words[at] &= ~_SELF_CLEARING
        return self._get(at) >> 8 * (offset & 3) & (1 << 8 * min(size, 4)) - 1

    def write(self, offset: int, size: int, value: int) -> None:
        """A register of 32 bits."""
        value &= _WORD
        if offset % 4 or offset in _READ_ONLY or not _is_register(offset):
            return
        if 0x500 <= offset < 0x500 + 0x20 * _CHANNELS:
            self._write_channel(offset, value)
        else:
            self._write_global(offset, value)

    def _get(self, at: int) -> int:
        return self._words.get(at, 0)

    def _write_global(self, at: int, value: int) -> None:
        before = self._get(at)
        match at:
            case 0x000:
                value = value & ~_SESSION | before & _SESSION
            case 0x010:
                value = (value | _IDLE) & ~_ASKS_DMA | before & _SELF_CLEARING
            case 0x014:
                value = before & ~(value & ~_STANDING)
            case 0x418:
                value &= 0xFFFF
            case 0x440:
                value = self._port(before, value)
        self._words[at] = value
        self._update()

    def _port(self, before: int, value: int) -> int:
        """What HPRT becomes: an empty port is not enabled by its reset."""
        value = value & ~_PORT_FIXED | before & (_PORT_FIXED | _PORT_SELF)
        cleared = before & ~value & _PORT_CLEARED
        return value & ~_PORT_CLEARED | cleared

    def _write_channel(self, at: int, value: int) -> None:
        first, before = at & ~0x1F, self._get(at)
        match at & 0x1C:
            case 0x00:
                value = self._control(first, before, value)
            case 0x08:
                value = before & ~value & _EVENTS
            case 0x0C:
                value &= _EVENTS
            case 0x1C:
                return
        self._words[at] = value
        self._update_channel(first)

    def _control(self, first: int, before: int, value: int) -> int:
        """What HCCHAR becomes: a channel that is disabled halts at once."""
        if value & _DISABLES and not before & _DISABLES:
            self._words[first + 8] = self._get(first + 8) | _HALTED
            return value & ~(_ENABLES | _DISABLES)
        value |= before & (_DISABLES | _ENABLES)
        return value & ~_DISABLES if value & _ENABLES and not before & _ENABLES else value

    def _update_channel(self, first: int) -> None:
        bit, pending = 1 << (first - 0x500) // 0x20, self._get(first + 8) & self._get(first + 0xC)
        interrupts = self._get(_CHANNEL_INTERRUPTS)
        self._words[_CHANNEL_INTERRUPTS] = interrupts | bit if pending else interrupts & ~bit
        self._update()

    def _update(self) -> None:
        """Channels and the port in the status, and the interrupt."""
        status = self._get(_STATUS) & ~(_HOST_CHANNELS | _PORT_INTERRUPT)
        status |= _HOST_CHANNELS if self._get(_CHANNEL_INTERRUPTS) & self._get(_CHANNEL_MASK) else 0
        status |= _PORT_INTERRUPT if self._get(_PORT) & _PORT_CHANGES else 0
        self._words[_STATUS] = status
        self._line(bool(status & self._get(_MASK)) and bool(self._get(_AHB) & 1))


_ROOMS: Final[Mapping[int, int]] = {0x000: 0x70, 0x100: 4, 0x400: 0x44, 0x500: 0x20 * _CHANNELS, 0xE00: 8}


def _is_register(at: int) -> bool:
    """Whether there is one; those of devices are not there, and nobody takes what is in the FIFOs."""
    return any(first <= at < first + size for first, size in _ROOMS.items())
