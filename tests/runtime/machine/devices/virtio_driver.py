"""A guest's driver of virtio devices, as small as it can be: it writes descriptors into memory and reads what comes."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Final, cast

from kinst.runtime.machine.device import Device, Timed
from kinst.runtime.machine.devices.virtio.device import Model, VirtioDevice
from kinst.runtime.machine.devices.virtio.mmio import SLOT_SIZE, VirtioSlots
from kinst.runtime.machine.devices.virtio.pci import SIZE, VirtioPci
from kinst.runtime.machine.machine import Machine
from kinst.runtime.machine.memory import PhysicalMemory
from tests.runtime.machine.devices.bench import StillClock, Wire

RAM, RAM_SIZE = 0x4000_0000, 1 << 20
TABLE, DRIVER, DEVICE = RAM, RAM + 0x1000, RAM + 0x2000
DATA: Final = RAM + 0x4000
NEXT, WRITE, INDIRECT = 1, 2, 4
ACKNOWLEDGED, HAS_DRIVER, DRIVER_OK, FEATURES_OK, NEEDS_RESET = 1, 2, 4, 8, 64
VERSION_1: Final = 1 << 32
LATENCY: Final = 10_000  # ns

# Registers by what they are for: offset and width. Virtio 1.2, 4.2.2 and 4.1.4
SLOT: Final = {
    "offer half": (0x14, 4), "offered": (0x10, 4), "accept half": (0x24, 4), "accepted": (0x20, 4),
    "status": (0x70, 4), "queue": (0x30, 4), "maximum": (0x34, 4), "size": (0x38, 4), "ready": (0x44, 4),
    "table": (0x80, 4), "driver": (0x90, 4), "device": (0xA0, 4), "notify": (0x50, 4), "interrupts": (0x60, 4),
    "configuration": (0x100, 8),
}  # fmt: skip
FUNCTION: Final = {
    "offer half": (0x00, 4), "offered": (0x04, 4), "accept half": (0x08, 4), "accepted": (0x0C, 4),
    "status": (0x14, 1), "queue": (0x16, 2), "maximum": (0x18, 2), "size": (0x18, 2), "ready": (0x1C, 2),
    "table": (0x20, 4), "driver": (0x28, 4), "device": (0x30, 4), "notify": (0x3000, 2), "interrupts": (0x1000, 1),
    "configuration": (0x2000, 8),
}  # fmt: skip


@dataclass
class Bench:
    """What a virtio device needs of a machine."""

    clock: StillClock = field(default_factory=StillClock)
    line: Wire = field(default_factory=Wire)
    timed: list[Timed] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.memory = PhysicalMemory(cast("Any", SimpleNamespace(map_memory=lambda _address, _buffer: None)))
        self.memory.add_ram(RAM, RAM_SIZE)

    def attach_timed(self, timed: Timed) -> None:
        self.timed.append(timed)

    def notice_deadline(self, timed: Timed) -> None:
        assert timed.deadline() is not None

    def wait(self, duration: int = LATENCY) -> None:
        """Let time pass, as the machine's loop does."""
        self.clock.time += duration
        for timed in self.timed:
            due = timed.deadline()
            if due is not None and due <= self.clock.time:
                timed.advance()


class _Memory:
    """A function's registers as a device with a window."""

    size = SIZE

    def __init__(self, function: VirtioPci) -> None:
        self.read, self.write = function.load, function.store


class Driver:
    """One queue of a device, in a slot or on a PCI bus."""

    def __init__(self, model: Model, *, is_pci: bool, bench: Bench | None = None) -> None:
        self.bench = Bench() if bench is None else bench
        machine = cast("Machine", self.bench)
        self._registers = FUNCTION if is_pci else SLOT
        self.function: VirtioPci | None = None
        self._device: Device
        if is_pci:
            self.function = VirtioPci(machine, model, self.bench.line, 11, 0xFEB0_0000)
            self._device = _Memory(self.function)
        else:
            self._device = VirtioSlots(SLOT_SIZE, SLOT_SIZE, {0: VirtioDevice(machine, model, self.bench.line)})
        self.entries = self.queue = 0
        self._available = self._seen = 0

    def read(self, register: str, at: int = 0) -> int:
        offset, size = self._registers[register]
        return self._device.read(offset + at, size)

    def write(self, register: str, value: int, at: int = 0) -> None:
        offset, size = self._registers[register]
        self._device.write(offset + at, size, value)

    def offered(self) -> int:
        halves = []
        for half in (0, 1):
            self.write("offer half", half)
            halves.append(self.read("offered"))
        return halves[0] | halves[1] << 32

    def negotiate(self, features: int = VERSION_1) -> int:
        """Up to FEATURES_OK; the status that the device shows."""
        self.write("status", 0)
        self.write("status", ACKNOWLEDGED | HAS_DRIVER)
        for half in (0, 1):
            self.write("accept half", half)
            self.write("accepted", features >> 32 * half & 0xFFFF_FFFF)
        self.write("status", ACKNOWLEDGED | HAS_DRIVER | FEATURES_OK)
        return self.read("status")

    def start(
        self, *, queue: int = 0, entries: int = 8, table: int = TABLE, driver: int = DRIVER, device: int = DEVICE
    ) -> None:
        """Everything that a driver does before it uses the device."""
        self.negotiate()
        self.queue = queue
        self.write("queue", queue)
        self.entries = min(entries, self.read("maximum"))
        self.write("size", self.entries)
        for area, address in (("table", table), ("driver", driver), ("device", device)):
            self.write(area, address & 0xFFFF_FFFF)
            self.write(area, address >> 32, at=4)
        self.bench.memory.write(DRIVER, bytes(0x2000))
        self._available = self._seen = 0
        self.write("ready", 1)
        self.write("status", ACKNOWLEDGED | HAS_DRIVER | FEATURES_OK | DRIVER_OK)

    def describe(self, index: int, address: int, size: int, flags: int, following: int = 0, table: int = TABLE) -> None:
        self.bench.memory.write(table + 16 * index, struct.pack("<QIHH", address, size, flags, following))

    def chain(self, buffers: Sequence[tuple[int, int, bool]], *, first: int = 0, table: int = TABLE) -> None:
        """Descriptors, one behind the other: address, size, and whether the device writes."""
        for index, (address, size, is_written) in enumerate(buffers, first):
            flags = (WRITE if is_written else 0) | (NEXT if index < first + len(buffers) - 1 else 0)
            self.describe(index, address, size, flags, index + 1, table)

    def offer(self, *heads: int) -> None:
        """Make chains available and notify the device."""
        memory = self.bench.memory
        for head in heads:
            memory.store(DRIVER + 4 + 2 * (self._available % self.entries), 2, head)
            self._available = self._available + 1 & 0xFFFF
        memory.store(DRIVER + 2, 2, self._available)
        self.write("notify", self.queue)

    def used(self) -> list[tuple[int, int]]:
        """Heads and lengths of the chains that came back since the last call."""
        memory, found = self.bench.memory, []
        while self._seen != memory.load(DEVICE + 2, 2):
            entry = DEVICE + 4 + 8 * (self._seen % self.entries)
            found.append((memory.load(entry, 4), memory.load(entry + 4, 4)))
            self._seen = self._seen + 1 & 0xFFFF
        return found
