"""An image and how much there is to place -> where trampolines, counters and the ring go.

They must be where the guest has memory, leaves it alone, and finds it by the same address map as its code; jumps must
reach. Only the user knows a board. The default is room inside the image, if it has enough; else behind it, as far as
jumps reach, and from `_NEAREST` to `_FARTHEST` bytes: guests put stacks and heaps right behind their .bss.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from kinst.rewriter.jumps.decide import end_of
from kinst.rewriter.plan import probed_code
from kinst.rewriter.program import Program
from kinst.rewriter.slots import CHUNK, GRANULE, NOWHERE, Placement, physical_distance, place
from kinst.rewriter.standalone.request import Request
from kinst.rewriter.standalone.rooms import Inside, Room, from_address
from kinst.targets.errors import PlacementError
from kinst.targets.image import Image
from kinst.targets.manifest import Manifest
from kinst.targets.standalone import RING_HEAD, WORD, Action, Standalone

_NEAREST: Final = 1 << 18
_FARTHEST: Final = 1 << 20
_DATA: Final = "--data-base"


@dataclass(frozen=True, slots=True)
class Places:
    """Rooms for trampolines, ascending, and the segment that is added for them, and for the data if they have no place
    of their own. It is NOWHERE if the rooms are inside the image."""

    rooms: tuple[Room, ...]
    placement: Placement
    standalone: Standalone

    @property
    def trampolines(self) -> tuple[int, int]:
        """Address and size of what holds all trampolines."""
        return self.rooms[0][0], self.rooms[-1][1] - self.rooms[0][0]


def placed(
    program: Program, inside: Inside, manifest: Manifest, request: Request, room: int, base: int | None
) -> Places:
    """Find the places.

    Args:
        program: the original, and what is known of it.
        inside: room that it has.
        manifest: its sites count.
        request: what they shall do.
        room: bytes for trampolines in a segment of their own, a multiple of `CHUNK`.
        base: where the user wants them.

    Raises:
        PlacementError: something else is there.
    """
    image, size = program.image, _data_size(manifest, request)
    rooms = from_address(inside.code, base) if base is not None else inside.code
    data = inside.data_place(size) if request.data_base is None else request.data_base
    if rooms and data is not None:
        return Places(rooms, NOWHERE, _standalone(request, *_data_place(image, inside, rooms[0][0], data, size), size))
    code = probed_code(manifest.sites["address"], image.facts.trampoline_window)
    if base is None and inside.gap and data is not None:
        first, end = inside.gap
        gap = _free(image, code, min(room, end - first), first, "--trampoline-base")
        own = ((gap.address, gap.end),)
        return Places(own, gap, _standalone(request, *_data_place(image, inside, code, data, size), size))
    if base is None and len(program.patched_at_boot):  # Linux
        raise PlacementError(_too_much(inside, image, room, size))
    behind = size + -size % CHUNK if request.data_base is None else 0
    start = _start(image, code, room) if base is None else base
    segment = _free(image, code, room + behind, start, "--trampoline-base")
    if request.data_base is None:
        address, load_address = segment.address + room, segment.load_address + room
    else:
        address, load_address = _data_place(image, inside, code, request.data_base, size)
        if address < segment.end and segment.address < address + size:
            raise PlacementError(f"{_DATA}: {size:#x} bytes at {address:#x} are where the trampolines are")
    own = ((segment.address, segment.address + room),)
    return Places(own, segment, _standalone(request, address, load_address, size))


def _too_much(inside: Inside, image: Image, code: int, data: int) -> str:
    """Why a kernel that maps only itself has no place for them."""
    gap = inside.gap or (0, 0)
    rooms = sum(end - start for start, end in inside.code) or gap[1] - gap[0]
    most = max((end - start for start, end in inside.data), default=0)
    has = f"room inside for {rooms:#x} bytes of code and {most:#x} of data" if rooms and most else "no room inside"
    fewer = "ask for fewer probes, or " if rooms and most else ""
    return (
        f"{image.path}: such a kernel maps only itself, and has {has}, not {code:#x} and {data:#x}: {fewer}say what it "
        "maps and leaves alone, with --trampoline-base and --data-base"
    )


def _standalone(request: Request, address: int, load_address: int, size: int) -> Standalone:
    return Standalone(request.action, address, load_address, size, request.capacity, request.fields)


def _data_size(manifest: Manifest, request: Request) -> int:
    if request.action is Action.COUNT:
        return WORD * len(manifest.sites)
    return RING_HEAD + request.capacity * _standalone(request, 0, 0, 0).stride


def _data_place(image: Image, inside: Inside, code: int, base: int, size: int) -> tuple[int, int]:
    """Link and load address of data at a place that is free, or in the image and used by nobody."""
    if inside.has(base, size):
        return base, (base - physical_distance(image.segments, code)) % (1 << 64)
    found = _free(image, code, size + -size % CHUNK, base, _DATA)
    return found.address, found.load_address


def _start(image: Image, lowest: int, room: int) -> int:
    end = int(end_of(image, np.array([lowest], np.uint64))[0])
    start = min(max(lowest + image.facts.jump.reach - room, end + _NEAREST), end + _FARTHEST)
    return start - start % GRANULE


def _free(image: Image, code: int, size: int, base: int, option: str) -> Placement:
    try:
        return place(image.segments, code, size, image.facts.trampoline_window, base)
    except PlacementError as error:
        what = "counters" if option == _DATA else "trampolines"
        raise PlacementError(f"{what}: {str(error).partition(': ')[2]}: name another place with {option}") from None
