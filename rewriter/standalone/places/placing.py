"""An image and how much there is to place -> where trampolines, counters and the ring go.

They must be where the guest has memory, leaves it alone, and finds it by the same address map as its code; jumps must
reach. A kernel or firmware proves that of room that it has inside (`rooms`, `gaps`); of anything else only the user can
know it. An operating system maps what a program or a library loads for that alone: behind it, as far as jumps reach,
and from `_NEAREST` to `_FARTHEST` bytes. So it is done where `Request.is_watched`: there it is noticed who else stores
there.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from kinst.rewriter.jumps.decide import end_of
from kinst.rewriter.planning.plan import probed_code
from kinst.rewriter.planning.slots import CHUNK, GRANULE, NOWHERE, Placement, physical_distance, place
from kinst.rewriter.program import Program
from kinst.rewriter.standalone.places.gaps import gaps
from kinst.rewriter.standalone.places.rooms import Inside, Room, from_address
from kinst.rewriter.standalone.request import Request
from kinst.targets.errors import PlacementError
from kinst.targets.hosted import is_hosted
from kinst.targets.image import Image
from kinst.targets.kernels.multiboot import boot_header
from kinst.targets.manifest.packed import Manifest
from kinst.targets.standalone import WORD, Action, Standalone

_NEAREST: Final = 1 << 18
_FARTHEST: Final = 1 << 20
_CODE: Final = "--trampoline-base"
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
        PlacementError: something else is there, or nothing says that the guest leaves any place alone.
    """
    image, size = program.image, _data_size(manifest, request)
    rooms = from_address(inside.code, base) if base is not None else inside.code
    data = inside.data_place(size) if request.data_base is None else request.data_base
    if rooms and data is not None:
        return Places(rooms, NOWHERE, _standalone(request, *_data_place(image, inside, rooms[0][0], data, size), size))
    code = probed_code(manifest.sites["address"], image.facts.trampoline_window)
    if base is None and inside.gap and data is not None:
        first, end = inside.gap
        gap = _free(image, code, min(room, end - first), first, _CODE)
        own = ((gap.address, gap.end),)
        return Places(own, gap, _standalone(request, *_data_place(image, inside, code, data, size), size))
    if base is None and len(program.patched_at_boot):  # Linux
        raise PlacementError(_too_much(inside, image, room, size))
    if base is not None or is_hosted(image):
        return _behind(image, inside, request, code, room, size, base)
    return _within_gap(image, inside, request, code, room, size)


def _behind(
    image: Image, inside: Inside, request: Request, code: int, room: int, size: int, base: int | None
) -> Places:
    """In a segment of their own: where the user says, or behind the others."""
    behind = size + -size % CHUNK if request.data_base is None else 0
    start = _start(image, code, room) if base is None else base
    segment = _free(image, code, room + behind, start, _CODE)
    return _with_segment(image, inside, request, code, segment, behind, size)


def _within_gap(image: Image, inside: Inside, request: Request, code: int, room: int, size: int) -> Places:
    """In the largest gap between two segments, with as much as it has room for, if that is anything."""
    data = inside.data_place(size) if request.data_base is None else request.data_base
    behind = 0 if data is not None else size + -size % CHUNK
    header = boot_header(image)
    is_loaded = header is None or header.load is None  # else what is loaded is not for program headers to say
    first, end = next(iter(gaps(image, code)), (0, 0)) if is_loaded else (0, 0)
    has_room, is_enough = first + behind < end, first + behind + room <= end
    if request.is_watched and not (has_room and is_enough):
        return _behind(image, inside, request, code, room, size, None)
    if not has_room:
        raise PlacementError(_nothing_known(image, end - first, room + behind))
    segment = _free(image, code, min(room, end - first - behind) + behind, first, _CODE)
    return _with_segment(image, inside, request, code, segment, behind, size, data)


def _with_segment(
    image: Image,
    inside: Inside,
    request: Request,
    code: int,
    segment: Placement,
    behind: int,
    size: int,
    data: int | None = None,
) -> Places:
    """`behind`: how many bytes of the segment, at its end, are for the data; 0 if they are at `data`, or where the user
    says."""
    room = segment.size - behind
    if behind:
        address, load_address = segment.address + room, segment.load_address + room
    else:
        data = request.data_base if data is None else data
        assert data is not None, "there is a place for them"
        address, load_address = _data_place(image, inside, code, data, size)
        if address < segment.end and segment.address < address + size:
            raise PlacementError(f"{_DATA}: {size:#x} bytes at {address:#x} are where the trampolines are")
    own = ((segment.address, segment.address + room),)
    return Places(own, segment, _standalone(request, address, load_address, size))


def _nothing_known(image: Image, has: int, wanted: int) -> str:
    """Why neither the image nor its loader says what it leaves alone."""
    inside = f"has room inside for {has:#x} bytes, not {wanted:#x}: ask for less, or" if has else "has no room inside:"
    return (
        f"{image.path}: nothing says that it leaves memory behind itself alone, and it {inside} name {wanted:#x} bytes "
        f"that it neither uses nor gives away with {_CODE}, at most {image.facts.jump.reach:#x} from its code"
    )


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
    return request.ring_size


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
