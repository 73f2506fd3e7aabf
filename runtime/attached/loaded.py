"""An image and a Qiling object that holds it -> where it was loaded, and where its trampolines can be."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from kinst.runtime.attached.guest import AttachedGuest
from kinst.runtime.attached.memory import AttachedMemory
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.targets.elf.header import PF_X, PT_LOAD
from kinst.targets.elf.sections import Segment
from kinst.targets.errors import MachineError
from kinst.targets.image import Image
from kinst.targets.manifest.packed import find_manifest

_PAGE: Final = 4096
_SAME: Final = 0.5  # of the bytes of code: breakpoints may be in it, and loaders apply relocations
_REACH: Final = 1 << 31  # of a PC-relative operand
_FAR: Final = 1 << 30  # past the end of an image, farther than its heap usually grows
_GRANULE: Final = 1 << 16


def loaded_image(image: Image, guest: AttachedGuest, memory: AttachedMemory, bias: int | None) -> Loaded:
    """Find an image in memory.

    Args:
        image: as its file has it; of a patched one without its trampolines, which Qiling need not have loaded.
        guest: says where Qiling may have loaded it.
        memory: its memory.
        bias: what was added to link addresses; None: search.

    Raises:
        MachineError: it is not there.
    """
    manifest = find_manifest(image)
    skip = None if manifest is None else manifest.trampolines[0]
    segments = [one for one in image.segments if one.kind == PT_LOAD and one.size and one.address != skip]
    lowest = min((one.address for one in segments), default=0) & -_PAGE
    tried = dict.fromkeys(_biases(image, guest, lowest) if bias is None else (bias,))
    for one in tried:
        if _is_there(image, segments, memory, one):
            placed = tuple((s.address + one, s.address + one, _mapped(s, memory, one)) for s in segments)
            return Loaded(image, one, image.entry + one, placed)
    where = ", ".join(f"{lowest + one:#x}" for one in tried)
    raise MachineError(f"{image.path}: its code is not in the memory of this Qiling object (searched at {where})")


def _biases(image: Image, guest: AttachedGuest, lowest: int) -> Iterator[int]:
    for start in guest.starts(image.path):
        yield start - lowest
    yield 0


def _is_there(image: Image, segments: list[Segment], memory: AttachedMemory, bias: int) -> bool:
    code = [one for one in segments if one.flags & PF_X and one.file_size]
    if not code or not all(memory.has(one.address + bias, one.file_size) for one in code):
        return False
    for one in code:
        wanted = image.data[one.offset : one.offset + one.file_size]
        found = np.frombuffer(memory.read(one.address + bias, one.file_size), np.uint8)
        compared = wanted != 0  # zeros match empty memory
        if compared.any() and (found == wanted)[compared].mean() < _SAME:
            return False
    return True


def _mapped(segment: Segment, memory: AttachedMemory, bias: int) -> int:
    """The bytes of a segment that are mapped: a user's own loader may have left out what is not in the file (.bss)."""
    return segment.size if memory.has(segment.address + bias, segment.size) else segment.file_size


def place_for_trampolines(loaded: Loaded, guest: AttachedGuest, size: int) -> int:
    """The address of free memory within reach of the code. Raises PlacementError."""
    start = min(virtual for virtual, _, _ in loaded.segments)
    end = max(virtual + size for virtual, _, size in loaded.segments)
    return guest.free_place(size, end + _FAR, start + _REACH - _GRANULE, _GRANULE)
