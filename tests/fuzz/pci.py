"""A PC's guest that has gone mad about PCI and ACPI: any register of configuration space, windows moved anywhere, with
anything behind them, and the ports that ACPI's tables name."""

from contextlib import suppress
from pathlib import Path
from typing import Final

from hypothesis import strategies as st

from kinst.targets.errors import KinstError
from tests.fuzz.kind import Finding, Kind
from tests.fuzz.traffic import Reader, Traffic

_ADDRESS, _DATA = 0xCF8, 0xCFC
_ENABLED: Final = 1 << 31
_COMMAND, _BAR, _CAPABILITY = 0x04, 0x10, 0x34
_REGISTERS: Final = (0, _COMMAND, 0x08, 0x0C, *range(_BAR, 0x28, 4), _CAPABILITY, 0x3C, *range(0x40, 0xC0, 4), 0xFC)
_WINDOWS: Final = (0, 0xD000_0000, 0xE000_0000, 0xFEBF_0000, 0xFEC0_0000, 0xFEE0_0000, 0xFFFF_FFFF, 0x10_0000)
_SIZES: Final = (1, 2, 4, 8)


class _Guest:
    """The machine, and what the guest has learned of it."""

    def __init__(self) -> None:
        self.machine = Traffic("pc-amd64")
        self.windows = list(_WINDOWS)

    def operate(self, data: Reader) -> None:
        """One thing that the guest does."""
        what = data.number(1)
        if what < 120:
            self._configure(data)
        elif what < 150:
            self.machine.ports.write(_ADDRESS + (data.number(1) & 7), _SIZES[what & 3], data.value() & 0xFFFF_FFFF)
        elif what < 235:
            self._access(data)
        else:
            self.machine.wait(data.number(3))

    def _configure(self, data: Reader) -> None:
        """A register of a function: mostly one that there is, at an edge or beyond the bus."""
        form, register = data.number(1), _REGISTERS[data.number(1) % len(_REGISTERS)]
        place = (form & 7) << 11 if form < 220 else data.number(3)
        self.machine.ports.write(_ADDRESS, 4, _ENABLED | place | register)
        at, size = _DATA + (data.number(1) & 3), _SIZES[data.number(1) & 3]
        if form & 1:
            value = data.value() if register != _BAR or form & 2 else self.windows[form % len(self.windows)]
            self.machine.ports.write(at, size, value & (1 << 8 * size) - 1)
        answer = self.machine.ports.read(at, size)
        if not 0 <= answer < 1 << 8 * size:
            raise Finding(f"configuration reads {answer!r} of {size} bytes")
        if register in range(_BAR, 0x28) and 0 < answer < 0xFFFF_FFFF:
            self.windows.append(answer & ~0xF)

    def _access(self, data: Reader) -> None:
        """Something in or around a window, as far as the board has anything there."""
        base, size = self.windows[data.number(1) % len(self.windows)], _SIZES[data.number(1) & 3]
        address = (base + data.offset()) & (1 << 64) - 1
        bus = self.machine.bus
        if data.number(1) & 1:
            bus.write(address, size, data.value() & (1 << 8 * size) - 1)
        elif not isinstance(bus.read(address, size), int):
            raise Finding(f"{address:#x} reads no number")


def _run(content: bytes, _folder: Path) -> None:
    guest, data = _Guest(), Reader(content)
    while data.at < len(content):
        with suppress(KinstError):
            guest.operate(data)


PCI: Final = Kind("pci", st.binary(min_size=8, max_size=1500), _run)
