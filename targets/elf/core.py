"""An ELF core of a whole machine, as QEMU's dump-guest-memory and kdump write it -> the pieces of memory in it.

QEMU gives every piece its physical address, and the virtual one if paging was asked for (-p); else the virtual address
is the physical one, or 0 in old versions. There may be more pieces than e_phnum can say.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.elf.header import ELF_HEADER, PN_XNUM, PROGRAM_HEADER, PT_LOAD, SECTION_HEADER, check_magic
from kinst.targets.errors import ImageError

_CORE: Final = 4  # ET_CORE
_INFO: Final = 44  # then the first section header has the number of program headers


@dataclass(frozen=True, slots=True)
class Core:
    """A core. `loads` are PROGRAM_HEADER rows; the file need not have every byte that they promise."""

    data: NDArray[np.uint8]
    loads: NDArray[np.void]


def read_core(data: NDArray[np.uint8]) -> Core:
    """The tables of a core.

    Raises:
        ImageError: what is wrong, without the file's name.
    """
    head = data[: ELF_HEADER.size].tobytes()
    check_magic(head)
    _, kind, _, _, _, start, sections, _, _, entry, count, _, _, _ = ELF_HEADER.unpack(head)
    if kind != _CORE:
        raise ImageError(f"no core: e_type is {kind} and not {_CORE}")
    if entry != PROGRAM_HEADER.itemsize:
        raise ImageError(f"damaged: program headers of {entry} bytes")
    if count == PN_XNUM:
        count = _many(data, sections)
    end = start + count * entry
    if end > len(data):
        raise ImageError(f"truncated: its program headers end at {end:#x}, the file at {len(data):#x}")
    rows = np.frombuffer(data[start:end].data, PROGRAM_HEADER) if count else np.zeros(0, PROGRAM_HEADER)
    return Core(data, rows[rows["kind"] == PT_LOAD])


def _many(data: NDArray[np.uint8], start: int) -> int:
    """How many program headers there are if e_phnum cannot say it."""
    if start + SECTION_HEADER.itemsize > len(data):
        raise ImageError("truncated: the number of its program headers is not in the file")
    return int.from_bytes(data[start + _INFO : start + _INFO + 4].tobytes(), "little")
