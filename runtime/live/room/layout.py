"""A Linux image whose trampolines are below it -> the room that it is loaded with: what is where, and its first bytes.

    start    a boot header that QEMU loads in place of the kernel's; its code goes on at the kernel's
    tables   pages for page tables
    data     counters, or the ring
    code     trampolines, from which the kernel may be some way off
    end      the kernel's first byte, at the same distance from a boundary of 2 MiB as without a room

All of it is as far from its physical addresses as the kernel is, so that its jumps are right before the MMU is on, too.
"""

import struct
from dataclasses import replace
from typing import Final

from kinst.rewriter.planning.slots import GRANULE
from kinst.rewriter.standalone.request import Request
from kinst.runtime.live.room.registry import regime_of
from kinst.runtime.machine.loading.linux_image import HEADER_SIZE, text_offset
from kinst.targets.elf.header import PT_LOAD
from kinst.targets.image import Image, Segment
from kinst.targets.manifest.packed import Manifest
from kinst.targets.values import dataclass

_ALIGNMENT: Final = 2 << 20  # Linux may be at any multiple of it, or at a fixed distance from one
_TABLES: Final = 2 << 20  # bytes; kernels use some six roots, each of which needs a page for the largest page's entries
_MOST: Final = 96 << 20  # bytes in front of a kernel: arm64's jump reaches 128 MiB, and modules begin that far below
_SHARE: Final = 32  # of the rest, for tables of small pages: an entry has 8 bytes, a page 4096
_RING_SHARE: Final = 8  # of the RAM, for a ring
_LEAST: Final = 16  # records
_IMAGE_SIZE: Final = 16
_PE_OFFSET: Final = 60  # zero: this is no EFI program


@dataclass(frozen=True, slots=True)
class Layout:
    """Link addresses, all of them multiples of the largest page but for `end`, and ends of ranges."""

    start: int
    tables: range
    data: range
    code: range
    end: int

    @property
    def size(self) -> int:
        """In bytes."""
        return self.end - self.start


def kernel_of(image: Image, manifest: Manifest | None = None) -> Segment | None:
    """The first segment of a kernel that may have a room; None: this is no such kernel. The trampolines of the manifest
    are not the kernel's."""
    own = None if manifest is None else manifest.trampolines[0]
    loads = [one for one in image.segments if one.kind == PT_LOAD and one.size and one.address != own]
    first = min(loads, key=lambda one: one.address, default=None)
    return first if first is not None and text_offset(image, first) is not None else None


def in_room(request: Request, memory: int) -> Request:
    """The request for an image that has a room, in a machine with so many bytes of RAM: most of these are left to the
    guest."""
    while request.kept_size > memory // _RING_SHARE and request.capacity > _LEAST:
        request = replace(request, capacity=request.capacity // 2)
    return replace(request, has_room=True)


def layout_of(image: Image, manifest: Manifest) -> Layout | None:
    """The room that an image has been made for; None: it needs none."""
    kernel, kept = kernel_of(image, manifest), manifest.standalone
    start, size = manifest.trampolines
    if kernel is None or kept is None or not kept.address < start < kernel.address <= kept.address + _MOST:
        return None
    behind = _TABLES + (kernel.address - kept.address) // _SHARE
    low = kept.address - GRANULE - (behind + -behind % GRANULE)
    low -= (low - kernel.address) % _ALIGNMENT
    tables = range(low + GRANULE, kept.address)
    return Layout(low, tables, range(kept.address, start), range(start, start + size), kernel.address)


def with_room(image: Image, layout: Layout) -> list[tuple[int, bytes | memoryview]]:
    """The memory from the room's first byte to the image's last one, as offsets and bytes; all others are zero."""
    loads = [one for one in image.segments if one.kind == PT_LOAD and one.file_size]
    kernel = next(one for one in loads if one.address == layout.end)
    found: list[tuple[int, bytes | memoryview]] = [(0, _boot_header(image, kernel, layout))]
    for one in loads:
        content = image.data[one.offset : one.offset + one.file_size]
        found.append((one.address - layout.start, content.data))
    return found


def _boot_header(image: Image, kernel: Segment, layout: Layout) -> bytes:
    """The kernel's header, with another beginning, and with the room's size as well."""
    header = bytearray(image.data[kernel.offset : kernel.offset + HEADER_SIZE].tobytes())
    header[:8] = regime_of(image.facts).start(layout.size)
    (size,) = struct.unpack_from("<Q", header, _IMAGE_SIZE)
    struct.pack_into("<Q", header, _IMAGE_SIZE, size + layout.size)
    struct.pack_into("<I", header, _PE_OFFSET, 0)
    return bytes(header)
