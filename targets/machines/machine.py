"""The record of a machine (board): memory map, devices, interrupt numbers; data only, nothing runs here.

It is read from a board file, `targets/machines/boards/<name>.toml` or a user's own (`board_file.py`). What is no
data is in `kinst.runtime.machine.boards.<board>`: how devices are connected and how an image is started.
"""

from collections.abc import Mapping
from dataclasses import field
from enum import IntEnum
from pathlib import Path
from typing import Final

from kinst.targets.machines.registers import RangeFacts, Rule
from kinst.targets.values import dataclass


class Space(IntEnum):
    """The kind of addresses at which a device answers: of memory or of ports."""

    MEMORY = 0
    PORTS = 1  # amd64's I/O ports


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """One device of a board: `model` is its kind (`kinds.py`), `size` is what the guest is told, which the device need
    not fill, `interrupt` its number at the controller."""

    model: str
    address: int
    size: int
    interrupt: int | None = None
    space: Space = Space.MEMORY
    properties: Mapping[str, int] = field(default_factory=dict)  # those of the kind, each with its default


@dataclass(frozen=True, slots=True)
class Alias:
    """Physical addresses at which the memory of others is seen as well."""

    address: int
    size: int
    target: int  # the physical address of the same bytes


@dataclass(frozen=True, slots=True)
class NextFacts:
    """What firmware at EL3 shall start, where the stage before it would say so (TF-A's BL33)."""

    entry: int | None  # unless there is a file of --load, the first of which it is then
    level: str  # "EL2", "EL1"
    registers: Mapping[str, int | str]  # its arguments, as in `StartFacts`


@dataclass(frozen=True, slots=True)
class StartFacts:
    """The state in which the first CPU starts, where the board file says so."""

    level: str  # arm64: "EL3", "EL2", "EL1"; riscv64: "M", "S"
    registers: Mapping[str, int | str]  # general registers: a number, "fdt", "cpu" or "bl-params"; others are 0
    entry: int | None = None  # physical; None: the image's
    tree: int | str | None = None  # where the device tree is placed: None: in the free part of RAM; see BEHIND
    next: NextFacts | None = None  # what "bl-params" are about


BEHIND: Final = "behind"  # the device tree follows the image's bytes in memory, where U-Boot looks for its own


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
    aliases: tuple[Alias, ...] = ()
    board: str = ""  # the code in `kinst.runtime.machine.boards`
    start: StartFacts | None = None
    midr: int | None = None  # arm64: MIDR_EL1, which CPU it is; None: a Cortex-A57
    ranges: tuple[RangeFacts, ...] = ()  # that no device has, with what reads give there
    unnamed: Rule | None = None  # the same for all other addresses; None: as the CPU's architecture has it
    file: Path | None = None  # the user's board file; devices of the user's own may be beside it
    # With --kaslr-seed the loader moves the kernel, as Linux itself does if a device tree gives it the seed.
    moves_kernels: bool = False
