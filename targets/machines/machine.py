"""The record that every machine (board) fills: memory map, devices, interrupt numbers; data only, nothing runs here.

To add a machine: fill this record in `targets/machines/<name>.py`, list it in `registry.py`, and define in
`kinst.runtime.machine.boards.<name>` how the devices are made and how an image is started.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum


class Space(IntEnum):
    """The kind of addresses at which a device answers: of memory or of ports."""

    MEMORY = 0
    PORTS = 1  # amd64's I/O ports


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """One device of a board: `model` names the runtime's device file (`virtio_mmio`: `mmio` in the folder `virtio`),
    `size` is what the guest is told, which the device need not fill, `interrupt` its number at the controller."""

    model: str
    address: int
    size: int
    interrupt: int | None = None
    space: Space = Space.MEMORY


class CounterSource(IntEnum):
    """Where QEMU gives the frequency of the counter that guests read as time."""

    TIMER_PROPERTY = 0  # timebase-freq
    CPU_PROPERTY = 1  # cntfrq
    HOST = 2  # nowhere: it is the host's


@dataclass(frozen=True, slots=True)
class QemuFacts:
    """How QEMU has the machine: the words that start it, and what an image must be to replace the firmware."""

    words: tuple[str, ...]
    counter: CounterSource
    runs_from_zero: bool = False  # firmware that is linked to address 0: there is flash, or it runs wherever it is put
    firmware_size: int = 0  # bytes from `ram_base` on that are the firmware's; kernels begin after them


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """One machine. All sizes in bytes, all addresses physical."""

    name: str
    arch: str  # `ArchFacts.name`
    ram_base: int
    ram_size: int  # default; `--memory` changes it
    devices: Mapping[str, DeviceFacts]  # by the name the board uses, e.g. "console", "timer"
    timebase: int  # Hz of the counter that the guest reads as time (mtime, CNTVCT, TSC)
    maximum_cpus: int
    qemu: QemuFacts
    trampoline_base: int | None  # where trampolines go that cannot follow the image; None: only after the image
    loads_multiboot: bool = False  # whether images are started as Multiboot says, if they have its header
    # (address, size) of flash and the like, into which images may be linked.
    other_memory: tuple[tuple[int, int], ...] = ()
    # With --kaslr-seed the loader moves the kernel, as Linux itself does if a device tree gives it the seed.
    moves_kernels: bool = False
