"""Devices that take an address or a length from the guest, and what a guest that means harm writes there.

Every attack is tried on every queue of every device: an answer comes, or the device stops, after bounded work at a time
and in bounded memory.
"""

import ast
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest

from kinst.runtime.machine import devices
from kinst.runtime.machine.devices.riscv.clint import Clint
from kinst.runtime.machine.devices.riscv.sbi import Error, Extension, Sbi
from kinst.runtime.machine.devices.virtio.block import VirtioBlock
from kinst.runtime.machine.devices.virtio.console import RECEIVE, TRANSMIT, VirtioConsole
from kinst.runtime.machine.devices.virtio.device import Model
from kinst.runtime.machine.devices.virtio.entropy import VirtioEntropy
from kinst.runtime.machine.disk import DiskMode, open_disk
from kinst.runtime.machine.serial_line import SerialLine
from tests.fuzz.traffic import IdleCpu
from tests.runtime.machine.devices.virtio_driver import DATA, INDIRECT, NEXT, RAM, RAM_SIZE, WRITE, Bench, Driver

# What takes addresses or lengths: the queues, of which each device below has some, and the firmware's console.
LISTED: Final = {"virtio/split_queue.py", "virtio/device.py", "riscv/sbi.py"}
MEMORY: Final = 16 << 20  # bytes that a device may take, whatever it is asked for
PRINTED: Final = 1 << 17  # bytes of the console that may come between two turns of a CPU
TURNS: Final = 8  # of the CPUs, with a look of the device between them
KINDS: Final = {"read": 0, "write": 1, "flush": 4, "identity": 8, "unknown": 99}  # of a disk's requests


@dataclass
class Target:
    """A device with its driver, and what it printed since the last look."""

    model: Model
    printed: list[int]
    queue: int
    driver: Driver = field(init=False)

    def __post_init__(self) -> None:
        self.driver = Driver(self.model, is_pci=False)
        self.driver.start(queue=self.queue, entries=128)

    def header(self, kind: int) -> None:
        """What a disk reads first; other devices take it for something else."""
        self.driver.bench.memory.write(DATA, kind.to_bytes(4, "little") + bytes(12))


def _disk(mode: DiskMode) -> Callable[[Path], Target]:
    def make(folder: Path) -> Target:
        file = folder / f"disk-{mode.value}"
        with file.open("wb") as content:
            content.truncate(1 << 33)  # larger than what a chain can name, and nothing of it is there
        return Target(VirtioBlock(open_disk(file, mode)), [], 0)

    return make


def _console(queue: int) -> Callable[[Path], Target]:
    def make(_folder: Path) -> Target:
        printed, line = list[int](), SerialLine()
        target = Target(VirtioConsole(lambda data: printed.append(len(data)), line), printed, TRANSMIT)
        target.driver.describe(0, DATA, 1, 0)
        target.driver.offer(0)  # from now on it is typed at
        target.driver.bench.wait()
        if queue == RECEIVE:
            target.driver.start(queue=queue, entries=128)
            line.type(bytes(1 << 20))
        return target

    return make


DEVICES: Final[dict[str, Callable[[Path], Target]]] = {
    **{f"disk-{mode.value}": _disk(mode) for mode in DiskMode},
    "console-transmit": _console(TRANSMIT),
    "console-receive": _console(RECEIVE),
    "random-numbers": lambda _folder: Target(VirtioEntropy(1), [], 0),
}


def _same(target: Target, flags: int, sizes: int) -> None:
    """As many chains as there can be, each of as many buffers as there can be, all of them the same memory."""
    driver = target.driver
    driver.describe(0, DATA, 16, NEXT, 1)
    for index in range(1, 127):
        driver.describe(index, RAM, sizes, flags | NEXT, index + 1)
    driver.describe(127, DATA + 0x800, 1, WRITE)
    driver.offer(*[0] * 128)


def _one(address: int, size: int, flags: int, following: int = 0) -> Callable[[Target], None]:
    def attack(target: Target) -> None:
        target.driver.describe(0, address, size, flags, following)
        target.driver.describe(1, DATA + 0x800, 1, WRITE)
        target.driver.offer(0)

    return attack


def _tables(target: Target) -> None:
    """A table that is in itself."""
    target.driver.describe(0, DATA + 0x1000, 64, INDIRECT)
    target.driver.describe(0, DATA + 0x1000, 64, INDIRECT | NEXT, 0, table=DATA + 0x1000)
    target.driver.offer(0)


def _ahead(target: Target) -> None:
    """More chains than the queue has entries."""
    target.driver.describe(0, DATA, 16, 0)
    target.driver.offer(*[0] * 129)


ATTACKS: Final[dict[str, Callable[[Target], None]]] = {
    "the same memory to be read": lambda target: _same(target, 0, RAM_SIZE),
    "the same memory to be written": lambda target: _same(target, WRITE, RAM_SIZE),
    "the queue itself to be written": lambda target: _same(target, WRITE, 0x4000),
    "four gigabytes": _one(RAM, 0xFFFF_FFFF, 0),
    "the end of memory": _one(RAM + RAM_SIZE - 8, 16, WRITE),
    "nowhere": _one(0, 4096, 0),
    "around the end of addresses": _one((1 << 64) - 8, 16, WRITE),
    "nothing": _one(DATA, 0, 0),
    "a loop": _one(DATA, 16, NEXT, 0),
    "a descriptor beyond the table": _one(DATA, 16, NEXT, 0xFFFF),
    "a table beyond memory": _one(RAM + RAM_SIZE - 16, 0xFFFF_FFF0, INDIRECT),
    "a table in itself": _tables,
    "chains beyond the queue": _ahead,
}


def test_the_list_has_every_device_that_looks_at_the_guests_memory(tmp_path: Path) -> None:
    folder = Path(devices.__path__[0])
    found = {str(file.relative_to(folder)) for file in folder.rglob("*.py") if _looks_at_memory(file)}
    assert found == LISTED
    others = {"__init__", "device", "mmio", "pci", "split_queue"}
    models = {file.stem for file in (folder / "virtio").glob("*.py")} - others
    assert models == {type(make(tmp_path).model).__module__.rpartition(".")[2] for make in DEVICES.values()}


def _looks_at_memory(file: Path) -> bool:
    """Whether it uses the machine's memory, or passes it on."""
    nodes = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Attribute)]
    passed = any(node.attr == "memory" and getattr(node.value, "id", "") == "machine" for node in nodes)
    of_it = (node for node in nodes if node.attr in ("read", "write", "load", "store", "view"))
    return passed or any(getattr(node.value, "attr", "") in ("memory", "_memory") for node in of_it)


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("device", DEVICES)
def test_a_device_does_little_at_a_time_in_little_memory(device: str, attack: str, tmp_path: Path) -> None:
    target = DEVICES[device](tmp_path)
    target.header(KINDS["write" if attack == "the same memory to be read" else "read"])
    ATTACKS[attack](target)
    target.printed.clear()
    tracemalloc.start()
    try:
        for _ in range(TURNS):
            target.driver.bench.wait()
            assert sum(target.printed) <= PRINTED
            target.printed.clear()
        assert tracemalloc.get_traced_memory()[1] < MEMORY
    finally:
        tracemalloc.stop()


def test_a_request_of_many_pieces_is_carried_out_to_its_end(tmp_path: Path) -> None:
    """What is read comes from where the file has it, piece by piece, and is told once."""
    target = _disk(DiskMode.READ_ONLY)(tmp_path)
    with (tmp_path / "disk-ro").open("r+b") as content:
        content.seek(100 * RAM_SIZE // 2)
        content.write(b"the end")
    target.header(KINDS["read"])
    driver = target.driver
    half = RAM + RAM_SIZE // 2
    driver.chain([(DATA, 16, False), *[(half, RAM_SIZE // 2, True)] * 101, (DATA + 0x800, 1, True)])
    driver.bench.memory.write(DATA + 0x800, b"\xff")
    driver.offer(0)
    for _ in range(12):
        driver.bench.wait()
        assert driver.used() == []
    driver.bench.wait()
    assert driver.used() == [(0, 101 * RAM_SIZE // 2 + 1)]
    assert driver.bench.memory.read(half, 7) == b"the end"
    assert driver.bench.memory.read(DATA + 0x800, 1) == b"\0"


def test_a_reset_ends_a_request_of_many_pieces() -> None:
    target = _console(TRANSMIT)(Path())
    ATTACKS["the same memory to be read"](target)
    target.driver.bench.wait()
    target.driver.write("status", 0)
    target.printed.clear()
    target.driver.bench.wait()
    assert target.printed == []


SIZES: Final = (0, 1, 1 << 20, RAM_SIZE + 1, 1 << 32, (1 << 64) - 1)
PLACES: Final = (RAM, RAM + RAM_SIZE - 1, 0, (1 << 64) - 1, (1 << 127) + RAM)


@pytest.mark.parametrize("function", [0, 1], ids=["write", "read"])
def test_the_firmwares_console_does_little_at_a_time(function: int) -> None:
    printed, line, bench = list[int](), SerialLine(), Bench()
    line.type(bytes(RAM_SIZE))
    machine: Any = SimpleNamespace(
        memory=bench.memory, serial_line=line, console_output=lambda data: printed.append(len(data))
    )
    firmware, cpu = Sbi(machine, cast("Clint", None), (), lambda _cpu, _entry, _value: None), IdleCpu(0)
    for size in SIZES:
        for place in PLACES:
            registers = {"a7": Extension.DBCN, "a6": function, "a0": size, "a1": place, "a2": place >> 64}
            for name, value in registers.items():
                cpu.registers.set(name, value)
            firmware.call(cast("Any", cpu))
            assert cpu.registers.get("a0") in (Error.SUCCESS, Error.INVALID_PARAM & (1 << 64) - 1)
            assert cpu.registers.get("a1") <= PRINTED
    assert max(printed, default=0) <= PRINTED
