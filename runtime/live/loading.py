"""An image -> the option of QEMU that loads it, and the files that options name."""

import os
import struct
from collections.abc import Iterable, Sequence
from typing import IO, Final

from kinst.runtime.live.command import QemuCommand
from kinst.runtime.live.long_mode import bootable, is_entered_in_long_mode
from kinst.runtime.live.multiboot_file import as_32_bit, is_for_multiboot
from kinst.runtime.live.room.layout import Layout, with_room
from kinst.runtime.machine.boards.multiboot import PVH_COMMAND_LINE, pvh_entry
from kinst.runtime.machine.configuration import Configuration
from kinst.runtime.machine.disk import CopiedDisk, Disk, FileDisk
from kinst.runtime.machine.loading.linux_image import text_offset
from kinst.targets.elf.header import PT_LOAD
from kinst.targets.errors import UsageError
from kinst.targets.image import Image
from kinst.targets.kernels.multiboot import boot_header
from kinst.targets.machines.machine import MachineFacts
from kinst.targets.values import dataclass

_KERNEL: Final = ("-kernel", "{}")
_FIRMWARE: Final = ("-bios", "{}")
_ENTERED: Final = ("-bios", "none", "-device", "loader,file={},cpu-num=0")  # sets the first CPU's PC to e_entry
_DESCRIPTOR: Final = "/proc/self/fd/"
_SHOFF: Final = struct.Struct("<Q")  # e_shoff, at 40
_SECTIONS: Final = struct.Struct("<HH")  # e_shnum and e_shstrndx, at 60


@dataclass(frozen=True, slots=True)
class Loading:
    """How QEMU loads an image."""

    words: tuple[str, ...]  # {} is the file
    is_flat: bool  # a raw image of memory from its first byte on; else an ELF file
    in_long_mode: bool = False  # with code in front that enters it in amd64's 64-bit mode
    is_narrowed: bool = False  # as a 32-bit ELF file


@dataclass(frozen=True, slots=True)
class Invocation:
    """The words of a command, and the files that they name by descriptor; they may be closed when QEMU was started."""

    words: tuple[str, ...]
    files: tuple[IO[bytes], ...]
    disks: tuple[int, ...]  # descriptors, which the disks close
    is_placed: bool  # whether the image is put where its program headers say
    is_told: bool  # whether it finds as much RAM as it is to find


def invocation(
    command: QemuCommand,
    image: Image,
    configuration: Configuration,
    machine: MachineFacts,
    room: Layout | None = None,
    memory: int | None = None,
) -> Invocation:
    """The command with the image, in its room if it has one, and with the other files that the user wants in memory.
    `memory`: how many bytes of RAM an image is to find that is entered in 64-bit mode; None: all. Raises UsageError:
    QEMU has no option for that, or its command says it itself."""
    loading = loading_of(image, machine) if room is None else Loading(_KERNEL, is_flat=True)
    named = command.names_image
    if room is not None:
        pieces: Sequence[tuple[int, bytes | memoryview]] = with_room(image, room)
    elif named:
        pieces = _without_sections(image)
    else:
        pieces = _pieces(loading, image, memory, bytes(configuration.device_tree or b""))
    file = _nameless("image", pieces)
    files = [file]
    path = _path(file)
    added = [word.format(path) for word in loading.words]
    words = [*command.with_image(path)] if named else [*command.words, *added]
    line = command_line(command, image, configuration)
    if line is not None:
        words += ["-append", line]
    tree = None if loading.in_long_mode and not named else configuration.device_tree
    for option, content in (("-initrd", configuration.initrd), ("-dtb", tree)):
        if content is not None:
            files.append(_nameless(option[1:], [(0, content)]))
            words += [option, _path(files[-1])]
    for placed in configuration.files:
        files.append(_nameless("load", [(0, placed.content)]))
        words += ["-device", f"loader,file={_path(files[-1])},addr={placed.address:#x},force-raw=on"]
    disks = tuple(map(_descriptor, configuration.disks))
    for disk, descriptor in zip(configuration.disks, disks, strict=True):
        words += ["-drive", f"file={_DESCRIPTOR}{descriptor},format=raw,if=virtio{_mode(disk)}"]
    return Invocation(
        tuple(words),
        tuple(files),
        disks,
        is_placed=not named and not loading.is_flat,
        is_told=loading.in_long_mode and not named,
    )


def command_line(command: QemuCommand, image: Image, configuration: Configuration) -> str | None:
    """What is given to the kernel. Where the machine is our choice, its default is that of our own machine."""
    if configuration.command_line is not None or not command.is_ours or "-append" in command.words:
        return configuration.command_line
    return None if pvh_entry(image) is None else PVH_COMMAND_LINE


def _descriptor(disk: Disk) -> int:
    match disk:
        case CopiedDisk() | FileDisk():
            return disk.descriptor
        case _:
            raise UsageError("--on: a disk that is a Python object is for our own machine: give a file")


def _mode(disk: Disk) -> str:
    """What is done with the guest's writes, as an option of -drive."""
    if disk.is_read_only:
        return ",readonly=on"
    return ",snapshot=on" if isinstance(disk, CopiedDisk) else ""


def _path(file: IO[bytes]) -> str:
    """The path by which a process that has inherited the descriptor opens it."""
    return f"{_DESCRIPTOR}{file.fileno()}"


def _nameless(name: str, pieces: Iterable[tuple[int, bytes | memoryview]]) -> IO[bytes]:
    """A file without a name (memfd_create), which ends with the last process that has it open."""
    file = os.fdopen(os.memfd_create(f"kinst-{name}", os.MFD_CLOEXEC), "w+b")
    for offset, piece in pieces:
        file.seek(offset)
        file.write(piece)
    file.flush()
    return file


def loading_of(image: Image, machine: MachineFacts) -> Loading:
    """The loading that an image's boot protocol needs.

    QEMU recognises Linux for arm64 and riscv64 by the header at its first byte. An image that is linked to where the
    machine's firmware is replaces that. Everything else is a kernel: by Multiboot, by PVH, or an ELF file that is
    entered as it is; on a PC in 64-bit mode, as in our own machine.
    """
    first = min((one for one in image.segments if one.kind == PT_LOAD and one.size), key=lambda one: one.load_address)
    if text_offset(image, first) is not None:
        return Loading(_KERNEL, is_flat=True)
    if machine.loads_multiboot and is_for_multiboot(image) and not pvh_entry(image):
        return Loading(_KERNEL, is_flat=False, is_narrowed=True)
    if machine.loads_multiboot and not (boot_header(image) or pvh_entry(image)) and is_entered_in_long_mode(image):
        return Loading(_KERNEL, is_flat=True, in_long_mode=True)
    start, qemu = first.load_address, machine.qemu
    if start == 0 and qemu.runs_from_zero:
        return Loading(_FIRMWARE, is_flat=True)
    if not qemu.firmware_size or start >= machine.ram_base + qemu.firmware_size:
        return Loading(_KERNEL, is_flat=False)
    # -bios does not use the entry of an ELF file: the first byte of RAM is executed, even if that is the ELF header.
    is_at_start = start == machine.ram_base and image.entry == first.address
    return Loading(_FIRMWARE, is_flat=True) if is_at_start else Loading(_ENTERED, is_flat=False)


def _pieces(
    loading: Loading, image: Image, memory: int | None, tree: bytes
) -> Sequence[tuple[int, bytes | memoryview]]:
    """The file that QEMU loads."""
    if loading.in_long_mode:
        return bootable(image, memory, tree)
    if loading.is_narrowed:
        return as_32_bit(image)
    return _flat(image) if loading.is_flat else _without_sections(image)


def _flat(image: Image) -> list[tuple[int, bytes | memoryview]]:
    loads = [one for one in image.segments if one.kind == PT_LOAD and one.file_size]
    first = min(one.load_address for one in loads)
    return [(one.load_address - first, image.data[one.offset : one.offset + one.file_size].data) for one in loads]


def _without_sections(image: Image) -> list[tuple[int, bytes | memoryview]]:
    """The segments and the headers, without section headers. QEMU would read all symbols, for its -d log: half a second
    for Linux."""
    end = max(one.offset + one.file_size for one in image.segments if one.kind == PT_LOAD)
    return [(0, image.data[:end].data), (40, _SHOFF.pack(0)), (60, _SECTIONS.pack(0, 0))]
