"""Guest traffic: reads and writes of any size at any place of any device of a board, firmware calls, and time between.

The devices, the board that makes them, the buses and the memory are the real ones. Only the CPU is none: it has
registers and interrupt lines, and the firmware calls and system registers that the board answers come from here.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

import numpy as np
from hypothesis import strategies as st

from kinst.runtime.machine.assumed_registers import AssumedRegisters
from kinst.runtime.machine.boards.registry import board_of
from kinst.runtime.machine.bus import Bus, PortBus
from kinst.runtime.machine.configuration import End
from kinst.runtime.machine.device import Device, Timed
from kinst.runtime.machine.disk import Disk
from kinst.runtime.machine.exception_model import Event, Source
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.loading.placed_files import PlacedFiles
from kinst.runtime.machine.machine import Machine
from kinst.runtime.machine.memory import PhysicalMemory
from kinst.runtime.machine.serial_line import SerialLine
from kinst.runtime.paging.walker import Access, PageFault
from kinst.targets.arch.registry import arch_by_name
from kinst.targets.errors import KinstError
from kinst.targets.machines.registry import MACHINES, machine_facts
from tests.fuzz.kind import Finding, Kind

_RAM: Final = 8 << 20
_CALLS: Final = {"virt-riscv64": ("a0", "a1", "a2", "a3", "a6", "a7"), "virt-arm64": ("x0", "x1", "x2", "x3")}
_EVENTS: Final = {"virt-riscv64": Event(Source.INTERRUPT, 8), "virt-arm64": Event(Source.INTERRUPT, 11)}
_FUNCTIONS: Final = (
    *(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0x10, 0x54494D45, 0x735049, 0x52464E43, 0x48534D, 0x53525354, 0x4442434E),
    *(0x8400_0000, 0xC400_0001, 0x8400_0002, 0xC400_0003, 0xC400_0004, 0x8400_0008, 0x8400_0009, 0x8400_000A),
)


class Registers(defaultdict[str, int]):
    """Any register, zero until it is set."""

    def __init__(self) -> None:
        super().__init__(int)

    def set(self, name: str, value: int) -> None:
        self[name] = value & (1 << 64) - 1

    def get(self, name: str) -> int:  # type: ignore[override]
        return self[name]


@dataclass
class IdleCpu:
    """A CPU that executes nothing."""

    number: int
    registers: Registers = field(default_factory=Registers)
    lines: int = 0
    is_on: bool = False

    def line(self, number: int) -> Callable[[bool], None]:
        def drive(level: bool) -> None:  # noqa: FBT001 - an interrupt line is its level
            self.lines = self.lines | 1 << number if level else self.lines & ~(1 << number)

        return drive

    def load(self, address: int, size: int) -> int:
        raise PageFault(address, Access.READ, 0)

    def store(self, address: int, size: int, value: int) -> None:
        raise PageFault(address, Access.WRITE, 0)

    def fetch(self, address: int, size: int) -> bytes:
        raise PageFault(address, Access.FETCH, 0)

    def power_on(self) -> None:
        self.is_on = True

    def power_off(self) -> None:
        self.is_on = False


@dataclass
class Traffic:
    """A machine without an engine: `kinst.runtime.machine.machine.Machine`. Every device is known by its place."""

    name: str
    time: int = 0
    serial_line: SerialLine = field(default_factory=SerialLine)
    places: list[tuple[Bus, int, Device]] = field(default_factory=list)  # each at an address of a bus
    timed: list[Timed] = field(default_factory=list)
    command_line: str | None = None
    initrd: bytes | None = None
    kaslr_seed: int | None = None
    device_tree: bytes | None = None
    disks: Sequence[Disk] = ()
    rng_seed: int | None = 1  # a PC has a PCI bus then, and ACPI's tables name it
    has_virtio_console: bool = True
    ram_size: int = _RAM

    def __post_init__(self) -> None:
        self.facts = machine_facts(self.name)
        self.arch = arch_by_name(self.facts.arch)
        if self.facts.arch != "amd64" and all(one.model != "virtio-mmio" for one in self.facts.devices.values()):
            self.rng_seed, self.has_virtio_console = None, False  # such a board has no place for them
        self.files = PlacedFiles((), self.arch)
        self.clock = SimpleNamespace(now=lambda: self.time)
        self.memory = PhysicalMemory(cast("Any", SimpleNamespace(map_memory=lambda _address, _buffer: None)))
        self.memory.add_ram(self.facts.ram_base, _RAM)
        self.cpus = [IdleCpu(number) for number in range(2)]
        self.current = self.cpus[0]
        self.bus, self.ports = Bus(), PortBus()
        self.assumed = AssumedRegisters()
        held = SimpleNamespace(hold=lambda _refuses: None)  # nothing is executed, so that no page need be held
        self.space: Any = SimpleNamespace(held=held)
        self.board = board_of(self.facts.board)(cast("Machine", self))
        start = self.facts.ram_base + (0x20_0000 if self.facts.arch != "amd64" else 0x10_0000)
        image: Any = SimpleNamespace(data=np.zeros(0, np.uint8), segments=())
        self.board.start(Loaded(image, 0, start, ((start, start, 0x1000),)))

    def attach(self, device: Device, address: int) -> None:
        self.bus.attach(device, address)
        self.places.append((self.bus, address, device))

    def attach_ports(self, device: Device, port: int, *, is_whole: bool = False) -> None:
        (self.ports.attach_whole if is_whole else self.ports.attach)(device, port)
        self.places.append((self.ports, port, device))

    def attach_timed(self, timed: Timed) -> None:
        self.timed.append(timed)

    def notice_deadline(self, timed: Timed) -> None:
        timed.deadline()

    def console_output(self, data: bytes) -> None:
        assert isinstance(data, bytes)

    def flush_tlb(self) -> None:
        pass

    def power_off(self, code: int = 0, end: End = End.POWER_OFF) -> None:
        assert 0 <= code < 1 << 64

    # -- what the guest does ------------------------------------------------------------------------------------------

    def access(self, place: int, offset: int, size: int, value: int | None) -> None:
        """A load, or a store of `value`, anywhere in a device's window; it may reach beyond the end."""
        bus, address, device = self.places[place % len(self.places)]
        at = address + offset % device.size
        if value is None:
            answer = bus.read(at, size)
            if not isinstance(answer, int):
                raise Finding(f"{address:#x} + {at - address:#x} reads {answer!r}")
        else:
            bus.write(at, size, value & (1 << 8 * size) - 1)

    def wait(self, duration: int) -> None:
        """Let time pass, as the machine's loop does: every device acts once at most."""
        self.time += duration
        for timed in self.timed:
            due = timed.deadline()
            if due is not None and due <= self.time:
                timed.advance()
                timed.deadline()

    def type(self, text: bytes) -> None:
        """Somebody types."""
        self.serial_line.type(text)

    def call(self, arguments: Sequence[int]) -> None:
        """The guest calls firmware."""
        names = _CALLS.get(self.name, ())
        for name, value in zip(names, arguments, strict=False):
            self.current.registers.set(name, value)
        if names:
            self.current.registers.set("priv", 1)
            self.board.exceptions.event(self.current, _EVENTS[self.name])

    def take_interrupt(self) -> None:
        """The CPU takes what is pending, as the controllers offer it."""
        self.current.registers.set("rflags", 1 << 9)
        self.board.exceptions.pending(self.current)

    def system_register(self, which: int, value: int | None) -> None:
        """A timer's register."""
        known = sorted(self.board.exceptions.system_registers, key=repr)
        if known and value is None:
            self.board.exceptions.read_register(self.current, known[which % len(known)])
        elif known and value is not None:
            self.board.exceptions.write_register(self.current, known[which % len(known)], value)


_EDGES: Final = (0, 1, 0xFFFF_FFFF, 0x8000_0000, (1 << 63) - 1, (1 << 64) - 1, 0x7F, 0xFF)
_SIZES: Final = (1, 2, 4, 8)


@dataclass(slots=True)
class Reader:
    """Random bytes as numbers; zeros where they are at their end. It is many times as fast as to have each drawn."""

    data: bytes
    at: int = 0

    def number(self, size: int) -> int:
        self.at += size
        return int.from_bytes(self.data[self.at - size : self.at], "little")

    def value(self) -> int:
        """Small, an edge, or any."""
        form = self.number(1)
        return self.number(1) if form < 100 else _EDGES[form & 7] if form < 180 else self.number(8)

    def offset(self) -> int:
        """Mostly of a register of 32 bits near the start."""
        form = self.number(1)
        return 4 * self.number(1) if form < 160 else self.number(2) if form < 230 else self.number(4)


def _operate(machine: Traffic, data: Reader) -> None:
    """One thing that the guest does, or the world around it."""
    what = data.number(1)
    if what < 200:
        value = data.value() if what < 140 else None
        machine.access(data.number(1), data.offset(), _SIZES[data.number(1) & 3], value)
    elif what < 215:
        machine.wait(data.number(3) if what < 212 else data.number(8))
    elif what < 220:
        machine.type(bytes((data.number(1),)))
    elif what < 235:
        function = _FUNCTIONS[data.number(1) % len(_FUNCTIONS)]
        machine.call([function, data.value(), data.value(), data.value(), data.value() & 7, function])
    elif what < 245:
        machine.take_interrupt()
    else:
        machine.system_register(data.number(1), data.value() if what & 1 else None)


def _run(drawn: tuple[str, bytes], _folder: Path) -> None:
    name, content = drawn
    machine, data = Traffic(name), Reader(content)
    while data.at < len(content):
        with suppress(KinstError):  # the end of a run, in words
            _operate(machine, data)


TRAFFIC: Final = Kind("traffic", st.tuples(st.sampled_from(MACHINES), st.binary(min_size=8, max_size=1500)), _run)
