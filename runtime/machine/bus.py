"""Devices in the physical address space and at I/O ports: an access -> the device that handles it."""

from bisect import bisect_right
from collections.abc import Callable
from typing import Final

from kinst.runtime.machine.device import Device
from kinst.runtime.machine.physical.unmodelled import Unmodelled
from kinst.runtime.paging.walker import Access
from kinst.targets.errors import MachineError

_LAST_PORT: Final = 0xFFFF
# Called with an access, its address, its size in bytes, the value, and whether a device has answered.
BusWatcher = Callable[[Access, int, int, int, bool], None]


class Bus:
    """One address space of devices. Where there is no device, reads give all ones and writes are ignored."""

    def __init__(self, on_write: Callable[[Device], None] | None = None, otherwise: Unmodelled | None = None) -> None:
        """`on_write` is called with each device that was written to; `otherwise` answers where no device does."""
        self._on_write = on_write
        self._starts: list[int] = []
        self._devices: list[Device] = []
        self.unanswered = 0  # reads so far that no device has answered
        self.asked = 0  # the address of the last of them
        self._otherwise = otherwise

    @property
    def is_used(self) -> bool:
        """Whether any device is attached."""
        return bool(self._starts)

    def attach(self, device: Device, address: int) -> None:
        """Put a device's window at `address`; windows may not overlap."""
        at = bisect_right(self._starts, address)
        for neighbour in (at - 1, at):
            if 0 <= neighbour < len(self._starts):
                start, size = self._starts[neighbour], self._devices[neighbour].size
                if address < start + size and start < address + device.size:
                    raise MachineError(f"device at {address:#x}: overlaps the one at {start:#x}")
        self._starts.insert(at, address)
        self._devices.insert(at, device)

    def devices(self) -> list[tuple[int, Device]]:
        """All devices, each with its address."""
        return list(zip(self._starts, self._devices, strict=True))

    def watch(self, watcher: BusWatcher | None) -> None:
        """From now on, call `watcher` with each access: with a read after it, with a write before it. None: nobody is
        called, as at first, and that costs an access nothing."""
        for name in ("read", "write"):
            vars(self).pop(name, None)
        if watcher is None:
            return
        read, write = self.read, self.write

        def watched_read(address: int, size: int) -> int:
            value = read(address, size)
            watcher(Access.READ, address, size, value, self.answers(address, size))
            return value

        def watched_write(address: int, size: int, value: int) -> None:
            watcher(Access.WRITE, address, size, value, self.answers(address, size))
            write(address, size, value)

        vars(self).update(read=watched_read, write=watched_write)  # in place of the methods, for this object

    def answers(self, address: int, size: int) -> bool:
        """Whether a device answers an access."""
        return self._find(address) is not None

    def _find(self, address: int) -> tuple[Device, int] | None:
        at = bisect_right(self._starts, address) - 1
        if at < 0 or address - self._starts[at] >= self._devices[at].size:
            return None
        return self._devices[at], address - self._starts[at]

    def read(self, address: int, size: int) -> int:
        """Read `size` bytes from the device at `address`."""
        found = self._find(address)
        if found is None:
            if self._otherwise is not None:
                return self._otherwise.read(address, size)
            self.unanswered, self.asked = self.unanswered + 1, address
            return (1 << 8 * size) - 1
        return found[0].read(found[1], size)

    def write(self, address: int, size: int, value: int) -> None:
        """Write `size` bytes to the device at `address`."""
        found = self._find(address)
        if found is not None:
            found[0].write(found[1], size, value)
            if self._on_write is not None:
                self._on_write(found[0])
        elif self._otherwise is not None:
            self._otherwise.write(address, size, value)


class PortBus(Bus):
    """I/O ports, which are bytes as on the ISA bus: a wider access is one to that many ports.

    Some devices have a register that only an access of its full width reaches: each of its ports alone belongs to
    another device or to none.
    """

    def __init__(self, on_write: Callable[[Device], None] | None = None) -> None:
        """`on_write` is called with each device that was written to."""
        super().__init__(on_write)
        self._whole: dict[tuple[int, int], Device] = {}

    @property
    def is_used(self) -> bool:
        """Whether any device is attached."""
        return super().is_used or bool(self._whole)

    def devices(self) -> list[tuple[int, Device]]:
        """All devices, each with its first port."""
        return [*super().devices(), *((port, device) for (port, _), device in self._whole.items())]

    def attach_whole(self, device: Device, address: int) -> None:
        """Let a device answer accesses to all of its ports at once."""
        self._whole[address, device.size] = device

    def answers(self, address: int, size: int) -> bool:
        """Whether a device answers an access, or a part of it."""
        ports = (address + at & _LAST_PORT for at in range(size))
        return (address, size) in self._whole or any(self._find(port) is not None for port in ports)

    def read(self, address: int, size: int) -> int:
        """Read `size` ports from `address` on."""
        device = self._whole.get((address, size))
        if device is not None:
            return device.read(0, size)
        answers = (super(PortBus, self).read(address + at & _LAST_PORT, 1) & 0xFF for at in range(size))
        return sum(answer << 8 * at for at, answer in enumerate(answers))

    def write(self, address: int, size: int, value: int) -> None:
        """Write `size` ports from `address` on."""
        device = self._whole.get((address, size))
        if device is not None:
            device.write(0, size, value)
            return
        for at in range(size):
            super().write(address + at & _LAST_PORT, 1, value >> 8 * at & 0xFF)


class Window:
    """A page-aligned part of a bus: what the engine maps."""

    def __init__(self, bus: "Bus | Unmodelled", base: int) -> None:
        self._bus = bus
        self._base = base

    def read(self, offset: int, size: int) -> int:
        """Read `size` bytes at `offset` from the window's start."""
        return self._bus.read(self._base + offset, size)

    def write(self, offset: int, size: int, value: int) -> None:
        """Write `size` bytes at `offset` from the window's start."""
        self._bus.write(self._base + offset, size, value)
