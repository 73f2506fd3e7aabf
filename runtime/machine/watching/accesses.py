"""What the guest asks of devices -> a call for each access: to a device's memory, to a port, to where nothing is.

While nobody watches, accesses cost nothing more than they do.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Protocol

from kinst.runtime.machine.bus import Bus, BusWatcher, PortBus
from kinst.runtime.machine.device import Device
from kinst.runtime.machine.watching.open_pages import OpenPages
from kinst.runtime.paging.walker import Access, PageFault
from kinst.targets.machines.machine import Space
from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True)
class DeviceAccess:
    """One access by an instruction. A `size` of 0: it has faulted, and neither size nor value are known."""

    access: Access
    space: Space
    address: int  # physical, or the port
    size: int  # bytes
    value: int  # that the device gave, or that is to be stored
    is_answered: bool  # by a device


AccessWatcher = Callable[[DeviceAccess], None]


class Translating(Protocol):
    """What is known of the address space in which the guest accesses devices."""

    nothing_at: tuple[int, int] | None  # virtual and physical address of the last access that faulted for want of both

    @property
    def open_pages(self) -> OpenPages:
        """Where there is neither RAM nor a device."""
        ...


class DeviceAccesses:
    """The accesses of one machine, to which several may listen."""

    def __init__(self, buses: tuple[Bus, ...], ports: PortBus, space: Translating, real: Callable[[int], int]) -> None:
        """`buses` are those of memory. `real` gives the guest's physical address for one of what has rules only."""
        self._buses, self._ports, self._space, self._real = buses, ports, space, real
        self._watchers: list[AccessWatcher] = []

    def is_watched(self) -> bool:
        """Whether anybody is told of accesses."""
        return bool(self._watchers)

    def devices(self) -> Iterator[tuple[str, Device]]:
        """All devices, each with a name by its place."""
        yield from ((f"device at {at:#x}", device) for bus in self._buses for at, device in bus.devices())
        yield from ((f"port {port:#x}", device) for port, device in self._ports.devices())

    def watch(self, watcher: AccessWatcher) -> None:
        """Call `watcher` with each access from now on: with a read after it, with a write before it."""
        self._watchers.append(watcher)
        self._connect()

    def unwatch(self, watcher: AccessWatcher) -> None:
        """Call it no more."""
        self._watchers.remove(watcher)
        self._connect()

    def _connect(self) -> None:
        has_any = bool(self._watchers)
        in_memory: BusWatcher | None = self._in_memory if has_any else None
        for bus in self._buses:
            bus.watch(in_memory)
        self._ports.watch(partial(self._note, Space.PORTS) if has_any else None)

    def _in_memory(self, access: Access, address: int, size: int, value: int, is_answered: bool) -> None:  # noqa: FBT001
        physical = self._real(self._space.open_pages.physical(address))
        self._note(Space.MEMORY, access, physical, size, value, is_answered)

    def _note(
        self,
        space: Space,
        access: Access,
        address: int,
        size: int,
        value: int,
        is_answered: bool,  # noqa: FBT001 - a `BusWatcher`
    ) -> None:
        noted = DeviceAccess(access, space, address, size, value, is_answered)
        for watcher in tuple(self._watchers):
            watcher(noted)

    def faulted(self, fault: PageFault) -> None:
        """A fault is about to be delivered: it is an access as well if it was since nothing is at the address."""
        found, self._space.nothing_at = self._space.nothing_at, None
        if not self._watchers or found is None or fault.access is Access.FETCH:
            return
        virtual, physical = found
        if virtual >> 12 == fault.address >> 12:
            self._note(Space.MEMORY, fault.access, physical & -0x1000 | fault.address & 0xFFF, 0, 0, False)  # noqa: FBT003
