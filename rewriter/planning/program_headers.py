"""The segments that a plan adds -> the program headers: in entries that nobody reads, or in a table that moved.

The segments are, in the order of their places in the file:

    trampolines    readable and executable
    data           readable and writable: counters or a ring of a standalone image, if they are not inside the image
    unwinding      readable: what unwinders look for, of a program or a library, and its table of program headers

Each begins in a page of its own, so that none of them is written to and executed.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.planning.plan import Plan
from kinst.rewriter.planning.slots import CHUNK, GRANULE, obstacle
from kinst.targets.elf.dynamic import is_library
from kinst.targets.elf.header import (
    ELF_HEADER,
    PF_R,
    PF_W,
    PF_X,
    PN_XNUM,
    PROGRAM_HEADER,
    PT_GNU_EH_FRAME,
    PT_LOAD,
    read_elf_header,
    read_program_headers,
)
from kinst.targets.errors import ImageError, PlacementError
from kinst.targets.hosted import is_hosted
from kinst.targets.image import Image
from kinst.targets.values import dataclass

PT_NULL: Final = 0
PT_PHDR: Final = 6
PT_GNU_STACK: Final = 0x6474E551
# Entries that no loader of kernels or firmware reads, the best first. PT_NOTE is not among them: QEMU and Xen find the
# boot protocol by it.
SPARE: Final = (PT_NULL, PT_GNU_STACK)
TEXT, DATA, UNWINDING = PF_R | PF_X, PF_R | PF_W, PF_R
_FARTHEST: Final = 1 << 30  # sorted tables of frames have distances of 31 bits
_LONGEST_HOLE: Final = 1 << 26


@dataclass(frozen=True, slots=True)
class Added:
    """A segment that is added: p_flags, where it is, its bytes in the file and in memory, and its p_align."""

    flags: int
    offset: int
    address: int
    load_address: int
    size: int
    page: int


def page_of(image: Image) -> int:
    """The size of a page, in which two segments of different use must not meet: of what an operating system maps the
    largest that it was linked for."""
    loads = [one.alignment for one in image.segments if one.kind == PT_LOAD]
    return min(max(loads, default=CHUNK), GRANULE) if is_hosted(image) else CHUNK


def is_for_unwinders(plan: Plan) -> bool:
    """Whether an operating system runs the patched file as it is: then there is a segment for unwinders, and the table
    of program headers moves to it. Its PT_GNU_STACK is never spare: without one, stacks of threads are executable."""
    return plan.manifest.standalone is not None and plan.placement.size > 0 and is_hosted(plan.original)


def is_moved(plan: Plan, count: int) -> bool:
    """Whether the table has no spare entries for so many segments more."""
    return len(_entries(plan, count)) < count


def is_loaded_behind(plan: Plan, last: Added, size: int) -> bool:
    """Whether a table of `size` bytes that moved can be in the last segment.

    Raises:
        PlacementError: it cannot, and must.
    """
    end, distance = last.address + last.size, last.address - last.load_address
    there = obstacle(plan.original.segments, end, size, distance)
    if there and any(one.kind == PT_PHDR for one in plan.original.segments):
        raise PlacementError(f"{plan.image.path}: {size:#x} bytes of program headers after the trampolines {there}")
    return not there


def _entries(plan: Plan, count: int) -> list[int]:
    """The entries that are taken for `count` segments, the best first: those that share no byte with the ELF header,
    nor with code that has sites."""
    data = plan.original.data
    header = read_elf_header(data)
    rows = read_program_headers(data, header)
    # Of what a dynamic linker loads PT_GNU_STACK is not spare: without it glibc assumes that a library wants an
    # executable stack, and since 2.41 refuses to dlopen it.
    kinds = SPARE[:1] if is_library(data, plan.original.segments) else SPARE
    found = [at for kind in kinds for at in np.flatnonzero(rows["kind"] == kind)[::-1].tolist()]
    places = [header.phoff + at * PROGRAM_HEADER.itemsize for at in found]
    own = [at for at, place in zip(found, places, strict=True) if _is_its_own(plan, place)]
    return own[:count]


def _is_its_own(plan: Plan, place: int) -> bool:
    end = place + PROGRAM_HEADER.itemsize
    sites = plan.image.offsets_of(plan.manifest.patched["address"])
    longest = max(map(len, plan.image.facts.breakpoints.values()))
    return place >= ELF_HEADER.size and not ((sites > place - longest) & (sites < end)).any()


def taken(plan: Plan, added: Sequence[Added]) -> list[tuple[int, int, bytes]]:
    """The entries that are rewritten in place: the number of each, its file offset, and its bytes. They stay where they
    are in the order, which QEMU, U-Boot, GRUB and binutils accept."""
    header = read_elf_header(plan.original.data)
    places = zip(sorted(_entries(plan, len(added))), added, strict=True)
    return [(at, header.phoff + at * PROGRAM_HEADER.itemsize, row_of(one).tobytes()) for at, one in places]


def table_size(plan: Plan, count: int) -> int:
    """Bytes of a table that moved, with `count` segments more; and one for the table of frames, if it had none."""
    rows = read_program_headers(plan.original.data, read_elf_header(plan.original.data))
    has_none = plan.frames is not None and plan.frames.is_loaded and not (rows["kind"] == PT_GNU_EH_FRAME).any()
    return (len(rows) + count + has_none) * PROGRAM_HEADER.itemsize


def moved_table(
    plan: Plan, added: Sequence[Added], place: tuple[int, int, int] | None, frames: tuple[int, int, int, int] | None
) -> NDArray[np.void]:
    """All program headers, the new ones sorted among the PT_LOADs by address, as the ELF specification asks.

    Args:
        plan: the plan.
        added: the segments.
        place: of the table: file offset, address and load address; None: it is not loaded, and no PT_PHDR says so.
        frames: of the sorted table of frames: file offset, address, load address and size; None: there is no new one.

    Raises:
        ImageError: there are too many.
    """
    rows = read_program_headers(plan.original.data, read_elf_header(plan.original.data)).copy()
    # PN_XNUM and more move the count to section header 0, which few loaders know.
    if len(rows) + len(added) + 1 >= PN_XNUM:
        raise ImageError(f"{plan.image.path}: {len(rows)} program headers leave no room for more")
    for one in added:
        higher = np.flatnonzero((rows["kind"] == PT_LOAD) & (rows["address"] > one.address))
        rows = np.insert(rows, int(higher[0]) if len(higher) else _after_last_load(rows), row_of(one))
    if frames is not None:
        rows = _with_frames(rows, frames)
    if place is not None:
        # Dynamic linkers compute the load bias from PT_PHDR: it must say where the table is now.
        itself, size = rows["kind"] == PT_PHDR, len(rows) * PROGRAM_HEADER.itemsize
        names = ("offset", "address", "load_address", "size", "file_size")
        for name, value in zip(names, (*place, size, size), strict=True):
            rows[name][itself] = value
    return rows


def _with_frames(rows: NDArray[np.void], frames: tuple[int, int, int, int]) -> NDArray[np.void]:
    offset, address, load_address, size = frames
    row = _row(PT_GNU_EH_FRAME, PF_R, offset, address, load_address, size, 4)
    own = np.flatnonzero(rows["kind"] == PT_GNU_EH_FRAME)
    if not len(own):
        return np.append(rows, row)
    rows[own] = row
    return rows


def _after_last_load(rows: NDArray[np.void]) -> int:
    loads = np.flatnonzero(rows["kind"] == PT_LOAD)
    return int(loads[-1]) + 1 if len(loads) else len(rows)


def row_of(one: Added) -> NDArray[np.void]:
    """The PT_LOAD of a segment, whose address is congruent to its file offset modulo a page."""
    return _row(PT_LOAD, one.flags, one.offset, one.address, one.load_address, one.size, one.page)


def _row(kind: int, flags: int, offset: int, address: int, load_address: int, size: int, page: int) -> NDArray[np.void]:
    row = np.zeros((), PROGRAM_HEADER)
    values = (kind, flags, offset, address, load_address, size, size, page)
    for name, value in zip(PROGRAM_HEADER.names or (), values, strict=True):
        row[name] = value
    return row


def place_for_headers(plan: Plan, size: int, file_end: int) -> tuple[int, int]:
    """Address and file offset of `size` bytes with the program headers of a program or a library in them: in front of
    the trampolines, in memory as in the file, or behind them and their data.

    Linux before 5.18 gives programs the address of this table as if it were as far from its place in the file as the
    first segment is, and ld.so and musl's find their own in the same way. So this is true of it, if that is possible.

    Raises:
        PlacementError: there is no room.
    """
    loads = [one for one in plan.original.segments if one.kind == PT_LOAD and one.size]
    first, page = min(loads, key=lambda one: one.address), page_of(plan.original)
    distance = first.address - first.offset
    ends = max(one.address + one.size for one in loads), plan.placement.end
    behind = file_end + plan.placement.size + 2 * page  # the end of trampolines and data, if they are in front of it
    for start, before in zip(ends, (file_end, behind), strict=True):
        least = max(start, distance + before)
        address = least + -least % page
        hole = address - distance - before
        if hole <= _LONGEST_HOLE and address - first.address < _FARTHEST and _is_free(plan, address, size):
            return address, address - distance
    address = plan.placement.end + -plan.placement.end % page
    if not _is_free(plan, address, size):
        raise PlacementError(
            f"{plan.image.path}: no room for {size:#x} bytes of program headers after the trampolines, at "
            f"{address:#x}: name another place with --trampoline-base"
        )
    return address, behind + (address - behind) % page


def _is_free(plan: Plan, address: int, size: int) -> bool:
    place = plan.placement
    distance = place.address - place.load_address
    is_apart = address + size <= place.address or place.end <= address
    return is_apart and not obstacle(plan.original.segments, address, size, distance)
