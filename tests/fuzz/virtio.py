"""A guest's driver of virtio devices that has gone mad: registers, descriptors and heads of any value.

The devices, their queues and the disk are the real ones. Nothing but a request may change the disk, and nothing at all
if it is read-only; nothing the guest says ends the run.
"""

from pathlib import Path
from typing import Final

from hypothesis import strategies as st

from kinst.runtime.machine.devices.virtio.block import VirtioBlock
from kinst.runtime.machine.devices.virtio.console import VirtioConsole
from kinst.runtime.machine.devices.virtio.device import Model
from kinst.runtime.machine.devices.virtio.entropy import VirtioEntropy
from kinst.runtime.machine.disk import SECTOR, DiskMode, open_disk
from kinst.runtime.machine.serial_line import SerialLine
from tests.fuzz.kind import Finding, Kind
from tests.fuzz.traffic import Reader
from tests.runtime.machine.devices.virtio_driver import DATA, INDIRECT, RAM, RAM_SIZE, SLOT, TABLE, Driver

_DISK: Final = bytes(range(256)) * 16
_MODES: Final = tuple(DiskMode)
_KINDS: Final = (0, 1, 4, 8, 11, 0xFFFF_FFFF)
_SIZES: Final = (0, 1, 16, 17, SECTOR, 2 * SECTOR, RAM_SIZE, 0xFFFF_FFFF)


def _address(data: Reader) -> int:
    """Mostly in memory, at its edges, or anywhere."""
    form = data.number(1)
    if form < 200:
        return DATA + 16 * data.number(1)
    return RAM + RAM_SIZE - data.number(1) if form < 230 else data.number(8)


def _size(data: Reader) -> int:
    form = data.number(1)
    return _SIZES[form & 7] if form < 200 else data.number(2)


def _request(guest: Driver, data: Reader) -> None:
    """A request as a driver makes it, but for one part of it that may be anything."""
    form, kind, sector = data.number(1), _KINDS[data.number(1) % len(_KINDS)], data.number(1) & 15
    guest.bench.memory.write(DATA, kind.to_bytes(4, "little") + bytes(4) + sector.to_bytes(8, "little"))
    buffers = [(DATA, 16, False), (DATA + 0x1000, SECTOR * (form & 3), kind != 1), (DATA + 0x800, 1, True)]
    if not form & 3:
        del buffers[1]
    if form & 4:
        at = form % len(buffers)
        buffers[at] = (_address(data), _size(data), buffers[at][2])
    if form & 8:
        guest.describe(0, DATA + 0x2000, 16 * len(buffers), INDIRECT)
        guest.chain(buffers, table=DATA + 0x2000)
    else:
        guest.chain(buffers)
    guest.offer(0)


def _operate(guest: Driver, data: Reader) -> None:
    """One thing that the driver does."""
    what = data.number(1)
    if what < 40:
        flags = data.number(1) & 7 if what & 1 else data.number(2)
        table = TABLE if what < 30 else DATA
        guest.describe(data.number(1) & 15, _address(data), _size(data), flags, data.number(1) & 15, table)
    elif what < 120:
        _request(guest, data)
    elif what < 150:
        guest.offer(*(data.number(1) & 15 for _ in range(data.number(1) & 3)))
    elif what < 190:
        guest.bench.wait()
    elif what < 205:
        guest.write(tuple(SLOT)[data.number(1) % len(SLOT)], data.value() & 0xFFFF_FFFF, at=data.number(1) & 4)
    elif what < 215:
        guest.read(tuple(SLOT)[data.number(1) % len(SLOT)])
    else:
        guest.start(entries=1 << (data.number(1) & 7))


def _model(number: int, file: Path, mode: DiskMode) -> Model:
    if number < len(_MODES):
        return VirtioBlock(open_disk(file, mode))
    if number == len(_MODES):
        return VirtioEntropy(number)
    line = SerialLine()
    line.type(_DISK)
    return VirtioConsole(lambda _: None, line)


def _run(drawn: tuple[int, bool, bytes], folder: Path) -> None:
    number, is_pci, content = drawn
    file, data, mode = folder / "disk", Reader(content), _MODES[number % len(_MODES)]
    file.write_bytes(_DISK)
    guest = Driver(_model(number, file, mode), is_pci=is_pci)
    guest.start()
    while data.at < len(content):
        _operate(guest, data)
    guest.bench.wait()
    now = file.read_bytes()
    file.unlink()
    if len(now) != len(_DISK) or (mode is not DiskMode.READ_WRITE and now != _DISK):
        raise Finding(f"a disk of the mode {mode} was written")


VIRTIO: Final = Kind(
    "virtio", st.tuples(st.integers(0, len(_MODES) + 1), st.booleans(), st.binary(min_size=8, max_size=1500)), _run
)
