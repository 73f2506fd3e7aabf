"""A file of nothing but memory (objcopy -O binary), of which the user says where it is loaded -> an ELF file.

byte 0 of the file is at the address of --raw, and everything else follows
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.arch.registry import arch_by_name
from kinst.targets.errors import PlacementError
from kinst.targets.packed.layer import Layer
from kinst.targets.packed.memory import Span, elf_of_memory, memory_of
from kinst.targets.packed.reading import Reading

_MOST_GAP: Final = 64 << 20  # bytes of zeros that are put before trampolines


def read_raw(data: NDArray[np.uint8], reading: Reading) -> Layer:
    """Read it as memory at `reading.address`."""
    assert reading.address is not None, "the user says where it is"
    return at_address(data, reading.machine, reading.address, reading.entry, "raw binary")


def at_address(data: NDArray[np.uint8], machine: str, address: int, entry: int | None, kind: str) -> Layer:
    """Some bytes as memory at an address."""
    start = address if entry is None else entry
    elf = elf_of_memory(arch_by_name(machine), [Span(address, data)], start)
    return Layer(kind, elf, lambda new: flat(new, address), has_headers=False, is_flat=True)


def flat(elf: NDArray[np.uint8], base: int) -> bytes:
    """The memory of an ELF file from an address on, with zeros in its gaps.

    Raises:
        PlacementError: there is something before it, or too far behind.
    """
    found = bytearray()
    for span in memory_of(elf):
        gap = span.address - base - len(found)
        if gap < 0 or gap > _MOST_GAP:
            raise PlacementError(
                f"trampolines: {len(span.data):#x} bytes at {span.address:#x} cannot be in a file that is loaded as a "
                f"whole at {base:#x}: name another place with --trampoline-base"
            )
        found += bytes(gap) + span.data.tobytes()
    return bytes(found)
