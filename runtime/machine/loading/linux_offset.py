"""A Linux kernel and a seed -> where it is loaded. For amd64 it is also relocated, as its decompressor would do.

A vmlinux is linked for one place. The decompressor of a bzImage puts it at a random physical address, picks a random
virtual one, and adds the distance to every address in a list, which arch/x86/tools/relocs.c makes from the relocations
that ``ld --emit-relocs`` keeps. They have already been applied; here the same ones are found and moved.

Three kinds matter. A word with an address (R_X86_64_64, 32, 32S) moves, unless it is that of an absolute symbol outside
the image. A word that refers to per-CPU data does not move, since these are linked at 0 and stay there; but if it is
relative to the moved code, it must compensate for the distance.
"""

import random
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.memory import PhysicalMemory
from kinst.targets.elf.header import PT_LOAD, SHT_SYMTAB
from kinst.targets.elf.relocations import RELA
from kinst.targets.elf.sections import Segment, content
from kinst.targets.errors import MachineError
from kinst.targets.patch import Patch

if TYPE_CHECKING:
    from kinst.targets.image import Image

_ALIGNMENT: Final = 2 << 20  # CONFIG_PHYSICAL_ALIGN: early page tables have 2 MiB pages
_TOP: Final = 0xFFFF_FFFF_C000_0000  # where modules begin (KERNEL_IMAGE_SIZE); the kernel's text is mapped below
_R_64, _R_PC32, _R_PLT32, _R_32, _R_32S, _R_PC64 = 1, 2, 4, 10, 11, 24
_ABSOLUTE: Final = 0xFFF1  # SHN_ABS
_PER_CPU: Final = ".data..percpu"
# Symbols in the per-CPU section that are addresses of where its first copy is loaded.
_NOT_PER_CPU: Final = (b"__init_begin", b"__per_cpu_load", b"init_per_cpu_")
_SYMBOL: Final = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)


def random_offset(image: "Image", segments: Sequence[Segment], ram_size: int, seed: int) -> tuple[int, int]:
    """How far the kernel's virtual and physical addresses move, within the range for its text and within RAM, in bytes.

    Raises:
        MachineError: the kernel cannot be moved.
    """
    spaces = (
        _TOP - max(segment.address + segment.size for segment in segments),
        ram_size - max(segment.load_address + segment.size for segment in segments),
    )
    if image.section(_PER_CPU) is None or not any(image.kept_relocations):
        raise MachineError(f"{image.path}: --kaslr-seed: this is no Linux kernel that keeps its relocations")
    if min(spaces) < 0:
        raise MachineError(f"{image.path}: --kaslr-seed: there is no room for it: try another --memory")
    rng = random.Random(seed)
    virtual, physical = (rng.randint(0, space // _ALIGNMENT) * _ALIGNMENT for space in spaces)
    return virtual, physical


def random_place(size: int, ram_size: int, seed: int) -> int:
    """How far a kernel that may be at any 2 MiB boundary moves, in bytes. It stays in the first half of RAM, since
    device trees and initial file systems are at the end."""
    space = max(0, ram_size // 2 - size)
    return random.Random(seed).randint(0, space // _ALIGNMENT) * _ALIGNMENT


def relocate(loaded: Loaded, memory: PhysicalMemory, patches: Sequence[Patch]) -> None:
    """Relocate a kernel in memory for its virtual offset, `Loaded.bias`. Words in code that
    patches have replaced do not exist any more."""
    for size, sign, addresses in _moved_words(loaded.image):
        for patch in patches:
            addresses = addresses[(addresses + np.uint64(size) <= patch.address) | (addresses >= patch.end)]
        for virtual, physical, length in loaded.segments:
            inside = addresses[addresses - np.uint64(virtual - loaded.bias) < np.uint64(length)]
            places = (inside - np.uint64(virtual - loaded.bias)).astype(np.int64)
            region = memory.find(physical, length)
            assert region is not None, "the loader put the segment there"
            start = physical - region.base
            ram = np.frombuffer(region.view, np.uint8)[start : start + length]
            _add(ram, places, size, sign * loaded.bias)


def _add(ram: NDArray[np.uint8], places: NDArray[np.int64], size: int, distance: int) -> None:
    """Add to words that need not be aligned."""
    at = places[:, None] + np.arange(size)
    words = np.ascontiguousarray(ram[at]).view(f"<u{size}")
    words += np.array(distance % (1 << 8 * size), f"<u{size}")
    ram[at] = words.view(np.uint8).reshape(-1, size)


def _moved_words(image: "Image") -> Iterator[tuple[int, int, NDArray[np.uint64]]]:
    """For each kind of word: its size, whether the distance is added (1) or subtracted (-1), and the link addresses."""
    is_per_cpu, is_number = _symbols(image)
    for table in image.kept_relocations:
        rows = np.frombuffer(content(image.data, table).tobytes(), RELA)
        kind, refers = rows["kind"], is_per_cpu[rows["symbol"]]
        moves = ~refers & ~is_number[rows["symbol"]]
        relative = np.isin(kind, (_R_PC32, _R_PLT32)) & refers
        for size, sign, chosen in (
            (8, 1, (kind == _R_64) & moves),
            (4, 1, np.isin(kind, (_R_32, _R_32S)) & moves),
            (4, -1, relative),
            (8, -1, (kind == _R_PC64) & refers),
        ):
            if chosen.any():
                yield size, sign, rows["offset"][chosen]


def _symbols(image: "Image") -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which rows of the symbol table are per-CPU data, and which are numbers and not addresses."""
    table = next(section for section in image.sections if section.kind == SHT_SYMTAB)
    symbols = np.frombuffer(content(image.data, table).tobytes(), _SYMBOL)
    per_cpu = image.section(_PER_CPU)
    assert per_cpu is not None, "else the image is not moved"
    found = symbols["section"] == per_cpu.index
    others = [one for one in image.segments if one.kind == PT_LOAD and one.size and one.address != per_cpu.address]
    low = min(segment.address for segment in others)
    size = max(segment.address + segment.size for segment in others) - low
    is_place = symbols["value"] - np.uint64(low) <= np.uint64(size)  # per-CPU data are loaded in between
    is_number = (symbols["section"] == _ABSOLUTE) & ~is_place
    strings = content(image.data, next(one for one in image.sections if one.index == table.link))
    for row in np.flatnonzero(found).tolist():
        start = int(symbols["name"][row])
        found[row] = not strings[start : start + 16].tobytes().startswith(_NOT_PER_CPU)
    return found, is_number
