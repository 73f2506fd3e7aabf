"""RAM as it was -> RAM as it was again: a file in memory that the guest's RAM is a private mapping of.

What the guest has stored to since then are pages of its own, which the host's kernel knows (/proc/self/pagemap) and
drops on request, so that neither costs more than those pages.
"""

import ctypes
import mmap
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.machine.physical.frames import PAGE, TRAMPOLINE_FRAMES
from kinst.targets.errors import MachineError
from kinst.targets.values import dataclass

if TYPE_CHECKING:
    from kinst.runtime.machine.memory import PhysicalMemory, Region

_PAGE_MAP: Final = Path("/proc/self/pagemap")
_FIXED: Final = 0x10  # MAP_FIXED, which Python does not name
_NORESERVE: Final = getattr(mmap, "MAP_NORESERVE", 0x4000)  # Python names it from 3.13 on
_DONTNEED: Final = 4  # MADV_DONTNEED
_IN_MEMORY, _SWAPPED, _OF_FILE = (np.uint64(1 << bit) for bit in (63, 62, 61))  # of a word of the page map
_RUN: Final = 256  # pages that are written to a file at once


@dataclass(frozen=True, slots=True)
class Part:
    """One region of RAM: its physical address, bytes, where it is in the host's memory, and in the file."""

    base: int
    size: int
    host: int
    offset: int


def guest_regions(memory: "PhysicalMemory") -> Iterator["Region"]:
    """The guest's own RAM; without aliases, whose bytes are another's, and without the tracer's."""
    seen: set[int] = set()
    for region in memory.regions:
        whole = region.view.obj
        if region.base < TRAMPOLINE_FRAMES and isinstance(whole, mmap.mmap) and id(whole) not in seen:
            seen.add(id(whole))
            yield region


def parts_of(memory: "PhysicalMemory") -> tuple[Part, ...]:
    """The guest's RAM in the order of a file that has all of it, one region behind the other."""
    parts, offset = list[Part](), 0
    for region in guest_regions(memory):
        host = ctypes.addressof(ctypes.c_char.from_buffer(region.view))
        parts.append(Part(region.base, region.size, host, offset))
        offset += region.size
    return tuple(parts)


def content_of(part: Part) -> NDArray[np.uint8]:
    """Its bytes, (pages, PAGE): the memory itself."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * part.size).from_address(part.host)).reshape(-1, PAGE)


def filled(content: NDArray[np.uint8]) -> NDArray[np.intp]:
    """The numbers of the pages that are not empty."""
    return np.flatnonzero(content.view(np.uint64).any(axis=1))


class RamBase:
    """RAM at one moment: a file that all of it is a private mapping of from then on."""

    def __init__(self, parts: Sequence[Part], file: int) -> None:
        """Map a file that has the bytes, in place of the memory that is there."""
        self.parts = tuple(parts)
        for part in self.parts:
            _map(part, file)

    def changed(self) -> dict[int, bytes]:
        """The pages that differ from the file, by their numbers in it."""
        found: dict[int, bytes] = {}
        for part in self.parts:
            content, first = content_of(part), part.offset // PAGE
            for at in _own_pages(part).tolist():
                found[first + at] = content[at].tobytes()
        return found

    def touched(self) -> list[int]:
        """The physical pages that may differ from the file."""
        return [part.base // PAGE + at for part in self.parts for at in _own_pages(part).tolist()]

    def restore(self, changed: Mapping[int, bytes]) -> None:
        """Let RAM have the file's bytes, but for these pages."""
        for part in self.parts:
            _forget(part)
            content, first = content_of(part), part.offset // PAGE
            for number in changed:
                if first <= number < first + len(content):
                    content[number - first] = np.frombuffer(changed[number], np.uint8)


def base_of(parts: Sequence[Part]) -> RamBase:
    """RAM of this moment, from now on as pages that are copied when the guest stores to them. Raises MachineError: the
    host has no memory for it."""
    try:
        file = os.memfd_create("kinst snapshot")
        try:
            write_ram(parts, file)
            return RamBase(parts, file)
        finally:
            os.close(file)
    except OSError as error:
        raise MachineError(f"a snapshot of {sum(one.size for one in parts) >> 20} MiB: {error.strerror}") from None


def write_ram(parts: Sequence[Part], file: int) -> None:
    """Write all that is not empty to a file; the rest of it is a hole. Raises OSError."""
    os.ftruncate(file, sum(part.size for part in parts))
    for part in parts:
        content = content_of(part)
        pages = filled(content)
        for run in np.split(pages, np.flatnonzero(np.diff(pages) != 1) + 1):
            for start in range(0, len(run), _RUN):
                some = content[run[start] : run[min(start + _RUN, len(run)) - 1] + 1]
                os.pwrite(file, some.data, part.offset + int(run[start]) * PAGE)


def _map(part: Part, file: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *(ctypes.c_int,) * 3, ctypes.c_int64)
    protection, flags = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | _NORESERVE | _FIXED
    if libc.mmap(part.host, part.size, protection, flags, file, part.offset) != part.host:
        raise MachineError(f"RAM at {part.base:#x}: {os.strerror(ctypes.get_errno())}")


def _forget(part: Part) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.madvise.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    if libc.madvise(part.host, part.size, _DONTNEED):
        raise MachineError(f"RAM at {part.base:#x}: {os.strerror(ctypes.get_errno())}")


def _own_pages(part: Part) -> NDArray[np.intp]:
    """The numbers of a part's pages that are not the file's any more. A page that was only read is the file's."""
    with _PAGE_MAP.open("rb", buffering=0) as table:
        words = np.frombuffer(os.pread(table.fileno(), part.size // PAGE * 8, part.host // PAGE * 8), np.uint64)
    is_here = (words & (_IN_MEMORY | _SWAPPED)) != 0
    return np.flatnonzero(is_here & ((words & _OF_FILE) == 0))
