"""What a boot loader tells Linux on a PC -> the same, with a range of RAM that is not the kernel's.

The 64-bit boot protocol (Documentation/arch/x86/boot.rst and zero-page.rst): when the kernel is entered, RSI has the
physical address of `struct boot_params`.

    0xc0 ext_ramdisk_image, 4   0xc4 ext_ramdisk_size, 4   0x1e8 e820_entries, 1   0x218 ramdisk_image, 4
    0x21c ramdisk_size, 4   0x2d0 e820_table: address, 8; size, 8; type, 4
"""

import struct
from collections.abc import Iterator
from typing import Final

from kinst.runtime.live.ram import SharedRam
from kinst.runtime.readout.memory import Space
from kinst.targets.errors import MachineError

_SIZE: Final = 0x1000  # of the structure
_COUNT: Final = 0x1E8
_TABLE: Final = 0x2D0
_ENTRY: Final = struct.Struct("<QQI")
_MOST: Final = 128  # entries
_RAM, _RESERVED = 1, 2
_RAMDISK: Final = ((0x218, 0xC0), (0x21C, 0xC4))  # address and size: their low and high halves
_HALF: Final = 4


def reserve(memory: SharedRam, parameters: int, start: int, size: int) -> None:
    """Take physical addresses from the RAM of a kernel that is about to begin. Raises MachineError: they are no RAM, or
    something else is there."""
    page = memory.read(Space.PHYSICAL, parameters, _SIZE)
    first, count = (_whole(page, *halves) for halves in _RAMDISK)
    if first < start + size and start < first + count:
        raise MachineError(
            f"QEMU has put the initial RAM disk at {first:#x}, where trampolines are: give it more memory (-m)"
        )
    found = [*_split(page, start, start + size)]
    if len(found) > _MOST:
        raise MachineError(f"the firmware's memory map has no place for another entry: it has {page[_COUNT]}")
    memory.write(parameters + _TABLE, b"".join(_ENTRY.pack(*one) for one in found))
    memory.write(parameters + _COUNT, bytes((len(found),)))


def _split(page: bytes, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """The entries, with the one of RAM that has a range in up to three parts. Raises MachineError: there is none."""
    is_there = False
    for row in range(min(page[_COUNT], _MOST)):
        first, size, kind = _ENTRY.unpack_from(page, _TABLE + row * _ENTRY.size)
        if kind != _RAM or not first <= start or not end <= first + size:
            yield first, size, kind
            continue
        is_there = True
        parts = ((first, start - first, _RAM), (start, end - start, _RESERVED), (end, first + size - end, _RAM))
        yield from (part for part in parts if part[1])
    if not is_there:
        raise MachineError(
            f"the firmware's memory map has no RAM at {start:#x} to {end:#x}, behind the kernel, for trampolines and "
            "hits: give it more memory (-m)"
        )


def _whole(page: bytes, low: int, high: int) -> int:
    return int.from_bytes(page[low : low + _HALF] + page[high : high + _HALF], "little")
