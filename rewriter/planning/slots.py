"""Where the probed code is, and how many sites it has -> where the trampolines go, and which slot each site gets.

This is kinst's chunk allocator (trampoline.c: struct trampchunk, kinst_trampoline_alloc), for a file: a chunk is a page
of slots of one size, filled with breakpoints, and the lowest free slots are taken first. Every site has one or more
slots of its own, all in one chunk.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.elf.header import PT_LOAD
from kinst.targets.errors import PlacementError
from kinst.targets.image import Segment
from kinst.targets.values import dataclass

CHUNK: Final = 4096  # slots never straddle it, whatever the guest's page size
GRANULE: Final = 0x1_0000  # the largest page size of the three machines: the segment shares no page with another
_ADDRESS_SPACE: Final = 1 << 64


@dataclass(frozen=True, slots=True)
class Placement:
    """The trampoline segment: link address, physical (load) address, and bytes, a multiple of `CHUNK`."""

    address: int
    load_address: int
    size: int

    @property
    def end(self) -> int:
        """The first address after it."""
        return self.address + self.size


NOWHERE: Final = Placement(0, 0, 0)  # for an image with patches and no probes


def trampoline_alloc(counts: NDArray[np.uint8], slot_size: int) -> tuple[NDArray[np.uint64], int]:
    """The offset of each trampoline in the segment, back to back, and the bytes of all chunks.

    Args:
        counts: how many slots each trampoline has.
        slot_size: bytes of a slot.
    """
    if not len(counts):
        return np.zeros(0, np.uint64), 0
    per_chunk = CHUNK // slot_size
    ends = np.cumsum(counts, dtype=np.int64)
    starts = ends - counts
    first = [0]  # row of each chunk
    # One step a chunk, not a site: the first trampoline that would cross the end of the chunk opens the next.
    while (row := _first_past(ends, first[-1], int(starts[first[-1]]) + per_chunk)) < len(ends):
        first.append(row)
    sizes = np.diff(first, append=len(ends))
    chunk = np.repeat(np.arange(len(first)), sizes)
    slots = chunk * per_chunk + starts - np.repeat(starts[first], sizes)
    return slots.astype(np.uint64) * np.uint64(slot_size), len(first) * CHUNK


def _first_past(ends: NDArray[np.int64], row: int, limit: int) -> int:
    """The first trampoline, from a row on, that ends after a limit. A chunk has at most `CHUNK` slots, so no more are
    searched."""
    return row + int(np.searchsorted(ends[row : row + CHUNK], limit, "right"))


def place(segments: Sequence[Segment], code: int, size: int, window: int, base: int | None = None) -> Placement:
    """Find a place for the trampolines.

    The default is the end of the aligned window that holds the code, less the last `GRANULE`: at the top of the address
    space the end of the segment must not wrap to 0, elsewhere it is a guard. Guests put heap and stacks after .bss and
    grow them upwards, so they reach the far end last.

    Args:
        segments: of the image.
        code: a probed address; the trampolines keep the distance between VMA and LMA of its segment.
        size: bytes needed.
        window: `ArchFacts.trampoline_window`.
        base: where the user wants them.

    Raises:
        PlacementError: no room there, or something else is there.
    """
    size += -size % CHUNK
    distance = physical_distance(segments, code)
    if base is not None:
        return _at(segments, base, size, distance)
    low = code - code % window
    for start in _candidates(segments, low, low + window, size, distance):
        if not obstacle(segments, start, size, distance):
            return Placement(start, (start - distance) % _ADDRESS_SPACE, size)
    raise PlacementError(
        f"trampolines: no room for {size:#x} bytes between {low:#x} and {low + window:#x}: name a place with "
        "--trampoline-base"
    )


def _at(segments: Sequence[Segment], base: int, size: int, distance: int) -> Placement:
    if base % CHUNK:
        raise PlacementError(f"trampolines: {base:#x} is not a multiple of {CHUNK:#x}")
    if base < 0 or base + size >= _ADDRESS_SPACE:
        raise PlacementError(f"trampolines: {size:#x} bytes at {base:#x} pass the end of the address space")
    if there := obstacle(segments, base, size, distance):
        raise PlacementError(f"trampolines: {size:#x} bytes at {base:#x} {there}")
    return Placement(base, (base - distance) % _ADDRESS_SPACE, size)


def _candidates(segments: Sequence[Segment], low: int, high: int, size: int, distance: int) -> Iterator[int]:
    """Starts inside the window, the highest first: below its end, then below each segment, as linked and as loaded."""
    tops = {high - GRANULE}
    for segment in _loaded(segments):
        tops |= {segment.address, (segment.load_address + distance) % _ADDRESS_SPACE}
    for top in sorted(tops, reverse=True):
        start = (top - size) - (top - size) % GRANULE
        if low <= start and start + size <= high - GRANULE:
            yield start


def obstacle(segments: Sequence[Segment], start: int, size: int, distance: int) -> str:
    """What is in the way of the range, as linked or as loaded; empty if nothing is."""
    load = (start - distance) % _ADDRESS_SPACE
    if load + size > _ADDRESS_SPACE:
        return f"are loaded at {load:#x}, past the end of the physical addresses"
    for segment in _loaded(segments):
        end = segment.address + segment.size
        if _overlap(start, size, segment.address, segment.size):
            return f"overlap segment {segment.index}, {segment.address:#x} to {end:#x}"
        if _overlap(load, size, segment.load_address, segment.size):
            return (
                f"are loaded at {load:#x}, over segment {segment.index}, which is loaded at {segment.load_address:#x}"
            )
    return ""


def _overlap(start: int, size: int, other: int, other_size: int) -> bool:
    return start < other + other_size and other < start + size


def _loaded(segments: Sequence[Segment]) -> list[Segment]:
    return [segment for segment in segments if segment.kind == PT_LOAD and segment.size]


def physical_distance(segments: Sequence[Segment], code: int) -> int:
    """VMA - LMA of the segment that holds the code, modulo 2**64."""
    for segment in _loaded(segments):
        if 0 <= code - segment.address < segment.size:
            return (segment.address - segment.load_address) % _ADDRESS_SPACE
    return 0
