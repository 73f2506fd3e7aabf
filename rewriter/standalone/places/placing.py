"""An image and how much there is to place -> where trampolines, counters and the ring go.

They must be where the guest has memory, leaves it alone, and maps it as it maps its code; and jumps must reach. Kernels
and firmware prove this only of space inside themselves (`spare`, `gaps`); of anything else the user has to know it.
What an operating system maps for a program or a library is for that alone: so trampolines go after it, within reach of
jumps, and `_NEAREST` to `_FARTHEST` bytes away. The same is done where `Request.is_watched`: there stores by others are
detected.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from kinst.rewriter.jumps.decide import end_of
from kinst.rewriter.planning.plan import probed_code
from kinst.rewriter.planning.program_headers import page_of
from kinst.rewriter.planning.slots import CHUNK, GRANULE, NOWHERE, Placement, physical_distance, place
from kinst.rewriter.program import Program
from kinst.rewriter.standalone.places.gaps import gaps
from kinst.rewriter.standalone.places.spare import Gap, SpareSpace, from_address
from kinst.rewriter.standalone.request import Request
from kinst.targets.elf.header import PT_LOAD
from kinst.targets.errors import PlacementError
from kinst.targets.hosted import is_hosted
from kinst.targets.image import Image
from kinst.targets.kernels.multiboot import boot_header
from kinst.targets.manifest.packed import Manifest
from kinst.targets.standalone import WORD, Action, Standalone
from kinst.targets.values import dataclass

_NEAREST: Final = 1 << 18
_FARTHEST: Final = 1 << 20
_CODE: Final = "--trampoline-base"
_DATA: Final = "--data-base"


@dataclass(frozen=True, slots=True)
class Places:
    """Gaps for trampolines, ascending, and the segment that is added for them, and for the data if that has no place of
    its own. The segment is NOWHERE if the gaps are inside the image."""

    gaps: tuple[Gap, ...]
    placement: Placement
    standalone: Standalone

    @property
    def trampolines(self) -> tuple[int, int]:
        """Address and size of the range that holds all trampolines."""
        return self.gaps[0][0], self.gaps[-1][1] - self.gaps[0][0]


def placed(
    program: Program, inside: SpareSpace, manifest: Manifest, request: Request, code_size: int, base: int | None
) -> Places:
    """Find the places.

    Args:
        program: the original, and what is known of it.
        inside: the space that it has inside.
        manifest: its sites count.
        request: what the sites shall do.
        code_size: bytes for trampolines in a segment of their own, a multiple of `CHUNK`.
        base: where the user wants them.

    Raises:
        PlacementError: something else is there, or nothing proves that the guest leaves any place alone.
    """
    request = replace(request, counters=manifest.forms.count(0))
    image, size = program.image, _data_size(manifest, request)
    if request.has_room:
        beside = _behind if image.facts.linux.room.is_behind else _in_front
        return beside(image, manifest, request, code_size, size)
    gaps = from_address(inside.code, base) if base is not None else inside.code
    data = inside.data_place(size) if request.data_base is None else request.data_base
    if gaps and data is not None:
        return Places(gaps, NOWHERE, request.kept_at(*_data_place(image, inside, gaps[0][0], data, size), size))
    code = probed_code(manifest.sites["address"], image.facts.trampoline_window)
    if base is None and inside.unfiled and data is not None:
        first, end = inside.unfiled
        gap = _free(image, code, min(code_size, end - first), first, _CODE)
        own = ((gap.address, gap.end),)
        return Places(own, gap, request.kept_at(*_data_place(image, inside, code, data, size), size))
    if base is None and len(program.patched_at_boot):  # Linux maps only itself
        raise PlacementError(_too_much(inside, image, code_size, size))
    if base is not None or is_hosted(image):
        return _own_segment(image, inside, request, code, code_size, size, base)
    return _within_gap(image, inside, request, code, code_size, size)


def _in_front(image: Image, manifest: Manifest, request: Request, code_size: int, size: int) -> Places:
    """Before the image's first byte: the trampolines, and the data in front of them, which is not in the file; each in
    pages of its own. Not within reach of a short jump where there is a longer one, which then reaches all of them: from
    what is near to their end their beginning may be too far. A granule stays free in between: a program header table
    that has to move follows the trampolines in their segment."""
    code = probed_code(manifest.sites["address"], image.facts.trampoline_window)
    first = min(one.address for one in image.segments if one.kind == PT_LOAD and one.size)
    page = image.facts.linux.room.page
    end = first - (page if image.facts.jump.far is None else image.facts.jump.reach)
    start = end - (code_size + -code_size % page)
    data = start - (size + -size % page)
    segment = _free(image, code, end - start, start, _CODE)
    load_address = (data - physical_distance(image.segments, code)) % (1 << 64)
    return Places(((start, end),), segment, request.kept_at(data, load_address, size))


def _behind(image: Image, manifest: Manifest, request: Request, code_size: int, size: int) -> Places:
    """After the image's last byte: the trampolines, and behind them the data, which is not in the file; each in pages
    of its own. What is linked elsewhere (Linux's per-CPU data, to 0) counts where it is loaded."""
    code, page = probed_code(manifest.sites["address"], image.facts.trampoline_window), image.facts.linux.room.page
    distance = physical_distance(image.segments, code)
    end = max((one.load_address + distance) % (1 << 64) + one.size for one in image.segments if one.kind == PT_LOAD)
    start = end + -end % page
    segment = _free(image, code, code_size, start, _CODE)
    data = segment.end + -segment.end % page
    return Places(((start, segment.end),), segment, request.kept_at(data, (data - distance) % (1 << 64), size))


def _own_segment(
    image: Image, inside: SpareSpace, request: Request, code: int, code_size: int, size: int, base: int | None
) -> Places:
    """In a segment of their own: at the user's address, or after the other segments."""
    tail = size + -size % CHUNK if request.data_base is None else 0
    code_size += -code_size % page_of(image)  # the data are in pages of their own
    start = _start(image, code, code_size) if base is None else base
    segment = _free(image, code, code_size + tail, start, _CODE)
    return _with_segment(image, inside, request, code, segment, tail, size)


def _within_gap(image: Image, inside: SpareSpace, request: Request, code: int, code_size: int, size: int) -> Places:
    """In the largest gap between two segments, as much as fits."""
    data = inside.data_place(size) if request.data_base is None else request.data_base
    tail = 0 if data is not None else size + -size % CHUNK
    header = boot_header(image)
    is_loaded = header is None or header.load is None  # else the Multiboot header says it
    first, end = next(iter(gaps(image, code)), (0, 0)) if is_loaded else (0, 0)
    has_space, is_enough = first + tail < end, first + tail + code_size <= end
    # In our own machine a place after the image is as good: what else stores there is detected.
    if request.is_watched and not (has_space and is_enough):
        return _own_segment(image, inside, request, code, code_size, size, None)
    if not has_space:
        raise PlacementError(_nothing_known(image, end - first, code_size + tail))
    segment = _free(image, code, min(code_size, end - first - tail) + tail, first, _CODE)
    return _with_segment(image, inside, request, code, segment, tail, size, data)


def _with_segment(
    image: Image,
    inside: SpareSpace,
    request: Request,
    code: int,
    segment: Placement,
    tail: int,
    size: int,
    data: int | None = None,
) -> Places:
    """`tail`: how many bytes at the end of the segment are for the data; 0 if that is at `data`, or at the user's
    address."""
    code_size = segment.size - tail
    if tail:
        address, load_address = segment.address + code_size, segment.load_address + code_size
    else:
        data = request.data_base if data is None else data
        assert data is not None, "there is a place for them"
        address, load_address = _data_place(image, inside, code, data, size)
        if address < segment.end and segment.address < address + size:
            raise PlacementError(f"{_DATA}: {size:#x} bytes at {address:#x} are where the trampolines are")
    own = ((segment.address, segment.address + code_size),)
    return Places(own, segment, request.kept_at(address, load_address, size))


def _nothing_known(image: Image, has: int, wanted: int) -> str:
    """Why there is no place: neither the image nor its loader says what it leaves alone."""
    inside = f"has room inside for {has:#x} bytes, not {wanted:#x}: ask for less, or" if has else "has no room inside:"
    return (
        f"{image.path}: nothing shows that it leaves the memory after its end alone, and it {inside} name "
        f"{wanted:#x} bytes that it neither uses nor gives away with {_CODE}, at most "
        f"{image.facts.jump.reach:#x} from its code"
    )


def _too_much(inside: SpareSpace, image: Image, code: int, data: int) -> str:
    """Why there is no place in a kernel that maps only itself."""
    gap = inside.unfiled or (0, 0)
    most_code = sum(end - start for start, end in inside.code) or gap[1] - gap[0]
    most = max((end - start for start, end in inside.data), default=0)
    has = (
        f"room inside for {most_code:#x} bytes of code and {most:#x} of data"
        if most_code and most
        else "no room inside"
    )
    fewer = "ask for fewer probes, or " if most_code and most else ""
    return (
        f"{image.path}: such a kernel maps only itself, and has {has}, not {code:#x} and {data:#x}: {fewer}say what it "
        "maps and leaves alone, with --trampoline-base and --data-base"
    )


def _data_size(manifest: Manifest, request: Request) -> int:
    if request.action is Action.COUNT:
        return WORD * len(manifest.sites)
    return request.kept_size


def _data_place(image: Image, inside: SpareSpace, code: int, base: int, size: int) -> tuple[int, int]:
    """Link and load address of data at a place that is free, or inside the image and unused."""
    if inside.has(base, size):
        return base, (base - physical_distance(image.segments, code)) % (1 << 64)
    found = _free(image, code, size + -size % CHUNK, base, _DATA)
    return found.address, found.load_address


def _start(image: Image, lowest: int, code_size: int) -> int:
    end = int(end_of(image, np.array([lowest], np.uint64))[0])
    start = min(max(lowest + image.facts.jump.reach - code_size, end + _NEAREST), end + _FARTHEST)
    return start - start % GRANULE


def _free(image: Image, code: int, size: int, base: int, option: str) -> Placement:
    try:
        return place(image.segments, code, size, image.facts.trampoline_window, base)
    except PlacementError as error:
        what = "counters" if option == _DATA else "trampolines"
        raise PlacementError(f"{what}: {str(error).partition(': ')[2]}: name another place with {option}") from None
